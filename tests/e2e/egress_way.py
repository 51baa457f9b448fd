"""Egress of sandboxes through proxies. Run by proxy_test; INTERNET is the directory of the internet that is played."""
import glob
import json
import os
import re
import subprocess
import threading

from harness import LOG, STATE, ask, check, finish, same, server, within

INTERNET, COVE = os.environ["INTERNET"], os.environ["COVE"]
DNS = ["--network-dns", "93.184.216.53", "--policy", "minimal"]
LOGIN = {"username": "cove", "password": "open:sesame"}
PROXY, HOST = "from=93.184.216.34", "from=93.184.216.1\n"


def like(sentence, pattern, got):
    got = got if isinstance(got, str) else json.dumps(got)
    check(sentence, re.search(pattern, got), "%r is not like %r" % (got[-300:], pattern))


def cove(*args, text=None):
    p = subprocess.run([COVE, *args, "--state", STATE], input=text, capture_output=True, text=True, timeout=60)
    return p.stdout + p.stderr


def make(network=None, key=None, **more):
    a = ask("POST", "/v1/sandboxes", {"timeout": 600, **({"network": network} if network else {}), **more}, key=key)
    return (a.json or {}).get("id") or a.body.decode()


def run(box, command, key=None, **more):
    a = ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": command + " 2>&1", "timeout": 40, **more}, key=key)
    return (a.json or {}).get("stdout") or a.body.decode()


def get(box, what, key=None):
    return run(box, "curl -sS -m 25 " + what, key)


def events(box, key=None):
    return ask("GET", "/v1/sandboxes/%s/network/events" % box, key=key).json["events"]


seen_events = {}


def newest(box):
    """The newest event, once there is one that no call before has seen: events come in their own time."""
    def last():
        return (events(box) or [{"seq": -1}])[-1]
    within(30, lambda: last()["seq"] > seen_events.get(box, -1))
    newest_event = last()
    seen_events[box] = newest_event["seq"]
    return newest_event


def told(box, act):
    """What an action says, and its event with a process. On a busy machine the agent is not always asked in time: then once more."""
    for _ in range(10):
        said, last = act(), newest(box)
        if last.get("process"):
            break
    return said, last


def network(box, key=None):
    return ask("GET", "/v1/sandboxes/%s/network" % box, key=key).json


def through(kind, port, host="93.184.216.34", mode="public", **more):
    return {"mode": mode, "proxy": {"type": kind, "address": "%s:%d" % (host, port), **more}}


def proxied():
    return open(INTERNET + "/proxied").read().splitlines()


SPEAKS_FIRST = """python3 -c "
import socket
s=socket.create_connection(('93.184.216.34',25),5); print(s.recv(100).decode().strip())" """


def kinds(box, by):
    like("without a proxy a connection comes from the host", HOST, get(box, "http://www.example.com/"))
    by(through("socks5", 1080))
    same("with a SOCKS5 proxy a connection comes from the proxy", "93.184.216.34 host=www.example.com path=/a from=93.184.216.34\n",
         get(box, "http://www.example.com/a"))
    same("a SOCKS5 proxy is told the address where addresses are the rule", "socks5 address 93.184.216.34 80 open", proxied()[-1])
    like("HTTPS goes through a SOCKS5 proxy", "host=api.example.com path=/ " + PROXY, get(box, "--cacert /tmp/ca.pem https://api.example.com/"))
    like("IPv6 goes through a SOCKS5 proxy", "from=2606:2800:220::34", get(box, "-g 'http://[2606:2800:220::34]/'"))
    same("IPv6 is told to a SOCKS5 proxy as an address of its own kind", "socks5 address 2606:2800:220::34 80 open", proxied()[-1])
    same("servers that speak first work through a SOCKS5 proxy", "220 hello\n", run(box, SPEAKS_FIRST))
    same("10 MB come whole", "10000000\n", run(box, "curl -s http://www.example.com/big/10000000 | wc -c"))
    same("10 MB are sent whole through a SOCKS5 proxy", "got 10000000\n", run(box, "head -c 10000000 /dev/zero | curl -s --data-binary @- http://www.example.com/"))
    by(through("socks5", 1081, **LOGIN))
    like("a SOCKS5 proxy gets its login", PROXY, get(box, "http://www.example.com/"))
    by(through("http", 3128))
    like("an HTTP proxy works", PROXY, get(box, "--cacert /tmp/ca.pem https://www.example.com/"))
    same("an HTTP proxy is asked to connect", "http 93.184.216.34:443 open", proxied()[-1])
    like("plain HTTP goes through an HTTP proxy", "path=/plain " + PROXY, get(box, "http://www.example.com/plain"))
    like("IPv6 goes through an HTTP proxy", "from=2606:2800:220::34", get(box, "-g 'http://[2606:2800:220::34]/'"))
    same("servers that speak first work through an HTTP proxy", "220 hello\n", run(box, SPEAKS_FIRST))
    by(through("http", 3129, **LOGIN))
    like("an HTTP proxy gets its login", PROXY, get(box, "http://www.example.com/"))
    by(through("http", 3128, "proxy.example.com"))
    like("a proxy may have a name", PROXY, get(box, "http://www.example.com/"))
    by(through("socks5", 1080, "proxy6.example.com"))
    like("a proxy's name may have an address of IPv6", PROXY, get(box, "http://www.example.com/"))
    by(through("socks5", 1080, "two.example.com"))
    like("of a proxy's two addresses the one that answers is used", PROXY, get(box, "http://www.example.com/"))


