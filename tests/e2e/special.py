"""Addresses that no tenant reaches, whatever its rules say: when they are set, when they were set before a version that
looks, and when something else leads to coved itself."""
import glob
import json
import os
import signal
import sqlite3
import subprocess

from harness import COVED, STATE, ask, check, run, same, server, within

KEY, ADMIN, COVE, CONF = os.environ["KEY"], os.environ["ADMIN"], os.environ["COVE"], os.environ["CONF"]
HOST, HOST6, ELSEWHERE, PRIVATE = "93.184.216.1", "2606:2800:220::1", "93.184.216.35", "10.9.9.9"
SETTINGS = ("--config", CONF, "--network-dns", "93.184.216.53", "--policy", "minimal")


def configure(**settings):
    with open(CONF, "w") as f:
        f.write("".join("%s = %s\n" % row for row in settings.items()))


def make(network):
    a = ask("POST", "/v1/sandboxes", {"timeout": 600, "network": network}, key=KEY)
    return a.json["id"] if a.status == 201 else "failed: %s" % a.body


def inside(box, script):
    """From a file, since the policy reads command lines."""
    ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/step.sh" % box, script, key=KEY)
    a = ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "sh /tmp/step.sh 2>&1", "timeout": 60}, key=KEY)
    return (a.json or {}).get("stdout", "%s" % a.body)


def events(box):
    return ask("GET", "/v1/sandboxes/%s/network/events" % box, key=KEY).json["events"]


# ---- when rules are set ----
NEVER = (("127.0.0.1", "loopback"), ("127.0.0.1:%d", "loopback"), ("127.0.0.0/8", "loopback"), ("127.9.9.9", "loopback"), ("::1", "loopback"), ("[::1]:%d", "loopback"),
         ("::ffff:127.0.0.1", "loopback"), ("64:ff9b::7f00:1", "loopback"), ("2002:7f00:1::1", "loopback"), ("localhost", "loopback"),
         ("a.localhost:%d", "loopback"), ("*.localhost", "loopback"), ("0.0.0.0", "unspecified"), ("169.254.169.254", "metadata"),
         ("169.254.169.254:80", "metadata"), ("fd00:ec2::254", "metadata"), ("100.100.100.200", "metadata"), ("169.254.0.0/16", "link-local"),
         ("fe80::1", "link-local"), ("224.0.0.1", "multicast"), ("255.255.255.255", "broadcast"))


def refused(sentence, a, rule, said):
    message = json.dumps(a.json or "%s" % a.body)
    check("%s: %s" % (sentence, rule), a.status == 400 and rule.split("%")[0].split(":%")[0].rstrip(":") in message and said in message,
          "%d %s" % (a.status, message))


