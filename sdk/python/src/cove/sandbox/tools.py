"""Tools in a sandbox: CoveSandbox has one, ToolProxy makes one when the first tool is called."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Optional

from .._async.client import AsyncCove
from ..errors import (ApiError, AuthenticationError, ConfigurationError, ConflictError, DiskFullError, ForbiddenError, InvalidRequestError,
                      NotFoundError, SandboxNotFoundError, TooManyError)
from ..models import ToolAnswer
from .config import SandboxConfig

SANDBOX_TOOLS = frozenset({"Bash", "BashOutput", "KillProcess", "Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS"})
# What the built-in tools of Claude Code call otherwise, or have in addition: there it means nothing, or what the sandbox does anyway.
_NAMES = {"KillShell": "KillProcess", "KillBash": "KillProcess", "TaskOutput": "BashOutput", "TaskStop": "KillProcess"}
_ARGUMENTS = {"bash_id": "process_id", "shell_id": "process_id", "task_id": "process_id"}
_DROPPED = {"Bash": {"dangerouslyDisableSandbox", "sandbox"}, "Read": {"pages", "allow_large"}, "BashOutput": {"filter", "block", "timeout"},
            "Grep": {"multiline", "type", "offset"}}
# Errors that say something about a call. All others are about the way to the server or the sandbox as a whole.
_OF_THE_CALL = (ForbiddenError, InvalidRequestError, NotFoundError, ConflictError, TooManyError, DiskFullError)


@dataclass
class ToolInput:
    """A call of a tool: `ToolInput("Bash", {"command": "ls"})`."""

    tool_name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolResult:
    """What a tool gave. A command that failed, and a call that was refused, has `success` false and a sentence in `error`."""

    success: bool
    output: str = ""
    error: Optional[str] = None
    tool_name: str = ""
    sandbox_id: str = ""
    exit_code: Optional[int] = None
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    truncated: bool = False
    rule: Optional[str] = None
    layer: Optional[str] = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, answer: ToolAnswer) -> ToolResult:
        return cls(answer.success, answer.output, answer.error, answer.tool, answer.sandbox_id, answer.exit_code, answer.stdout, answer.stderr,
                   answer.duration_ms, answer.truncated, raw=answer.raw)

    @classmethod
    def refused(cls, tool_name: str, sandbox_id: str, error: ApiError) -> ToolResult:
        return cls(False, "", error.message, tool_name, sandbox_id, rule=error.rule, layer=error.layer)

    @property
    def text(self) -> str:
        """For a model: the output, and what was wrong."""
        parts = [self.output.rstrip("\n")] if self.output else []
        if not self.success:
            parts.append(f"Error: {self.error}" if self.error else f"Exit code: {self.exit_code}")
        if "running" in self.raw:  # of a command in the background
            parts.append(f"[process {self.raw.get('process_id')} {'is running' if self.raw['running'] else 'has ended'}]")
        return "\n".join(parts) or "(no output)"


class CoveSandbox:
    """One sandbox, made by `connect()` and ended by `close()`, with the tools as methods."""

    def __init__(self, config: Optional[SandboxConfig] = None, *, client: Optional[AsyncCove] = None) -> None:
        self.config = config or SandboxConfig()
        self._own_client = client is None
        self.client = client or AsyncCove(self.config.url, self.config.e2b_api_key)
        self.sandbox_id: Optional[str] = None
        self.on_close: list[Callable[[], object]] = []
        """Called when it is closed."""

    async def connect(self) -> None:
        """Makes the sandbox, if there is none yet."""
        if self.sandbox_id is None:
            self.sandbox_id = str((await self.client.tools.create_sandbox(self.config.request()))["sandbox_id"])

    async def close(self) -> None:
        """Ends the sandbox, unless the configuration says `auto_cleanup=False`."""
        sandbox_id, self.sandbox_id = self.sandbox_id, None
        try:
            if sandbox_id is not None and self.config.auto_cleanup:
                await self.client.remove("killSandbox", id=sandbox_id)
        finally:
            while self.on_close:
                self.on_close.pop()()
            if self._own_client:
                self.client.close()

    @property
    def is_connected(self) -> bool:
        return self.sandbox_id is not None

    async def __aenter__(self) -> CoveSandbox:
        await self.connect()
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()

    async def execute(self, tool: ToolInput) -> ToolResult:
        """Any tool. What is wrong with the call is a result; what is wrong with the sandbox or the server is raised."""
        if self.sandbox_id is None:
            raise ConfigurationError("the sandbox is not connected: call connect(), or use it as a context manager")
        name, arguments = normal_call(tool)
        wait = command_seconds(arguments, self.config.resource_limits.timeout_seconds) + self.client.transport.timeout
        try:
            return ToolResult.of(await self.client.tools.execute(name, arguments, sandbox_id=self.sandbox_id, timeout=wait))
        except (SandboxNotFoundError, AuthenticationError):
            raise
        except _OF_THE_CALL as error:
            return ToolResult.refused(name, self.sandbox_id, error)

    async def execute_bash(self, command: str, timeout: Optional[float] = None, *, cwd: Optional[str] = None,
                           env: Optional[Mapping[str, str]] = None, background: bool = False) -> ToolResult:
        """Runs a command; `timeout` is seconds. A task that is cancelled ends the command."""
        more = {"timeout": None if timeout is None else max(1, round(timeout * 1000)), "cwd": cwd, "env": dict(env) if env else None,
                "run_in_background": background or None}
        return await self._call("Bash", command=command, **more)

    async def read_file(self, path: str, *, offset: Optional[int] = None, limit: Optional[int] = None) -> ToolResult:
        return await self._call("Read", file_path=path, offset=offset, limit=limit)

    async def write_file(self, path: str, content: str) -> ToolResult:
        return await self._call("Write", file_path=path, content=content)

    async def edit_file(self, path: str, old: str, new: str, *, replace_all: bool = False) -> ToolResult:
        return await self._call("Edit", file_path=path, old_string=old, new_string=new, replace_all=replace_all)

    async def search_files(self, pattern: str, path: str = ".", *, glob: Optional[str] = None) -> ToolResult:
        """Lines that match a regular expression, with file and line number."""
        return await self._call("Grep", pattern=pattern, path=path, glob=glob, output_mode="content", line_numbers=True)

    async def find_files(self, pattern: str, path: str = ".") -> ToolResult:
        return await self._call("Glob", pattern=pattern, path=path)

    async def list_files(self, path: str = ".") -> ToolResult:
        return await self._call("LS", path=path)

    async def _call(self, tool_name: str, **arguments: Any) -> ToolResult:
        return await self.execute(ToolInput(tool_name, {name: value for name, value in arguments.items() if value is not None}))


E2BSandbox = CoveSandbox


def normal_call(tool: ToolInput) -> tuple[str, dict[str, Any]]:
    """Name and arguments as cove has them."""
    name = _NAMES.get(tool.tool_name, tool.tool_name)
    dropped = _DROPPED.get(name, set())
    arguments = {_ARGUMENTS.get(key, key): value for key, value in tool.arguments.items() if key not in dropped}
    process = arguments.get("process_id")
    if isinstance(process, str) and process.isdigit():
        arguments["process_id"] = int(process)
    return name, arguments


def command_seconds(arguments: Mapping[str, Any], usual: float) -> float:
    """How long a command may take."""
    for name, unit in (("timeout", 1000), ("timeout_seconds", 1)):
        value = arguments.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            return float(value) / unit
    return usual


class ToolProxy:
    """Sends calls of tools into a sandbox that `factory` makes when it is first needed.

    The factory gives anything with `execute(ToolInput)` and `close()`. After a sandbox ended, the next call makes another.
    """

    def __init__(self, config: Optional[SandboxConfig] = None, factory: Optional[Callable[[], Awaitable[CoveSandbox]]] = None) -> None:
        self.config = config or SandboxConfig()
        self._factory = factory or self._make
        self._sandbox: Optional[CoveSandbox] = None
        self._lock: Optional[asyncio.Lock] = None

    async def _make(self) -> CoveSandbox:
        sandbox = CoveSandbox(self.config)
        await sandbox.connect()
        return sandbox

    async def sandbox(self) -> CoveSandbox:
        """The sandbox; the first call makes it."""
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if self._sandbox is None:
                self._sandbox = await self._factory()
            return self._sandbox

    def takes(self, tool_name: str) -> bool:
        """Whether a tool of this name runs in the sandbox."""
        return _NAMES.get(tool_name, tool_name) in SANDBOX_TOOLS

    async def execute(self, tool: ToolInput) -> ToolResult:
        if not self.takes(tool.tool_name):
            return ToolResult(False, error=f"the tool {tool.tool_name} does not exist in the sandbox; there are: {', '.join(sorted(SANDBOX_TOOLS))}",
                              tool_name=tool.tool_name)
        sandbox = await self.sandbox()
        try:
            return await sandbox.execute(tool)
        except SandboxNotFoundError:
            self._sandbox = None
            await sandbox.close()
            return ToolResult(False, error="the sandbox ended, with its files and processes; the next call makes a new one", tool_name=tool.tool_name)

    async def close(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await sandbox.close()

    async def __aenter__(self) -> ToolProxy:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
