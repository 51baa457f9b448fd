"""Claude's Agent SDK with its hands in a sandbox. Three ways, from loose to tight (docs/python.md):

- `create_sandbox_tool_callback` for `can_use_tool`, with `sandbox_hooks` beside it: the built-in tools of Claude Code are answered by the sandbox.
- `agent_options`: no built-in tools; the sandbox's tools in their place.
- `claude_inside`: Claude Code itself runs in the sandbox.

claude_agent_sdk is imported when it is needed: everything else of this package works without it.
"""
from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Union

from .._async.sandbox import AsyncSandbox
from .._sync.sandbox import Sandbox
from ..errors import ConfigurationError, CoveError
from .schemas import TOOL_SCHEMAS, ToolSchema
from .tools import CoveSandbox, ToolInput, ToolProxy

ToolCallback = Callable[[str, dict[str, Any], Any], Awaitable[Any]]
AnySandbox = Union[Sandbox, AsyncSandbox, CoveSandbox]
SERVER = "cove"
# Without these, text of the prompt such as @/etc/passwd, settings of the project and commands of its .mcp.json touch the host.
TIGHT_ENV = {"CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
FIXED = ("tools", "strict_mcp_config", "setting_sources", "permission_mode", "can_use_tool", "plugins", "add_dirs", "settings", "agents",
         "skills", "extra_args", "permission_prompt_tool_name")
# What the SDK tells the CLI about itself; nothing of it is secret.
FORWARDED = ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CODE_SDK_READS_SESSION_STATE",
             "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT")


def sdk() -> Any:
    """The module claude_agent_sdk, or an error that says how to get it."""
    try:
        import claude_agent_sdk  # type: ignore[import]
    except ImportError as error:
        raise ConfigurationError("claude_agent_sdk cannot be imported: pip install 'claude-agent-sdk>=0.2.140'") from error
    return claude_agent_sdk


# ---- the callback ----

def create_sandbox_tool_callback(proxy: ToolProxy, *, allow_tools: Sequence[str] = ()) -> ToolCallback:
    """A `can_use_tool` that runs the tool in the sandbox and gives the model the result.

    The SDK knows only "allow" and "deny": the result is the message of a denial, so that nothing runs on the host. Tools that the sandbox does not
    have are refused, but for those that match `allow_tools`, which run as they would without the callback.

    The SDK does not ask for every call: reading files below the working directory, and commands that it takes for harmless, run on the host
    without a question. `sandbox_hooks()` closes that.
    """
    async def callback(tool_name: str, tool_input: dict[str, Any], context: Any = None) -> Any:
        module = sdk()
        if not proxy.takes(tool_name) and any(fnmatchcase(tool_name, pattern) for pattern in allow_tools):
            return module.PermissionResultAllow()
        try:
            text = (await proxy.execute(ToolInput(tool_name, dict(tool_input)))).text
        except CoveError as error:
            text = f"Error: the sandbox could not run {tool_name}: {error.message}"
        except Exception as error:  # whatever it is, the tool must not run on the host
            text = f"Error: {tool_name} failed: {type(error).__name__}: {error}"
        return module.PermissionResultDeny(message=text)

    return callback


async def _ask(input_data: Any, tool_use_id: Any, context: Any) -> dict[str, Any]:
    """Never raises: the SDK lets a call through whose hook failed."""
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
                                   "permissionDecisionReason": "every tool runs in the sandbox"}}


def sandbox_hooks() -> dict[str, list[Any]]:
    """`hooks` for ClaudeAgentOptions: every call of every tool goes to `can_use_tool`."""
    return {"PreToolUse": [sdk().HookMatcher(matcher=None, hooks=[_ask])]}


# ---- the sandbox's tools in place of the built-in ones ----

