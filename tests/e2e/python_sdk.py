"""The Python client against the real server: every operation that the package has. Run by python_test."""
import asyncio
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import tarfile
import tempfile
import threading

from harness import STATE, Server, check, finish, same, within

import cove
from cove._core.operations import CELLS, OPERATIONS

KEY, TLS = os.environ["KEY"], os.environ["TLS"]
tls_port = int(os.environ["TLS_PORT"])
server = Server("--tls-listen", "127.0.0.1:%d" % tls_port, "--tls-cert", TLS + "/cert.pem", "--tls-key", TLS + "/key.pem").start()
URL = "http://127.0.0.1:%d" % server.port
called = set()
client = cove.Cove(URL, on_call=called.add)
tmp = pathlib.Path(tempfile.mkdtemp(prefix="cove-python-"))


def fails(sentence, kind, function, *args, **more):
    """The error, after a check of its class."""
    try:
        function(*args, **more)
    except kind as error:
        check(sentence, True)
        return error
    except Exception as error:
        check(sentence, False, "%s: %s" % (type(error).__name__, error))
        return error
    check(sentence, False, "no error")
    return cove.CoveError("none")


def lives():
    box = cove.Sandbox.create(name="one", timeout=120, metadata={"team": "a"}, envs={"GREETING": "hi"}, limits={"memory": "256m"}, client=client)
    same("a sandbox is created as it was asked for", ("one", "running", {"team": "a"}, 256 << 20),
         (box.info.name, box.info.state, box.info.metadata, box.info.limits["memory"]))
    same("the environment of a sandbox is in its commands", "hi\n", box.commands.run("echo $GREETING").stdout)
    again = cove.Sandbox.create(name="two", idempotency_key="k", client=client)
    same("a create with the same key gives the same sandbox", again.id, cove.Sandbox.create(name="two", idempotency_key="k", client=client).id)
    same("lists filter", ["one"], [info.name for info in cove.Sandbox.list(metadata={"team": "a"}, client=client)])
    same("lists go over all pages", {"one", "two"}, {info.name for info in cove.Sandbox.list(limit=1, client=client)})
    same("a sandbox is found by its name", box.id, cove.Sandbox.connect("one", client=client).id)
    before = box.info.deadline
    check("the deadline moves", box.set_timeout(600).deadline > before)
    metrics = box.get_metrics()
    check("metrics are told", metrics.memory_limit_bytes == 256 << 20 and metrics.processes >= 0, metrics)
    same("refusals of a sandbox can be listed", [], [one for one in box.refusals() if one.count < 0])
    check("a paused sandbox is told as paused", box.pause(tier="hot").state == "paused" and not box.is_running())
    same("connect resumes", "running", cove.Sandbox.connect(box.id, client=client).get_info().state)
    box.pause(tier="hot")
    same("resume resumes", "running", box.resume(timeout=300).state)
    box.files.write("mark", "1")
    snapshot = box.snapshot("saved", memory=False)
    same("a snapshot is made and found", (snapshot.id, snapshot.id), (client.snapshots.get("saved").id, next(client.snapshots.list(sandbox=box.id)).id))
    with cove.Sandbox.create(snapshot="saved", memory=False, client=client) as copy:
        same("a sandbox of a snapshot has its files", "1", copy.files.read("mark"))
    same("a snapshot is removed once", (True, False), (client.snapshots.remove("saved"), client.snapshots.remove("saved")))
    forks = box.fork_all(2)
    check("a fork is a sandbox or a reason", len(forks) == 2 and all(bool(one.info) != bool(one.error) for one in forks), forks)
    for one in forks:
        if one.info:
            cove.Sandbox(one.info, client).kill()
    if all(one.info for one in forks):
        box.files.write("forked", "yes")
        copies = box.fork(2)
        same("copies have the files, and are the caller's", ["yes", "yes"], [copy.files.read("forked") for copy in copies])
        for copy in copies:
            copy.kill()
    else:
        fails("where a copy cannot be made, fork says why and leaves none", cove.ServerError, box.fork, 2)
    same("a sandbox is killed once", (True, False), (again.kill(), again.kill()))
    same("a sandbox that was killed does not run", False, again.is_running())
    error = fails("a sandbox that is gone has an error of its own", cove.SandboxNotFoundError, again.commands.run, "true")
    same("errors have status, code and the request's id", (404, "sandbox_not_found", 32), (error.status, error.code, len(error.request_id or "")))
    return box


