"""Programs that people write for AI agents (tests/e2e/python/wish) run on cove.sandbox with no change but the import line. Run by python_test."""
import ast
import asyncio
import contextlib
import dataclasses
import io
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "python/fake"))
from harness import Server, check, finish, same, within  # noqa: E402
import claude_agent_sdk as fake  # noqa: E402

server = Server().start()
os.environ["COVE_URL"] = "http://127.0.0.1:%d" % server.port
import cove  # noqa: E402
import cove.daytona  # noqa: E402
from cove.sandbox import (SANDBOX_PRESETS, CommandAnalyzer, CoveSandbox, RateLimiter, ResourceLimits, RiskLevel, SandboxConfig,  # noqa: E402
                          SandboxExecutor, SandboxPool, SecurityConfig, SecurityManager, ToolInput, ToolProxy, create_sandbox_tool_callback)

IMPORTS = {"claude_agent_test.sandbox": "cove.sandbox", "e2b_code_interpreter": "cove", "daytona": "cove.daytona"}
EXAMPLES = pathlib.Path(os.environ.get("EXAMPLES", HERE / "python/wish"))


def changed(text):
    """The import lines name cove; nothing else is touched."""
    return re.sub(r"^from (%s) import" % "|".join(map(re.escape, IMPORTS)), lambda m: "from %s import" % IMPORTS[m[1]], text, flags=re.M)