def rules_first(box, by):
    for kind, port, told in ("socks5", 1080, "socks5 name www.example.com 443 open"), ("http", 3128, "http www.example.com:443 open"):
        by({"allow": ["www.example.com"], "proxy": {"type": kind, "address": "93.184.216.34:%d" % port}})
        like(kind + ": where names are the rule it works as well", PROXY, get(box, "--cacert /tmp/ca.pem https://www.example.com/"))
        same(kind + ": the proxy is told the name that was checked", told, proxied()[-1])
        before = len(proxied())
        like(kind + ": another name is refused before", "may not reach api.example.com port 80: not allowed",
             get(box, "-H 'Host: api.example.com' http://www.example.com/"))
        like(kind + ": an address is refused before", "may not reach 93.184.216.35 port 80", get(box, "http://93.184.216.35/"))
        same(kind + ": the proxy hears nothing of a refusal", before, len(proxied()))
    by(through("socks5", 1080))
    like("no private address behind a proxy", "Failed to connect to 10.9.9.9 port 80", get(box, "http://10.9.9.9/"))
    check("the proxy was not asked for a private address", not any("10.9.9.9" in line for line in proxied()))


def where(box, by):
    for what, host in ("at a private address", "10.9.9.9"), ("at loopback", "127.0.0.1"), ("of IPv6 that is not public", "[fd00::1]"):
        a = ask("POST", "/v1/sandboxes", {"network": through("socks5", 1080, host)})
        same("a proxy %s is refused" % what, (400, "network.proxy.address"), (a.status, a.json["error"].get("field")))
    for name in "private.evil.test", "self.evil.test":
        by(through("socks5", 1080, name))
        like("a name that leads to something not public is none: " + name, "through: it is not at a public address", get(box, "http://www.example.com/"))
    for field, proxy in (
            ("type", {"type": "ftp", "address": "a.com:1"}), ("type", {"address": "a.com:1"}), ("address", {"type": "http"}),
            ("address", {"type": "http", "address": "a.com"}), ("address", {"type": "http", "address": "a.com:0"}),
            ("address", {"type": "http", "address": "a.com:65536"}), ("address", {"type": "http", "address": "a b:1"}),
            ("address", {"type": "http", "address": "2001:db8::1:80"}), ("address", {"type": "http", "address": "x" * 300 + ":1"}),
            ("username", {"type": "http", "address": "a.com:1", "password": "x"}),
            ("username", {"type": "http", "address": "a.com:1", "username": "a:b"}),
            ("username", {"type": "socks5", "address": "a.com:1", "username": "x" * 256}),
            ("username", {"type": "socks5", "address": "a.com:1", "username": "x", "password": "x" * 256}),
            ("username", {"type": "socks5", "address": "a.com:1", "username": "a\nb"})):
        a = ask("POST", "/v1/sandboxes", {"network": {"proxy": proxy}})
        same("a bad proxy is refused by its field: %.60s" % proxy, (400, "network.proxy." + field), (a.status, a.json["error"].get("field")))