def commands(box):
    result = box.commands.run("echo out; echo err >&2; exit 3")
    same("a command that fails is a result", ("out\n", "err\n", 3, "exit", False), (result.stdout, result.stderr, result.exit_code, result.exit_reason, result.ok))
    error = fails("check raises", cove.CommandError, box.commands.run, "echo why >&2; exit 4", check=True)
    check("the error of check has the result", error.result.exit_code == 4 and "why" in str(error), error)
    same("a list is executed as it is", "$HOME *\n", box.commands.run(["echo", "$HOME", "*"]).stdout)
    same("options reach the command", "b /tmp user x", box.commands.run("echo -n $A $(pwd) $(id -un) $(cat)", envs={"A": "b"}, cwd="/tmp", user="user", stdin="x").stdout)
    seen = []
    result = box.commands.run("printf 'ä'; sleep 0.2; printf '\\303'; sleep 0.2; printf '\\251\\377'", on_stdout=seen.append)
    same("characters that come in two parts are shown whole", ("äé\ufffd", "äé\ufffd", b"\xc3\xa4\xc3\xa9\xff"), ("".join(seen), result.stdout, result.stdout_bytes))
    result = box.commands.run("yes | head -c 3000000", output_limit=1000)
    same("output beyond the limit is cut, and told", (1000, True, False), (len(result.stdout), result.stdout_truncated, result.stderr_truncated))
    same("a timeout is a result", (124, "timeout"), (lambda r: (r.exit_code, r.exit_reason))(box.commands.run("sleep 30", timeout=0.3)))
    same("a limit of processor time too", "cpu_timeout", box.commands.run("while :; do :; done", cpu_timeout=0.2).exit_reason)
    error = fails("a refusal of the policy has its class", cove.PolicyError, box.commands.run, "rm -rf /")
    same("a refusal of the policy has rule and layer", ("destructive.rm-root", "policy"), (error.rule, error.layer))
    fails("stdin that is not text is refused with advice", cove.ConfigurationError, box.commands.run, "cat", stdin=b"\xff")
    error = fails("an invalid field is named", cove.InvalidRequestError, box.commands.run, "true", timeout=10**9)
    same("an invalid field is named by the server's word", "timeout", error.field)

    handle = box.commands.start("cat; echo end >&2; exit 2", stdin=True, tag="cat")
    handle.send_stdin(b"\xff\x00")
    handle.send_stdin("text")
    handle.close_stdin()
    result = handle.wait()
    same("bytes go in and come out", (b"\xff\x00text", b"end\n", 2), (result.stdout_bytes, result.stderr_bytes, result.exit_code))
    same("output is there again afterwards", [("stdout", b"\xff\x00text"), ("stderr", b"end\n")],
         sorted([tuple(part) for part in box.commands.connect(handle.proc)], reverse=True))
    same("all of stdin at once", b"\xfe" * 600000, box.commands.start("cat", stdin=b"\xfe" * 600000, output_kept=600000).wait().stdout_bytes)
    with box.commands.run("sleep 300", background=True) as sleeper:
        same("a command in the background runs", (True, ["sleep 300"]), (sleeper.info().running, box.commands.connect(sleeper.proc).info().args[-1:]))
    check("a command in the background ends with its block", within(10, lambda: not sleeper.info().running))
    same("a signal arrives", 143, (lambda h: (h.signal("TERM"), h.wait().exit_code)[1])(box.commands.start("exec sleep 100")))
    same("a process that is not there cannot be killed", False, box.commands.kill(99999))

    # A thread whose connection is closed gets an error; the command ends.
    stream = client.stream("exec", id=box.id, json={"command": "sleep 200", "stream": "ndjson"})
    threading.Timer(0.3, stream.close).start()
    with contextlib.suppress(cove.CoveError):
        list(stream.events())
    check("a stream that is closed ends its command", within(10, lambda: not any("sleep 200" in one.args for one in box.commands.list() if one.running)))
    result = client.run("cat in.txt; echo $((6*7)) > out", files={"in.txt": "hello"}, return_files=["out", "none"], limits={"memory": "128m"})
    same("client.run has a sandbox of its own", ("hello", b"42\n", True, None), (result.stdout, result.files[0].data, bool(result.files[1].error), result.files[0].error))
    same("client.run takes code", "4\n", client.run(code="print(2+2)").stdout)


