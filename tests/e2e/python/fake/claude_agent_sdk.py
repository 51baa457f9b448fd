"""A stand-in for claude_agent_sdk with its data classes, and a query() whose model is a script.

As the real CLI does, it asks `can_use_tool` only for calls that it does not take for harmless, unless a PreToolUse hook says "ask"; a hook that
raises counts as none; what is allowed runs on this host, and is written down in RAN.
"""
from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

RAN: list[tuple[str, dict[str, Any]]] = []
SCRIPT: list[tuple[str, dict[str, Any]]] = [("Bash", {"command": "ls"})]
HARMLESS = ("ls", "echo", "id", "cat")


@dataclass
class TextBlock:
    text: str


@dataclass
class AssistantMessage:
    content: list[Any]


@dataclass
class PermissionResultAllow:
    behavior: str = "allow"
    updated_input: Optional[dict[str, Any]] = None
    updated_permissions: Optional[list[Any]] = None


@dataclass
class PermissionResultDeny:
    behavior: str = "deny"
    message: str = ""
    interrupt: bool = False


@dataclass
class HookMatcher:
    matcher: Optional[str] = None
    hooks: list[Any] = field(default_factory=list)
    timeout: Optional[float] = None


@dataclass
class ClaudeAgentOptions:
    tools: Any = None
    allowed_tools: list[str] = field(default_factory=list)
    system_prompt: Any = None
    mcp_servers: Any = field(default_factory=dict)
    strict_mcp_config: bool = False
    permission_mode: Optional[str] = None
    max_turns: Optional[int] = None
    model: Optional[str] = None
    cwd: Any = None
    cli_path: Any = None
    env: dict[str, str] = field(default_factory=dict)
    can_use_tool: Any = None
    hooks: Any = None
    setting_sources: Any = None


@dataclass
class SdkMcpTool:
    name: str
    description: str
    input_schema: Any
    handler: Callable[[dict[str, Any]], Any]
    annotations: Any = None


def tool(name: str, description: str, input_schema: Any, annotations: Any = None) -> Callable[[Any], SdkMcpTool]:
    return lambda handler: SdkMcpTool(name, description, input_schema, handler, annotations)


def create_sdk_mcp_server(name: str, version: str = "1.0.0", tools: Optional[list[SdkMcpTool]] = None) -> dict[str, Any]:
    return {"type": "sdk", "name": name, "instance": {one.name: one for one in tools or []}}


async def _decision(options: ClaudeAgentOptions, name: str, arguments: dict[str, Any]) -> Optional[str]:
    said = None
    for matcher in (options.hooks or {}).get("PreToolUse", []):
        for hook in matcher.hooks:
            try:
                answer = await hook({"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": arguments}, "id", None)
                said = answer["hookSpecificOutput"]["permissionDecision"]
            except Exception:
                continue
    return said


async def query(*, prompt: Any, options: ClaudeAgentOptions) -> AsyncIterator[Any]:
    for name, arguments in SCRIPT:
        if options.tools == []:
            yield AssistantMessage([TextBlock(f"{name}: no such tool")])
            continue
        harmless = name == "Read" or name == "Bash" and arguments["command"].split()[0] in HARMLESS
        if harmless and await _decision(options, name, arguments) != "ask":
            RAN.append((name, arguments))
            yield AssistantMessage([TextBlock(f"{name} ran on the host")])
            continue
        answer = await options.can_use_tool(name, arguments, None) if options.can_use_tool else PermissionResultDeny(message="no callback")
        if answer.behavior == "allow":
            RAN.append((name, arguments))
        yield AssistantMessage([TextBlock(getattr(answer, "message", "allowed"))])
