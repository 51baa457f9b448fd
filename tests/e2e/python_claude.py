"""The real Claude Code with the Python client: three ways to put its hands into a sandbox, and what each lets through. Run by python_claude_test, in a
network namespace with loopback only; the server is asked over its unix socket."""
import asyncio
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "python/cli"))
from harness import STATE, Server, check, finish, same  # noqa: E402
import claude_agent_sdk as sdk  # noqa: E402

server = Server().start()
os.environ["COVE_URL"] = "unix:%s/cove.sock" % STATE
import cove  # noqa: E402
from cove.sandbox import ResourceLimits, SandboxConfig, SandboxExecutor, claude_inside  # noqa: E402

CLI = os.environ["CLAUDE_CLI"]
work = pathlib.Path(tempfile.mkdtemp(prefix="cove-claude-"))
project, home = work / "project", work / "home"
SILENT = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "ANTHROPIC_API_KEY": "stand-in"}


def new_project():
    """A repository that would like to run things on the host."""
    subprocess.run(["rm", "-rf", work], check=True)
    (project / ".claude").mkdir(parents=True)
    home.mkdir()
    (project / "inside.txt").write_text("HOST-FILE")
    (work / "secret.txt").write_text("HOST-SECRET")
    (project / "CLAUDE.md").write_text("PROJECT-RULES")
    command = {"type": "command", "command": "touch %s/hooked" % work}
    (project / ".claude/settings.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [command]}], "PreToolUse": [{"hooks": [command]}]}}))
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": {"command": "touch", "args": ["%s/mcp" % work]}}}))


class Told:
    """What the model was sent, and what was touched on the host."""

    def __init__(self, messages, log):
        self.messages, self.text = messages, log.read_text()
        self.requests = [json.loads(line) for line in self.text.splitlines()]
        self.results = [(block["content"] if isinstance(block["content"], str) else "".join(part.get("text", "") for part in block["content"]), block.get("is_error", False))
                        for block in (self.requests[-1]["messages"] and [b for m in self.requests[-1]["messages"] if m["role"] == "user" and isinstance(m["content"], list)
                                                                         for b in m["content"]]) if block.get("type") == "tool_result"]
        self.touched = sorted(name for name in ("hooked", "mcp", "made") if (work / name).exists())
        self.seen = sorted(word for word in ("HOST-FILE", "HOST-SECRET", "PROJECT-RULES") if word in self.text)
        self.end = messages[-1].get("subtype") if messages else None


async def ask(make_options, script, prompt="go on"):
    """Runs the CLI in the project, with a model that follows the script."""
    (work / "script.json").write_text(json.dumps(script))
    log = work / "model.log"
    log.write_text("")
    model = subprocess.Popen([sys.executable, HERE.parent / "model.py", "0", work / "script.json", log], stdout=subprocess.PIPE, text=True)
    try:
        env = {**SILENT, "ANTHROPIC_BASE_URL": "http://127.0.0.1:%s" % model.stdout.readline().strip(), "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"),
               "IS_SANDBOX": "1"}
        options = make_options({"cli_path": CLI, "env": env, "cwd": str(project)})
        return Told([message async for message in sdk.query(prompt=prompt, options=options)], log)
    finally:
        model.kill()
        model.wait()
        model.stdout.close()


CALLS = [{"tool": "Bash", "input": {"command": "uname -n"}}, {"tool": "Read", "input": {"file_path": str(project / "inside.txt")}},
         {"tool": "Bash", "input": {"command": "touch %s/made" % work}}, {"text": "the end"}]
MENTIONS = "look at @inside.txt and @%s/secret.txt" % work


async def callbacks():
    async with SandboxExecutor(SandboxConfig()) as executor:
        new_project()
        (project / ".claude/settings.json").unlink()
        (project / ".mcp.json").unlink()
        callback = executor.get_tool_callback()
        loose = await ask(lambda base: sdk.ClaudeAgentOptions(can_use_tool=callback, permission_mode="default", **base), CALLS)
        check("the callback alone: reads and harmless commands run on the host", "HOST-FILE" in loose.results[1][0] and executor.sandbox_id not in loose.results[0][0], loose.results)
        same("the callback alone: what writes goes into the sandbox", (1, []), (len(executor.get_audit_logs()), loose.touched))
        new_project()
        (project / ".claude/settings.json").unlink()
        (project / ".mcp.json").unlink()
        whole = await ask(lambda base: sdk.ClaudeAgentOptions(can_use_tool=callback, hooks=executor.get_hooks(), permission_mode="default", **base), CALLS)
        same("the callback with the hook: every call goes into the sandbox", (4, []), (len(executor.get_audit_logs()), whole.touched))
        check("the model sees the sandbox's answers, marked as denials", executor.sandbox_id in whole.results[0][0] and whole.results[0][1] and
              "No such file" in whole.results[1][0] and whole.end == "success", whole.results)