def files(box):
    info = box.files.write("d/a.txt", "héllo", mode="600")
    same("a file is written", ("a.txt", 6, "0600"), (info.name, info.size, info.mode))
    same("a file is read as text and as bytes", ("héllo", "héllo".encode()), (box.files.read("d/a.txt"), box.files.read("d/a.txt", "bytes")))
    box.files.write("d/a.txt", b"!", append=True)
    same("bytes are appended", "héllo!", box.files.read("d/a.txt"))
    fails("create refuses a file that exists", cove.ConflictError, box.files.write, "d/a.txt", "x", create=True)
    same("the old content stays", "héllo!", box.files.read("d/a.txt"))
    progress = []
    box.files.write("parts", (bytes([65 + i]) * 3 for i in range(4)), on_progress=progress.append)
    same("parts are uploaded as they come, with progress", ("AAABBBCCCDDD", [3, 6, 9, 12]), (box.files.read("parts"), [one.done for one in progress]))
    fails("content of another kind is refused", cove.ConfigurationError, box.files.write, "x", 5)

    def breaks():
        yield b"half"
        raise RuntimeError("no more")
    fails("an upload whose source fails is the caller's error", RuntimeError, box.files.write, "parts", breaks())
    same("an upload whose source fails leaves the old content", "AAABBBCCCDDD", box.files.read("parts"))
    (tmp / "big").write_bytes(os.urandom(3 << 20))
    progress.clear()
    box.files.upload(tmp / "big", "big", on_progress=progress.append)
    size = box.files.download("big", tmp / "back", on_progress=progress.append)
    check("a file goes in and out unchanged, with progress", size == 3 << 20 and (tmp / "big").read_bytes() == (tmp / "back").read_bytes() and
          progress[-1] == (3 << 20, 3 << 20), progress[-1:])
    same("a stream has the same bytes", (tmp / "big").read_bytes(), b"".join(box.files.stream("big")))
    fails("a file that is missing has its class", cove.PathNotFoundError, box.files.download, "none", tmp / "none")
    same("a failed download leaves nothing half on this machine", ["back", "big"], sorted(os.listdir(tmp)))
    same("exists and make_dir say whether a name was there", (True, False, True, False), (box.files.exists("d"), box.files.exists("e"), box.files.make_dir("x/y"), box.files.make_dir("x/y")))
    same("a list with depth", ["a.txt"], [one.name for one in box.files.list("d", depth=2)])
    same("a glob", ["/home/user/d/a.txt"], [one.path for one in box.files.glob("**/*.txt")])
    found = box.files.search("llo!$", "d")
    same("a search", [("a.txt", 1)], [(os.path.basename(one.path), one.line) for one in found])
    same("a rename", "b.txt", box.files.rename("d/a.txt", "d/b.txt").name)
    box.files.chmod("d/b.txt", "644")
    same("permissions", "0644", box.files.get_info("d/b.txt").mode)
    tree = tmp / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub/f").write_text("in")
    (tree / "run").write_text("#!/bin/sh\n")
    (tree / "run").chmod(0o755)
    os.symlink("sub/f", tree / "link")
    check("a directory goes in", box.files.upload_dir(tree, "tree") >= 4, "entries")
    box.files.download_dir("tree", tmp / "copy")
    same("a directory comes out as it went in", ("in", "sub/f", 0o755), ((tmp / "copy/link").read_text(), os.readlink(tmp / "copy/link"), (tmp / "copy/run").stat().st_mode & 0o777))
    box.commands.run("ln -s /etc/passwd tree/bad", check=True)
    fails("a link of the sandbox that leads out is not made here", cove.ConflictError, box.files.download_dir, "tree", tmp / "copy2")
    check("nothing is written through a link that leads out", not os.path.lexists(tmp / "copy2/bad"))
    same("a tree is removed", False, (box.files.remove("tree"), box.files.exists("tree"))[1])
    watch = box.files.watch_dir(".", recursive=True)
    box.files.write("watched", "1")
    change = next(one for one in watch if (one.to or one.path).endswith("watched"))
    check("a change is seen", change.type in ("create", "write", "rename"), change)
    watch.close()
    url = box.files.sign_url("watched", expires_in=60)
    got = subprocess.run(["curl", "-s", url.url], capture_output=True, text=True).stdout
    same("a signed URL needs no key", "1", got)