FAILURES = [
    ("a proxy that is down", through("socks5", 4999), "it cannot be reached"),
    ("one that has no address", through("socks5", 1080, "nothing.example.org"), "its name has no address"),
    ("one that hangs up", through("socks5", 4001), "it ended the connection"),
    ("one that hangs up on HTTP", through("http", 4001), "it ended the connection"),
    ("garbage for SOCKS5", through("socks5", 4003), "it does not speak SOCKS5"),
    ("garbage for HTTP", through("http", 4003), "its answer is not HTTP"),
    ("a head without an end", through("http", 4004), "its answer does not end"),
    ("a head with two lengths", through("http", 4010), "its answer is not HTTP"),
    ("a proxy that takes no login", through("socks5", 4005, **LOGIN), "it takes no login of this kind"),
    ("one that wants a login", through("socks5", 1081), "it wants a login"),
    ("a wrong login", through("socks5", 1081, username="cove", password="wrong"), "it does not take the login"),
    ("a wrong login for HTTP", through("http", 3129, username="cove", password="wrong"), "it does not take the login (407)"),
    ("a refusal", through("http", 4006), "it refused (403)"),
    ("a lie", through("socks5", 4007), "its reply cannot be read"),
]


slow, slow_answers = [], {}


def start_slow():
    """What takes its time continues beside the rest."""
    def wait(name, box):
        slow_answers[name] = get(box, "http://www.example.com/")
    threads = [threading.Thread(target=wait, args=(name, make(policy)))
               for name, policy in (("silent", through("socks5", 4002)), ("drip", through("http", 4008)))]
    for t in threads:
        t.start()
    return threads


def what_goes_wrong(box, by):
    for what, policy, why in FAILURES:
        by(policy)
        like("%s is told: %s" % (what, why), "did not let this one through: " + re.escape(why), get(box, "http://www.example.com/"))
        last = events(box)[-1]
        same("a failure of the proxy is an event: " + what, ("failed", "proxy", why), (last["event"], last["rule"], last.get("reason")))
    like("a failure of the proxy is an answer of HTTP", "^502$", get(box, "-o /dev/null -w '%{http_code}' http://www.example.com/"))
    by(through("socks5", 4001))
    like("a program that speaks TLS sees the connection cut", "(reset|SSL|EOF|unexpected)", get(box, "--cacert /tmp/ca.pem https://www.example.com/"))
    by(through("socks5", 1080))
    like("SOCKS5: a port where nothing listens", "the host refused its connection", get(box, "http://93.184.216.34:81/"))
    by(through("http", 3128))
    like("HTTP: a port where nothing listens", re.escape("it refused (502)"), get(box, "http://93.184.216.34:81/"))
    like("other connections are not held up by a slow proxy", PROXY, get(box, "http://www.example.com/"))
    for t in slow:
        t.join()
    like("a proxy that says nothing is given up", "it does not answer in time", slow_answers["silent"])
    like("a proxy that sends a little all the time is given up", "it does not answer in time", slow_answers["drip"])


def kept(text):
    """The files of the store that have it in them, journals among them."""
    return [f for f in glob.glob(STATE + "/server/*") if os.path.isfile(f) and text in open(f, "rb").read()]


def login_unseen(box, by):
    by(through("socks5", 1081, **LOGIN))
    get(box, "http://www.example.com/")
    same("the proxy is shown, without its login", {"type": "socks5", "address": "93.184.216.34:1081"}, network(box).get("proxy"))
    seen = [ask("GET", path).body.decode() for path in ("/v1/sandboxes/" + box, "/v1/sandboxes/%s/network/events" % box, "/audit-logs?limit=500")]
    seen += [run(box, "env; cat /proc/net/tcp /proc/net/tcp6; cat /proc/*/environ"), open(LOG).read()]
    check("the login is in no answer, no event, no record, not inside, not in the log", not any("sesame" in s for s in seen))
    same("the login of a proxy is in no file of the store", [], kept(b"sesame"))
    a, again = [ask("POST", "/v1/sandboxes", {"network": through("socks5", 1081, **LOGIN)}, headers={"Idempotency-Key": "k-proxy"}) for _ in (1, 2)]
    same("a create with a login can be repeated", (a.json or {}).get("id"), (again.json or {}).get("id"))
    other = ask("POST", "/v1/sandboxes", {"network": through("socks5", 1081, username="cove", password="other")}, headers={"Idempotency-Key": "k-proxy"})
    same("an Idempotency-Key with a different login is refused", 409, other.status)
    saved = ask("POST", "/v1/sandboxes/%s/snapshots" % box, {"memory": False})
    copy = make(snapshot=(saved.json or {}).get("id"))
    like("a sandbox of a snapshot has the login of the proxy", PROXY, get(copy, "http://www.example.com/"))
    for gone in "sandboxes/" + a.json["id"], "sandboxes/" + copy, "snapshots/%s" % (saved.json or {}).get("id"):
        ask("DELETE", "/v1/" + gone)
    same("the login of a proxy is in no file after a snapshot, nor after its removal", [], kept(b"sesame"))


