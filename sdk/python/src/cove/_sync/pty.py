# Made of _async/pty.py by sdk/python/make_sync.py. Change that file, then run it.
"""Terminals: a shell behind a WebSocket, which continues without its client."""
from __future__ import annotations

import json
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from .. import _io_sync as io
from .._core.lines import parse_object
from ..errors import ProtocolError, stream_error
from ..models import CommandResult
from .commands import CommandHandle
from .transport import WebSocket

if TYPE_CHECKING:
    from .sandbox import Sandbox

# The server pings every 20 seconds.
SILENCE = 90.0


class Terminal:
    """What is typed and shown. As a context manager it ends the shell with the block; `close()` only leaves it."""

    def __init__(self, socket: WebSocket, handle: CommandHandle, offset: int) -> None:
        self._socket, self._handle = socket, handle
        self.proc = handle.proc
        self.offset = offset
        """Behind the last byte that was shown: `connect(proc, offset=…)` continues there."""
        self.exit: Optional[CommandResult] = None

    def send(self, data: Union[str, bytes]) -> None:
        """Types something. A line ends with "\\n"."""
        self._socket.send(data.encode("utf-8") if isinstance(data, str) else data)

    def resize(self, rows: int, columns: int) -> None:
        self._socket.send(json.dumps({"type": "resize", "rows": rows, "columns": columns}))

    def receive(self) -> Optional[bytes]:
        """What is shown next; None: the shell ended, and `exit` says how."""
        while self.exit is None:
            message = self._socket.receive()
            if message is None:
                raise ProtocolError("the terminal was closed before the shell ended")
            if isinstance(message, bytes):
                self.offset += len(message)
                return message
            self._take(parse_object(message.encode("utf-8")))
        return None

    def _take(self, event: dict[str, Any]) -> None:
        if event.get("type") == "error":
            raise stream_error(event.get("error"), None)
        if event.get("type") == "end":
            self.exit = CommandResult("", "", event.get("exit_code", -1), event.get("exit_reason", "lost"), proc=self.proc, raw=event)
            self._socket.close()

    def __iter__(self) -> Iterator[bytes]:
        while (data := self.receive()) is not None:
            yield data

    def wait(self, on_data: Optional[Callable[[bytes], Any]] = None) -> CommandResult:
        """Follows the shell to its end."""
        while (data := self.receive()) is not None:
            io.call_back(on_data, data)
        assert self.exit is not None
        return self.exit

    def kill(self) -> bool:
        """Ends the shell with all that it started."""
        return self._handle.kill()

    def close(self) -> None:
        """Leaves the shell running; `pty.connect(proc)` comes back to it."""
        self._socket.close()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()
        if self.exit is None:
            self.kill()


class Pty:
    def __init__(self, sandbox: Sandbox) -> None:
        self._client, self._id = sandbox.client, sandbox.id

    def create(self, *, rows: int = 24, columns: int = 80, command: Optional[str] = None, cwd: Optional[str] = None,
                     user: Optional[str] = None) -> Terminal:
        """A shell, or `command`, in a terminal."""
        return self._open({"rows": rows, "columns": columns, "command": command, "cwd": cwd, "user": user}, 0)

    def connect(self, proc: int, *, offset: int = 0, rows: Optional[int] = None, columns: Optional[int] = None) -> Terminal:
        """Back to a terminal that runs, from byte `offset` of what it showed."""
        return self._open({"proc": proc, "from": offset, "rows": rows, "columns": columns}, offset)

    def _open(self, query: dict[str, Any], offset: int) -> Terminal:
        socket = self._client.websocket("terminal", id=self._id, query=query, timeout=SILENCE)
        try:
            first = socket.receive()
            if not isinstance(first, str):
                raise ProtocolError("the terminal did not start")
            event = parse_object(first.encode("utf-8"))
            if event.get("type") == "error":
                raise stream_error(event.get("error"), None)
            proc = event.get("proc")
            if not isinstance(proc, int):
                raise ProtocolError("the terminal did not start")
            return Terminal(socket, CommandHandle(self._client, self._id, proc), offset)
        except BaseException:
            socket.close()
            raise

    def kill(self, proc: int) -> bool:
        return CommandHandle(self._client, self._id, proc).kill()
