"""Which addresses a server may call on behalf of a client that it knows nothing about."""

from __future__ import annotations

import ipaddress

_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is assigned to the world
_TUNNEL = ipaddress.ip_network("2002::/16")  # 6to4: an IPv4 address inside
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # what networks without IPv4 answer for an IPv4 address


def is_public(text: str) -> bool:
    """Whether an IP address, as a resolver writes it, is one of the public internet: no private, loopback, link-local, shared,
    multicast or reserved one, and none that stands for such an IPv4 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return _is_public_v4(address.ipv4_mapped)
        if address in _NAT64:
            return _is_public_v4(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        return address in _UNICAST and address not in _TUNNEL and address.is_global
    return _is_public_v4(address)


def _is_public_v4(address: ipaddress.IPv4Address) -> bool:
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