def change_and_restart(box, by):
    run(box, """python3 -c "
import socket
s = socket.create_connection(('93.184.216.34', 25), 5); s.recv(100); print('open', flush=True)
try: print(s.recv(100))
except OSError as e: print(e.strerror, flush=True)" >/tmp/held 2>&1 </dev/null & """)
    check("a connection through a proxy is open", within(10, lambda: "open" in run(box, "cat /tmp/held")))
    by(through("http", 3128))
    check("a connection is cut when a different proxy is named", within(10, lambda: "reset by peer" in run(box, "cat /tmp/held")))
    by(through("socks5", 1081, **LOGIN))
    server.kill()
    server.start(*DNS, "--network-proxy-ranges", "10.9.9.0/24")
    check("the next server takes the proxy up again, with its login", within(10, lambda: PROXY in get(box, "http://www.example.com/")))
    by(through("socks5", 1080, "10.9.9.9"))
    like("an operator can let proxies be at private addresses", PROXY, get(box, "http://www.example.com/"))
    by(through("socks5", 1080, "private.evil.test"))
    like("an operator can let proxies be at private addresses by name", PROXY, get(box, "http://www.example.com/"))
    same("a proxy on loopback stays refused", 400, ask("POST", "/v1/sandboxes", {"network": through("http", 8000, "127.0.0.1")}).status)


def e2b():
    a = ask("POST", "/v2/sandboxes", {"templateID": "base", "network": {"egressProxy": {"address": "93.184.216.34:1081", **LOGIN}}})
    box = a.json["sandboxID"]
    like("egressProxy of E2B's dialect works", PROXY, get(box, "http://www.example.com/"))
    same("egressProxy is SOCKS5, with its login", "socks5 address 93.184.216.34 80 login", proxied()[-1])
    same("egressProxy is shown without its login", {"address": "93.184.216.34:1081"}, ask("GET", "/sandboxes/" + box).json["network"].get("egressProxy"))
    ask("PUT", "/sandboxes/%s/network" % box, {})
    like("an update without egressProxy removes the proxy", HOST, get(box, "http://www.example.com/"))
    ask("PUT", "/sandboxes/%s/network" % box, {"denyOut": ["0.0.0.0/0"], "allowOut": ["www.example.com"],
                                                "egressProxy": {"address": "proxy.example.com:1080"}})
    like("egressProxy works with names", PROXY, get(box, "http://www.example.com/"))
    same("egressProxy is told the name where names are the rule", "socks5 name www.example.com 80 open", proxied()[-1])
    same("a proxy that is none is refused", 400, ask("PUT", "/sandboxes/%s/network" % box, {"egressProxy": {"address": "10.0.0.1:1080"}}).status)


PYTHON = """python3 -c "
import socket, time
s = socket.socket(socket.AF_INET6 if ':' in '%s' else socket.AF_INET); s.settimeout(5)
try: s.connect(('%s', %d)); s.sendall(%s); print(s.recv(100))
except OSError as e: print(e.strerror)" """


ODD = """import socket
with open('/proc/self/comm', 'w') as f: f.write('ev<' + chr(34) + chr(10) + 'il')
s = socket.create_connection(('93.184.216.35', 80), 5)
s.sendall(bytes(20))
s.recv(10)
"""


