"""The examples of docs/python.md, in order, with what they print; and the programs of examples/python. Run by python_test."""
import asyncio
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKE = str(ROOT / "tests/e2e/python/fake")
sys.path.insert(0, FAKE)
from harness import Server, check, finish, same  # noqa: E402

server = Server().start()
os.environ["COVE_URL"] = "http://127.0.0.1:%d" % server.port

page = (ROOT / "docs/python.md").read_text()
names: dict = {"__name__": "page"}
blocks = re.findall(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```$)?", page, re.S | re.M)
check("the page has examples", len(blocks) > 10, len(blocks))
for code, wanted in blocks:
    title = "docs/python.md: " + next(line for line in code.split("\n") if line and not line.startswith(("import", "from")))[:60].strip()
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, "docs/python.md", "exec"), names)
        same(title, wanted, out.getvalue())
    except Exception as error:
        check(title, False, "%s: %s" % (type(error).__name__, error))

# ---- docs/claude.md: its programs are those of examples/python; the callback's lines are run here, the snapshot's by claude_template_test ----
for code in re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/claude.md").read_text(), re.S | re.M):
    named = re.match(r"# (examples/python/(\S+))\n", code)
    if named:
        same("docs/claude.md shows %s as it is" % named[2], (ROOT / named[1]).read_text().split("\n")[1:], code.split("\n")[1:])
    elif "can_use_tool" in code:
        exec(compile(code, "docs/claude.md", "exec"), names)

        async def callback():
            async with names["SandboxExecutor"](names["SandboxConfig"]()) as executor:
                return await names["options"](executor)
        options = asyncio.run(callback())
        check("docs/claude.md: the callback and its hook are options of the Agent SDK", callable(options.can_use_tool) and "PreToolUse" in options.hooks, options)

EXAMPLES = {
    "agent.py": r"FAILED.*OK\nthe tests pass; calc.py is:.*a \+ b.*",
    "preview.py": r"it answers: <h1>Hello from a sandbox</h1>\nlook at it: http://3000-i\w+\..*",
    "04_sandbox_execution.py": r".*Hello from i\w+\n.*Hello, World!.*test\.txt:1:.*refused: .*blacklist.*exit code: 2\n.*Bash failed.*",
    "05_sandbox_api_server.py": r"server: .* healthy\nPOST /bash: Hello\n.*POST /file/read: Hello, World!\n.*GET /stats: \d+ sandboxes\n.*",
    "claude_tools.py": r"Bash: no such tool\n",
    "claude_inside.py": r".+\n",
}
import cove  # noqa: E402
with cove.Cove() as client:
    client.secrets.set("ANTHROPIC_API_KEY", "stand-in", ["api.anthropic.com"])
for name, wanted in EXAMPLES.items():
    run = subprocess.run([sys.executable, ROOT / "examples/python" / name], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "TEMPLATE": "host", "PYTHONPATH": os.environ["PYTHONPATH"] + ":" + FAKE})
    check("example %s" % name, run.returncode == 0 and re.fullmatch(wanted, run.stdout, re.S), run.stdout[-300:] + run.stderr[-300:])
same("examples leave no sandbox", [], [info.id for info in cove.Sandbox.list() if info.name != "default"])
for info in cove.Sandbox.list():
    cove.Sandbox(info, cove.Cove()).kill()
server.end()
finish()
