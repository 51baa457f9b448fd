# Made of _async/tunnel.py by sdk/python/make_sync.py. Change that file, then run it.
"""A connection to a TCP port of a sandbox: bytes both ways over one WebSocket."""
from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Optional

from .._core.lines import parse_object
from ..errors import ProtocolError, stream_error
from .transport import WebSocket


class Tunnel:
    """Bytes of the port. As a context manager it closes the connection with the block."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._over = False

    def send(self, data: bytes) -> None:
        self._socket.send(data)

    def send_end(self) -> None:
        """No more bytes follow; the other direction continues."""
        self._socket.send('{"type":"end"}')

    def receive(self) -> Optional[bytes]:
        """The next bytes; None: the server in the sandbox sends no more."""
        while not self._over:
            message = self._socket.receive()
            if message is None:
                raise ProtocolError("the tunnel was closed before the end of the connection")
            if isinstance(message, bytes):
                return message
            event = parse_object(message.encode("utf-8"))
            if event.get("type") == "error":
                raise stream_error(event.get("error"), None)
            self._over = event.get("type") == "end"
        return None

    def __iter__(self) -> Iterator[bytes]:
        while (data := self.receive()) is not None:
            yield data

    def close(self) -> None:
        """Ends the connection, in both directions."""
        self._socket.close()

    def __enter__(self) -> Tunnel:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()
