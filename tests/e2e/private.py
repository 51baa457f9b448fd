"""Private networks: who reaches whom, by which name, on which port, and that nobody else does. Run by private_test."""
import hashlib
import json
import os
import subprocess
import threading
import time

from harness import ISOLATION, STATE, ask, check, must, only, refused, run, same, server, within

OTHER, READER, COVE = os.environ["OTHER_KEY"], os.environ["READ_KEY"], os.environ["COVE"]
boxes = {}

# Inside: a server that takes all until the end of one direction, and then says what it got; one that speaks first and
# keeps the line open; and clients.
TOOL = r'''
import hashlib, os, socket, sys, threading, time

def take(s):
    h, n = hashlib.sha256(), 0
    while True:
        b = s.recv(65536)
        if not b:
            return "%d %s" % (n, h.hexdigest()[:16])
        h.update(b); n += len(b)

def pattern(n):
    return (b"0123456789abcdef" * 4096 * (n // 65536 + 1))[:n]

def swallow(s):
    got = take(s)
    s.sendall((got + "\n").encode())
    s.sendall(pattern(3000000))
    s.close()

def greet(s):
    s.sendall(b"hello\n")
    while s.recv(100):
        s.sendall(b"again\n")
    s.close()

def flood(s):
    try:
        while True:
            s.sendall(b"x" * 65536)
    except OSError:
        pass

def listen(what, port, host):
    l = socket.create_server((host, int(port)), backlog=128)
    while True:
        s = l.accept()[0]
        threading.Thread(target=what, args=(s,), daemon=True).start()

def bulk(host, port, n):
    s = socket.create_connection((host, int(port)), 20)
    s.sendall(pattern(int(n)))
    s.shutdown(socket.SHUT_WR)
    first = b""
    while not first.endswith(b"\n"):
        first += s.recv(1)
    print(first.decode().strip(), take(s))

def say(host, port):
    s = socket.create_connection((host, int(port)), 5)
    s.settimeout(5)
    print(s.recv(100).decode().strip())

def hold(host, port, path):
    """Says whether the line still stands, into a file."""
    s = socket.create_connection((host, int(port)), 5)
    s.recv(100)
    open(path, "w").write("open")
    try:
        gone = not s.recv(100)
    except OSError:
        gone = True
    open(path, "w").write("cut" if gone else "said")

def count(host, port, n, keep, path="/dev/null"):
    """How many of n connections are answered; they are held for a while."""
    begun, good, held = time.time(), 0, []
    for i in range(int(n)):
        try:
            s = socket.create_connection((host, int(port)), 5)
            s.settimeout(5)
            if s.recv(100):
                good += 1
                held.append(s)
        except OSError:
            pass
        if keep == "0":
            held.clear()
    open(path, "w").write(str(good))
    print(good, round(time.time() - begun, 1))
    sys.stdout.flush()
    end = time.time() + float(keep)
    while time.time() < end and not os.path.exists(path + ".end"):
        time.sleep(0.05)

def rate(host, port, seconds):
    s = socket.create_connection((host, int(port)), 5)
    end, n = time.time() + float(seconds), 0
    while time.time() < end:
        n += len(s.recv(65536))
    print(n)

def names(*hosts):
    for h in hosts:
        try:
            print(h, sorted({a[4][0] for a in socket.getaddrinfo(h, 80, type=socket.SOCK_STREAM)})[0])
        except OSError as e:
            print(h, "none", e.errno)

def dns(name, kind, server):
    import random, struct
    i = random.randrange(65536)
    q = struct.pack(">6H", i, 256, 1, 0, 0, 0) + b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0" + struct.pack(">2H", int(kind), 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.sendto(q, (server, 53))
    r = s.recv(2000)
    print("code=%d answers=%d" % (r[3] & 15, struct.unpack(">H", r[6:8])[0]))

def tries(*targets):
    for t in targets:
        host, port = t.rsplit("/", 1)
        try:
            s = socket.create_connection((host, int(port)), 5)
            s.settimeout(5)
            s.sendall(b"GET / HTTP/1.0\r\nHost: db.app.internal\r\n\r\n")
            got = s.recv(2000)
            print(t, "HTTP " + got.split(b" ")[1].decode() if got.startswith(b"HTTP") else "said %r" % got[:40])
        except OSError as e:
            print(t, "none")

if sys.argv[1] in ("swallow", "greet", "flood"):
    listen(globals()[sys.argv[1]], sys.argv[2], sys.argv[3])
else:
    globals()[sys.argv[1]](*sys.argv[2:])
'''


