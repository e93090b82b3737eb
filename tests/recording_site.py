"""Where recordings lie: an HTTP server on loopback, good and bad, and a resolver that says what a test wants."""

from __future__ import annotations

import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BODY = bytes(range(256)) * 40


class Files(BaseHTTPRequestHandler):
    """What recordings lie on: /ok, /to?URL redirects, and everything that may be wrong with such a server."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, dict[str, str]]]
    body: bytes

    def do_GET(self):
        self.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        url = urlsplit(self.path)
        getattr(self, f"_{url.path.strip('/')}", self._missing)(parse_qs(url.query))

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"content_length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _ok(self, query):
        self._answer(200, self.body)

    def _chunked(self, query):
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for at in range(0, len(BODY), 1000):
            piece = BODY[at : at + 1000]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _until_close(self, query):
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + BODY)
        self.close_connection = True

    def _to(self, query):
        self._answer(int(query.get("status", ["302"])[0]), location=query["url"][0])

    def _nowhere(self, query):
        self._answer(302)

    def _loop(self, query):
        self._answer(302, location="/loop")

    def _missing(self, query):
        self._answer(404, b"no")

    def _partial(self, query):
        self._answer(206, BODY)

    def _announced(self, query):
        self._answer(200, b"x" * 100, content_length=str(1 << 40))

    def _endless(self, query):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 10_000)
        except OSError:
            self.close_connection = True

    def _slow(self, query):
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(600):
                self.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            pass
        self.close_connection = True

    def _short(self, query):
        self._answer(200, b"x" * 100, content_length="200")
        self.close_connection = True

    def _headers(self, query):
        self._answer(200, BODY, x="y" * 100_000)

    def _nonsense(self, query):
        self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        self.close_connection = True

    def log_message(self, *args):
        pass


class Site(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None, body: bytes = BODY) -> None:
        handler = type("Handler", (Files,), {"seen": [], "body": body})
        super().__init__(("127.0.0.1", 0), handler)
        self.seen: list[tuple[str, dict[str, str]]] = handler.seen
        self.port: int = self.server_address[1]
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.port}"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    def handle_error(self, request, client_address):
        pass  # clients that leave

    def end(self) -> None:
        self.shutdown()
        self.thread.join(10)
        self.server_close()


class Names:
    """A resolver: the answers in turn, the last one for ever."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
