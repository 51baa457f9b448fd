"""The Model Context Protocol: POST /mcp, the shell's state, and the bridge. Run by mcp_test."""
import base64
import contextlib
import json
import os
import re
import socket
import subprocess
import threading
import time

from harness import NO_SAVE, STATE, Server, check, finish, same, skip, within

KEY, READER, COVE, TMP = (os.environ[n] for n in ("KEY", "READER", "COVE", "TMP"))
server = Server("--policy", "standard").start()
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
OLD = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def post(body, key=None, **headers):
    return server.ask("POST", "/mcp", body, key=key, headers={**OLD, **{k.replace("_", "-"): v for k, v in headers.items()}})


def old(method, params=None, id=1, key=None, **headers):
    return post({"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params is not None else {})}, key, **headers)


def new(method, params=None, id=1, key=None, meta=META, **headers):
    h = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method, **headers}
    if method == "tools/call" and "Mcp_Name" not in h:
        h["Mcp_Name"] = (params or {}).get("name", "")
    return post({"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), **({"_meta": meta} if meta else {})}}, key,
                **{k: v for k, v in h.items() if v is not None})


def call(name, key=None, **arguments):
    """The text of the result and whether it is an error; or the result."""
    a = old("tools/call", {"name": name, "arguments": arguments}, key=key)
    result = (a.json or {}).get("result") or {}
    block = (result.get("content") or [{}])[0]
    return block.get("text", block), result.get("isError", a.json)


def code(a):
    return a.status, a.error.get("code"), (a.json or {}).get("id")


# ---- a client of one sandbox ----
pinned, elsewhere = (server.ask("POST", "/v1/sandboxes", {}).json["id"] for _ in range(2))


def at(method, params=None, where=pinned):
    return server.ask("POST", "/mcp?sandbox=" + where, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}, headers=OLD).json


def pinned_call(name, **arguments):
    result = at("tools/call", {"name": name, "arguments": arguments})
    return result.get("result", result)


listed = at("tools/list")["result"]["tools"]
check("a pinned client is told of one sandbox only", "bash" in {t["name"] for t in listed} and "preview_url" in {t["name"] for t in listed} and
      not {t["name"] for t in listed} & {"create_sandbox", "list_sandboxes", "delete_sandbox"} and
      not any("sandbox_id" in t["inputSchema"]["properties"] for t in listed), listed)
same("a pinned client works in its sandbox", pinned, pinned_call("bash", command="uname -n")["content"][0]["text"].strip())
same("a pinned client may name its sandbox", pinned, pinned_call("bash", command="uname -n", sandbox_id=pinned)["content"][0]["text"].strip())
check("a pinned client cannot reach another sandbox of its tenant", pinned_call("bash", command="uname -n", sandbox_id=elsewhere)["isError"])
same("a pinned client cannot end a sandbox", -32602, pinned_call("delete_sandbox", sandbox_id=elsewhere)["error"]["code"])
check("a pinned client's preview is of its sandbox", pinned in pinned_call("preview_url", port=8080)["content"][0]["text"])
check("a sandbox that is not there is an error, and no other takes its place",
      at("tools/call", {"name": "bash", "arguments": {"command": "true"}}, where="i00000000000000000000")["result"]["isError"])
for sentence, query in (("a pin that is given twice is refused", "sandbox=%s&sandbox=%s" % (pinned, elsewhere)),
                        ("a pin that cannot be decoded is refused", "sandbox=%s%%zz" % pinned),
                        ("a pin that is not UTF-8 is refused", "sandbox=%ff"),
                        ("a pin with a NUL is refused", "sandbox=%s%%00" % pinned),
                        ("a pin without a sandbox is refused", "sandbox=")):
    same(sentence, 400, server.ask("POST", "/mcp?" + query, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "bash", "arguments": {"command": "uname -n", "sandbox_id": elsewhere}}}, headers=OLD).status)
for one in (pinned, elsewhere):
    server.ask("DELETE", "/v1/sandboxes/" + one)

