"""A line to a server, which a test cuts."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from ..scripted import reset

#: What one connection lets through of what the server says: `pass_on` gives the bytes and whether the connection goes on.
PassOn = Callable[[bytes], tuple[bytes, bool]]


class Line:
    """Joins each connection with one to the server. What the server says of the pause before coming back is shortened."""

    def __init__(self, url: str, begin: Callable[[int], PassOn], *, is_cut_by_reset: Callable[[], bool]) -> None:
        self._port = int(url.rsplit(":", 1)[1])
        self._begin = begin
        self._is_cut_by_reset = is_cut_by_reset
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        threading.Thread(target=self._accept, name="line", daemon=True).start()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._join, args=(near, self.connections), name="line-near", daemon=True).start()

    def _join(self, near: socket.socket, number: int) -> None:
        pass_on = self._begin(number)
        with near, socket.create_connection(("127.0.0.1", self._port)) as far:
            back = threading.Thread(target=_copy, args=(near, far), name="line-far", daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                while part := far.recv(65536):
                    given, goes_on = pass_on(part.replace(b"retry: 2000", b"retry: 0001"))
                    near.sendall(given)
                    if not goes_on:
                        if self._is_cut_by_reset():
                            # A thread that reads holds the connection open.
                            near.shutdown(socket.SHUT_RD)
                            back.join(timeout=60)
                            reset(near)
                        break
            # The copy in the other direction waits for the client otherwise.
            with contextlib.suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)


def _copy(near: socket.socket, far: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := near.recv(65536):
            far.sendall(part)
    with contextlib.suppress(OSError):
        far.shutdown(socket.SHUT_RDWR)


def cuts_after(most: int) -> PassOn:
    """Lets so many bytes through."""
    left = most

    def pass_on(part: bytes) -> tuple[bytes, bool]:
        nonlocal left
        given = part[: max(0, left)]
        left -= len(part)
        return given, left > 0

    return pass_on


def lets_all_through(part: bytes) -> tuple[bytes, bool]:
    return part, True
