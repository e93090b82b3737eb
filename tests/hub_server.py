"""A local server that speaks as much of the Hugging Face hub's HTTP API as a download uses, with faults to order."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LFS_SUFFIXES = (".safetensors", ".npy", ".onnx", ".data", ".bin")


@dataclass
class HubState:
    """repos: name -> {path: content}.

    cut_after: path -> offset at which the connection drops while `cuts` are left; dead_after: from there on nothing comes.
    stall_after: path -> offset after which the server says no more and keeps the connection, until `going_on`.
    """

    repos: dict[str, dict[str, bytes]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    token: str | None = None
    damaged: set[str] = field(default_factory=set)
    cut_after: dict[str, int] = field(default_factory=dict)
    cuts: int = 0
    dead_after: int | None = None
    ignore_ranges: bool = False
    stall_after: dict[str, int] = field(default_factory=dict)
    going_on: threading.Event = field(default_factory=threading.Event)
    status: int | None = None
    log: list[tuple[str, str, str | None]] = field(default_factory=list)
    served: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def add_folder(self, repo: str, folder: Path) -> None:
        self.repos[repo] = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def ranges(self) -> list[str]:
        return [r for method, _, r in self.log if method == "GET" and r]

    def downloads(self) -> list[str]:
        return [path for method, path, _ in self.log if method == "GET" and path.startswith("/cdn/")]


def make_handler(state: HubState) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            return

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            state.log.append((self.command, path, self.headers.get("Range")))
            if state.status is not None:
                return self.error(state.status, "", "the server is unwell")
            if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
                return self.info(match[1], match[2])
            if match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
                return self.resolve(match[1], match[2], match[3], body)
            if match := re.fullmatch(r"/cdn/([^/]+/[^/]+)/(.+)", path):
                return self.content(state.repos[match[1]][match[2]], match[2], body, {})
            return self.error(404, "", "no such route")

        def refused(self, repo: str, revision: str | None) -> bool:
            if repo not in state.repos:
                self.error(401, "RepoNotFound", "Invalid username or password.")
            elif repo in state.gated and self.headers.get("Authorization") != f"Bearer {state.token}":
                self.error(403, "GatedRepo", "Access to this model is restricted.")
            elif revision not in (None, "main", "v1", COMMIT):
                self.error(404, "RevisionNotFound", "Invalid rev id")
            else:
                return False
            return True

        def info(self, repo: str, revision: str | None) -> None:
            if self.refused(repo, revision):
                return
            siblings = []
            for name, content in state.repos[repo].items():
                sha1 = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
                item: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": sha1}
                if name.endswith(LFS_SUFFIXES):
                    item["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
                siblings.append(item)
            value = {"id": repo, "modelId": repo, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings}
            self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def resolve(self, repo: str, revision: str, name: str, body: bool) -> None:
            if self.refused(repo, revision):
                return
            if name not in state.repos[repo]:
                return self.error(404, "EntryNotFound", "Entry not found")
            content = state.repos[repo][name]
            headers = {"X-Repo-Commit": COMMIT, "X-Linked-Size": str(len(content))}
            if not name.endswith(LFS_SUFFIXES):
                return self.content(content, name, body, headers | {"ETag": f'"{hashlib.sha1(content).hexdigest()}"'})
            headers |= {"X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"', "Location": f"/cdn/{repo}/{name}"}
            self.send(302, b"", headers)

        def content(self, content: bytes, name: str, body: bool, headers: dict[str, str]) -> None:
            if name in state.damaged:
                content = bytes([content[0] ^ 1]) + content[1:]
            status, start = 200, 0
            if not state.ignore_ranges and (match := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")):
                status, start = 206, int(match[1])
                headers = headers | {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
            cut = state.cut_after.get(name)
            if body and cut is not None and state.cuts > 0 and (start < cut or start == state.dead_after):
                state.cuts -= 1
                self.send_response(status)
                for key, value in (headers | {"Content-Length": str(len(content) - start)}).items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(content[start:cut])
                self.wfile.flush()
                state.served.set()
                self.close_connection = True
                return
            if body and name in state.stall_after:
                return self.stall(content, state.stall_after[name], status, headers)
            self.send(status, content[start:] if body else b"", headers, length=len(content) - start)

        def stall(self, content: bytes, after: int, status: int, headers: dict[str, str]) -> None:
            """Send a first part, then nothing, with the connection left open."""
            self.send_response(status)
            for key, value in (headers | {"Content-Length": str(len(content))}).items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(content[:after])
            self.wfile.flush()
            state.served.set()
            state.going_on.wait(60)
            self.close_connection = True

        def send(self, status: int, content: bytes, headers: dict[str, str], length: int | None = None) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content) if length is None else length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def error(self, status: int, code: str, message: str) -> None:
            headers = {"X-Error-Code": code} if code else {}
            self.send(status, json.dumps({"error": message}).encode(), headers | {"X-Error-Message": message})

    return Handler


@contextlib.contextmanager
def hub_server() -> Iterator[HubState]:
    state = HubState()
    server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(state))
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.going_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
