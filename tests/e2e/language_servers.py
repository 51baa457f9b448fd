"""Runs inside a sandbox of the template daytona: each language server answers `initialize` and says what a name is completed to."""
import json
import pathlib
import subprocess

SERVERS = [  # command, language, file, text, where to complete, what has to be among the answers
    (["pylsp"], "python", "a.py", "import json\njson.du\n", (1, 7), "dumps"),
    (["typescript-language-server", "--stdio"], "typescript", "a.ts", "const text = 'a'\ntext.toUpp\n", (1, 10), "toUpperCase"),
    (["clangd"], "c", "a.c", "struct p { int width; };\nint f(struct p *a) { return a->wi; }\n", (1, 34), "width"),
]


def send(server, message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()


def answer(server, wanted):
    """The answer to a request. What the server asks of us meanwhile gets an empty one."""
    while True:
        length = 0
        while line := server.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        got = json.loads(server.stdout.read(length))
        if "method" in got and "id" in got:
            send(server, {"id": got["id"], "result": None})
        elif got.get("id") == wanted:
            return got["result"]


def complete(command, language, name, text, at, _):
    path = pathlib.Path.cwd() / name
    path.write_text(text)
    uri = path.as_uri()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        send(server, {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": path.parent.as_uri(), "capabilities": {}}})
        answer(server, 1)
        send(server, {"method": "initialized", "params": {}})
        send(server, {"method": "textDocument/didOpen", "params": {"textDocument": {"uri": uri, "languageId": language, "version": 1, "text": text}}})
        send(server, {"id": 2, "method": "textDocument/completion", "params": {"textDocument": {"uri": uri}, "position": {"line": at[0], "character": at[1]}}})
        found = answer(server, 2)
        server.kill()
    items = found["items"] if isinstance(found, dict) else found or []
    return " ".join(item["label"] for item in items)


for row in SERVERS:
    print(row[0][0], "yes" if row[-1] in complete(*row) else "no", flush=True)
