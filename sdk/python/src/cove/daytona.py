"""The few calls of Daytona's SDK that run a task in a terminal and follow its output, on cove.

    async with AsyncDaytona() as daytona:
        sandbox = await daytona.create()
        await sandbox.process.exec("npm install -g some-tool")
        pty = await sandbox.process.create_pty()
        await pty.send("some-tool\\n")
        async for text in pty.on_data():
            print(text, end="")
        await daytona.delete(sandbox)
"""
from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Optional

from ._async.client import AsyncCove
from ._async.pty import AsyncTerminal
from ._async.sandbox import AsyncSandbox
from .errors import ConnectionFailedError, SandboxNotFoundError


@dataclass(frozen=True)
class ExecuteResponse:
    exit_code: int
    result: str


class PtySession:
    def __init__(self, terminal: AsyncTerminal) -> None:
        self.terminal = terminal

    async def send(self, text: str) -> None:
        await self.terminal.send(text)

    async def resize(self, rows: int, columns: int) -> None:
        await self.terminal.resize(rows, columns)

    async def on_data(self) -> AsyncIterator[str]:
        """What the terminal shows, as text, until the shell or the sandbox ends."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            async for data in self.terminal:
                if text := decoder.decode(data):
                    yield text
        except (ConnectionFailedError, SandboxNotFoundError):
            return

    async def kill(self) -> None:
        await self.terminal.kill()


class Process:
    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def exec(self, command: str, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
                   timeout: Optional[float] = None) -> ExecuteResponse:
        """Runs a command to its end; one that fails has another exit code than 0."""
        result = await self._sandbox.commands.run(command, cwd=cwd, envs=env, timeout=timeout)
        return ExecuteResponse(result.exit_code, result.stdout + result.stderr)

    async def create_pty(self, *, rows: int = 24, columns: int = 80, cwd: Optional[str] = None) -> PtySession:
        return PtySession(await self._sandbox.pty.create(rows=rows, columns=columns, cwd=cwd))


class DaytonaSandbox:
    def __init__(self, sandbox: AsyncSandbox) -> None:
        self.sandbox = sandbox
        self.id = sandbox.id
        self.process = Process(sandbox)
        self.fs = sandbox.files
        self.git = sandbox.git


class AsyncDaytona:
    """Sandboxes that this object made and that were not deleted end with its block."""

    def __init__(self, url: Optional[str] = None, api_key: Optional[str] = None) -> None:
        self.client = AsyncCove(url, api_key)
        self._made: dict[str, DaytonaSandbox] = {}

    async def create(self, template: Optional[str] = None, **options: Any) -> DaytonaSandbox:
        """The options are those of `AsyncSandbox.create`."""
        sandbox = DaytonaSandbox(await AsyncSandbox.create(template, client=self.client, **options))
        self._made[sandbox.id] = sandbox
        return sandbox

    async def get(self, sandbox_id: str) -> DaytonaSandbox:
        return DaytonaSandbox(await AsyncSandbox.connect(sandbox_id, client=self.client))

    async def delete(self, sandbox: DaytonaSandbox) -> None:
        """One that is gone already is no error."""
        self._made.pop(sandbox.id, None)
        await sandbox.sandbox.kill()

    async def close(self) -> None:
        try:
            for sandbox in list(self._made.values()):
                await self.delete(sandbox)
        finally:
            self.client.close()

    async def __aenter__(self) -> AsyncDaytona:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