def broken_downloads(box):
    """A relay between client and server that cuts the first two downloads in the middle."""
    import socket
    listener = socket.create_server(("127.0.0.1", 0))
    cuts = [2]

    def relay(one):
        other = server.connect()
        left = 400000 if cuts[0] > 0 else None
        cuts[0] -= 1

        def up():
            with contextlib.suppress(OSError):
                while data := one.recv(65536):
                    other.sendall(data)
        threading.Thread(target=up, daemon=True).start()
        with contextlib.suppress(OSError):
            while data := other.recv(65536 if left is None else min(65536, left)):
                one.sendall(data)
                left = None if left is None else left - len(data)
                if left == 0:
                    break
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def serve():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=relay, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    with cove.Cove("http://127.0.0.1:%d" % listener.getsockname()[1]) as other:
        far = cove.Sandbox(box.info, other)
        far.files.download("big", tmp / "resumed")
        check("a download whose connection breaks continues where it was", (tmp / "resumed").read_bytes() == (tmp / "big").read_bytes() and cuts[0] == -1, cuts)
        cuts[0] = 1
        other.close()
    with cove.Cove("http://127.0.0.1:%d" % listener.getsockname()[1]) as other:
        far = cove.Sandbox(box.info, other)
        result = far.commands.start("head -c 800000 /dev/zero | tr '\\0' x; echo; echo end; sleep 1", output_kept=1 << 20).wait()
        check("output whose connection breaks is followed again, and nothing is twice or missing", len(result.stdout) == 800005 and
              result.stdout.endswith("x\nend\n"), (len(result.stdout), cuts))
    listener.close()


def cells(box):
    seen = []
    same("a cell has a value", "3", box.run_code("x = 1; x + 2").text)
    run = box.run_code("print('o'); import sys; print('e', file=sys.stderr); x", on_stdout=seen.append)
    same("cells share their variables, and output is shown", ("1", ["o\n"], ["e\n"], ["o\n"]), (run.text, run.logs.stdout, run.logs.stderr, seen))
    run = box.run_code("1/0")
    check("an exception is part of the execution", run.error and run.error.name == "ZeroDivisionError" and "1/0" in run.error.traceback, run)
    context = box.create_context(cwd="/tmp")
    box.run_code("y = 5", context=context)
    fork = box.fork_context(context)
    same("a fork of a context has its variables", "5", box.run_code("y", context=fork).text)
    check("contexts are listed", {context.id, fork.id} <= {one.id for one in box.list_contexts()})
    box.restart_context(context)
    same("a restarted context is empty", "NameError", box.run_code("y", context=context).error.name)
    box.remove_context(fork)
    fails("a context that was removed is gone", cove.NotFoundError, box.run_code, "1", context=fork.id)
    same("run_code runs bash", "3", box.run_code("echo $((1+2))", language="bash").logs.stdout[0].strip())
    fails("a cell that takes too long is interrupted", cove.RequestTimeoutError, box.run_code, "import time\nwhile True: time.sleep(0.01)", timeout=0.5)
    same("the cell after an interrupted one runs", "2", box.run_code("1+1", timeout=60).text)


def tunnels(box):
    box.commands.start(["python3", "-c", "import socket\ns = socket.create_server((\"127.0.0.1\", 7100))\nwhile True:\n    c, _ = s.accept()\n"
                        "    data = b''\n    while got := c.recv(65536): data += got\n    c.sendall(data[::-1]); c.close()"])
    check("a server listens inside", within(30, lambda: 7100 in [port.port for port in box.ports.list()]))
    data = os.urandom(300000)
    with box.ports.connect(7100) as tunnel:
        tunnel.send(data)
        tunnel.send_end()
        same("a tunnel passes bytes both ways, and the end of one direction", data[::-1], b"".join(tunnel))
    fails("a tunnel to a port where nothing listens is refused", cove.ApiError, box.ports.connect, 7101)


def terminals(box):
    with box.pty.create(rows=30, columns=100) as terminal:
        terminal.send("stty size; echo $((40+2))\n")
        seen = b""
        while b"\n42" not in seen.replace(b"\r", b""):
            seen += terminal.receive()
        check("a terminal has its size", b"30 100" in seen, seen)
        terminal.resize(40, 120)
        terminal.send("clear; stty size; echo en''d\n")
        while b"\nend" not in seen.replace(b"\r", b""):
            seen += terminal.receive()
        check("a terminal has its new size after a resize", b"40 120" in seen, seen)
        proc, offset = terminal.proc, terminal.offset
        terminal.close()
        back = box.pty.connect(proc, offset=offset)
        back.send("exit 6\n")
        shown = []
        same("a terminal is left and found again, and tells its end", 6, back.wait(shown.append).exit_code)
    with box.pty.create(command="sleep 500") as terminal:
        pass
    check("a terminal ends with its block", within(10, lambda: not box.commands.connect(terminal.proc).info().running))
    fails("a terminal of an unknown user is refused", cove.InvalidRequestError, box.pty.create, user="nosuchuser")
    terminal = box.pty.create()
    same("a terminal is killed by its number", True, box.pty.kill(terminal.proc))
    terminal.close()
    socket = client.websocket("session")
    socket.send('{"sandbox": "%s", "process": {"args": ["cat"], "stdin": true}}' % box.id)
    while not (isinstance(message := socket.receive(), str) and '"start"' in message):
        pass
    socket.send(b"ping")
    same("a session carries bytes", b"\1ping", socket.receive())
    socket.close()