# ---- opening, older era ----
a = old("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
same("initialize agrees on a revision that both know", (200, "2025-06-18", {"tools": {}}),
     (a.status, a.json["result"]["protocolVersion"], a.json["result"]["capabilities"]))
check("a session id is given out", re.fullmatch("[0-9a-f]{32}", a.headers.get("Mcp-Session-Id", "")), a.headers)
same("initialize with an unknown revision gets the newest of its era", "2025-11-25",
     old("initialize", {"protocolVersion": "1999-01-01"}).json["result"]["protocolVersion"])
same("a notification gets 202 and no body", (202, b""), (lambda a: (a.status, a.body))(
    post({"jsonrpc": "2.0", "method": "notifications/initialized"})))
same("ping is answered", {}, old("ping").json["result"])
same("a method that is unknown is told", (200, -32601, 1), code(old("prompts/list")))
same("a method of the newer era is unknown in the older one", (200, -32601, 1), code(old("server/discover")))
same("a revision that is not spoken gets 400", 400, old("tools/list", MCP_Protocol_Version="1999-01-01").status)
same("a session id of a server before a restart continues", 200, old("tools/list", Mcp_Session_Id="0" * 32).status)
for method in ("GET", "DELETE"):
    a = server.ask(method, "/mcp", headers={"Accept": "text/event-stream"})
    same("%s gets 405, in the words of JSON-RPC" % method, (405, "POST", "2.0"), (a.status, a.headers.get("Allow"), a.json["jsonrpc"]))

# ---- opening, newer era ----
a = new("server/discover")
same("server/discover says what is spoken", (200, ["2026-07-28"], {"tools": {}}, "complete", "cove"),
     (a.status, a.json["result"]["supportedVersions"], a.json["result"]["capabilities"], a.json["result"]["resultType"],
      a.json["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]))
same("a request without _meta gets 400", (400, -32602, 7), code(new("tools/list", meta=None, id=7)))
same("a request without clientCapabilities gets 400", (400, -32602, 1),
     code(new("tools/list", meta={k: v for k, v in META.items() if "client" not in k})))
same("an unknown revision gets 400, and what is spoken", (400, ["2026-07-28"], "2099-01-01"), (lambda a: (
    a.status, a.error["data"]["supported"], a.error["data"]["requested"]))(
        new("tools/list", meta={**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}, MCP_Protocol_Version="2099-01-01")))
same("a header that is not what the body says gets 400", (400, -32020, 1), code(new("tools/list", Mcp_Method="tools/call")))
same("a missing header gets 400", (400, -32020, 1), code(new("tools/list", Mcp_Method=None)))
same("a tool in the header that is not the body's gets 400", (400, -32020, 1),
     code(new("tools/call", {"name": "ls"}, Mcp_Name="bash")))
same("a name in base64 is read", 200, new("tools/call", {"name": "list_sandboxes"},
                                          Mcp_Name="=?base64?%s?=" % base64.b64encode(b"list_sandboxes").decode()).status)
same("what the newer era has no more gets 404", [(404, -32601, 1)] * 3,
     [code(new(m)) for m in ("initialize", "ping", "subscriptions/listen")])

# ---- framing ----
for sentence, body, want in (
        ("what is not JSON is refused", "{", (400, -32700, None)),
        ("an empty body is refused", "", (400, -32700, None)),
        ("a batch is refused", "[]", (400, -32600, None)),
        ("a message without jsonrpc is refused, with its id", {"id": 3, "method": "ping"}, (400, -32600, 3)),
        ("an id that is null is refused", {"jsonrpc": "2.0", "id": None, "method": "ping"}, (400, -32600, None)),
        ("an id that is no whole number is refused", {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, (400, -32600, None)),
        ("an id that is too long is refused", {"jsonrpc": "2.0", "id": "x" * 257, "method": "ping"}, (400, -32600, None)),
        ("a method that is no text is refused", {"jsonrpc": "2.0", "id": 1, "method": 5}, (400, -32600, 1)),
        ("params that are no object are refused", {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, (400, -32600, 1)),
        ("a key that is there twice is refused", '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', (400, -32700, None))):
    same(sentence, want, code(post(body)))
same("a body beyond 16 MiB is refused", 413, post(b" " * (17 << 20)).status)
same("ids may be texts, and come back as they were", "é", old("ping", id="é").json["id"])
same("a tool that is unknown is an error of the protocol", [(200, -32602, 1), (400, -32602, 1)],
     [code(old("tools/call", {"name": "nope"})), code(new("tools/call", {"name": "nope"}))])
same("arguments that are no object are an error of the protocol", (200, -32602, 1),
     code(old("tools/call", {"name": "bash", "arguments": []})))

# ---- who may ----
for sentence, headers in (("a page elsewhere cannot use it", {"Origin": "http://evil.example"}),
                          ("a name that others made lead here is refused", {"Host": "evil.example"})):
    same(sentence, 403, server.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={**OLD, **headers}).status)
same("a page elsewhere cannot use it with a key either", 403, old("ping", key=KEY, Origin="http://evil.example").status)
same("a key as bearer is understood", 200, old("ping", Authorization="Bearer " + KEY).status)
a = old("ping", Authorization="Bearer nope")
same("a wrong key gets 401 and is told how to show one", (401, 'Bearer realm="cove"'), (a.status, a.headers.get("WWW-Authenticate")))
same("a key that may only read cannot call tools", 403, old("ping", key=READER).status)

# ---- the tools ----
tools = {t["name"]: t for t in old("tools/list").json["result"]["tools"]}
same("tools are those that agents know, in a stable order",
     ["bash", "bash_output", "kill_process", "read", "write", "edit", "multi_edit", "glob", "grep", "ls", "create_sandbox",
      "list_sandboxes", "delete_sandbox", "preview_url"], list(tools))
listed = server.ask("GET", "/tools").json["tools"]
check("schemas are those of the tools surface", all(
    {k: v for k, v in t["inputSchema"]["properties"].items() if k != "sandbox_id"} == h["input_schema"]["properties"]
    for t, h in zip(tools.values(), listed)), listed)
same("a schema names what is needed", (["file_path", "old_string", "new_string"], "boolean"),
     (tools["edit"]["inputSchema"]["required"], tools["edit"]["inputSchema"]["properties"]["replace_all"]["type"]))
check("tools that only read have readOnlyHint", tools["read"]["annotations"]["readOnlyHint"] and not tools["bash"]["annotations"]["readOnlyHint"])
a = new("tools/list").json["result"]
same("the newer era's list may be kept for a while", (True, "public", list(tools)),
     (a["ttlMs"] > 0, a["cacheScope"], [t["name"] for t in a["tools"]]))

same("output comes as text", ("hi\n", False), call("bash", command="echo hi"))
same("a command that fails is no error of the tool", ("out\nerr\n[exit code 3]", False),
     call("bash", command="echo out; echo err >&2; exit 3"))
same("a command without output answers '(no output)'", ("(no output)", False), call("bash", command="true"))
same("a file is written", False, call("write", file_path="d/a.txt", content="one\ntwo\nthree\n")[1])
same("a part of a file says how to continue", ("two\n[there is more: continue with offset 3]", False),
     call("read", file_path="d/a.txt", offset=2, limit=1))
same("a file is edited", False, call("edit", file_path="d/a.txt", old_string="two", new_string="2")[1])
same("several edits at once", False, call("multi_edit", file_path="d/a.txt",
                                          edits=[{"old_string": "one", "new_string": "1"}, {"old_string": "three", "new_string": "3"}])[1])
same("the edits are there", "1\n2\n3\n", call("read", file_path="d/a.txt")[0])
same("glob, grep and ls find an edited file", ["/home/user/d/a.txt\n", "/home/user/d/a.txt:2:2\n", "a.txt\n"],
     [call("glob", pattern="**/*.txt")[0], call("grep", pattern="2", path="d", output_mode="content")[0], call("ls", path="d")[0]])
same("a search that finds nothing answers '(nothing found)'", "(nothing found)", call("glob", pattern="*.nope")[0])
png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()
call("write", file_path="p.png", content=png, encoding="base64")
same("an image comes as an image", ({"type": "image", "data": png, "mimeType": "image/png"}, False), call("read", file_path="p.png"))
check("bytes that are too many for base64 are refused", "too large" in (call("bash", command="head -c 90000 /dev/urandom > rnd"),
      call("read", file_path="rnd", encoding="base64"))[1][0])
call("bash", command="seq 1 40000 > long; seq 1 9 > short")
text = call("read", file_path="long")[0]
last, note = text.rstrip("]").rsplit("\n", 1)
same("a long file is cut at a line, and says where to continue", (True, int(last.rsplit("\n", 1)[1]) + 1),
     (len(text) <= 60100, int(note.rsplit(" ", 1)[1])))

text, _ = call("bash", command="echo begun; sleep 100", run_in_background=True)
proc = int(re.search(r"process (\d+)", text).group(1))
check("a background command says how to continue", "bash_output" in text and "kill_process" in text, text)
check("the output of a background command is read by offset", within(10, lambda: call("bash_output", process_id=proc)[0] ==
                                             "begun\n[process %d is running; continue with stdout_from 6 and stderr_from 0]" % proc))
same("a background command is ended", False, call("kill_process", process_id=proc)[1])
check("a background command that was killed says that it has ended", within(10, lambda: "has ended" in call("bash_output", process_id=proc)[0]))

# ---- refusals say what to do next ----
for sentence, name, arguments, words in (
        ("a missing argument", "bash", {}, "command: is required.*Correct the argument"),
        ("an unknown argument", "ls", {"dir": "/"}, "dir: unknown field.*Correct the argument"),
        ("a file that is not there", "read", {"file_path": "nope"}, "No such file.*ls or glob"),
        ("a directory in a file's place", "read", {"file_path": "/tmp"}, "Use ls"),
        ("a sandbox that is not there", "bash", {"command": "true", "sandbox_id": "nope"}, "Leave out sandbox_id"),
        ("a process that is not there", "bash_output", {"process_id": 9999}, "run_in_background"),
        ("a text that is not in the file", "edit", {"file_path": "d/a.txt", "old_string": "x", "new_string": "y"}, "not in the file"),
        ("what the policy forbids", "bash", {"command": "rm -rf /"}, "rule: .*Do not try to get around it"),
        ("a timeout", "bash", {"command": "sleep 50", "timeout": 300}, "timeout; the shell keeps the state"),
        ("a port that is none", "preview_url", {"port": 70000}, "not between")):
    text, error = call(name, **arguments)
    check("%s is refused with what to do" % sentence, error is True and re.search(words, str(text), re.S), text)
same("what only the built-in tools have is passed over", False, call("bash", command="true", dangerouslyDisableSandbox=True)[1])

# ---- sandboxes ----
text, error = call("create_sandbox", preset="minimal")
box = re.search(r"sandbox (i\w{20}) ", text).group(1)
call("write", sandbox_id=box, file_path="only", content="here")
same("a file in one sandbox is not in another", ("here", True), (call("read", sandbox_id=box, file_path="only")[0], call("read", file_path="only")[1]))
check("sandboxes are listed", box in call("list_sandboxes")[0] and "named default" in call("list_sandboxes")[0])
check("a port has an address", re.match(r"https?://", call("preview_url", port=8080)[0]), call("preview_url", port=8080))
same("a sandbox is ended", "sandbox %s ended" % box, call("delete_sandbox", sandbox_id=box)[0])
check("a foreign sandbox cannot be named", call("bash", key=KEY, command="true",
                                                sandbox_id=re.search(r"(i\w{20})", call("list_sandboxes")[0]).group(1))[1] is True)

# ---- the shell's state ----
def bash(command, **more):
    return server.ask("POST", "/bash", {"command": command, **more}).json


def out(command, **more):
    return bash(command, **more).get("output")


bash("cd /tmp; X=1; export Y='a b'; A=(1 2); f() { echo f$1; }; alias ll='ls -l'; set -o pipefail; shopt -s nullglob")
same("directory, variables, functions and options stay", "/tmp 1 a b 2 fz pipefail on",
     " ".join(out("echo $PWD $X $Y ${A[1]} $(f z); set -o | grep pipefail").split()))
same("MCP and the tools surface share the session", "/tmp 1\n", call("bash", command="echo $PWD $X")[0])
same("the last exit code stays", "7\n", (bash("(exit 7)"), out("echo $?"))[1])
same("one_shot knows nothing of it, and leaves nothing", ("/home/user none\n", "/tmp 1\n"),
     (out("X=9; cd; echo $PWD ${Y-none}", one_shot=True), out("echo $PWD $X")))
same("cwd and env are for one call", ("/usr v\n", "/tmp none\n"),
     (out("echo $PWD $V", cwd="/usr", env={"V": "v"}), out("echo $PWD ${V-none}")))
same("sessions do not see each other", ("/home/user none\n", "/tmp 1\n"),
     (out("echo $PWD ${X-none}; X=2", session="b"), out("echo $PWD $X")))
same("a session that begins with a cwd is at home afterwards", ("/usr\n", "/home/user\n"),
     (out("pwd", cwd="/usr", session="c"), out("pwd", session="c")))
same("a trace shows the command and nothing else", ("++ echo a\n", "++ echo b\n++ set +x\n", ""),
     (bash("set -x; echo a", session="d")["stderr"], bash("echo b; set +x", session="d")["stderr"], bash("echo c", session="d")["stderr"]))
same("exit ends the call, and its state stays", (4, "3\n"), (bash("X=3; exit 4")["exit_code"], out("echo $X")))
a = bash("X=4; sleep 100", timeout=300)
same("a timeout ends one call; the state is as before the call", ("timeout", "3\n"), (a["exit_reason"], out("echo $X")))
check("a timeout says which state the shell keeps", "the shell keeps the state from before this call" in a["error"], a)
same("a shell that is killed is told, and the next call continues", (True, "3\n"),
     ("keeps the state" in bash("X=5; kill -9 $$")["error"], out("echo $X")))
same("a loop that nothing interrupts is ended by the timeout", "timeout",
     bash("trap '' INT TERM HUP QUIT; while :; do :; done", timeout=500)["exit_reason"])
same("errexit ends a call, not the session", (1, "on\n"), (bash("set -e; false; echo no")["exit_code"], out("[[ $- == *e* ]] && echo on")))
bash("set +e")
same("a directory that is gone is told", True,
     (bash("mkdir /tmp/gone; cd /tmp/gone"), bash("rmdir /tmp/gone"), "is gone" in bash("true")["stderr"])[2])
same("background processes of a call live on", "alive\n",
     (bash("cd /tmp; sleep 1000 & echo $! > /tmp/pid"), bash("sleep 9", timeout=200), out("kill -0 $(cat /tmp/pid) && echo alive; kill $(cat /tmp/pid)"))[2])
same("a background task begins with the state, and changes none", "/tmp", (lambda p: (
    within(10, lambda: not call("bash_output", process_id=p)[0].startswith("[")) and call("bash_output", process_id=p)[0].split("\n")[0]))(
        bash("pwd; cd /usr", run_in_background=True)["process_id"]))
same("a background task does not change the directory of the session", "/tmp\n", out("pwd"))
same("restart forgets it all", ("/home/user none\n", "the shell was restarted"),
     (out("echo $PWD ${X-none}", restart=True), server.ask("POST", "/bash", {"restart": True}).json["output"]))
for sentence, body, field in (("a session's name that leads elsewhere is refused", {"command": "true", "session": "../x"}, "session"),
                              ("an empty name of a session is refused", {"command": "true", "session": ""}, "session"),
                              ("one_shot with a session is refused", {"command": "true", "session": "a", "one_shot": True}, "one_shot"),
                              ("a variable that no shell takes is refused", {"command": "true", "env": {"a[$(id)]": "x"}}, None)):
    a = server.ask("POST", "/bash", body)
    same(sentence, (400, field), (a.status, a.error.get("field")))
same("a state that was tampered with harms the session alone, and restart heals it", (True, "ok\n"), (
    bash("echo 'exit 9' > ~/.cache/cove/shell-main") is not None and bash("echo never")["exit_code"] in (0, 9),
    out("echo ok", restart=True)))
for sentence, make in (("a FIFO in place of the state", "mkfifo"), ("a directory in place of the state", "mkdir"), ("a link to a device in place of the state", "ln -s /dev/zero")):
    bash("cd ~/.cache/cove && rm -f shell-main && %s shell-main; kill -9 $$" % make)
    begun = bash("echo on; X=8", timeout=20000)
    same(sentence + " delays no call", (0, "on\n"), (begun["exit_code"], begun["stdout"]))
    same("restart replaces " + sentence, ("again\n", "8\n"), (out("echo again; X=8", restart=True), out("echo $X")))
same("a FIFO where the next state is written delays no call", "7\n",
     (bash("X=7; mkfifo ~/.cache/cove/shell-main.$$", timeout=20000), out("echo $X"))[1])

# ---- the shell's state outlives what happens to the sandbox ----
box = bash("cd /tmp; X=kept; f() { echo f$1; }")["sandbox_id"]
PROBE = "echo $PWD $X $(f z)"
if os.environ.get("SAVES") == "yes":
    same("the sandbox is paused to disk, and resumed", (200, 200),
         tuple(server.ask("POST", "/v1/sandboxes/%s/%s" % (box, what), body).status for what, body in (("pause", {"tier": "disk"}), ("resume", {}))))
    same("the state outlives a pause to disk", "/tmp kept fz\n", out(PROBE))
    forked = server.ask("POST", "/v1/sandboxes/%s/fork" % box, {"count": 1}).json["forks"][0]["sandbox"]["id"]
    same("a fork begins with the state of its source", "/tmp kept fz\n", out(PROBE, sandbox_id=forked))
    bash("X=other", sandbox_id=forked)
    same("a fork's later state is its own", ("/tmp kept fz\n", "/tmp other fz\n"), (out(PROBE), out(PROBE, sandbox_id=forked)))
    server.ask("DELETE", "/v1/sandboxes/" + forked)
else:
    skip("the shell's state over a pause to disk and a fork", NO_SAVE)
server.end()
server.start()
same("the state outlives a restart of the server", "/tmp kept fz\n", out(PROBE))


def meet(n, met):  # ends when all three have begun
    met.append(out("cd /tmp; touch met%d; until [ -e met1 -a -e met2 -a -e met3 ]; do sleep 0.05; done; echo met" % n, timeout=60000))


met = []
threads = [threading.Thread(target=meet, args=(n, met)) for n in (1, 2, 3)]
[t.start() for t in threads]
[t.join() for t in threads]
same("calls of one session run at the same time", ["met\n"] * 3, met)


# ---- progress and the end of a client ----
def open_call(arguments, id=1, token=None, version=None, session=None, name="bash"):
    s = server.connect(30)
    params = {"name": name, "arguments": arguments, "_meta": {**(META if version else {}), **({"progressToken": token} if token else {})}}
    body = json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    if version:
        head += "MCP-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n" % (version, name)
    if session:
        head += "Mcp-Session-Id: %s\r\n" % session
    s.sendall((head + "\r\n" + body).encode())
    return s


def read_until(s, mark, seconds=30):
    got, end = b"", time.time() + seconds
    while mark not in got and time.time() < end:
        more = s.recv(65536)
        if not more:
            break
        got += more
    return got


s = open_call({"command": "for i in 1 2 3; do echo line $i; sleep 0.7; done; sleep 0.5; echo last"}, token="tok")
got = read_until(s, b'"result"').decode()
progress = [json.loads(d)["params"] for d in re.findall(r"data: (.*notifications/progress.*)", got)]
check("progress comes as events, and grows", "text/event-stream" in got and progress and
      [p["progress"] for p in progress] == sorted({p["progress"] for p in progress}) and
      all(p["progressToken"] == "tok" and re.match("line|last", p["message"]) for p in progress), got)
check("the stream ends with the result", "line 3\\nlast" in got.rsplit("data: ", 1)[1], got[-300:])
s.close()
s = open_call({"command": "echo quick"}, token="tok")
check("a short call is answered with JSON, also where progress was asked for", b"application/json" in read_until(s, b'"result"'))
s.close()


def count(mark):
    """Processes of the default sandbox that sleep so long."""
    return int(out("pgrep -fxc 'sleep %s' || true" % mark, one_shot=True))


for sentence, version in (("the newer", "2026-07-28"), ("the older", None)):
    s = open_call({"command": "sleep 4321"}, version=version)
    check("a command runs (%s era)" % sentence, within(10, lambda: count(4321) > 0))
    s.close()
    check("closing the connection ends the command (%s era)" % sentence, within(10, lambda: count(4321) == 0))
mine, theirs = open_call({"command": "sleep 4322"}, id=5, session="a" * 32), open_call({"command": "sleep 4322"}, id=5, session="b" * 32)
check("two clients number their requests alike", within(10, lambda: count(4322) == 2), count(4322))
cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5, "reason": "t"}}
post(cancelled, key=KEY, Mcp_Session_Id="a" * 32)
post(cancelled)
post({**cancelled, "params": {"requestId": 6}}, Mcp_Session_Id="a" * 32)
same("a cancel with another key, session or id ends nothing", 2, count(4322))
post(cancelled, Mcp_Session_Id="a" * 32)
check("a cancel ends its own command", within(10, lambda: count(4322) == 1), count(4322))
check("the call that was cancelled gets no result", b" 202 " in read_until(mine, b"\r\n\r\n"))
mine.close()
theirs.close()
check("no cancelled command is left", within(10, lambda: count(4322) == 0))
s = open_call({"command": "sleep 4323"}, id=5, version="2026-07-28")
check("a command of a client without a session runs", within(10, lambda: count(4323) == 1))
post(cancelled)
same("a client without a session cannot cancel another's command by its number", 1, count(4323))
s.close()
check("a command without a session ends with its connection", within(10, lambda: count(4323) == 0))


# ---- the bridge ----
class Bridge:
    def __init__(self, *options):
        self.p = subprocess.Popen([COVE, *options, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def send(self, message):
        self.p.stdin.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self.p.stdin.flush()

    def read(self):
        return json.loads(self.p.stdout.readline())

    def ask(self, method, params=None, id=1):
        self.send({"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params is not None else {})})
        return self.read()

    def end(self):
        self.p.stdin.close()
        rest = self.p.stdout.read()
        return self.p.wait(30), rest, self.p.stderr.read()


for where, options in (("this host's", ("--state", STATE)), ("another", ("--server", "http://127.0.0.1:%d" % server.port))):
    b = Bridge(*options)
    same("the bridge opens the older era at %s server" % where, "2025-11-25", b.ask("initialize", {"protocolVersion": "2025-11-25"})["result"]["protocolVersion"])
    b.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    same("the bridge opens the newer era at %s server" % where, ["2026-07-28"], b.ask("server/discover", {"_meta": META}, "x")["result"]["supportedVersions"])
    same("a tool is called through the bridge (%s)" % where, "hi\n",
         b.ask("tools/call", {"name": "bash", "arguments": {"command": "echo hi"}, "_meta": META})["result"]["content"][0]["text"])
    b.send(b"{nonsense")
    same("a line that is no message is answered (%s)" % where, -32700, b.read()["error"]["code"])
    b.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "bash", "arguments": {"command": "sleep 1; echo slow"}}})
    same("answers come as they are ready (%s)" % where, [2, "slow"], [b.ask("ping", id=2)["id"], b.read()["id"]])
    b.send({"jsonrpc": "2.0", "id": "gone", "method": "tools/call", "params": {"name": "bash", "arguments": {"command": "sleep 4323"}}})
    check("a long command runs through the bridge (%s)" % where, within(10, lambda: count(4323) == 1))
    b.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone"}})
    check("a cancel through the bridge ends it (%s)" % where, within(10, lambda: count(4323) == 0))
    b.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "bash", "arguments": {"command": "sleep 0.5; echo end"}}})
    code_, rest, said = b.end()
    same("at the end of stdin, what is under way is answered, and nothing else is said (%s)" % where, (0, ["end\n"], b""),
         (code_, [json.loads(l)["result"]["content"][0]["text"] for l in rest.splitlines()], said))
b = Bridge("--server", "http://127.0.0.1:%d" % server.port)
b.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "bash", "arguments": {"command": "for i in 1 2 3 4; do echo $i; sleep 0.6; done"},
                                                                     "_meta": {"progressToken": 7}}})
