"""What an operator decides, as a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ouzel.errors import ConfigError, choose
from ouzel.serve.address import Address, is_loopback

COMPATS = ("openai", "vllm-omni")
PORT = 8000
HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """host, port: where to listen; port 0 takes a free one. compat: whose defaults apply where OpenAI and vLLM-Omni differ.
    api_keys: any of them opens the API; none: it is open, which only a loopback address may be unless allow_unauthenticated.
    cors_origins: web pages of these origins may use the API from a browser. allowed_hosts: names besides IP addresses and
        localhost by which a browser may call an open loopback server (against DNS rebinding).
    concurrency: utterances spoken at once; queue: requests that may wait beside them, one more is answered 429.
    served_names: further names of the model. voice_aliases: further names of voices.
    max_body_bytes, max_input_chars, max_batch_items: of one request. body_timeout_s: to receive a request's body.
    write_stall_s: a client that takes nothing for so long is dropped. synthesis_timeout_s: how long a client waits for the engine
        in all; time in which the client itself is slow does not count. drain_s: after SIGTERM, for what is being spoken.
    session_config_s, session_idle_s: how long a WebSocket session waits for its first message, and for any other (contract 8.6).
    wyoming: where to listen for Wyoming, tcp://HOST:PORT or unix:///PATH; it has no keys, so that an address beyond this machine
        needs allow_unauthenticated. max_wyoming_clients: at once. wyoming_idle_s: one that is silent for so long while nothing is
        spoken for it is dropped.
    allow_remote_audio: fetch recordings that clients name by http and https, from public addresses; private_audio_hosts: HOST or
        HOST:PORT of any address besides, lower-case. allowed_local_media_path: clients may name recordings below this directory.
        max_recording_bytes, recording_timeout_s: of one, and to fetch it.
    log_text: write requests' texts into the log.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    compat: str = "openai"
    api_keys: tuple[str, ...] = ()
    allow_unauthenticated: bool = False
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    concurrency: int = 8
    queue: int = 16
    served_names: tuple[str, ...] = ()
    voice_aliases: Mapping[str, str] = field(default_factory=dict)
    max_body_bytes: int = 4 << 20
    max_input_chars: int = 20_000
    max_batch_items: int = 32
    body_timeout_s: float = 30.0
    write_stall_s: float = 60.0
    synthesis_timeout_s: float = 600.0
    session_config_s: float = 10.0
    session_idle_s: float = 30.0
    drain_s: float = 20.0
    wyoming: tuple[str, ...] = ()
    wyoming_idle_s: float = 300.0
    max_wyoming_clients: int = 64
    allow_remote_audio: bool = False
    private_audio_hosts: tuple[str, ...] = ()
    allowed_local_media_path: str | None = None
    max_recording_bytes: int = 16 << 20
    recording_timeout_s: float = 20.0
    log_text: bool = False

    def __post_init__(self) -> None:
        if self.compat not in COMPATS:
            raise choose("compat", self.compat, COMPATS, error=ConfigError)
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"The port must be from 0 to 65535, not {self.port}.")
        for name in (
            "concurrency",
            "max_body_bytes",
            "max_input_chars",
            "max_batch_items",
            "max_wyoming_clients",
            "max_recording_bytes",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.queue < 0:
            raise ConfigError(f"queue must be at least 0, not {self.queue}.")
        for name in (
            "body_timeout_s",
            "write_stall_s",
            "synthesis_timeout_s",
            "session_config_s",
            "session_idle_s",
            "wyoming_idle_s",
            "recording_timeout_s",
        ):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be a positive number of seconds, not {getattr(self, name)}.")
        if any(not key for key in self.api_keys):
            raise ConfigError("An API key must not be empty.")
        if self.private_audio_hosts and not self.allow_remote_audio:
            raise ConfigError("--private-audio-host says more of --allow-remote-audio, which is not given.")
        for host in self.private_audio_hosts:
            if not HOST.fullmatch(host):
                raise ConfigError(f"--private-audio-host {host!r} must be HOST or HOST:PORT, with IPv6 as [::1].")
        if not self.loopback and not self.api_keys and not self.allow_unauthenticated:
            raise ConfigError(
                f"Anyone who reaches {self.host} could use the server: give --api-key, or --allow-unauthenticated if so meant."
            )
        for uri in self.wyoming:
            if not Address.parse(uri).local and not self.allow_unauthenticated:
                raise ConfigError(
                    f"Wyoming has no keys, anyone who reaches {uri} could use it: give --allow-unauthenticated if so meant."
                )

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def vllm(self) -> bool:
        return self.compat == "vllm-omni"