def git(box):
    git = box.git
    git.configure_user("A", "a@example.com")
    git.init("repo", initial_branch="main")
    box.files.write("repo/a b.txt", "1\n")
    same("status of a new repository", ("main", [("a b.txt", "?", "?")]), (lambda s: (s.branch, [(f.path, f.index, f.worktree) for f in s.files]))(git.status("repo")))
    git.add("repo")
    git.commit("repo", "first 'quoted'")
    git.create_branch("repo", "side")
    box.files.write("repo/a b.txt", "2\n")
    check("a difference", "-1\n+2" in git.diff("repo"))
    git.restore("repo", "a b.txt")
    same("restored", True, git.status("repo").clean)
    git.checkout_branch("repo", "main")
    git.delete_branch("repo", "side")
    same("branches and commits", (["main"], "main", 1, "A"), (git.branches("repo").branches, git.branches("repo").current, len(git.log("repo")), git.get_config("user.name")))
    git.init("far.git", bare=True, initial_branch="main")
    git.remote_add("repo", "origin", "/home/user/far.git")
    git.push("repo", branch="main", set_upstream=True)
    git.clone("/home/user/far.git", "copy", depth=None)
    git.commit("repo", "empty", allow_empty=True, author_name="B", author_email="b@example.com")
    git.push("repo")
    git.pull("copy")
    same("a clone follows", 2, len(git.log("copy")))
    git.reset("copy", mode="hard", target="HEAD~1")
    same("a reset is behind", (0, 1, "/home/user/far.git"), (lambda s: (s.ahead, s.behind, git.remote_get("copy")))(git.status("copy")))
    error = fails("what git refuses is an error with its words", cove.CommandError, git.clone, "/home/user/none.git", "x")
    check("what git refuses has git's words", "none.git" in error.result.stderr, error)
    git.clone("/home/user/far.git", "login", username="u", password="sesame")
    same("a password is left nowhere", 1, box.commands.run("grep -rq sesame /home/user").exit_code)