def make(called, key=None, **body):
    a = ask("POST", "/v1/sandboxes", {"timeout": 600, "limits": {"memory": "256m"}, **body}, key=key)
    must("a sandbox is made", a.status == 201, a.body)
    boxes[called] = a.json["id"]
    ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/t.py" % boxes[called], TOOL, key=key)
    return a.json["id"]


def sh(name, command, key=None, timeout=40):
    a = ask("POST", "/v1/sandboxes/%s/exec" % boxes[name], {"command": command, "timeout": timeout}, key=key)
    return a.json["stdout"].strip() if a.status == 200 else "%d %s" % (a.status, a.body)


def tool(name, *words, key=None):
    return sh(name, "python3 /tmp/t.py " + " ".join(str(w) for w in words) + " 2>&1 | tail -n 12", key)


def start(name, command):
    a = ask("POST", "/v1/sandboxes/%s/processes" % boxes[name], {"command": command})
    must("a server is started", a.status in (200, 201), a.body)


def listening(name, *ports):
    def there():
        return set(ports) <= {p["port"] for p in ask("GET", "/v1/sandboxes/%s/ports" % boxes[name]).json["ports"]}
    must("servers inside listen", within(40, there), ports)


def join(network, name, key=None, **body):
    return ask("PUT", "/v1/networks/%s/members/%s" % (network, boxes[name]), body, key=key)


def leave(network, name, key=None):
    return ask("DELETE", "/v1/networks/%s/members/%s" % (network, boxes[name]), key=key)


def events(name, **want):
    got = ask("GET", "/v1/sandboxes/%s/network/events" % boxes[name]).json["events"]
    return [e for e in got if all(e.get(k) == v for k, v in want.items())]


def seen(sentence, name, again=None, **want):
    """An event of private networks, which comes a moment later. Of more than 20 events in a second the gateway tells no more than a number:
    `again` does once more what the event is about."""
    def there():
        return events(name, rule="private", **want) or (again and again() and None)
    check(sentence, within(10, there), events(name)[-3:])
    return (there() or [{}])[-1]


# ---- making, and refusals ----
def networks():
    a = ask("POST", "/v1/networks", {"name": "app"})
    check("a network is made", a.status == 201 and a.json["name"] == "app" and a.json["members"] == [], a.body)
    same("making it again is no error", 200, ask("POST", "/v1/networks", {"name": "app"}).status)
    for name in ("", "App", "-a", "a-", "a.b", "a_b", "a" * 64, "ä", "a b"):
        a = ask("POST", "/v1/networks", {"name": name})
        check("'%s' is no name" % name[:10], a.status == 400 and a.json["error"].get("field") == "name", a.body)
    refused("a field that is not known is refused", ask("POST", "/v1/networks", {"name": "x", "y": 1}), 400, "invalid", "y")
    refused("a network that is not there has no members", ask("GET", "/v1/networks/nope"), 404, "path_not_found")
    same("a key that may only read makes none", 403, ask("POST", "/v1/networks", {"name": "r"}, key=READER).status)
    same("a key that may only read sees the networks", ["app"], [n["name"] for n in ask("GET", "/v1/networks", key=READER).json["networks"]])
    same("a tenant does not see the networks of another tenant", [], ask("GET", "/v1/networks", key=OTHER).json["networks"])
    refused("a network of another tenant is not found by name", ask("GET", "/v1/networks/app", key=OTHER), 404, "path_not_found")
    refused("a network of another tenant cannot be removed", ask("DELETE", "/v1/networks/app", key=OTHER), 404, "path_not_found")


