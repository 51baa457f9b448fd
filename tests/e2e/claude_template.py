"""Claude Code as the template claude has it: one run, and one that waits in a snapshot. Prints how long each takes from the create to the first request
at the model. Run by claude_template_test."""
import json
import os
import pathlib
import re
import time

from harness import STATE, Server, check, finish, same, within

server = Server().start()
os.environ["COVE_URL"] = "unix:%s/cove.sock" % STATE
import cove  # noqa: E402

MODEL = (pathlib.Path(__file__).parent.parent / "model.py").read_text()
LIMITS = {"memory": "2g", "disk": "2g", "pids": 512}
MODEL_ENV = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:5055", "ANTHROPIC_API_KEY": "stand-in"}
SCRIPT = [{"tool": "Bash", "input": {"command": "uname -n; id -un; echo here > made"}}, {"tool": "Read", "input": {"file_path": "/home/user/made"}}, {"text": "the end"}]
STREAM = ["claude", "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"]
PROMPT = json.dumps({"type": "user", "message": {"role": "user", "content": "Continue."}, "parent_tool_use_id": None, "session_id": ""}) + "\n"


def start_model(box):
    """A model at port 5055 of the sandbox; when the first request came is what its log's time of birth says."""
    box.files.write("model.py", MODEL)
    box.files.write("script.json", json.dumps(SCRIPT))
    model = box.commands.start(["/usr/bin/python3", "model.py", "5055", "script.json", "model.log"], cwd="/home/user")
    for _ in model.output():
        break  # it said its port


def first_request(box):
    return float(box.commands.run("stat -c %.W model.log", cwd="/home/user").stdout)


def asked(box):
    return [json.loads(line) for line in box.files.read("model.log").splitlines()]


def cold():
    begun = time.time()
    with cove.Sandbox.create("claude", timeout=300, limits=LIMITS) as box:
        made = time.time()
        start_model(box)
        run = time.time()
        result = box.commands.run(["claude", "-p", "--dangerously-skip-permissions", "Continue."], envs=MODEL_ENV, cwd="/home/user")
        same("Claude Code is in the template, and runs at once", (0, "the end\n"), (result.exit_code, result.stdout))
        requests = asked(box)
        check("Bash of Claude Code runs in the sandbox, as its user", box.id in json.dumps(requests[1]) and box.files.read("made") == "here\n", requests[1]["messages"][-1:])
        check("Read of Claude Code sees the file", "here" in json.dumps(requests[2]["messages"][-1:]), requests[2]["messages"][-1:])
        same("no system call of Claude Code is refused", [], [refusal.call for refusal in box.refusals()])
        print("# create to the first request at the model: %.0f ms (create %.0f)" % ((made - begun + first_request(box) - run) * 1e3, (made - begun) * 1e3))


def waiting():
    """A sandbox in which Claude Code waits for its first prompt, as a snapshot."""
    with cove.Sandbox.create("claude", timeout=300, limits=LIMITS) as box:
        start_model(box)
        process = box.commands.start(STREAM + ["--debug-file", "/tmp/debug"], envs=MODEL_ENV, cwd="/home/user", stdin=True)
        check("Claude Code waits for a prompt", within(60, lambda: quiet(box)), box.commands.run("tail -n 3 /tmp/debug").stdout)
        return box.snapshot("claude-waits", memory=True), process.proc


def quiet(box):
    """Nothing was logged for a second: everything that happens at the start has happened."""
    return box.commands.run("test -s /tmp/debug && [ $(($(date +%s) - $(stat -c %Y /tmp/debug))) -ge 2 ]").exit_code == 0


def from_snapshot():
    snapshot, proc = waiting()
    for _ in range(2):
        begun = time.time()
        with cove.Sandbox.create(snapshot=snapshot.id, timeout=300) as box:
            made = time.time()
            process = box.commands.connect(proc)
            process.send_stdin(PROMPT)
            process.close_stdin()
            result = process.wait()
            last = json.loads(result.stdout.splitlines()[-1])
            same("Claude Code in a copy of the snapshot answers the prompt", ("result", "the end"), (last["type"], last.get("result")))
            check("the copy's commands run in the copy", box.id in json.dumps(asked(box)[1]), asked(box)[1]["messages"][-1:])
            print("# snapshot to the first request at the model: %.0f ms (create %.0f)" % ((first_request(box) - begun) * 1e3, (made - begun) * 1e3))
    server.ask("DELETE", "/v1/snapshots/%s" % snapshot.id)


def page():
    """The lines of docs/claude.md that make a snapshot and a copy."""
    text = (pathlib.Path(__file__).parents[2] / "docs/claude.md").read_text()
    code = next(block for block in re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M) if "claude-waits" in block)
    names = {}
    exec(compile(code, "docs/claude.md", "exec"), names)
    check("docs/claude.md: Claude Code runs in a copy of the snapshot", names["copy"].commands.connect(names["waiting"].proc).info().running)
    names["first"].kill()
    names["copy"].kill()
    server.ask("DELETE", "/v1/snapshots/%s" % names["snapshot"].id)


cold()
if os.environ["SAVES"] == "yes":
    from_snapshot()
    page()
same("no sandbox is left", [], [info.id for info in cove.Sandbox.list()])
server.end()
finish()