def run(name, **known):
    """What the program printed; an exception of the program is the test's."""
    code = compile(changed((EXAMPLES / name).read_text()), name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names, out = {"__name__": "__main__", **known}, io.StringIO()
    with contextlib.redirect_stdout(out):
        result = eval(code, names)
        if result is not None:
            asyncio.run(result)
        if known.get("finally_main"):
            asyncio.run(names["main"]())
    return out.getvalue(), names


def prints(sentence, name, wanted, **known):
    try:
        out, names = run(name, **known)
    except Exception as error:
        check(sentence, False, "%s: %s" % (type(error).__name__, error))
        return {}
    check(sentence, re.fullmatch(wanted, out, re.S), repr(out))
    return names


boxes = lambda: [box.id for box in cove.Sandbox.list()]
names = prints("example: a configuration", "config.py", "50\n")
same("a configuration becomes the request of POST /sandbox",
     {"preset": "standard", "template": "base", "network": {"enabled": False}, "auto_cleanup": True, "session_timeout_minutes": 60,
      "working_directory": "/workspace", "resource_limits": {"cpu_cores": 2, "timeout_seconds": 60, "max_processes": 50},
      "security": {"command_blacklist": [r"rm\s+-rf\s+/", "sudo"]}}, names["config"].request())
prints("example: presets", "presets.py", "256 False True\n")
prints("example: an executor runs commands, writes, reads and searches", "executor.py", r"Hello!\n\nHello, World!\n.*test\.txt.*Hello, World!.*")
prints("example: a sandbox without an executor", "direct.py", ".*\n")
prints("example: the callback of the Agent SDK", "callback.py", ".*\n")
names = prints("example: a tool proxy with a factory of its own", "proxy.py", "", ClaudeAgentOptions=fake.ClaudeAgentOptions)
proxy, callback = names["tool_proxy"], names["callback"]


async def through_proxy():
    first = await callback("Bash", {"command": "echo $((6*7)) > n; cat n"}, None)
    second = await callback("Read", {"file_path": "n"}, None)
    await proxy.close()
    return first, second


first, second = asyncio.run(through_proxy())
same("the proxy's callback answers with the sandbox's output, as a denial", ("deny", "42", "42"), (first.behavior, first.message, second.message.strip()))
prints("example: the analyser names what is wrong", "analyzer.py", r"(violation: [^\n]+\(risk: (low|medium|high|critical)\)\n)+safe: True, reason: \n")
prints("example: the security manager", "manager.py", r"valid: True, reason: \nstats: \{'checked': 1, 'denied': 0.*\n")
prints("example: the rate limiter", "limiter.py", "True\n")
prints("example: a block with top-level await", "always.py", "hi\n\n", config=SandboxConfig(), command="echo hi")
for name in ("limits", "network", "whitelist", "cleanup"):
    prints("example: configuration of %s" % name, name + ".py", "")
prints("example: cells keep their variables", "cells.py", "2\n")
prints("example: a notebook", "notebook.py", r"\['Hello from sandbox!\\n'\]\n")
prints("example: a pool", "pool.py", "from the pool\n\n")
same("no example leaves a sandbox", [], boxes())

# ---- the terminal: it runs until its sandbox ends ----
make = cove.daytona.AsyncDaytona.create
cove.daytona.AsyncDaytona.create = lambda self, **more: make(self, envs={"npm_config_fetch_retries": "0", "npm_config_cache": "/tmp/npm"}, **more)


def terminal():
    """The sandbox of the example and its terminal, once they are there."""
    with contextlib.suppress(cove.CoveError):
        for id in boxes():
            box = cove.Sandbox.connect(id)
            for one in box.commands.list():
                if one.pty:
                    return box, one.proc
    return None


def end_when_shown():
    within(60, terminal)
    box, proc = terminal()
    seen = bytearray()
    with contextlib.suppress(cove.CoveError):
        for part in box.commands.connect(proc):
            seen += part.data
            if b"claude: command not found" in seen or b'"type":"result"' in seen:
                break
    box.kill()


ender = threading.Thread(target=end_when_shown)
ender.start()
prints("example: a task in a terminal, followed to its end", "terminal.py", ".*claude --dangerously-skip-permissions.*", api_key="x", finally_main=True)
ender.join()


async def with_executor():
    config = SandboxConfig(security=SecurityConfig(command_blacklist=[r"forbidden"]), resource_limits=ResourceLimits(timeout_seconds=30))
    async with SandboxExecutor(config) as executor:
        good, bad = await executor.execute_bash("echo out; echo err >&2"), await executor.execute_bash("exit 7")
        same("a command's result has its parts", (True, "out\n", "err\n", 0, None), (good.success, good.stdout, good.stderr, good.exit_code, good.error))
        check("a command that fails is a result", not bad.success and bad.exit_code == 7, bad)
        refused = await executor.execute_bash("echo forbidden")
        check("a refusal of the policy is a result with its rule", not refused.success and refused.layer == "policy" and refused.rule, refused)
        missing = await executor.read_file("none.txt")
        check("a file that is missing is a result", not missing.success and "none.txt" in (missing.error or ""), missing)
        slow = await executor.execute_bash("sleep 30", timeout=0.3)
        check("a timeout is a result", not slow.success and slow.exit_code == 124, slow)
        edited = [await executor.write_file("f", "a b"), await executor.edit_file("f", "b", "c"), await executor.read_file("f")]
        check("a file is edited", all(one.success for one in edited) and "a c" in edited[2].output, edited)
        begun = time.monotonic()
        try:
            await asyncio.wait_for(executor.execute_bash("sleep 60 & sleep 61"), 0.3)
        except asyncio.TimeoutError:
            pass
        box = await cove.AsyncSandbox.connect(executor.sandbox_id)

        async def calm():
            while [one for one in await box.commands.list() if one.running]:
                await asyncio.sleep(0.05)
        await asyncio.wait_for(calm(), 30)
        check("a call that is cancelled ends its command", time.monotonic() - begun < 30)
        logs = executor.get_audit_logs()
        same("every call is in the record, in order", ["Bash"] * 3 + ["Read", "Bash", "Write", "Edit", "Read"], [log["tool"] for log in logs])
        check("a record has what monitoring needs", {"timestamp", "sandbox_id", "action", "code_hash", "duration_ms", "exit_code", "resource_usage",
                                                     "security_events", "success"} <= set(logs[0]) and logs[2]["security_events"], logs[2])
        alerts = []
        run("audit.py", executor=executor, alert=alerts.append)
        same("example: failures in the record raise alerts", 4, len(alerts))
        same("the server's audit log has the commands", True,
             len([one async for one in box.client.audit_logs(action="exec.run", sandbox_id=executor.sandbox_id)]) >= 3)
        id = executor.sandbox_id
    same("the sandbox ends with the executor", False, id in boxes())
    quiet = SandboxConfig(security=SecurityConfig(enable_audit_log=False), auto_cleanup=False)
    async with SandboxExecutor(quiet) as executor:
        await executor.execute_bash("true")
        same("without a record nothing is kept", [], executor.get_audit_logs())
        id = executor.sandbox_id
    same("auto_cleanup=False leaves the sandbox", True, id in boxes())
    cove.Sandbox.connect(id).kill()


asyncio.run(with_executor())


# ---- Claude's Agent SDK ----
async def agents():
    async with SandboxExecutor(SandboxConfig()) as executor:
        async def ask(options, *script):
            fake.SCRIPT[:], fake.RAN[:] = script, []
            said = [block.text async for message in fake.query(prompt="x", options=options) for block in message.content]
            return said, list(fake.RAN)
        calls = [("Bash", {"command": "echo here; uname -n"}), ("Read", {"file_path": "/etc/hostname"}),
                 ("Bash", {"command": "rm -f x; echo gone", "dangerouslyDisableSandbox": True}), ("WebFetch", {"url": "http://x"}), ("mcp__host__clock", {})]
        options = fake.ClaudeAgentOptions(can_use_tool=executor.get_tool_callback())
        said, ran = await ask(options, *calls)
        same("the callback alone lets harmless calls run on the host", 2, len(ran))
        options = fake.ClaudeAgentOptions(can_use_tool=executor.get_tool_callback(allow_tools=("mcp__host__*",)), hooks=executor.get_hooks())
        said, ran = await ask(options, *calls)
        same("with the hook nothing runs on the host but what was allowed by name", [("mcp__host__clock", {})], ran)
        check("the model sees what the sandbox answered", "here\n" in said[0] and executor.sandbox_id in said[0] + said[1] and said[2].strip() == "gone", said)
        check("a tool that the sandbox lacks is refused with the names of those that it has", "WebFetch does not exist in the sandbox" in said[3] and
              "Grep" in said[3], said[3])
        options = executor.agent_options(system_prompt="hi", allowed_tools=["mcp__other__x"], env={"A": "b", "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "0"})
        said, ran = await ask(options, *calls)
        same("agent_options leaves no built-in tool", ([], ["no such tool"] * 5), (ran, [one.split(": ")[1] for one in said]))
        same("agent_options closes every known way to the host",
             ([], [], True, "dontAsk", "1", "b", ["mcp__cove__*", "mcp__other__x"]),
             (options.tools, options.setting_sources, options.strict_mcp_config, options.permission_mode,
              options.env["CLAUDE_CODE_DISABLE_FILE_MENTIONS"], options.env["A"], options.allowed_tools))
        tools = options.mcp_servers["cove"]["instance"]
        text = lambda answer: answer["content"][0]["text"]
        same("the tools of claude_options run in the sandbox", ("42", None), (lambda a: (text(a), a.get("is_error")))(await tools["bash"].handler({"command": "echo 42"})))
        failed = await tools["bash"].handler({"command": "echo oops >&2; exit 3"})
        check("a command that fails is an answer, not an error", "oops" in text(failed) and "3" in text(failed) and "is_error" not in failed, failed)
        check("what cannot be done is an error", (await tools["read"].handler({"file_path": "none"})).get("is_error") is True)
        process = int(re.search(r"\d+", text(await tools["bash"].handler({"command": "printf one; sleep 300", "run_in_background": True})))[0])
        shown = await until("one", lambda: tools["bash_output"].handler({"process_id": process}), text)
        same("output of a command in the background says where to continue", "one\n[process %d is running]\n[continue with stdout_from 3 and stderr_from 0]" % process, shown)
        await tools["kill_process"].handler({"process_id": process})
        shown = await until("has ended", lambda: tools["bash_output"].handler({"process_id": process, "stdout_from": 3}), text)
        check("a command in the background that ended is told, and nothing is shown twice", "[process %d has ended]" % process in shown and "one" not in shown, shown)
        await tools["write"].handler({"file_path": "p.png.b64", "content": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="})
        await tools["bash"].handler({"command": "base64 -d p.png.b64 > p.png"})
        same("a picture is a picture", "image/png", (await tools["read"].handler({"file_path": "p.png"}))["content"][0].get("mimeType"))
        described = {one["name"] for one in await executor.sandbox.client.tools.list()}
        from cove.sandbox.schemas import TOOL_SCHEMAS
        same("a model is offered every tool of the server", described, {schema.tool for schema in TOOL_SCHEMAS})
        for name in ("permission_mode", "setting_sources", "tools"):
            try:
                executor.agent_options(**{name: "x"})
                check("agent_options refuses %s" % name, False)
            except cove.ConfigurationError as error:
                same("agent_options refuses %s" % name, name, error.field)
        await inside(executor)


async def until(word, ask, text, seconds=30):
    """The answer that has the word, or the last one."""
    end = time.monotonic() + seconds
    while word not in (got := text(await ask())) and time.monotonic() < end:
        await asyncio.sleep(0.05)
    return got


async def inside(executor):
    """A program of the name claude in the sandbox, which answers lines of JSON as the CLI does."""
    await executor.write_file("/home/user/claude", "#!/usr/bin/python3\nimport json, os, sys\n"
                              "if '-v' in sys.argv: print('9.9.9 (Claude Code)'); sys.exit()\n"
                              "print(json.dumps({'argv': sys.argv[1:], 'cwd': os.getcwd(), 'env': sorted(os.environ)}), flush=True)\n"
                              "for line in sys.stdin: print(json.dumps({'echo': json.loads(line)}), flush=True)\n"
                              "print('done', file=sys.stderr); sys.exit(5)\n")
    await executor.execute_bash("chmod +x /home/user/claude")
    options = executor.agent_options(inside=True, command=["/home/user/claude"], forward_env=["GREETING"], cwd="/tmp", env={"X": "1"})
    same("options that are not replaced stay", ("1", None), (options.env.get("X"), options.tools))
    env = {**os.environ, **options.env, "GREETING": "hi", "ANTHROPIC_API_KEY": "secret", "COVE_URL": "http://127.0.0.1:1"}
    version = subprocess.run([options.cli_path, "-v"], capture_output=True, text=True, timeout=60, env=env)
    same("the script of cli_path runs the program of the sandbox", (0, "9.9.9 (Claude Code)\n"), (version.returncode, version.stdout))
    process = await asyncio.create_subprocess_exec(options.cli_path, "--a b", "'\"$x", stdin=-1, stdout=-1, stderr=-1, env=env)
    import json
    first = json.loads(await process.stdout.readline())
    same("arguments arrive as they are, in the directory that was said", (["--a b", "'\"$x"], "/tmp"), (first["argv"], first["cwd"]))
    check("of the environment only what was named goes in", "GREETING" in first["env"] and "ANTHROPIC_API_KEY" not in first["env"] and "X" not in first["env"], first)
    process.stdin.write(b'{"n": 1}\n')
    same("lines go in and out while it runs", {"echo": {"n": 1}}, json.loads(await process.stdout.readline()))
    big = "x" * 300000
    process.stdin.write(json.dumps({"n": big}).encode() + b"\n")
    line = await read_line(process.stdout)
    same("long lines too", {"echo": {"n": big}}, json.loads(line))
    process.stdin.close()
    same("the end and the exit code of a process inside come through", (b"done\n", 5), (await process.stderr.read(), await process.wait()))
    process = await asyncio.create_subprocess_exec(options.cli_path, stdin=-1, stdout=-1, env=env)
    await process.stdout.readline()
    process.terminate()
    await process.wait()
    box = await cove.AsyncSandbox.connect(executor.sandbox_id)

    async def gone():
        while any("/home/user/claude" in one.args for one in await box.commands.list() if one.running):
            await asyncio.sleep(0.05)
    await asyncio.wait_for(gone(), 30)
    check("the program inside ends with the script", True)
    wrong = subprocess.run([sys.executable, "-m", "cove.sandbox.inside", "--sandbox", "nosuchbox", "--", "true"], capture_output=True, text=True)
    check("a sandbox that is not there is told", wrong.returncode == 70 and "sandbox" in wrong.stderr, wrong)
    inside.folder = os.path.dirname(options.cli_path)


async def read_line(stream):
    line = b""
    while not line.endswith(b"\n"):
        line += await stream.read(65536)
    return line


asyncio.run(agents())
check("the script is gone with the executor", not os.path.exists(inside.folder), inside.folder)

# ---- policy, limits, presets, the pool, and what goes wrong ----
manager = SecurityManager(SandboxConfig(security=SecurityConfig(blocked_tools=["WebFetch"], command_blacklist=[r"rm\s+-rf"])))
same("a blocked tool is refused", False, manager.validate_tool_call(ToolInput("WebFetch", {"url": "x"}))[0])
valid, reason = manager.validate_tool_call(ToolInput("Bash", {"command": "rm -rf /"}))
check("a dangerous command is refused with a reason", not valid and "destructive.rm-root" in reason, reason)
same("a path that is blocked is refused", False, manager.validate_tool_call(ToolInput("Read", {"file_path": "/etc/shadow"}))[0])
same("an ordinary path is not", (True, ""), manager.validate_tool_call(ToolInput("Write", {"file_path": "a.txt", "content": ""})))
stats = manager.get_stats()
same("calls and refusals are counted", (4, 3), (stats["checked"], stats["denied"]))
check("violations can be asked for by risk", all(one.risk_level == RiskLevel.CRITICAL for one in manager.get_violations(RiskLevel.CRITICAL)) and
      manager.get_violations(RiskLevel.CRITICAL), manager.get_violations())
sent = []
run("monitor.py", config=SandboxConfig(), send_alert=sent.append)
try:
    CommandAnalyzer(SecurityConfig(command_blacklist=["("])).analyze("ls")
    check("an invalid pattern is told", False)
except cove.InvalidRequestError as error:
    check("an invalid pattern is told", "command_blacklist" in str(error), error)
clock = [0.0]
limiter = RateLimiter(2, 10, clock=lambda: clock[0])
got = [limiter.check("a")[0], limiter.check("a")[0], limiter.check("a"), limiter.check("b")[0]]
clock[0] = 10.0
same("the limiter counts each key in a window that moves", (True, True, False, True, True), (got[0], got[1], got[2][0], got[3], limiter.check("a")[0]))
check("the limiter says when there is room again", "try again in 10.0 seconds" in got[2][1], got[2][1])
with cove.Cove() as client:
    presets = client.tools.presets()
for name, config in SANDBOX_PRESETS.items():
    theirs, ours = presets[name], config
    mine = dataclasses.asdict(ours.resource_limits)
    told = dict(theirs["resource_limits"])
    told["cpu_cores"] = mine["cpu_cores"] if told["cpu_cores"] <= mine["cpu_cores"] else told["cpu_cores"]  # never more than the host has
    same("the preset %s is the server's" % name, (mine, ours.session_timeout_minutes), (told, theirs["session_timeout_minutes"]))


async def pools():
    prepared = []

    async def prepare(sandbox):
        prepared.append(await sandbox.execute_bash("echo ready > mark"))
    async with SandboxPool(2, prepare=prepare) as pool:
        async with pool.sandbox() as sandbox:
            same("a sandbox of the pool is prepared", "ready\n", (await sandbox.execute_bash("cat mark")).stdout)
        three = await asyncio.gather(*(pool.acquire() for _ in range(3)))
        same("all who ask get one of their own", 3, len({one.sandbox_id for one in three}))
        for one in three:
            await one.close()
    same("a pool leaves nothing", [], boxes())

    async def broken(sandbox):
        raise RuntimeError("no")
    try:
        async with SandboxPool(2, prepare=broken):
            check("a pool whose sandboxes cannot be prepared says so", False)
    except RuntimeError:
        check("a pool whose sandboxes cannot be prepared says so", True)
    same("a pool whose sandboxes cannot be prepared leaves no sandbox", [], boxes())
    proxy = ToolProxy(SandboxConfig())
    await proxy.execute(ToolInput("Bash", {"command": "true"}))
    cove.Sandbox.connect((await proxy.sandbox()).sandbox_id).kill()
    lost = await proxy.execute(ToolInput("Bash", {"command": "true"}))
    check("a sandbox that ended is told, and made again by the next call", "ended" in (lost.error or "") and
          (await proxy.execute(ToolInput("Bash", {"command": "true"}))).success, lost)
    await proxy.close()
    nowhere = CoveSandbox(SandboxConfig(url="http://127.0.0.1:1"))
    try:
        await nowhere.connect()
        check("a server that is not there is told", False)
    except cove.ConnectionFailedError as error:
        check("a server that is not there is told", "127.0.0.1:1" in str(error), error)
    answer = await create_sandbox_tool_callback(ToolProxy(SandboxConfig(url="http://127.0.0.1:1")))("Bash", {"command": "id"}, None)
    check("a callback without a server denies, and nothing runs on the host", answer.behavior == "deny" and "127.0.0.1:1" in answer.message, answer)


asyncio.run(pools())
same("no sandbox is left", [], boxes())
server.end()
finish()