def the_rest(box):
    same("a sandbox without a network says so", True, bool(box.network.get()))
    box.network.set({"allow": ["example.com:443"]})
    check("a rule is added", "api.example.com" in str(box.network.allow("api.example.com")), box.network.get())
    same("events", True, isinstance(box.network.events(), list))
    with box.commands.start("/usr/bin/python3 -m http.server 3000 -d /tmp", cwd="/tmp"):
        check("a server inside is listed", within(30, lambda: 3000 in [one.port for one in box.ports.list()]))
        box.files.write("/tmp/page.txt", "page")
        answer = box.ports.request(3000, "/page.txt", headers={"X-A": "b"})
        same("a server inside answers", (200, b"page"), (answer.status, answer.body))
        same("a server inside answers with errors, and to other methods", [404, 501, 501, 501, 501],
             [box.ports.request(3000, "/none").status] + [box.ports.request(3000, "/page.txt", method=m).status for m in ("POST", "PUT", "DELETE", "PATCH")])
        check("a link for a browser", box.preview_url(3000).startswith("http://3000-" + box.id) and box.get_host(3000).startswith("3000-"), box.preview_url(3000))
    token = box.get_preview().token
    same("previews are public or not", (True, False), (box.set_preview({"public": True}).public, box.set_preview({}).public))
    check("a token is rolled", box.roll_preview().token != token)
    fails("a port where nothing listens is UnavailableError", cove.UnavailableError, lambda: client.call("relayGet", id=box.id, port=4000, path=""))
    client.volumes.create("data", size="32m")
    with cove.Sandbox.create(volumes=[{"name": "data", "path": "/data"}], client=client) as one:
        one.files.write("/data/f", "kept")
        same("a volume has a writer", (1, one.id), (client.volumes.get("data").writers, client.volumes.get("data").users[0]["sandbox"]))
        fails("a volume in use is not removed", cove.ConflictError, client.volumes.remove, "data")
    with cove.Sandbox.create(volumes=[{"name": "data", "path": "/data", "read_only": True}], client=client) as one:
        same("a volume outlives its sandbox", "kept", one.files.read("/data/f"))
    same("volumes are listed and removed", (["data"], True, False), ([v.name for v in client.volumes.list()], client.volumes.remove("data"), client.volumes.remove("data")))
    client.secrets.set("TOKEN", "s3cret", ["api.example.com"])
    check("a secret is listed without its value", [(s.name, s.hosts) for s in client.secrets.list()] == [("TOKEN", ["api.example.com"])] and
          "s3cret" not in str(client.secrets.list()))
    same("a secret is removed once", (True, False), (client.secrets.remove("TOKEN"), client.secrets.remove("TOKEN")))
    client.networks.create("lan")
    member = client.networks.join("lan", box.id, alias="db", ports=[5432])
    same("a private network has its member", ("db", [5432], 1, "db"), (member.alias, member.ports, client.networks.get("lan").member_count, client.networks.get("lan").members[0].alias))
    same("a private network is left and removed", (True, ["lan"], True), (client.networks.leave("lan", box.id), [n.name for n in client.networks.list()], client.networks.remove("lan")))
    client.set_default_network({"mode": "off"})
    same("a default network is set and taken back", ({"mode": "off"}, None), ({"mode": (client.default_network() or {}).get("mode")}, (client.set_default_network(None), client.default_network())[1]))
    client.pools.set("host", max=1)
    same("pools", (True, True), ("host" in str(client.pools.list()), client.pools.unset("host") is None))
    analysis = client.policy.analyze("curl http://x | sh")
    check("an analysis names programs and violations", "curl" in analysis.programs and analysis.violations, analysis)
    check("violations of late", client.policy.violations(risk="critical")["violations"], client.policy.violations())
    tool = client.tools.bash("echo $((1+1))", timeout_seconds=20)
    same("a tool in the default sandbox", ("2\n", 0, True), (tool.stdout, tool.exit_code, tool.sandbox_id == client.tools.default_sandbox()["sandbox_id"]))
    client.tools.write("t.txt", "needle\n")
    same("tools write, read and search", ("needle", True), (client.tools.read("t.txt").output.strip(), "needle" in client.tools.search("need").output))
    same("any tool by its name", True, client.tools.execute("Glob", {"pattern": "*.txt"}).success)
    made = client.tools.create_sandbox({"preset": "minimal"})
    check("a sandbox to measure", client.remove("killSandbox", id=made["sandbox_id"]))
    same("tools and presets", (True, {"minimal", "standard", "development"}), ("Bash" in [t["name"] for t in client.tools.list()], set(client.tools.presets())))
    same("the default sandbox ends", True, client.tools.end_default_sandbox()["ended"])
    check("the server", client.health()["status"] == "healthy" and client.stats()["tenant"] == "local" and "cove_uptime_seconds" in client.metrics() and
          "operationId: exec" in client.openapi())
    check("the audit log, over several pages", len(list(client.audit_logs(limit=50))) > 100)


def operating(box):
    with cove.Cove("unix:" + STATE + "/cove.sock", on_call=called.add) as operator:
        made = operator.tenants.add("team", quotas={"sandboxes": 1})
        same("a tenant is made, changed and found", (1, 2, True), (made.quotas["sandboxes"], operator.tenants.change("team", quotas={"sandboxes": 2}).quotas["sandboxes"],
                                                                    "team" in [one.name for one in operator.tenants.list()]))
        key = operator.keys.create("team", label="test", expires=600)
        check("a key is shown once, and in no text", key.key and key.key not in repr(key) and key.id in [one.id for one in operator.keys.list(tenant="team")], key)
        with cove.Cove(URL, key.key) as member:
            same("the key is the tenant's", "team", member.stats()["tenant"])
        with cove.Cove("unix:" + STATE + "/cove.sock", tenant="team") as deputy:
            same("the operator acts for a tenant", "team", deputy.stats()["tenant"])
        operator.keys.revoke(key.id)
        same("a key is revoked", "revoked", next(one for one in operator.keys.list(tenant="team") if one.id == key.id).state)
        same("a tenant is removed once", (True, False, True), (operator.tenants.get("team").name == "team" and operator.tenants.remove("team"), operator.tenants.remove("team"),
                                                                "team" not in [one.name for one in operator.tenants.list()]))
        records = list(operator.audit.records(oldest_first=True, limit=50, tenant="local"))
        check("the audit log of all, over several pages, is a chain", len(records) > 100 and operator.audit.verify()["whole"] is True, len(records))
        same("prune of very old records removes none", 0, operator.audit.prune(86400 * 365))
        check("what waits in pools is ended", operator.pools.drain() >= 0)
    fails("loopback is not the operator", cove.ForbiddenError, client.tenants.list)


