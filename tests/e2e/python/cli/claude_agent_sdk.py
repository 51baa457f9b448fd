"""A small Agent SDK that starts the real CLI (`cli_path`) and speaks its stream of JSON lines: options become flags, and the CLI's questions go to
the callback, the hooks and the tools of the host. The data classes are those of the stand-in in ../fake."""
from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import pathlib
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

_path = pathlib.Path(__file__).parents[1] / "fake/claude_agent_sdk.py"
_spec = importlib.util.spec_from_file_location("stand_in", _path)
assert _spec and _spec.loader
_stand_in = importlib.util.module_from_spec(_spec)
import sys  # noqa: E402
sys.modules["stand_in"] = _stand_in
_spec.loader.exec_module(_stand_in)
globals().update({name: getattr(_stand_in, name) for name in dir(_stand_in) if name[0].isupper() or name in ("tool", "create_sdk_mcp_server")})
LINE_MOST = 64 << 20


def flags(options: Any) -> list[str]:
    words = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
    if options.tools is not None:
        words += ["--tools", ",".join(options.tools)]
    if options.allowed_tools:
        words += ["--allowedTools", ",".join(options.allowed_tools)]
    if options.system_prompt:
        words += ["--system-prompt", options.system_prompt]
    if options.permission_mode:
        words += ["--permission-mode", options.permission_mode]
    if options.can_use_tool:
        words += ["--permission-prompt-tool", "stdio"]
    if options.mcp_servers:
        servers = {name: {k: v for k, v in config.items() if k != "instance"} for name, config in options.mcp_servers.items()}
        words += ["--mcp-config", json.dumps({"mcpServers": servers})]
    if options.strict_mcp_config:
        words.append("--strict-mcp-config")
    if options.setting_sources is not None:
        words.append("--setting-sources=" + ",".join(options.setting_sources))
    return words


async def _mcp(options: Any, server: str, message: dict[str, Any]) -> dict[str, Any]:
    """An in-process MCP server: the few methods that the CLI asks for."""
    tools, method, params = options.mcp_servers[server]["instance"], message.get("method"), message.get("params") or {}
    if method == "initialize":
        result: dict[str, Any] = {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}}, "serverInfo": {"name": server, "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": one.name, "description": one.description, "inputSchema": one.input_schema} for one in tools.values()]}
    elif method == "tools/call":
        answer = await tools[params["name"]].handler(params.get("arguments") or {})
        result = {"content": answer["content"], **({"isError": True} if answer.get("is_error") else {})}
    elif str(method).startswith("notifications/"):
        return {"jsonrpc": "2.0", "result": {}}
    else:
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32601, "message": "unknown method"}}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


async def _answer(options: Any, hooks: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    kind = request["subtype"]
    if kind == "can_use_tool":
        said = await options.can_use_tool(request["tool_name"], request["input"], None)
        return {k: v for k, v in {**asdict(said), "updatedInput": request["input"]}.items() if v is not None and (k != "updatedInput" or said.behavior == "allow")}
    if kind == "hook_callback":
        answer: dict[str, Any] = await hooks[request["callback_id"]](request["input"], request.get("tool_use_id"), None)
        return answer
    if kind == "mcp_message":
        return {"mcp_response": await _mcp(options, request["server_name"], request["message"])}
    raise ValueError(f"unknown question {kind}")


async def query(*, prompt: str, options: Any) -> AsyncIterator[dict[str, Any]]:
    """The messages of the CLI, as they come."""
    env = {**os.environ, **options.env, "CLAUDE_CODE_ENTRYPOINT": "sdk-py"}
    cwd = None if options.cwd is None else str(options.cwd)
    process = await asyncio.create_subprocess_exec(str(options.cli_path), *flags(options), stdin=-1, stdout=-1, env=env, cwd=cwd, limit=LINE_MOST)
    assert process.stdin and process.stdout
    hooks: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for event, matchers in (options.hooks or {}).items():
        for matcher in matchers:
            ids = [f"hook_{len(hooks) + i}" for i in range(len(matcher.hooks))]
            hooks.update(zip(ids, matcher.hooks))
            told.setdefault(event, []).append({"matcher": matcher.matcher, "hookCallbackIds": ids})

    def say(message: dict[str, Any]) -> None:
        assert process.stdin
        process.stdin.write(json.dumps(message).encode() + b"\n")

    async def reply(message: dict[str, Any]) -> None:
        try:
            response = {"subtype": "success", "request_id": message["request_id"], "response": await _answer(options, hooks, message["request"])}
        except Exception as error:
            response = {"subtype": "error", "request_id": message["request_id"], "error": str(error)}
        say({"type": "control_response", "response": response})
    try:
        say({"type": "control_request", "request_id": "begin", "request": {"subtype": "initialize", "hooks": told or None}})
        say({"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None, "session_id": "default"})
        tasks = set()
        while line := await process.stdout.readline():
            message = json.loads(line)
            if message["type"] == "control_request":
                tasks.add(asyncio.ensure_future(reply(message)))
            elif message["type"] not in ("control_response", "control_cancel_request"):
                yield message
            if message["type"] == "result":
                process.stdin.close()
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
