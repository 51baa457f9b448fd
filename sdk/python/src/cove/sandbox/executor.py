"""SandboxExecutor: one sandbox, a record of all calls, and what Claude's Agent SDK needs to use it."""
from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Optional

from ..errors import CoveError
from . import claude
from .config import SandboxConfig
from .tools import CoveSandbox, ToolInput, ToolProxy, ToolResult

LOGS_KEPT = 10000


class _Recorded(ToolProxy):
    """Every call goes through the executor, which keeps a record."""

    def __init__(self, executor: SandboxExecutor) -> None:
        super().__init__(executor.config)
        self._executor = executor

    async def execute(self, tool: ToolInput) -> ToolResult:
        if not self.takes(tool.tool_name):
            return await super().execute(tool)
        return await self._executor.execute(tool)


class SandboxExecutor:
    """Runs tools in a sandbox that lives as long as the block.

        async with SandboxExecutor(SandboxConfig()) as executor:
            result = await executor.execute_bash("echo hello")
    """

    def __init__(self, config: Optional[SandboxConfig] = None) -> None:
        self.config = config or SandboxConfig()
        self._sandbox = CoveSandbox(self.config)
        self._logs: deque[dict[str, Any]] = deque(maxlen=LOGS_KEPT)

    # ---- life ----

    async def start(self) -> None:
        await self._sandbox.connect()

    async def stop(self) -> None:
        await self._sandbox.close()

    async def __aenter__(self) -> SandboxExecutor:
        await self.start()
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.stop()

    @property
    def sandbox_id(self) -> Optional[str]:
        return self._sandbox.sandbox_id

    @property
    def sandbox(self) -> CoveSandbox:
        return self._sandbox

    # ---- tools ----

    async def execute(self, tool: ToolInput) -> ToolResult:
        """Any tool of docs/tools.md."""
        try:
            result = await self._sandbox.execute(tool)
        except CoveError as error:
            self._record(tool, ToolResult(False, error=error.message, tool_name=tool.tool_name, sandbox_id=self.sandbox_id or ""))
            raise
        self._record(tool, result)
        return result

    async def execute_bash(self, command: str, timeout: Optional[float] = None, **more: Any) -> ToolResult:
        """Runs a command; `timeout` is seconds."""
        arguments: dict[str, Any] = {"command": command, **more}
        if timeout is not None:
            arguments["timeout"] = max(1, round(timeout * 1000))
        return await self.execute(ToolInput("Bash", arguments))

    async def read_file(self, path: str, **more: Any) -> ToolResult:
        return await self.execute(ToolInput("Read", {"file_path": path, **more}))

    async def write_file(self, path: str, content: str) -> ToolResult:
        return await self.execute(ToolInput("Write", {"file_path": path, "content": content}))

    async def edit_file(self, path: str, old: str, new: str, *, replace_all: bool = False) -> ToolResult:
        return await self.execute(ToolInput("Edit", {"file_path": path, "old_string": old, "new_string": new, "replace_all": replace_all}))

    async def search_files(self, pattern: str, path: str = ".", **more: Any) -> ToolResult:
        return await self.execute(ToolInput("Grep", {"pattern": pattern, "path": path, "output_mode": "content", "line_numbers": True, **more}))

    # ---- the record ----

    def _record(self, tool: ToolInput, result: ToolResult) -> None:
        if not self.config.security.enable_audit_log:
            return
        said = json.dumps(tool.arguments, sort_keys=True, ensure_ascii=False, default=str)
        usage = result.raw.get("resource_usage")
        self._logs.append({
            "timestamp": datetime.now(timezone.utc).isoformat(), "sandbox_id": result.sandbox_id, "tool": tool.tool_name,
            "action": "code_execution" if tool.tool_name == "Bash" else "tool", "code_hash": "sha256:" + hashlib.sha256(said.encode()).hexdigest(),
            "success": result.success, "error": result.error, "exit_code": result.exit_code, "duration_ms": result.duration_ms,
            "resource_usage": dict(usage) if isinstance(usage, Mapping) else {},
            "security_events": [{"rule": result.rule, "layer": result.layer}] if result.rule else []})

    def get_audit_logs(self) -> list[dict[str, Any]]:
        """The calls of this executor, oldest first (the last 10000). `AsyncCove.audit_logs()` has the server's."""
        return list(self._logs)

    # ---- Claude's Agent SDK ----

    def get_tool_callback(self, *, allow_tools: tuple[str, ...] = ()) -> claude.ToolCallback:
        """For `can_use_tool`. The callback alone does not see every call: use `get_hooks()` beside it, or `agent_options()`."""
        return claude.create_sandbox_tool_callback(_Recorded(self), allow_tools=allow_tools)

    def get_hooks(self) -> dict[str, list[Any]]:
        """For `hooks`: makes the SDK ask the callback for every call, also for reads and commands that it takes for harmless."""
        return claude.sandbox_hooks()

    def agent_options(self, *, inside: bool = False, **more: Any) -> Any:
        """ClaudeAgentOptions with which nothing of the host is touched: docs/python.md.

        Without `inside`, the agent runs on the host and its only tools are those of the sandbox. With `inside`, Claude Code itself runs in the
        sandbox, which has to have it installed.
        """
        if inside:
            return claude.claude_inside(self._sandbox, **{"cwd": self.config.working_directory, **more})
        return claude.agent_options(_Recorded(self), **more)