def whose():
    box = make({"allow": ["www.example.com"]})
    last = told(box, lambda: get(box, "http://93.184.216.35/"))[1]
    same("a refusal says whose it was", ("refused", "curl"), (last["event"], (last["process"] or {}).get("name")))
    check("a refusal has the pid of the process", (last["process"] or {}).get("pid", 0) > 1, last)
    said, last = told(box, lambda: run(box, "sh -c 'echo $$; exec curl -sS -m 9 http://93.184.216.35:8080/'"))
    same("the pid of a refusal is the one inside", int(said.split()[0]), (last["process"] or {}).get("pid"))
    for what, host, port, say in (("of TLS", "93.184.216.35", 443, "bytes([22,3,1,0,4,1,0,0,0])"),
                                  ("that says nothing", "93.184.216.35", 9999, "b''"),
                                  ("over IPv6", "2606:2800:220::34", 81, "bytes(20)")):
        last = told(box, lambda: run(box, PYTHON % (host, host, port, say)))[1]
        same("a refusal names the process for a connection " + what, (port, "python3"), (last["port"], (last["process"] or {}).get("name")))
    gone = run(box, """python3 -c "
import socket
s = socket.create_connection(('93.184.216.35', 4444), 5); s.close(); print('left')" """)
    same("a connection that its program left says nothing more", "left\n", gone)
    quiet = make({"allow": ["www.example.com"]})
    run(quiet, "python3 -c 'import socket; socket.getaddrinfo(\"evil.test\", 80)'; python3 -c 'import socket; socket.getaddrinfo(\"other.test\", 80)'")
    seen = [(e["host"], e.get("count", 1) > 1) for e in events(quiet) if e["event"] == "name_refused"]
    same("equal refusals in a row are one event with a count", [("evil.test", True), ("other.test", True)], seen)
    latest = events(quiet)[-1]["seq"]
    same("the number of an event with a count is the newest one's", [], ask("GET", "/v1/sandboxes/%s/network/events?after=%d" % (quiet, latest)).json["events"])
    rooted = make({"allow": ["www.example.com"]}, root=True)
    said, last = told(rooted, lambda: run(rooted, "id -u; curl -sS -m 9 http://93.184.216.35/", user="root"))
    same("a refusal names a process of root's", ("0", "curl"), (said.split()[0], (last["process"] or {}).get("name")))
    ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/odd.py" % box, ODD)
    last = told(box, lambda: run(box, "python3 /tmp/odd.py"))[1]
    like("a refusal has the process's name with signs replaced", '^ev<"[?]il$', (last["process"] or {}).get("name") or str(last))
    like("the audit names the process of a refusal", "by curl \\(", ask("GET", "/audit-logs?sandbox_id=%s&limit=100" % box).body.decode())
    many = run(box, "for i in $(seq 30); do curl -s -m 9 -o /dev/null http://93.184.216.35/ & done; wait; echo done")
    same("many refused connections at once do not block", "done\n", many)
    like("many refused connections at once do not change the rules", "may not reach", get(box, "http://93.184.216.35/"))