def building(box):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("greeting")
        entry.size = 6
        archive.addfile(entry, io.BytesIO(b"hello\n"))
    files = client.builds.put_files(packed.getvalue())
    lines = []
    build = client.builds.create("made:one", from_template="host", tags=["two"], steps=[
        {"type": "COPY", "args": ["greeting", "/home/user/greeting", "", ""], "files": files}, {"type": "RUN", "args": ["cat greeting; echo built", "user"]},
        {"type": "ENV", "args": ["COLOUR", "blue"]}])
    same("a build is followed to its end", "ready", build.wait(on_log=lines.append).state)
    check("the lines of a build's log are shown", any("built" in line.text for line in lines) and len(list(build.logs(follow=False))) == len(lines), lines[-3:])
    with cove.Sandbox.create("made:one", client=client) as made:
        same("a sandbox of the template has what was built", "hello\nblue\n", made.commands.run("cat greeting; echo $COLOUR").stdout)
    failing = client.builds.create("made:bad", from_template="host", steps=[{"type": "RUN", "args": ["exit 3", "user"]}])
    error = fails("a build that fails is an error with the build", cove.BuildError, failing.wait)
    same("the error says where the build failed", ("failed", "1"), (error.build.state, error.build.step))
    slow = client.builds.create("made:slow", from_template="host", steps=[{"type": "RUN", "args": ["sleep 600", "user"]}])
    slow.cancel()
    same("a build is cancelled", "cancelled", fails("a build that was cancelled is not ready", cove.BuildError, client.builds.get(slow.id).wait).build.state)
    same("builds of a template are listed, newest first", [slow.id, failing.id, build.id], [one.id for one in client.builds.list(template="made")])
    template = client.templates.tag("made", "three", from_tag="one")
    same("a template has its tags", (True, True), (template.own, {"one", "two", "three"} <= {tag["tag"] for tag in client.templates.get("made").tags}))
    same("a tag is removed once", (True, False), (client.templates.untag("made", "three"), client.templates.untag("made", "three")))
    same("a template is published, and taken back", (True, False), (client.templates.publish("made").public, client.templates.publish("made", public=False).public))
    same("a template is removed once, and no longer listed", (True, True, False), ("made" in [one.name for one in client.templates.list()], client.templates.remove("made"),
                                                                                    client.templates.remove("made")))


def ways(box):
    with cove.Cove("unix:" + STATE + "/cove.sock") as other:
        same("over the unix socket", "unix\n", cove.Sandbox(box.info, other).commands.run("echo unix").stdout)
    with cove.Cove("https://127.0.0.1:%d" % tls_port, KEY, ca_file=TLS + "/ca.pem") as other:
        same("over TLS, with a key", "tls\n", cove.Sandbox(box.info, other).commands.run("echo tls").stdout)
        with cove.Sandbox(box.info, other).pty.create() as terminal:
            terminal.send("exit 3\n")
            same("a terminal over TLS", 3, terminal.wait().exit_code)
    with cove.Cove("https://127.0.0.1:%d" % tls_port) as other:
        fails("a certificate that is not known is refused", cove.ConnectionFailedError, other.health)
    with cove.Cove(URL, "e2b_" + "0" * 40) as other:
        error = fails("a wrong key has its class", cove.AuthenticationError, other.stats)
        check("the key is in no message about a wrong key", "0000" not in str(error), error)
    for url in ("ftp://x", "http://", "http://h:99999", "unix:relative", "http://a b", "http://u:p@h"):
        fails("an invalid address is refused: " + url, cove.ConfigurationError, cove.Cove, url)
    fails("a header cannot be smuggled in", ValueError, client.call, "getStats", headers=[("X", "a\r\nY: b")])
    fails("an id cannot leave its place in the path", cove.CoveError, client.call, "getSandbox", id="..")
    fails("an id with slashes cannot leave its place in the path", cove.ApiError, client.call, "getSandbox", id="../../stats")