first = b.read()
same("progress passes the bridge", ("notifications/progress", 7), (first["method"], first["params"]["progressToken"]))
b.p.terminate()
check("a signal ends the bridge and its command", b.p.wait(30) != 0 and within(10, lambda: count("0.6") == 0))
free = socket.socket()
free.bind(("127.0.0.1", 0))
b = Bridge("--server", "http://127.0.0.1:%d" % free.getsockname()[1])
a = b.ask("initialize", {"protocolVersion": "2025-11-25"}, "id")
check("a server that is not there is an error with the request's id", a["id"] == "id" and "cannot connect" in a["error"]["message"], a)
b.end()
b = Bridge("--server", "http://127.0.0.1:%d" % server.port)
with contextlib.suppress(BrokenPipeError):
    b.p.stdin.write(b"x" * (25 << 20))
with contextlib.suppress(BrokenPipeError):
    b.p.stdin.close()
check("a line without an end is refused", b.p.wait(30) != 0 and b"longer than" in b.p.stderr.read())

# ---- configuration ----
def cove(*args, cwd=TMP, **env):
    return subprocess.run([COVE, *args], capture_output=True, text=True, cwd=cwd, env={**os.environ, "HOME": TMP, **env})


for client, key, path in (("claude-code", "mcpServers", ".mcp.json"), ("claude-desktop", "mcpServers", ".config/Claude/claude_desktop_config.json"),
                          ("vscode", "servers", ".vscode/mcp.json"), ("cursor", "mcpServers", ".cursor/mcp.json")):
    printed = json.loads(cove("--server", "https://c.example", "mcp", "config", client).stdout)
    same("%s: the configuration starts this program" % client, (os.path.realpath(COVE), ["--server", "https://c.example", "mcp"]),
         (printed[key]["cove"]["command"], printed[key]["cove"]["args"]))
    os.makedirs(os.path.dirname(os.path.join(TMP, path)), exist_ok=True)
    with open(os.path.join(TMP, path), "w") as f:
        json.dump({"other": 1, key: {"mine": {"command": "x"}}}, f)
    a = cove("--server", "https://c.example", "mcp", "init", client)
    with open(os.path.join(TMP, path)) as f:
        same("%s: init adds it to what is there" % client, (0, {"other": 1, key: {"mine": {"command": "x"}, **printed[key]}}), (a.returncode, json.load(f)))
with open(os.path.join(TMP, ".mcp.json"), "w") as f:
    f.write("{ // mine\n}")
a = cove("mcp", "init", "claude-code")
same("a file that is not plain JSON is left alone, and told", (True, True, "{ // mine\n}"),
     (a.returncode != 0, "was left as it is" in a.stderr, open(os.path.join(TMP, ".mcp.json")).read()))
check("an unknown client is told", "claude-code, claude-desktop, vscode or cursor" in cove("mcp", "config", "nope").stderr)

same("the server ends well", 0, server.end())
finish()