ASK_NAME = """python3 -c "
import socket
q = bytes.fromhex('123401000001000000000000') + b'\\x04evil\\x04test\\x00' + bytes([0, 1, 0, 1])
%s
print('code', a[3] & 15)" """
ASKERS = (
    ("by a socket that is connected", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('8.8.8.8', 53)); s.settimeout(9); s.send(q); a = s.recv(999)"),
    ("by one that is not", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(9); s.sendto(q, ('9.9.9.9', 53)); a = s.recv(999)"),
    ("over IPv6", "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(9); s.sendto(q, ('2606:2800:220::53', 53)); a = s.recv(999)"),
    ("over TCP", "s = socket.create_connection(('8.8.8.8', 53), 9); s.send(bytes([0, len(q)]) + q); a = s.recv(999)[2:]"),
)


def whose_names():
    box = make({"allow": ["www.example.com", "private.evil.test"]})
    last = told(box, lambda: get(box, "http://evil.test/"))[1]
    same("a name that is refused says whose question it was", ("name_refused", "evil.test", 53, "curl"),
         (last["event"], last["host"], last["port"], (last["process"] or {}).get("name")))
    for what, how in ASKERS:
        pid, last = told(box, lambda: run(box, "sh -c 'echo $$; exec %s'" % (ASK_NAME % how).replace("'", "'\\''")))
        same("a refused name has the pid of a question that is asked " + what, [(last["process"] or {}).get("pid"), 5], [int(w) for w in pid.split() if w.isdigit()])
    last = told(box, lambda: get(box, "http://private.evil.test/"))[1]
    same("a name that leads to a private address is refused, with the process", ("name_refused", "private", "curl"), (last["event"], last["rule"], (last["process"] or {}).get("name")))
    many = run(box, "for i in $(seq 30); do getent hosts n$i.evil.test & done; wait; echo done")
    same("many questions at once hold nobody up", "done\n", many)


def defaults():
    """What a create gets that says nothing: template's before tenant's before nothing."""
    def silent(key=None, **more):
        box = make(key=key, **more)
        return network(box, key), box

    cove("tenant", "add", "team")
    key = cove("key", "create", "team").strip().splitlines()[0]
    admin = cove("key", "create", "team", "--scope", "admin").strip().splitlines()[0]
    same("without a default a create that says nothing gets nothing", "off", silent(key)[0]["mode"])
    same("a new tenant has no default network", {"network": None}, ask("GET", "/v1/tenant/network", key=key).json)
    same("a key of scope run sets no default network", 403, ask("PUT", "/v1/tenant/network", {"mode": "public"}, key=key).status)
    a = ask("PUT", "/v1/tenant/network", {"allow": ["www.example.com"]}, key=admin)
    same("an admin sets a default network", (200, "list"), (a.status, a.json["network"]["mode"]))
    rules, box = silent(key)
    same("a create that says nothing gets the tenant's default", ("list", ["www.example.com"]), (rules["mode"], rules["allow"]))
    like("an allowed host of the tenant's default is reached", HOST, get(box, "http://www.example.com/", key))
    like("an unlisted host of the tenant's default is refused", "may not reach", get(box, "http://93.184.216.35/", key))
    same("a create that says something gets that", "off", network(make({"mode": "off"}, key), key)["mode"])
    same("a tenant's default does not concern other tenants", "off", silent()[0]["mode"])
    like("what is set is in the audit", "tenant.network", ask("GET", "/audit-logs?limit=50", key=admin).body.decode())
    same("a bad default names its field", "network.allow[0]", ask("PUT", "/v1/tenant/network", {"allow": ["a b"]}, key=admin).json["error"]["field"])
    same("a tenant's default names no private proxy", 400, ask("PUT", "/v1/tenant/network", through("http", 3128, "10.9.9.9"), key=admin).status)
    like("cove tenant ls shows the default network", r"team .*list", cove("tenant", "ls"))

    a = ask("POST", "/v2/sandboxes", {"templateID": "host", "allow_internet_access": True}, key=key)
    same("E2B's create that says no rules gets the tenant's default", ["www.example.com"], network(a.json["sandboxID"], key)["allow"])
    a = ask("POST", "/v2/sandboxes", {"templateID": "host", "network": {"denyOut": ["93.184.216.35"]}}, key=key)
    same("E2B's create that says rules gets those", "public", network(a.json["sandboxID"], key)["mode"])
    a = ask("POST", "/v2/sandboxes", {"templateID": "host", "allow_internet_access": False}, key=key)
    same("E2B's create that wants no internet gets none", "off", network(a.json["sandboxID"], key)["mode"])
    for body, mode in ({}, "list"), ({"network": {"enabled": False}}, "off"), ({"network": {"enabled": True}}, "public"):
        a = ask("POST", "/sandbox", body, key=key)
        same("a sandbox of the tools, too: %s" % body, mode, network(a.json["sandbox_id"], key)["mode"])

    same("the operator's default", "", cove("tenant", "set", "team", "--network", "public", "--proxy", "socks5://10.9.9.9:1081",
                                            "--proxy-login", "-", text="cove:open:sesame\n"))
    rules, box = silent(key)
    same("the operator's default may have a proxy at a private address", {"type": "socks5", "address": "10.9.9.9:1081"}, rules.get("proxy"))
    like("the proxy of a tenant's default gets its login", "host=www.example.com path=/ from=93.184.216.34", get(box, "http://www.example.com/", key))
    box = make({"allow": ["www.example.com"]}, key)
    same("a create that names no proxy has the tenant's proxy", "10.9.9.9:1081", (network(box, key).get("proxy") or {}).get("address"))
    get(box, "http://www.example.com/", key)
    same("a create that names no proxy has its own rules", "socks5 name www.example.com 80 login", proxied()[-1])
    same("a create that names a proxy has that proxy", "93.184.216.34:3128", network(make(through("http", 3128), key), key)["proxy"]["address"])
    ask("PUT", "/v1/sandboxes/%s/network" % box, {"mode": "public"}, key=key)
    same("a change of the network that names no proxy keeps the proxy", "10.9.9.9:1081", (network(box, key).get("proxy") or {}).get("address"))
    shown = cove("tenant", "ls", "--json")
    like("the operator sees the proxy of a tenant's default", "10.9.9.9:1081", shown)
    same("the login of a tenant's proxy is in no file", [], kept(b"sesame"))
    check("without its login", "sesame" not in shown + ask("GET", "/v1/tenant/network", key=key).body.decode())
    for bad, why in ((["--network", "all"], "must be off, public or list"), (["--allow", "a.com"], "need --network"),
                     (["--network", "list", "--allow", "a b"], "is not a host name"), (["--network", "public", "--proxy", "x:1"], "--proxy"),
                     (["--network", "public", "--proxy", "http://u:hush@a:1"], "login does not belong"),
                     (["--network", "none", "--deny", "a.com"], "no rules"), (["--network", "off", "--proxy-login", "-"], "needs --proxy")):
        said = cove("tenant", "set", "team", *bad)
        like("cove tenant set says what is wrong: " + " ".join(bad), re.escape(why), said)
        check("cove tenant set repeats no password", "hush" not in said)

    same("a template has a default network", "", cove("template", "set", "--network", "list", "--allow", "api.example.com", "host"))
    rules, box = silent(key)
    same("a template's default comes before the tenant's", ["api.example.com"], rules["allow"])
    same("a template's default without a proxy keeps the tenant's proxy", "10.9.9.9:1081", (rules.get("proxy") or {}).get("address"))
    same("a template's default counts when the template is named", ["api.example.com"], silent(key, template="host")[0]["allow"])
    same("a template's default counts for every tenant", ["api.example.com"], silent()[0]["allow"])
    a = ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=key)
    same("a template's default counts where E2B's name leads to the template", ["api.example.com"], network(a.json["sandboxID"], key)["allow"])
    same("a create that says something still gets that", ["www.example.com"], network(make({"allow": ["www.example.com"]}, key), key)["allow"])
    like("cove template inspect shows the default network", "network .*api.example.com", cove("template", "inspect", "host"))
    like("cove template set refuses an unknown template", "there is no template", cove("template", "set", "--network", "off", "nothing"))
    cove("template", "set", "--network", "none", "host")
    same("without a template's default the tenant's counts again", "public", silent(key)[0]["mode"])
    ask("PUT", "/v1/tenant/network", through("socks5", 4999), key=admin)
    told = {}

    def whose():  # the name of the process is found while its socket is there: a slow machine may be too late
        a = ask("POST", "/bash", {"command": "curl -sS -m 9 http://www.example.com/; curl -sS -m 9 http://93.184.216.1/"}, key=key)
        told.update((e["rule"], e) for e in (a.json or {}).get("network_refused", []))
        return (told.get("host", {}).get("process") or {}).get("name")
    check("an agent learns in its tool's answer whose connection was refused", within(60, lambda: whose() == "curl"), told)
    same("an agent learns in its tool's answer what is wrong with the proxy", "it cannot be reached", told.get("proxy", {}).get("reason"))
    same("an admin takes the tenant's away", {"network": None}, ask("DELETE", "/v1/tenant/network", key=admin).json)
    same("without the tenant's default a create that says nothing has no network", "off", silent(key)[0]["mode"])


def main():
    server.start(*DNS)
    slow.extend(start_slow())
    box = make({"mode": "public"})
    ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/ca.pem" % box, open(INTERNET + "/ca.pem").read())

    def by(policy):
        a = ask("PUT", "/v1/sandboxes/%s/network" % box, policy)
        if a.status != 200:
            check("a policy is taken", False, a.body)

    for part in kinds, rules_first, where, what_goes_wrong, login_unseen, change_and_restart:
        part(box, by)
    e2b()
    whose()
    whose_names()
    server.kill()
    server.start(*DNS)
    defaults()
    server.kill()


main()
finish()