async def asynchronously(box_id):
    async with cove.AsyncCove(URL, on_call=called.add) as client:
        async with await cove.AsyncSandbox.create(client=client) as box:
            seen = []

            async def show(text):
                await asyncio.sleep(0)
                seen.append(text)
            result = await box.commands.run("echo a; echo b", on_stdout=show)
            same("async: output, also to a coroutine function", ("a\nb\n", "a\nb\n"), (result.stdout, "".join(seen)))
            many = await asyncio.gather(*(box.commands.run("echo %d" % i) for i in range(20)))
            same("async: twenty commands at once", ["%d\n" % i for i in range(20)], [one.stdout for one in many])
            task = asyncio.ensure_future(box.commands.run("sleep 400 & sleep 401; wait"))
            while not any(one.running for one in await box.commands.list()):
                await asyncio.sleep(0.02)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                check("async: a task is cancelled at once", True)

            async def calm():
                while any(one.running for one in await box.commands.list()):
                    await asyncio.sleep(0.05)
            await asyncio.wait_for(calm(), 30)
            check("async: a cancelled command ends", True)
            await box.files.write("a/b", io.BytesIO(b"x" * 1000000))

            async def parts():
                for _ in range(3):
                    yield b"part"
            await box.files.write("parts", parts())
            await box.files.write("listed", [b"a", b"b"], on_progress=seen.append)
            same("async: files", (1000000, "partpartpart"), (len(await box.files.read("a/b", "bytes")), await box.files.read("parts")))
            same("async: cells", "7", (await box.run_code("3+4")).text)
            async with await box.pty.create() as terminal:
                await terminal.send("exit 9\n")
                same("async: a terminal", 9, (await terminal.wait()).exit_code)
            watch = await box.files.watch_dir()
            await box.files.write("w", "1")
            async for change in watch:
                break
            watch.close()
            check("async: a watch", bool(change.type), change)
            same("async: lists", True, box.id in [info.id async for info in cove.AsyncSandbox.list(client=client)])
        try:
            await box.get_info()
            check("async: the sandbox ends with its block", False)
        except cove.SandboxNotFoundError:
            check("async: the sandbox ends with its block", True)
    async with await cove.AsyncSandbox.create() as box:
        same("async: a client of the environment", "hi\n", (await box.commands.run("echo hi")).stdout)


def restarts(box):
    """The server is killed and comes back: what is safe to repeat is repeated."""
    handle = box.commands.start("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.2; done")
    client.health()

    patient = cove.Cove(URL, retry=cove.RetryPolicy(attempts=8, longest_wait=2), on_call=called.add)
    far = cove.Sandbox(box.info, patient)

    def meanwhile(function):
        """The server is killed and started while a thread asks it; what the thread got."""
        got = []
        thread = threading.Thread(target=lambda: got.append(function()))
        thread.start()
        server.end(signal.SIGKILL)
        server.start()
        thread.join(60)
        return got
    shown = []
    results = meanwhile(lambda: far.commands.connect(handle.proc).wait(on_stdout=shown.append))
    same("output is followed over a restart of the server, whole", (["1\n2\n3\n4\n5\n6\n7\n8\n"], "1\n2\n3\n4\n5\n6\n7\n8\n"),
         ([one.stdout for one in results], "".join(shown)))
    same("a kept connection that the server closed is replaced", "healthy", client.health()["status"])
    same("a read is repeated while the server is away", [box.id], meanwhile(lambda: far.get_info().id))
    same("a create that is repeated makes one sandbox", 1, len({one.id for one in meanwhile(lambda: cove.Sandbox.create(name="again", client=patient))} & {
        info.id for info in cove.Sandbox.list(name="again", client=client)}))
    cove.Sandbox.connect("again", client=client).kill()
    patient.close()


os.environ["COVE_URL"] = URL
box = lives()
for part in (commands, files, broken_downloads, cells, terminals, tunnels, git, the_rest, operating, building, ways):
    if os.environ.get("ONLY", part.__name__) == part.__name__:
        part(box)
asyncio.run(asynchronously(box.id))
restarts(box)
box.kill()
if "ONLY" not in os.environ:
    same("every operation of the package was asked for", [], sorted({*OPERATIONS, *CELLS} - called))
same("no sandbox is left", [], [info.id for info in cove.Sandbox.list()])
client.close()
subprocess.run(["rm", "-rf", str(tmp)])
server.end()
finish()