def rules():
    box = make({"mode": "public"})
    never = [(rule % server.port if "%d" in rule else rule, "sandboxes never reach %s addresses" % kind) for rule, kind in NEVER]
    never += [(HOST, "addresses of this host"), ("%s:%d" % (HOST, server.port), "addresses of this host"), (HOST6, "addresses of this host")]
    unlisted = [(rule, "not listed in the server's setting network_ranges") for rule in (PRIVATE, "10.0.0.5:5432", "10.0.0.0/8", "fd00::1", "64:ff9b::a09:909")]
    for rule, said in never + unlisted:
        shown = rule.replace("::ffff:", "")
        refused("a create may not name a closed address", ask("POST", "/v1/sandboxes", {"network": {"allow": ["www.example.com", rule]}}, key=KEY), shown, said)
    for rule, said in (never[1], never[-1], unlisted[0]):
        refused("new rules may not name a closed address", ask("PUT", "/v1/sandboxes/%s/network" % box, {"allow": [rule]}, key=KEY), rule, said)
        refused("one more rule may not name a closed address", ask("POST", "/v1/sandboxes/%s/network/allow" % box, {"rule": rule}, key=KEY), rule, said)
        refused("a tenant's default may not name a closed address", ask("PUT", "/v1/tenant/network", {"allow": [rule]}, key=ADMIN), rule, said)
        refused("rules of E2B's dialect may not name a closed address", ask("POST", "/v2/sandboxes", {"templateID": "base", "network": {"allowOut": [rule], "denyOut": ["0.0.0.0/0"]}}, key=KEY), rule, said)
        refused("a sandbox for one command may not name a closed address", ask("POST", "/v1/run", {"command": "true", "network": {"allow": [rule]}}, key=KEY), rule, said)
        refused("rules of the tools may not name a closed address", ask("POST", "/sandbox", {"network": {"enabled": True, "allowed_domains": [rule]}}, key=KEY), rule, said)
    for address in ("127.0.0.1:%d" % server.port, "localhost:%d" % server.port, "[::1]:80", "169.254.169.254:80", "%s:%d" % (HOST, server.port), PRIVATE + ":1080"):
        a = ask("PUT", "/v1/sandboxes/%s/network" % box, {"mode": "public", "proxy": {"type": "http", "address": address}}, key=KEY)
        check("a proxy may not be at " + address, a.status == 400 and b"network.proxy.address" in a.body, "%d %s" % (a.status, a.body))
    same("what is denied may be named", 200, ask("PUT", "/v1/sandboxes/%s/network" % box, {"mode": "public", "deny": ["127.0.0.1", PRIVATE]}, key=KEY).status)
    same("a range with public addresses in it may be named", 200, ask("PUT", "/v1/sandboxes/%s/network" % box, {"allow": ["168.0.0.0/8", "0.0.0.0/0"]}, key=KEY).status)


# ---- rules that an older version took ----
def old_rules(box, rules):
    """As if they had been set before there was a check."""
    server.kill()
    for path in glob.glob(STATE + "/server/*.db"):
        with sqlite3.connect(path) as db:
            if db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'networks'").fetchone()[0]:
                changed = db.execute("UPDATE networks SET rules = ? WHERE id = ?", (json.dumps(rules), box)).rowcount
        db.close()
    same("rules of before are there", 1, changed)
    server.start(*SETTINGS)
    ready = lambda: "93.184.216.35" in inside(box, "curl -sS -m 8 http://%s/" % ELSEWHERE)
    check("the next server takes up the rules of before", within(30, ready), inside(box, "curl -sS -m 8 http://%s/" % ELSEWHERE))


def attacks():
    configure()
    box = make({"mode": "public"})
    same("the tenant local has no sandbox of the attacker's", 0, len(ask("GET", "/v1/sandboxes").json["sandboxes"]))
    loose = ["127.0.0.0/8", "::1", "localhost", "a.localhost", "*.evil.test", HOST, HOST6, "169.254.169.254", PRIVATE, "64:ff9b::/96", ELSEWHERE]
    old_rules(box, {"mode": "list", "allow": loose, "deny": []})
    port = server.port
    # The name in the request is one that coved takes for its own; the address of the connection is anybody's.
    request = "curl -sS -m 8 -X POST -H 'Content-Type: application/json' -d '{\"name\": \"stolen\"}' "
    ways = [("localhost", "--resolve localhost:%d:93.184.216.53 http://localhost:%d/v1/sandboxes" % (port, port)),
            ("a name below localhost", "--resolve a.localhost:%d:93.184.216.53 http://a.localhost:%d/v1/sandboxes" % (port, port))]
    ways += [("a name: " + name, "-H 'Host: localhost:%d' http://%s:%d/v1/sandboxes" % (port, name, port))
             for name in ("loop.evil.test", "six-loop.evil.test", "nat-loop.evil.test", "cname-loop.evil.test", "self.evil.test", "host6.evil.test")]
    ways += [("an address: " + address, "-g -H 'Host: localhost:%d' http://%s:%d/v1/sandboxes" % (port, address, port))
             for address in (HOST, "[%s]" % HOST6, "[64:ff9b::7f00:1]", "[::ffff:%s]" % HOST)]
    for sentence, way in ways:
        out = inside(box, request + way)
        check("no sandbox is made as local by " + sentence, '"id"' not in out and "stolen" not in out, out)
    same("the tenant local has none", [], [s["name"] for s in ask("GET", "/v1/sandboxes").json["sandboxes"]])
    for sentence, address in (("the metadata service", "169.254.169.254"), ("a private address that is not listed", PRIVATE), ("this host", HOST)):
        out = inside(box, "curl -sS -m 8 http://%s/" % address)
        check("%s is not reached" % sentence, "path=/" not in out, out)
    for kind in "loopback", "host":
        check("an event says why: " + kind, within(30, lambda k=kind: any(e["rule"] == k for e in events(box))), events(box))