def agent_options(proxy: ToolProxy, **more: Any) -> Any:
    """ClaudeAgentOptions: no built-in tool, no settings of the project, no file mentions; only the sandbox's tools.

    Other options may be given. Those that would open a way to the host are refused by name.
    """
    module = sdk()
    for name in FIXED:
        if name in more:
            raise ConfigurationError(f"agent_options() sets {name} itself; build ClaudeAgentOptions by hand to change it", field=name)
    env = {**more.pop("env", {}), **TIGHT_ENV}
    allowed = [f"mcp__{SERVER}__*", *more.pop("allowed_tools", [])]
    server = module.create_sdk_mcp_server(SERVER, "1.0.0", tools=[_sdk_tool(module, proxy, schema) for schema in TOOL_SCHEMAS])
    servers = {**more.pop("mcp_servers", {}), SERVER: server}
    return module.ClaudeAgentOptions(tools=[], mcp_servers=servers, strict_mcp_config=True, setting_sources=[], allowed_tools=allowed,
                                     permission_mode="dontAsk", env=env, **more)


def _sdk_tool(module: Any, proxy: ToolProxy, schema: ToolSchema) -> Any:
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            result = await proxy.execute(ToolInput(schema.tool, arguments))
        except CoveError as error:
            return _answer(f"Error: the sandbox could not do it: {error.message}", True)
        # A command that failed is an answer; an error is what the tool itself could not do.
        image = result.raw.get("media_type") if result.raw.get("type") == "image" else None
        if image:
            return {"content": [{"type": "image", "data": result.raw.get("data", ""), "mimeType": image}]}
        more = f"\n[continue with stdout_from {result.raw['stdout_next']} and stderr_from {result.raw.get('stderr_next', 0)}]" if "stdout_next" in result.raw else ""
        return _answer(result.text + more, not result.success and result.exit_code is None)

    return module.tool(schema.name, schema.description, schema.schema())(call)


def _answer(text: str, failed: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **({"is_error": True} if failed else {})}


# ---- the whole CLI inside ----

def write_cli_script(path: Path, sandbox: AnySandbox, *, command: Sequence[str] = ("claude",), cwd: str = "",
                     forward_env: Sequence[str] = (), python: str = sys.executable) -> Path:
    """An executable for `cli_path`: it starts `command` in the sandbox and connects stdin, stdout and stderr with it.

    The key of the server is no part of the script: it comes from COVE_API_KEY. Of the environment only the names in `forward_env` go in.
    """
    if sandbox.sandbox_id is None:
        raise ConfigurationError("the sandbox is not connected")
    source = str(Path(__file__).resolve().parents[2])
    words = [python, "-m", "cove.sandbox.inside", "--url", sandbox.client.url, "--sandbox", sandbox.sandbox_id,
             *(["--cwd", cwd] if cwd else []), *(word for name in (*FORWARDED, *forward_env) for word in ("--env", name)), "--", *command]
    path.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(source)}${{PYTHONPATH:+:$PYTHONPATH}} exec {shlex.join(words)} \"$@\"\n")
    path.chmod(0o700)
    return path


def claude_inside(sandbox: AnySandbox, *, command: Sequence[str] = ("claude",), forward_env: Sequence[str] = (), **more: Any) -> Any:
    """ClaudeAgentOptions whose CLI runs in the sandbox. Hooks and tools of the host keep working: they travel over stdin and stdout.

    Give the key of the model as a secret of cove (docs/secrets.md), and let the network reach the model's host only. The script that the SDK
    starts is there as long as `sandbox`.
    """
    module = sdk()
    if "cli_path" in more:
        raise ConfigurationError("claude_inside() sets cli_path itself; `command` says what is started in the sandbox", field="cli_path")
    folder = tempfile.mkdtemp(prefix="cove-cli-")
    remove = weakref.finalize(sandbox, shutil.rmtree, folder, ignore_errors=True)
    cwd = str(more.pop("cwd", "") or "/home/user")
    if isinstance(sandbox, CoveSandbox):
        sandbox.on_close.append(remove)
    script = write_cli_script(Path(folder) / "claude", sandbox, command=command, cwd=cwd, forward_env=forward_env)
    env = dict(more.pop("env", {}))
    if sandbox.client.api_key and os.environ.get("COVE_API_KEY") != sandbox.client.api_key:
        env["COVE_API_KEY"] = sandbox.client.api_key
    return module.ClaudeAgentOptions(cli_path=str(script), env=env, **more)
