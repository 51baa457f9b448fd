"""I/O for the blocking client: connections, waiting, callbacks. _io_async.py has the same names with async."""
from __future__ import annotations

import atexit
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import IO, Any, Optional, TypeVar

from ._core.endpoint import Endpoint
from ._core.request import parts_of_here
from .errors import ConnectionFailedError, RequestTimeoutError

T = TypeVar("T")
C = TypeVar("C")
PART = 256 * 1024


class Channel:
    """One connection. Not for several threads at a time, but close() may come from any."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._closed = False

    @classmethod
    def open(cls, endpoint: Endpoint, tls: Optional[ssl.SSLContext], timeout: float) -> Channel:
        try:
            if endpoint.socket_path is not None:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sock.settimeout(timeout)
                _connect_unix(sock, endpoint.socket_path)
            else:
                sock = socket.create_connection((endpoint.host, endpoint.port), timeout)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if endpoint.tls:
                    sock = _wrap(sock, tls or ssl.create_default_context(), endpoint.host)
        except TimeoutError:
            raise ConnectionFailedError(f"no connection to {endpoint.url} within {timeout:g} s") from None
        except OSError as error:
            raise ConnectionFailedError(f"no connection to {endpoint.url}: {error}") from error
        return cls(sock)

    def send(self, data: bytes, timeout: float) -> None:
        try:
            self._sock.settimeout(timeout)
            self._sock.sendall(data)
        except TimeoutError:
            raise RequestTimeoutError(f"the server took nothing for {timeout:g} s") from None
        except (OSError, ValueError) as error:
            raise ConnectionFailedError(f"the connection broke: {error}") from error

    def recv(self, timeout: float) -> bytes:
        """What came; nothing at the end of the connection."""
        try:
            self._sock.settimeout(timeout)
            data = self._sock.recv(PART)
        except TimeoutError:
            raise RequestTimeoutError(f"the server said nothing for {timeout:g} s") from None
        except (OSError, ValueError) as error:
            raise ConnectionFailedError(f"the connection broke: {error}") from error
        if not data and self._closed:
            raise ConnectionFailedError("the connection was closed by this program")
        return data

    def is_quiet(self) -> bool:
        """Whether another request can be sent: the server neither closed the connection nor sent anything."""
        if self._closed:
            return False
        try:
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            return not poll.poll(0)
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        self._closed = True
        try:
            self._sock.shutdown(socket.SHUT_RDWR)  # also wakes a thread that waits in recv()
        except OSError:
            pass
        self._sock.close()


def _connect_unix(sock: socket.socket, path: str) -> None:
    try:
        sock.connect(path)
    except BaseException:
        sock.close()
        raise


def _wrap(sock: socket.socket, tls: ssl.SSLContext, host: str) -> socket.socket:
    try:
        return tls.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


Guard: Callable[[], Any] = threading.Lock


_shared: dict[str, Any] = {}


def shared(key: str, make: Callable[[], C]) -> C:
    """One object for each key, closed when the program ends."""
    with _shared_guard:
        if key not in _shared:
            _shared[key] = make()
            atexit.register(_shared[key].close)
        found: C = _shared[key]
        return found


_shared_guard = threading.Lock()


def pause(seconds: float) -> None:
    time.sleep(seconds)


def call_back(function: Optional[Callable[[T], object]], value: T) -> None:
    """Calls a callback of the user's."""
    if function is not None:
        function(value)


parts_of = parts_of_here


def write_part(file: IO[bytes], data: bytes) -> None:
    file.write(data)
