"""Bodies that are large, or become large in memory. Run by bodies_test."""
import gzip
import json
import os
import select
import struct

from harness import Server, check, finish, same, within

KEY, OTHER = os.environ["KEY"], os.environ["OTHER"]
MIB = 1 << 20
server = Server().start()


def peak():
    return server.status("VmHWM") // 1024


def post(text, key=KEY):
    return server.ask("POST", "/v1/run", gzip.compress(text), key=key, headers={"Content-Encoding": "gzip"}, timeout=120)


def session(key, order):
    """A request for a session, and the order in one message."""
    return (b"GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n" % key.encode()
            + b"\x81\xff" + struct.pack(">Q", len(order)) + bytes(4) + order)


# ---- many small values: each is a hundred times as large in memory ----
before = peak()
for value in (b"{}", b"[]", b"0"):
    a = post(b'{"args": [' + (value + b",") * (6 * MIB // len(value)) + value + b"]}")
    same("millions of %s are refused" % value.decode(), (400, "invalid"), (a.status, a.error.get("code")))
    check("a body with millions of values is refused with a reason", "values" in a.error.get("message", ""), a.error)
check("a body with millions of values takes no memory", peak() - before < 128, "%d MiB more" % (peak() - before))
a = server.ask("POST", "/v1/run", {"args": ["/bin/echo", "," * 300000 + "[" * 300000]}, key=KEY)
check("signs within a text do not count", "values" not in a.error.get("message", ""), (a.status, a.error))
a = server.ask("POST", "/v1/run", {"args": ["/bin/true"] + ["x"] * 60000}, key=KEY)
check("60,000 arguments are not too many values", "values" not in a.error.get("message", ""), (a.status, a.error))

# ---- the same, as the order of a session ----
text = b'{"process": {"args": [' + b"{}," * MIB + b"{}]}}"
before = peak()
said = server.raw(session(KEY, text), timeout=60)
check("an order of a session has as many values", b"values" in said, said[-300:])
check("an order with too many values takes no memory", peak() - before < 64, "%d MiB more" % (peak() - before))

# ---- many large bodies at once ----
LARGE = b'{"code": "' + b"x" * (30 * MIB) + b'"}'


def begin(key):
    """A body but for its last bytes: the server holds it, and waits."""
    s = server.connect(60)
    s.sendall(b"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n"
              % (key.encode(), len(LARGE)) + LARGE[:-2])
    return s


def large(key):
    return server.ask("POST", "/v1/run", LARGE, key=key, timeout=120)


a = large(KEY)
same("one large body is read as a whole", (400, "code"), (a.status, a.error.get("field")))
held = [begin(KEY) for _ in range(4)]
a = None


def again(s):
    """The server does not wait for a body for ever: on a slow machine it may have ended one while others began."""
    if not select.select([s], [], [], 0)[0]:
        return s
    s.close()
    return begin(KEY)


def refused():
    global a
    held[:] = [again(s) for s in held]
    a = large(KEY)
    return a.status == 429


check("one more large body than a tenant may have at once is refused", within(60, refused), a and (a.status, a.error))
same("a large body beyond the quota names the quota", ("bodies", "quota"), (a.error.get("rule"), a.error.get("layer")))
same("a small body is read", 200, server.ask("POST", "/v1/run", {"command": "true"}, key=KEY, timeout=120).status)
same("a large body of another tenant is read while a tenant is at its quota", 400, large(OTHER).status)
for s in held:
    s.close()
check("when their senders are gone, there is room again", within(60, lambda: large(KEY).status == 400))

# ---- many large orders of sessions at once ----
UNKNOWN = b'{"sandbox": "nobody", "process": {"command": "true"}, "colour": "' + b"x" * (4 * MIB - 4096) + b'"}'


def begin_session(key):
    s = server.connect(60)
    s.sendall(session(key, UNKNOWN)[:-2])
    return s


def order_whole(key):
    return server.raw(session(key, UNKNOWN), timeout=120)


check("a large order is read as a whole", b"colour" in order_whole(KEY)[-400:])
held = [begin_session(KEY) for _ in range(32)]
check("one more large order than a tenant may have at once is refused", within(60, lambda: b"quota of bodies" in order_whole(KEY)))
same("a large body counts with the large orders", ("bodies", 429), (lambda a: (a.error.get("rule"), a.status))(large(KEY)))
check("another tenant's large order is read while a tenant is at its quota", b"colour" in order_whole(OTHER)[-400:])
for s in held:
    s.close()
check("when their senders are gone, there is room for orders again", within(60, lambda: b"colour" in order_whole(KEY)[-400:]))

# A command that runs keeps nothing of its order.
box = server.ask("POST", "/v1/sandboxes", {}, key=KEY).json["id"]
LONG = json.dumps({"sandbox": box, "process": {"command": "sleep 300", "env": {"N": "x" * 100000}}}).encode()
LONG += b" " * (4 * MIB - 4096 - len(LONG))
held = []
for _ in range(40):
    held.append(server.connect(60))
    held[-1].sendall(session(KEY, LONG))
    said = b""
    while b'"start"' not in said and b'"error"' not in said:
        said += held[-1].recv(65536) or b'"error"'
    if b'"error"' in said:
        break
check("more sessions run than large orders may be read at once", len(held) == 40, said[-300:])
for s in held:
    s.close()
server.ask("DELETE", "/v1/sandboxes/" + box, key=KEY)

# ---- many large answers at once ----
ORDER = {"command": "sleep 300", "timeout": 300, "output_limit": 16 * MIB}


def hold(path):
    s = server.connect(60)
    body = json.dumps(ORDER).encode()
    s.sendall(b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n"
              % (path.encode(), KEY.encode(), len(body)) + body)
    return s


def run_short(**more):
    return server.ask("POST", "/v1/run", {"command": "true", **more}, key=KEY, timeout=120)


box = server.ask("POST", "/v1/sandboxes", {}, key=KEY).json["id"]
paths = ["/v1/run", "/v1/run", "/v1/sandboxes/%s/exec" % box]
held = [hold(path) for path in paths]


def no_room():
    """The sessions before may still be ending, and a request is refused then: another one takes its place."""
    for i, s in enumerate(held):
        if select.select([s], [], [], 0)[0]:
            s.close()
            held[i] = hold(paths[i])
    return run_short(output_limit=16 * MIB).error.get("rule") == "bodies"


check("large answers that are promised count", within(60, no_room))
same("small ones do not", 200, run_short().status)
for s in held:
    s.close()
check("when their clients are gone, there is room again", within(60, lambda: run_short(output_limit=16 * MIB).status == 200))
server.ask("DELETE", "/v1/sandboxes/" + box, key=KEY)
server.end()
finish()