# ---- coved's own listener ----
def own_listener():
    """What an operator names as a proxy may be anywhere: here it is coved itself, by mistake. So the gateway connects to it."""
    done = subprocess.run([COVE, "tenant", "set", "mallory", "--network", "public", "--proxy", "http://127.0.0.1:%d" % server.port],
                          env=dict(os.environ, COVE_STATE=STATE), capture_output=True, text=True)
    same("a proxy is set for the tenant", "", done.stderr)
    box = make({"mode": "public"})
    out = inside(box, "curl -sS -m 8 http://www.example.com/")
    check("coved takes nothing that comes from its own gateway", "it refused (403)" in out, out)
    same("the default is taken away", 200, ask("DELETE", "/v1/tenant/network", key=ADMIN).status)
    same("a program of this host is local as before", 200, ask("GET", "/v1/sandboxes").status)


# ---- what the operator lists ----
HOLD = """python3 -c "
import socket
s = socket.create_connection(('10.9.9.9', 25), 5); print(s.recv(100), flush=True)
try: print(s.recv(100), flush=True)
except OSError as e: print(e.strerror, flush=True)" >/tmp/held 2>&1 </dev/null &"""


def listed():
    configure(network_ranges="10.9.9.0/24, 93.184.216.0/24")
    server.p.send_signal(signal.SIGHUP)
    check("the setting counts without a restart", within(30, lambda: not make({"allow": [PRIVATE]}).startswith("failed")), make({"allow": [PRIVATE]}))
    box = make({"allow": [PRIVATE + ":80", PRIVATE + ":25", "*.evil.test:80"]})
    out = inside(box, "curl -sS -m 8 http://10.9.9.9/")
    check("what the operator lists and a rule names is reached", out.startswith("10.9.9.9 host=10.9.9.9"), out)
    out = inside(box, "curl -sS -m 8 http://private.evil.test/")
    check("a private address that is listed is reached by a name", out.startswith("10.9.9.9 host=private.evil.test"), out)
    out = inside(box, "curl -sS -m 8 http://10.9.9.9:8080/")
    check("a private address that no rule names is not reached", "path=/" not in out, out)
    refused("a private address that is not listed is refused", ask("POST", "/v1/sandboxes", {"network": {"allow": ["10.9.8.1"]}}, key=KEY), "10.9.8.1", "network_ranges")
    refused("an address of this host is refused, though it is listed", ask("POST", "/v1/sandboxes", {"network": {"allow": [HOST]}}, key=KEY), HOST, "addresses of this host")
    inside(box, HOLD)
    check("a connection there is open", within(30, lambda: "220" in inside(box, "cat /tmp/held")), inside(box, "cat /tmp/held"))
    configure()
    server.p.send_signal(signal.SIGHUP)
    check("a connection is cut when its range is taken away", within(30, lambda: "reset" in inside(box, "cat /tmp/held")), inside(box, "cat /tmp/held"))
    out = inside(box, "curl -sS -m 8 http://10.9.9.9/")
    check("a range that was taken away is not reached again", "path=/" not in out, out)
    configure(network_ranges="127.0.0.0/8")
    done = subprocess.run([COVED, "--config", CONF, "--check-config"], capture_output=True, text=True)
    check("a setting that lists loopback is an error", done.returncode != 0 and "sandboxes never reach loopback addresses" in done.stderr, done.stderr)
    configure()


configure()
run(rules, attacks, own_listener, listed, settings=SETTINGS)
