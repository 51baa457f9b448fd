"""Files over HTTP: encodings, archives, signed URLs. Run by files_test: coved, state directory, log file."""
import gzip
import http.client
import json

from asking import ask, check, refused, run, same, server

GZIP = {"Content-Encoding": "gzip"}
box = None


def begin():
    global box
    a = ask("POST", "/v1/sandboxes", {})
    same("a sandbox", 201, a.status)
    box = "/v1/sandboxes/" + a.json["id"]


# ---- encodings of requests ----
def encodings():
    at = box + "/files?path=z.txt"
    text = b"a line of text\n" * 5000
    packed = gzip.compress(text)

    def put(body, headers=GZIP):
        return ask("PUT", at, body, headers=headers)

    def content():
        return ask("GET", at).body

    same("a gzip upload is stored decoded", (200, len(text)), (lambda a: (a.status, a.json["size"]))(put(packed)))
    check("byte for byte", content() == text)
    put(iter([packed[:20], packed[20:21], packed[21:]]))
    check("in chunks, too", content() == text)
    put(gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two"))
    same("members follow each other", b"one two", content())
    refused("half of it", put(packed[:-9]), 400, "invalid")
    refused("a damaged one", put(packed[:-6] + b"xx" + packed[-4:]), 400, "invalid")
    refused("garbage behind it", put(packed + b"garbage"), 400, "invalid")
    refused("no gzip at all", put(b"plain text"), 400, "invalid")
    refused("a bomb", put(gzip.compress(bytes(40 << 20))), 413, "too_big")
    same("none of them changed the file", b"one two", content())
    a = put(b"x", {"Content-Encoding": "br"})
    refused("an encoding that is not known", a, 415, "invalid", "Content-Encoding")
    same("says which is", "gzip", a.headers["Accept-Encoding"])
    same("identity is none", 200, put(b"plain", {"Content-Encoding": "identity"}).status)
    same("an empty body is empty", 200, put(b"").status)

    run_it = box + "/exec"
    same("JSON may be gzip", "hi\n", ask("POST", run_it, gzip.compress(b'{"command": "echo hi"}'), headers=GZIP).json["stdout"])
    spaces = b'{"command": "true"' + b" " * (5 << 20) + b"}"
    refused("the limit is one of decoded bytes", ask("POST", run_it, gzip.compress(spaces), headers=GZIP), 413, "too_big")
    refused("empty members are no way around it", ask("POST", run_it, gzip.compress(b"") * 220000, headers=GZIP), 413, "too_big")

    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    c.request("PUT", at, packed + b"garbage", GZIP)
    first = c.getresponse()
    first.read()
    c.request("POST", run_it, json.dumps({"command": "echo next"}))
    same("the connection goes on behind a refusal", (400, "next\n"), (first.status, json.loads(c.getresponse().read())["stdout"]))
    c.close()


run(begin, encodings)
