"""The page at `/`: a text, a voice, a button, and how the audio arrives against how it is played. Static files of the package."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import Response

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
# Route -> file. No other name is ever looked up, so that there is no path to climb.
PAGE = {"/": "index.html"} | {
    f"/page/{name}": name
    for name in (
        "page.css",
        "icon.svg",
        "page.js",
        "api.js",
        "pcm.js",
        "speech.js",
        "player.js",
        "scheduled.js",
        "worklet.js",
        "timeline.js",
    )
}
# Nothing from elsewhere, nothing inline, in nobody's frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def page() -> APIRouter:
    """The routes of the page; they say nothing about the server, so they need no key."""
    router = APIRouter(include_in_schema=False)
    for path, name in PAGE.items():
        router.add_api_route(path, _sender(name), methods=["GET", "HEAD"])
    return router


def _sender(name: str) -> Callable[[], Response]:
    body = files(__name__).joinpath(name).read_bytes()
    media_type = _TYPES[name.rpartition(".")[2]]

    def send() -> Response:
        return Response(body, media_type=media_type, headers=_HEADERS)

    return send