async def tools():
    new_project()
    async with SandboxExecutor(SandboxConfig()) as executor:
        loose = await ask(lambda base: sdk.ClaudeAgentOptions(tools=[], **base), CALLS, MENTIONS)
        same("tools=[] alone: file mentions, settings, .mcp.json and CLAUDE.md reach the host", (["HOST-FILE", "HOST-SECRET", "PROJECT-RULES"], ["hooked", "mcp"]),
             (loose.seen, loose.touched))
        new_project()
        script = [*CALLS[:3], {"tool": "Task", "input": {"description": "x", "prompt": "y", "subagent_type": "general-purpose"}},
                  {"tool": "mcp__cove__bash", "input": {"command": "uname -n; pwd"}},
                  {"tool": "mcp__cove__write", "input": {"file_path": "a.txt", "content": "from the model"}},
                  {"tool": "mcp__cove__read", "input": {"file_path": "a.txt"}}, {"text": "the end"}]
        tight = await ask(lambda base: executor.agent_options(**base), script, MENTIONS)
        same("agent_options: nothing of the host is sent or touched", ([], []), (tight.seen, tight.touched))
        check("agent_options: built-in tools and subagents do not exist", all("No such tool" in text and bad for text, bad in tight.results[:4]), tight.results[:4])
        check("agent_options: the sandbox's tools work", tight.results[4][0].split() == [executor.sandbox_id, "/workspace"] and not tight.results[4][1] and
              "from the model" in tight.results[6][0] and tight.end == "success", tight.results[4:])
        offered = {tool["name"] for tool in tight.requests[0]["tools"]} - {"DeferredToolPlaceholder"}  # the CLI's own, which can do nothing
        check("agent_options: the model is offered the sandbox's tools and no others", "mcp__cove__bash" in offered and all(name.startswith("mcp__cove__") for name in offered), offered)


async def inside():
    new_project()
    limits = ResourceLimits(cpu_cores=1, memory_mb=2048, disk_mb=2048, timeout_seconds=300, max_processes=512)
    async with SandboxExecutor(SandboxConfig(resource_limits=limits, working_directory="/home/user")) as executor:
        box = await cove.AsyncSandbox.connect(executor.sandbox_id, client=executor.sandbox.client)
        await box.files.upload(CLI, "claude", mode="755")
        await box.files.upload(HERE.parent / "model.py", "model.py")
        await box.files.write("script.json", json.dumps([{"tool": "Bash", "input": {"command": "uname -n; id -un; echo here > made"}},
                                                         {"tool": "mcp__host__clock", "input": {}}, {"text": "the end"}]))
        await box.files.write("model.log", "")
        model = await box.commands.start(["/usr/bin/python3", "model.py", "5055", "script.json", "model.log"], cwd="/home/user")
        async for _ in model.output():
            break  # it said its port
        hooked = []

        async def hook(about, tool_use_id, context):
            hooked.append(about["tool_name"])
            return {}

        @sdk.tool("clock", "the host's clock", {"type": "object", "properties": {}})
        async def clock(arguments):
            return {"content": [{"type": "text", "text": "HOST-CLOCK"}]}
        options = executor.agent_options(inside=True, command=["/home/user/claude"], permission_mode="bypassPermissions", forward_env=[*SILENT, "ANTHROPIC_BASE_URL"],
                                         env={**SILENT, "ANTHROPIC_BASE_URL": "http://127.0.0.1:5055"}, hooks={"PreToolUse": [sdk.HookMatcher(None, [hook])]},
                                         mcp_servers={"host": sdk.create_sdk_mcp_server("host", tools=[clock])})
        messages = [message async for message in sdk.query(prompt="go on", options=options)]
        asked = (await box.files.read("model.log")).splitlines()
        check("the whole CLI inside: its commands run in the sandbox, as its user", executor.sandbox_id in asked[1] and "user" in asked[1] and
              (await box.files.read("made")) == "here\n" and messages[-1]["subtype"] == "success", messages[-1:])
        same("the whole CLI inside: hooks of the host are asked", ["Bash", "mcp__host__clock"], hooked)
        check("the whole CLI inside: a tool of the host answers", "HOST-CLOCK" in asked[-1], asked[-1][-300:])
        await box.files.write("model.log", "")
        options = claude_inside(box, command=["/home/user/claude"], permission_mode="bypassPermissions", forward_env=[*SILENT, "ANTHROPIC_BASE_URL"],
                                env={**SILENT, "ANTHROPIC_BASE_URL": "http://127.0.0.1:5055"})
        messages = [message async for message in sdk.query(prompt="go on", options=options)]
        asked = (await box.files.read("model.log")).splitlines()
        check("claude_inside: the whole CLI runs in any sandbox", executor.sandbox_id in asked[1] and messages[-1]["subtype"] == "success", messages[-1:])
        script = pathlib.Path(options.cli_path)
        check("claude_inside: the script is there as long as the sandbox's object", script.exists(), script)
        del box, model, options
        gc.collect()
        check("claude_inside: the script goes with the sandbox's object", not script.parent.exists(), script)


for part in (callbacks, tools, inside):
    asyncio.run(part())
same("no sandbox is left", [], [info.id for info in cove.Sandbox.list()])
subprocess.run(["rm", "-rf", work])
server.end()
finish()