def joining():
    make("web", name="web", network={"join": [{"network": "app", "alias": "web", "ports": [7000]}]})
    make("db", name="db")
    make("stranger")
    make("foreign", key=OTHER)
    for body, field in (({"ports": [0]}, "ports[0]"), ({"ports": [65536]}, "ports[0]"), ({"ports": [1, "2"]}, "ports[1]"),
                        ({"ports": list(range(1, 34))}, "ports[32]"), ({"alias": "A", "ports": []}, "alias"), ({"port": 1}, "port")):
        a = join("app", "db", **body)
        check("%s is refused" % str(body)[:40], a.status in (400, 413) and a.json["error"].get("field") == field, a.body)
    refused("an alias that another member has is refused", join("app", "db", alias="web", ports=[1]), 409, "name_taken", "alias")
    a = join("app", "db", ports=[8080, 9000, 9001])
    check("a member is called as its sandbox", a.status == 200 and a.json["alias"] == "db" and
          a.json["host"] == "db.app.internal" and a.json["ports"] == [8080, 9000, 9001], a.body)
    same("joining again changes nothing", a.json, join("app", "db", ports=[8080, 9000, 9001]).json)
    a = ask("GET", "/v1/networks/app")
    same("the network has both", ["web", "db"], [m["alias"] for m in a.json["members"]])
    same("each with an address of its own", 2, len({m["address"] for m in a.json["members"]}))
    refused("a sandbox of another tenant is not there", join("app", "foreign", ports=[1]), 404, "sandbox_not_found")
    same("a network of another tenant is not there", 404, join("app", "foreign", key=OTHER, ports=[1]).status)
    refused("a sandbox that never was is not there",
            ask("PUT", "/v1/networks/app/members/i%s" % ("x" * 20), {"ports": []}), 404, "sandbox_not_found")
    refused("a sandbox that is no member cannot leave", leave("app", "stranger"), 404, "path_not_found")
    a = ask("POST", "/v1/sandboxes", {"network": {"join": [{"network": "nope"}]}})
    refused("a create into a network that is not there makes nothing", a, 404, "path_not_found")
    a = ask("POST", "/v1/sandboxes", {"network": {"join": [{"network": "app", "alias": "db"}]}})
    same("a create with an alias that is in use is refused", (409, "name_taken"), (a.status, a.json["error"]["code"]))
    a = ask("POST", "/v1/sandboxes", {"network": {"join": [{"network": "app"}, {"network": "app"}]}})
    refused("a create that joins a network twice is refused", a, 400, "invalid", "network.join")
    key = {"timeout": 600, "idempotency_key": "once", "network": {"join": [{"network": "app", "alias": "once", "ports": [1]}]}}
    first, again = ask("POST", "/v1/sandboxes", key), ask("POST", "/v1/sandboxes", key)
    same("a create with a key that is repeated is one member", (201, 200, first.json["id"]), (first.status, again.status, again.json["id"]))
    key["network"]["join"][0]["ports"] = [2]
    same("the same key with other ports is another request", 409, ask("POST", "/v1/sandboxes", key).status)
    ask("DELETE", "/v1/sandboxes/" + first.json["id"])
    same("a sandbox that has ended has left", ["web", "db"], [m["alias"] for m in ask("GET", "/v1/networks/app").json["members"]])
    same("joining gives no way out", "off", ask("GET", "/v1/sandboxes/%s/network" % boxes["web"]).json["mode"])


