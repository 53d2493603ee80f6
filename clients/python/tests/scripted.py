"""A server whose connections do what a test says: answer, answer slowly, cut, reset, or stay silent.

It has sockets of its own and is no proxy that spoils connections: it cuts at the byte that a test names, and a host needs
no further program.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Came:
    """A request, as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> object:
        return json.loads(self.body)


Script = Callable[[socket.socket, Came], None]


@dataclass
class Scripted:
    """Handles each request with the next script; the last one serves all further ones."""

    scripts: list[Script]
    came: list[Came] = field(default_factory=list)
    open: int = 0

    def __enter__(self) -> Scripted:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._accept, name="scripted", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="scripted-connection", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            self.open += 1
        try:
            with connection:
                connection.settimeout(30)
                rest = b""
                while True:
                    came, rest = _request(connection, rest)
                    if came is None:
                        return
                    with self._lock:
                        self.came.append(came)
                        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                    script(connection, came)
        except OSError:
            pass
        finally:
            with self._lock:
                self.open -= 1


def _request(connection: socket.socket, rest: bytes) -> tuple[Came | None, bytes]:
    while b"\r\n\r\n" not in rest:
        part = connection.recv(65536)
        if not part:
            return None, b""
        rest += part
    head, rest = rest.split(b"\r\n\r\n", 1)
    line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
    length = int(headers.get("content-length", "0"))
    while len(rest) < length:
        rest += connection.recv(65536)
    return Came(method, target, headers, rest[:length]), rest[length:]


def head(status: int, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode()


def answers(status: int, body: object = None, headers: dict[str, str] | None = None) -> Script:
    """A whole answer."""
    content = b"" if body is None else json.dumps(body).encode()

    def script(connection: socket.socket, _: Came) -> None:
        given = {"content-length": str(len(content)), "content-type": "application/json", **(headers or {})}
        connection.sendall(head(status, given) + content)

    return script


def refuses(status: int, code: str, headers: dict[str, str] | None = None, **details: object) -> Script:
    error = {"code": code, "message": f"It is {code}.", "details": details, "requestId": "req-1"}
    return answers(status, {"error": error}, headers)


def text(content: bytes, *, status: int = 200, kind: str = "text/html") -> Script:
    def script(connection: socket.socket, _: Came) -> None:
        connection.sendall(head(status, {"content-length": str(len(content)), "content-type": kind}) + content)

    return script


def sends(*parts: bytes, then: Callable[[socket.socket], None] | None = None) -> Script:
    """A stream of server-sent events that ends with its connection."""

    def script(connection: socket.socket, _: Came) -> None:
        connection.sendall(head(200, {"content-type": "text/event-stream", "connection": "close"}))
        for part in parts:
            connection.sendall(part)
        (then or close)(connection)

    return script


def close(connection: socket.socket) -> None:
    """A clean end."""
    connection.shutdown(socket.SHUT_WR)
    raise OSError


def reset(connection: socket.socket, _: Came | None = None) -> None:
    """An end by RST, as of a process that is killed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    raise OSError


def silent(connection: socket.socket, _: Came | None = None) -> None:
    """Says nothing, until the other side leaves."""
    connection.settimeout(None)
    while connection.recv(65536):
        pass
    raise OSError


def beats(connection: socket.socket, seconds: float) -> None:
    """A comment twenty times a second, for so long."""
    for _ in range(round(seconds * 20)):
        time.sleep(0.05)
        connection.sendall(b":\n\n")


def event(number: int, kind: str = "task.started", **data: object) -> bytes:
    body = {"seq": number, "kind": kind, "createdAt": "2026-11-25T09:30:12.043Z", "data": data}
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


def passing(kind: str, **data: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


END = passing("stream.end", reason="run-finished")
SOON = b"retry: 10\n\n"


def number_in(came: Came) -> int | None:
    """After which event a stream was asked for, as header and query say."""
    found = re.search(r"[?&]after=(\d+)", came.target)
    assert (found[1] if found else None) == came.headers.get("last-event-id")
    return int(found[1]) if found else None
