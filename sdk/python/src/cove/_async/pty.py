"""Terminals: a shell behind a WebSocket, which continues without its client."""
from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from .. import _io_async as io
from .._core.lines import parse_object
from ..errors import ProtocolError, stream_error
from ..models import CommandResult
from .commands import AsyncCommandHandle
from .transport import AsyncWebSocket

if TYPE_CHECKING:
    from .sandbox import AsyncSandbox

# The server pings every 20 seconds.
SILENCE = 90.0


class AsyncTerminal:
    """What is typed and shown. As a context manager it ends the shell with the block; `close()` only leaves it."""

    def __init__(self, socket: AsyncWebSocket, handle: AsyncCommandHandle, offset: int) -> None:
        self._socket, self._handle = socket, handle
        self.proc = handle.proc
        self.offset = offset
        """Behind the last byte that was shown: `connect(proc, offset=…)` continues there."""
        self.exit: Optional[CommandResult] = None

    async def send(self, data: Union[str, bytes]) -> None:
        """Types something. A line ends with "\\n"."""
        await self._socket.send(data.encode("utf-8") if isinstance(data, str) else data)

    async def resize(self, rows: int, columns: int) -> None:
        await self._socket.send(json.dumps({"type": "resize", "rows": rows, "columns": columns}))

    async def receive(self) -> Optional[bytes]:
        """What is shown next; None: the shell ended, and `exit` says how."""
        while self.exit is None:
            message = await self._socket.receive()
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

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (data := await self.receive()) is not None:
            yield data

    async def wait(self, on_data: Optional[Callable[[bytes], Any]] = None) -> CommandResult:
        """Follows the shell to its end."""
        while (data := await self.receive()) is not None:
            await io.call_back(on_data, data)
        assert self.exit is not None
        return self.exit

    async def kill(self) -> bool:
        """Ends the shell with all that it started."""
        return await self._handle.kill()

    def close(self) -> None:
        """Leaves the shell running; `pty.connect(proc)` comes back to it."""
        self._socket.close()

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()
        if self.exit is None:
            await self.kill()


class AsyncPty:
    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._client, self._id = sandbox.client, sandbox.id

    async def create(self, *, rows: int = 24, columns: int = 80, command: Optional[str] = None, cwd: Optional[str] = None,
                     user: Optional[str] = None) -> AsyncTerminal:
        """A shell, or `command`, in a terminal."""
        return await self._open({"rows": rows, "columns": columns, "command": command, "cwd": cwd, "user": user}, 0)

    async def connect(self, proc: int, *, offset: int = 0, rows: Optional[int] = None, columns: Optional[int] = None) -> AsyncTerminal:
        """Back to a terminal that runs, from byte `offset` of what it showed."""
        return await self._open({"proc": proc, "from": offset, "rows": rows, "columns": columns}, offset)

    async def _open(self, query: dict[str, Any], offset: int) -> AsyncTerminal:
        socket = await self._client.websocket("terminal", id=self._id, query=query, timeout=SILENCE)
        try:
            first = await socket.receive()
            if not isinstance(first, str):
                raise ProtocolError("the terminal did not start")
            event = parse_object(first.encode("utf-8"))
            if event.get("type") == "error":
                raise stream_error(event.get("error"), None)
            proc = event.get("proc")
            if not isinstance(proc, int):
                raise ProtocolError("the terminal did not start")
            return AsyncTerminal(socket, AsyncCommandHandle(self._client, self._id, proc), offset)
        except BaseException:
            socket.close()
            raise

    async def kill(self, proc: int) -> bool:
        return await AsyncCommandHandle(self._client, self._id, proc).kill()