# ---- reaching ----
def reaching():
    start("db", "cd /tmp && echo from-db >index.html && exec python3 -m http.server 8080 --bind 127.0.0.1")
    start("db", "exec python3 /tmp/t.py swallow 9000 0.0.0.0")
    start("db", "exec python3 /tmp/t.py greet 9001 127.0.0.1")
    start("db", "exec python3 /tmp/t.py greet 9002 0.0.0.0")
    start("web", "exec python3 /tmp/t.py swallow 7000 127.0.0.1")
    listening("db", 8080, 9000, 9001, 9002)
    listening("web", 7000)
    address = {m["alias"]: m["address"] for m in ask("GET", "/v1/networks/app").json["members"]}
    boxes["db.address"] = address["db"]
    same("the short and the long name of a member have its address", "db %s\ndb.app.internal %s\nDB.App.Internal %s" % ((address["db"],) * 3),
         tool("web", "names", "db", "db.app.internal", "DB.App.Internal"))
    same("members have the same addresses for every member", "db %s\nweb %s" % (address["db"], address["web"]), tool("db", "names", "db", "web"))
    same("HTTP by the short name", "from-db", sh("web", "curl -sS -m 10 http://db:8080/index.html 2>&1"))
    same("HTTP by the long name", "from-db", sh("web", "curl -sS -m 10 http://db.app.internal:8080/index.html 2>&1"))
    same("HTTP by the address", "from-db", sh("web", "curl -sS -m 10 http://%s:8080/index.html 2>&1" % address["db"]))
    same("HTTP by the address mapped into IPv6", "from-db", sh("web", "curl -g -sS -m 10 http://[::ffff:%s]:8080/index.html 2>&1" % address["db"]))
    same("a member reaches itself by name", "from-db", sh("db", "curl -sS -m 10 http://db:8080/index.html 2>&1"))
    same("a server that speaks first", "hello", tool("web", "say", "db", 9001))

    def digest(n):
        return hashlib.sha256((b"0123456789abcdef" * 4096 * (n // 65536 + 1))[:n]).hexdigest()[:16]
    sums = "5000000 %s 3000000 %s" % (digest(5000000), digest(3000000))
    same("5 MB go whole, one direction ends, 3 MB come back", sums, tool("web", "bulk", "db", 9000, 5000000))
    same("5 MB and 3 MB go whole in the opposite direction", sums, tool("db", "bulk", "web", 7000, 5000000))
    e = seen("a connection is an event of the member that made it", "web", event="connect", host="db.app.internal", port=9000)
    same("the event of a connection has its ends and its bytes", (boxes["web"], boxes["db"], 5000000, 3000000 + len(sums.split(" 3000000")[0]) + 1),
         (e.get("from"), e.get("to"), e.get("sent"), e.get("received")))
    e = seen("a connection is an event of who was reached", "db", event="connect", host="db.app.internal", port=9000)
    same("the event of the member that was reached has the same ends", (boxes["web"], boxes["db"], 5000000), (e.get("from"), e.get("to"), e.get("received")))
    records = [r for r in audit("network.connect") if r["sandbox_id"] == boxes["db"]]
    check("a connection between members is in the audit log", any("from %s to %s" % (boxes["web"], boxes["db"]) in json.dumps(r) for r in records), records[:2])
    check("joins are in the audit log", any(r["sandbox_id"] == boxes["db"] for r in audit("network.join")), "")
    make("third", network={"mode": "list", "allow": ["www.example.com"], "join": [{"network": "app", "alias": "third"}]})
    same("a third member reaches the others", "hello", tool("third", "say", "db.app.internal", 9001))
    same("a member without ports of its own is reached by no other", "third/80 HTTP 403", tool("web", "tries", "third/80"))


def audit(action):
    out = subprocess.run([COVE, "audit", "export", "--state", STATE, "--action", action], capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


# ---- not reaching ----
def refusing():
    db = boxes["db.address"]
    # In a jail any address is that of a name server; in a guest, the one of /etc/resolv.conf.
    boxes["resolver"] = "192.0.2.53" if ISOLATION == "jail" else sh("web", "sed -n 's/^nameserver //p' /etc/resolv.conf | head -n 1")
    same("a port that was not chosen is refused, readably", "db/9002 HTTP 403", tool("web", "tries", "db/9002"))
    check("a refused port has a reason", "may not reach db.app.internal port 9002: private: " in sh("web", "curl -sS -m 5 http://db:9002/ 2>&1"),
          sh("web", "curl -sS -m 5 http://db:9002/ 2>&1"))
    e = seen("a refused port is an event", "web", event="refused", host="db.app.internal", port=9002)
    same("a refused port is no event of the member that was not reached", [], events("db", port=9002))
    same("nothing listens: the connection is cut", "web/7001 none", (join("app", "web", alias="web", ports=[7000, 7001]), tool("db", "tries", "web/7001"))[1])
    seen("a connection to a port where nothing listens is an event", "db", reason="nothing listens there", event="failed", port=7001)
    same("an unknown name does not exist", "nobody none -2\nnobody.app.internal none -2\nx.db.app.internal none -2",
         tool("web", "names", "nobody", "nobody.app.internal", "x.db.app.internal"))
    same("an unknown name has the code of a name that does not exist", "code=3 answers=0", tool("web", "dns", "nobody.app.internal", 1, boxes["resolver"]))
    seen("an unknown name is an event", "web", event="name_refused", host="nobody.app.internal")
    same("a member has no IPv6 address", "code=0 answers=0", tool("web", "dns", "db", 28, boxes["resolver"]))
    same("a member has no other records", "code=0 answers=0", tool("web", "dns", "db.app.internal", 16, boxes["resolver"]))
    same("a member has one address record", "code=0 answers=1", tool("web", "dns", "db.app.internal", 1, boxes["resolver"]))
    if only("jail", "a member's name is answered at any address", "in a guest, names are asked of the server of /etc/resolv.conf"):
        same("a member's name is answered at any address", "code=0 answers=1", tool("web", "dns", "db.app.internal", 1, db))
    same("a sandbox without internet sees the members of its networks only", "www.example.com none -2\ndb.other.internal none -2\ninternal none -2\napp.internal none -2",
         sh("web", "python3 /tmp/t.py names www.example.com db.other.internal internal app.internal | sed 's/-[0-9]*$/-2/'"))
    same("a member reaches no other address", "93.184.216.9/80 HTTP 403", tool("web", "tries", "93.184.216.9/80"))
    near = [".".join(db.split(".")[:3] + [str(n)]) + "/8080" for n in (0, 200, 255)] + ["198.19.77.1/8080", "198.18.0.1/8080", "198.19.255.255/8080"]
    same("no address beside the members'", "\n".join("%s %s" % (n, "none" if n.startswith("198.18.") else "HTTP 403") for n in near), tool("web", "tries", *near))
    seen("an address beside the members' is an event", "web", lambda: tool("web", "tries", "198.19.77.1/8080"),
         reason="no member of its networks", event="refused", address="198.19.77.1")
    # Somebody who has a network, but not this one; and rules that would let it out.
    for rule in "198.19.0.0/16", db, "198.18.0.0/15":
        same("no rule names addresses of private networks: " + rule.replace(db, "a member's"), 400, ask("POST", "/v1/sandboxes", {"network": {"allow": [rule]}}).status)
    make("liar", network={"allow": ["0.0.0.0/0", "*", "db.app.internal"]})
    same("a sandbox outside the network reaches no member by address, whatever its rules say",
         "%s/8080 HTTP 403\n%s/9001 HTTP 403\n198.19.0.1/53 none" % (db, db), tool("liar", "tries", db + "/8080", db + "/9001", "198.19.0.1/53"))
    same("the name of a member in a Host does not help a sandbox outside the network", "HTTP 403", tool("liar", "tries", db + "/8080").split(" ", 1)[1])
    check("a sandbox outside the network gets no address for a member's name", "none" in tool("liar", "names", "db.app.internal"), tool("liar", "names", "db.app.internal"))
    check("no network at all: nothing", "none" in tool("stranger", "tries", db + "/8080") and "none" in tool("stranger", "names", "db"), "")
    ask("POST", "/v1/networks", {"name": "app"}, key=OTHER)
    same("a network of the same name is another tenant's own", 200, join("app", "foreign", key=OTHER, alias="db", ports=[9001]).status)
    same("a network of the same name has the same address, and no connection to the other tenant's", "db/9001 none", tool("foreign", "tries", "db/9001", key=OTHER))
    same("TLS naming a peer elsewhere leads nowhere", "", sh("web", "curl -sk -m 5 --connect-to ::203.0.113.9:443 https://db.app.internal/ 2>/dev/null"))
    same("no datagrams to a peer", "refused", sh("web", "python3 -c \"\nimport socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(('%s',9000)); s.send(b'x'); time.sleep(.2)\ntry: s.send(b'x'); print('sent')\nexcept OSError: print('refused')\"" % db))


def two_networks():
    ask("POST", "/v1/networks", {"name": "back"})
    make("db2")
    join("back", "db2", alias="db", ports=[9001])
    start("db2", "exec python3 /tmp/t.py greet 9001 127.0.0.1")
    listening("db2", 9001)
    same("a sandbox in another network is not reached", "code=3 answers=0", tool("web", "dns", "db.back.internal", 1, boxes["resolver"]).replace("code=5", "code=3"))
    join("back", "web", alias="web", ports=[])
    same("a name that two networks have is that of the one joined first", "db %s" % boxes["db.address"], tool("web", "names", "db"))
    same("the long names tell them apart", "hello", tool("web", "say", "db.back.internal", 9001))
    same("members of different networks do not meet", "db.app.internal none -2", sh("db2", "python3 /tmp/t.py names db.app.internal | sed 's/-[0-9]*$/-2/'"))
    check("members of different networks do not meet by address", "HTTP 403" in tool("db2", "tries", boxes["db.address"] + "/8080"), tool("db2", "tries", boxes["db.address"] + "/8080"))
    same("a network goes with its members", 204, ask("DELETE", "/v1/networks/back").status)
    same("a network that was removed is gone", 404, ask("DELETE", "/v1/networks/back").status)
    check("names of a removed network do not exist", within(10, lambda: "none" in tool("web", "names", "db.back.internal")), "")


# ---- ends ----
def held(name, host, port, path):
    start(name, "exec python3 /tmp/t.py hold %s %s %s" % (host, port, path))
    check("a connection stands: %s" % path, within(10, lambda: sh(name, "cat %s 2>/dev/null" % path) == "open"), sh(name, "cat %s" % path))


def leaving():
    held("web", "db", 9001, "/tmp/1")
    join("app", "db", ports=[8080, 9000])
    check("a port that is closed cuts what is open", within(10, lambda: sh("web", "cat /tmp/1") == "cut"), sh("web", "cat /tmp/1"))
    join("app", "db", ports=[8080, 9000, 9001])
    held("web", "db", 9001, "/tmp/2")
    same("a member leaves", 204, leave("app", "db").status)
    check("leaving a network cuts open connections", within(10, lambda: sh("web", "cat /tmp/2") == "cut"), sh("web", "cat /tmp/2"))
    same("leaving a network ends the member's name and address", "db none -2\n%s/9001 HTTP 403" % boxes["db.address"],
         tool("web", "names", "db") + "\n" + tool("web", "tries", boxes["db.address"] + "/9001"))
    check("a sandbox that left does not see the members", "none" in tool("db", "names", "web"), tool("db", "names", "web"))
    check("a leave is in the audit log", any(r["sandbox_id"] == boxes["db"] for r in audit("network.leave")), "")
    a = join("app", "db", ports=[8080, 9000, 9001])
    check("back again it has another address: the old one rests", a.json["address"] != boxes["db.address"], a.body)
    boxes["db.address"] = a.json["address"]


def pausing():
    path = "/v1/sandboxes/%s/" % boxes["db"]
    ask("POST", path + "pause", {})
    same("a member that is paused is not reached, and the other learns why", "db/8080 HTTP 403", tool("web", "tries", "db/8080"))
    seen("a paused member that is not reached is an event", "web", reason="the other sandbox is paused", event="refused", port=8080)
    ask("POST", path + "resume", {})
    same("a resumed member is reached", "hello", tool("web", "say", "db", 9001))
    ask("PUT", path + "preview", {"auto_resume": True})
    ask("POST", path + "pause", {})
    same("a connection wakes a member that has auto_resume", "hello", tool("web", "say", "db", 9001))
    same("a member that a connection resumed runs", "running", ask("GET", path[:-1]).json["state"])
    ask("PUT", path + "preview", {})
    a = ask("POST", "/sandboxes", {"templateID": "base", "timeout": 300, "autoPause": True, "autoResume": {"enabled": True}})
    if a.status != 201:
        check("a sandbox that wakes up by itself is made", False, a.body)
        return
    boxes["sleeper"] = a.json["sandboxID"].split("-")[0]
    ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/t.py" % boxes["sleeper"], TOOL)
    start("sleeper", "exec python3 /tmp/t.py greet 9001 127.0.0.1")
    listening("sleeper", 9001)
    join("app", "sleeper", alias="sleeper", ports=[9001])
    ask("POST", "/v1/sandboxes/%s/pause" % boxes["sleeper"], {})
    same("a connection wakes a member whose autoResume E2B's dialect has set", "hello", tool("web", "say", "sleeper", 9001))


def restarting():
    server.kill()
    server.start("--network-connections", "12", "--network-connects", "20", "--network-bytes", "2000000", "--policy", "minimal")
    check("after a restart the names are there", within(10, lambda: tool("web", "names", "db") == "db " + boxes["db.address"]), tool("web", "names", "db"))
    check("after a restart the servers behind the names are reached", within(10, lambda: tool("web", "say", "db", 9001) == "hello"), tool("web", "say", "db", 9001))


# ---- limits: 12 connections, 20 new ones a second, 2 MB a second ----
def together(*calls):
    out = [None] * len(calls)

    def one(i):
        out[i] = calls[i]()
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


def limits():
    same("more connections at once than a sandbox may have are refused", "12", tool("web", "count", "db", 9001, 18, 0.1).split(" ")[0])
    start("web", "exec python3 /tmp/t.py greet 7001 127.0.0.1")
    listening("web", 7001)
    start("db", "exec python3 /tmp/t.py count web 7001 8 30 /tmp/count")
    check("eight connections are held", within(10, lambda: sh("db", "cat /tmp/count") == "8"), sh("db", "cat /tmp/count"))
    same("connections count for the member that is reached", "4", tool("third", "count", "web", 7001, 8, 0.1).split(" ")[0])
    seen("the refused client is told that the other sandbox has too many connections", "third", event="refused", reason="the other sandbox has as many connections as it may")
    sh("db", "touch /tmp/count.end")
    check("connections that ended count no more", within(10, lambda: len([e for e in events("db") if e["event"] == "connect" and e["port"] == 7001]) >= 8), events("db")[-3:])
    time.sleep(1) # a second's new connections are saved up again
    begun = time.time()
    got = together(lambda: tool("web", "count", "db", 9001, 20, 0), lambda: tool("third", "count", "db", 9001, 20, 0))
    same("connections of two clients at once are served", ["20", "20"], [g.split(" ")[0] for g in got])
    check("two clients together are not faster than the member that is reached may be", time.time() - begun > 0.8, "%s s" % (time.time() - begun))
    start("db", "exec python3 /tmp/t.py flood 9003 127.0.0.1")
    join("app", "db", ports=[8080, 9001, 9003])
    listening("db", 9003)
    n = sum(int(g) for g in together(lambda: tool("web", "rate", "db", 9003, 2), lambda: tool("third", "rate", "db", 9003, 2)))
    check("two clients share the byte rate of the member that is reached", 500000 < n < 9000000, n)
    made = [ask("POST", "/v1/networks", {"name": "n%d" % i}).status for i in range(70)]
    same("a tenant has 64 networks", (63, [429] * 7), (made.count(201), made[-7:]))
    e = ask("POST", "/v1/networks", {"name": "more"}).json["error"]
    same("more networks are refused by a quota", ("too_many", "quota"), (e["code"], e.get("layer")))
    joined = [join("n%d" % i, "third", ports=[]).status for i in range(9)]
    same("a sandbox is in 8 networks", [200] * 7 + [429] * 2, joined)
    a = ask("POST", "/v1/sandboxes", {"network": {"join": [{"network": "n%d" % i} for i in range(9)]}})
    same("a create into 9 networks is refused", 429, a.status)
    for i in range(63):
        ask("DELETE", "/v1/networks/n%d" % i)


def ending():
    held("web", "db", 9001, "/tmp/3")
    ask("DELETE", "/v1/sandboxes/" + boxes["db"])
    check("the end of a sandbox cuts what is open", within(10, lambda: sh("web", "cat /tmp/3") == "cut"), sh("web", "cat /tmp/3"))
    check("the name of a member ends with its sandbox", within(10, lambda: "none" in tool("web", "names", "db")), tool("web", "names", "db"))
    check("the place in the network ends with the sandbox", "db" not in [m["alias"] for m in ask("GET", "/v1/networks/app").json["members"]], "")


def command_line():
    def cove(*words):
        p = subprocess.run([COVE, "network", words[0], "--state", STATE, *words[1:]], capture_output=True, text=True)
        return p.returncode, p.stdout.strip() or p.stderr.strip()
    same("cove network create", 0, cove("create", "cli")[0])
    make("c1", name="c1")
    same("cove network join", 0, cove("join", "--port", "9001", "--alias", "one", "cli", boxes["c1"])[0])
    same("cove network join by name", 0, cove("join", "cli", "web")[0])
    check("cove network ls", "cli" in cove("ls")[1] and "app" in cove("ls")[1], cove("ls"))
    check("cove network ls of one network shows the members", "one.cli.internal" in cove("ls", "cli")[1] and "9001" in cove("ls", "cli")[1], cove("ls", "cli"))
    same("cove network ls --json shows the members", {"one", "web"}, {m["alias"] for m in json.loads(cove("ls", "--json", "cli")[1])})
    start("c1", "exec python3 /tmp/t.py greet 9001 127.0.0.1")
    listening("c1", 9001)
    check("what the command line does counts within a moment", within(10, lambda: tool("web", "say", "one", 9001) == "hello"), tool("web", "say", "one", 9001))
    check("a network that is not there is said", "there is no network 'nope'" in cove("join", "nope", "web")[1], cove("join", "nope", "web"))
    check("cove network join says what is wrong with a bad port", "ports are numbers" in cove("join", "--port", "0", "cli", "web")[1], cove("join", "--port", "0", "cli", "web"))
    same("cove network leave", 0, cove("leave", "cli", "c1")[0])
    check("cove network leave counts within a moment", within(10, lambda: "none" in tool("web", "names", "one")), "")
    same("cove network rm", 0, cove("rm", "cli")[0])
    check("a network that was removed cannot be removed again", cove("rm", "cli")[0] != 0, cove("rm", "cli"))


parts = [networks, joining, reaching, refusing, two_networks, leaving, pausing, restarting, limits, command_line, ending]
run(*parts, settings=("--policy", "minimal"))
