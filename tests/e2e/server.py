"""What operates a server: the PROXY protocol, SIGHUP, quotas, who may loosen what, retention. Run by server_test."""
import hashlib
import os
import re
import signal
import sqlite3
import ssl
import struct
import subprocess
import threading
import time

from harness import STATE, Server, check, finish, log_since, log_size, read_all, same, status_of, within

tmp = os.environ["TMP"]
GET = b"GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def v2(source, command=0x21):
    four = bytes(int(n) for n in source.split("."))
    return SIGNATURE + struct.pack(">BBH", command, 0x11, 12) + four + b"\x7f\0\0\1" + struct.pack(">HH", 4000, 80)


def v1(source, kind="TCP4", target="127.0.0.1"):
    return ("PROXY %s %s %s 4000 80\r\n" % (kind, source, target)).encode()


# ---- off, as it is by default ----
s = Server().start()
for name, preamble in (("version 1", v1("127.0.0.1")), ("version 2", v2("127.0.0.1"))):
    same("a preamble of %s where none is expected is refused" % name, 400, status_of(s.raw(preamble + GET)))
same("without proxy_protocol a request without a preamble is served", 200, status_of(s.raw(GET)))
s.end()

# ---- on ----
s = Server("--proxy-protocol", "yes", "--head-timeout", "3s").start()
same("with proxy_protocol, a connection without a preamble is refused", 400, status_of(s.raw(GET)))
check("a connection without a preamble is told why", b"the PROXY preamble is missing" in s.raw(GET), s.raw(GET))
same("loopback behind the proxy is the local tenant", 200, status_of(s.raw(v1("127.0.0.1") + GET)))
same("loopback behind the proxy is the local tenant in version 2", 200, status_of(s.raw(v2("127.0.0.1") + GET)))
same("loopback behind the proxy is the local tenant over IPv6", 200, status_of(s.raw(v1("::1", "TCP6", "::1") + GET)))
for name, preamble in (("version 1", v1("198.51.100.9")), ("version 2", v2("198.51.100.9"))):
    same("a client from elsewhere needs a key though the proxy is on loopback, %s" % name, 401,
         status_of(s.raw(preamble + GET)))
same("a client without an address needs a key", 401, status_of(s.raw(b"PROXY UNKNOWN\r\n" + GET)))
same("a connection of the proxy itself needs a key", 401, status_of(s.raw(v2("127.0.0.1", 0x20) + GET)))
same("a broken preamble is refused", 400, status_of(s.raw(b"PROXY TCP4 1.2.3.4 nonsense 1 2\r\n" + GET)))
c = s.connect()
for byte in v1("127.0.0.1") + GET:
    c.sendall(bytes([byte]))
same("a preamble that comes byte by byte is read", 200, status_of(read_all(c)))
c = s.connect()
c.sendall(b"PROXY TCP4 127.0")
same("a preamble that does not end is a slow head", 408, status_of(read_all(c)))
key = os.environ["ADMIN_KEY"]
answer = s.raw(v1("203.0.113.77") + GET.replace(b"\r\n\r\n", b"\r\nX-API-Key: " + key.encode() + b"\r\n\r\n"))
same("a client from elsewhere is served with its key", 200, status_of(answer))
s.raw(v1("203.0.113.88") + GET)


def has_peer():
    said = subprocess.run([os.environ["COVE"], "--state", STATE, "audit", "export"], capture_output=True, text=True).stdout
    return '"peer": "203.0.113.88"' in said


check("the audit log has the client's address, not the proxy's", within(5, has_peer))
s.end()

s = Server("--proxy-protocol", "yes", "--proxy-from", "192.0.2.0/24").start()
same("a peer that is not a proxy of ours is refused, whatever it says", 403, status_of(s.raw(v1("127.0.0.1") + GET)))
s.end()

cert, cert_key = tmp + "/cert.pem", tmp + "/key.pem"


def make_cert(name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", cert_key, "-out", cert, "-days", "2", "-subj", "/CN=" + name],
                   check=True, capture_output=True)


def tls_ask(server, before=b"", want=None):
    context = ssl._create_unverified_context()
    c = server.connect()
    if before:
        c.sendall(before)
    t = context.wrap_socket(c, server_hostname="localhost")
    name = t.getpeercert(True)
    t.sendall(GET)
    return status_of(read_all(t)), name


make_cert("one")
s = Server("--proxy-protocol", "yes", "--tls-cert", cert, "--tls-key", cert_key).start()
same("with TLS the preamble comes before the handshake", 200, tls_ask(s, v2("127.0.0.1"))[0])
same("with TLS the preamble decides whether a key is needed", 401, tls_ask(s, v1("198.51.100.9"))[0])
s.end()

# ---- SIGHUP ----
conf = tmp + "/coved.conf"


def configure(text):
    with open(conf, "w") as f:
        f.write(text)


def hup(server):
    at = log_size()
    server.p.send_signal(signal.SIGHUP)
    within(5, lambda: "reloaded" in log_since(at))
    return log_since(at)


configure("sandbox_timeout_most = 1h\ntls_cert = %s\ntls_key = %s\n" % (cert, cert_key))
s = Server("--config", conf).start()
first = tls_ask(s)[1]
make_cert("two")
said = hup(s)
check("SIGHUP takes a new certificate", tls_ask(s)[1] != first, said)
second = tls_ask(s)[1]
with open(cert, "w") as f:
    f.write("nonsense")
said = hup(s)
check("a certificate that cannot be used is said", "not reloaded, nothing is changed: the certificate" in said, said)
same("the old certificate stays when the new one cannot be used", second, tls_ask(s)[1])
s.end()

configure("sandbox_timeout_most = 1h\n")
s = Server("--config", conf).start()


def create(seconds):
    return s.ask("POST", "/v1/sandboxes", {"timeout": seconds}).status


def longest():
    return max(p["session_timeout_minutes"] for p in s.ask("GET", "/presets").json["presets"].values())


same("a lifetime over the limit is refused", 400, create(7200))
same("a preset has no longer session than the limit", [60, 60], [longest(), longest()])
configure("sandbox_timeout_most = 3h\nlisten = 127.0.0.1:1\npolicy = minimal\n")
said = hup(s)
check("SIGHUP says which settings were changed", "reload: sandbox_timeout_most is changed" in said, said)
same("changed settings count after SIGHUP", 201, create(7200))
check("changed settings count in the answer about presets, which is kept between changes", longest() > 60, longest())
check("SIGHUP says which settings need a restart", "reload: policy needs a restart" in said, said)
check("a flag still wins over the file", "listen" not in said, said)
configure("sandbox_timeout_most = 4h\nthreads = many\n")
said = hup(s)
check("a bad file is said, with line and name", "nothing is changed: %s: line 2: threads" % conf in said, said)
same("a bad file leaves every setting as it was", 400, create(4 * 3600 - 60))
os.unlink(conf)
said = hup(s)
check("a file that is gone is said", "nothing is changed: cannot read " + conf in said, said)
configure("sandbox_timeout_most = 4h\nlocal = no\nverbose = yes\n")
hup(s)
same("whether loopback needs a key changes by SIGHUP", 401, create(60))
check("whether requests are logged changes by SIGHUP", within(5, lambda: "status=401" in log_since(0)), log_since(0)[-200:])
same("coved ends as it should", 0, s.end())

# ---- stored bytes ----
run_key, admin_key = os.environ["RUN_KEY"], os.environ["ADMIN_KEY"]


def cove(*args):
    return subprocess.run([os.environ["COVE"], "--state", STATE, *args], capture_output=True, text=True).stdout


s = Server().start()
MiB = 1 << 20
cove("tenant", "set", "team", "--stored-bytes", "8m")
check("the quota is listed", "8 MiB" in cove("tenant", "ls"), cove("tenant", "ls"))
box = s.ask("POST", "/v1/sandboxes", {"limits": {"disk": "64m"}}, run_key).json["id"]
put = "/v1/sandboxes/%s/files?path=/home/user/" % box
same("a tenant that stores less than it may can upload", 200, s.ask("PUT", put + "a", b"x" * (10 * MiB), run_key).status // 100 * 100)


def refused():
    return s.ask("PUT", put + "b", b"x", run_key).status == 429


check("a tenant that stores more than its quota cannot write, once that is measured", within(12, refused))
a = s.ask("PUT", put + "b", b"x", run_key)
same("a refusal for stored bytes names the quota", ("too_many", "quota", "stored-bytes"), tuple(a.error.get(k) for k in ("code", "layer", "rule")))
check("a refusal for stored bytes has figures, and when to come again", "8 MiB are allowed" in a.error["message"] and a.headers["Retry-After"] == "5", a.body)
a = s.ask("POST", "/v1/sandboxes", {}, run_key)
same("a tenant over its stored bytes cannot create", (429, "stored-bytes"), (a.status, a.error.get("rule")))
same("a tenant over its stored bytes cannot write with the tools", 429, s.ask("POST", "/file/write", {"path": "c", "content": "x", "sandbox_id": box}, run_key).status)
same("a tenant over its stored bytes cannot write archives", 429, s.ask("PUT", put.replace("/files?", "/files/tar?") + "d", b"\0" * 1024, run_key).status)
same("what it has can be read", 200, s.ask("GET", put + "a", None, run_key).status)
same("a tenant over its stored bytes can remove files", 200, s.ask("DELETE", put + "a", None, run_key).status)
check("a tenant that removed files has room again", within(12, lambda: not refused()))
cove("tenant", "set", "team", "--stored-bytes", "0")

# ---- one tenant's commands, and another's violations ----
for command in ["sudo true"] + ["sudo -u nobody%d true" % i for i in range(300)]:
    s.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": command}, run_key)
a = s.ask("GET", "/v1/policy/violations?limit=256", None, run_key)
same("a tenant has its last 256 violations", 256, len(a.json["violations"]))
same("all violations of a tenant are counted", True, a.json["stats"]["denied"] >= 301)
same("more than there are cannot be asked for", (400, "limit"),
     (lambda a: (a.status, a.error.get("field")))(s.ask("GET", "/v1/policy/violations?limit=257", None, run_key)))
same("a create's environment may have 120 KiB", 201,
     s.ask("POST", "/v1/sandboxes", {"env": {"E%d" % i: "x" * 1000 for i in range(120)}, "limits": {"memory": "32m"}}, run_key).status)
a = s.ask("POST", "/v1/sandboxes", {"env": {"E%d" % i: "x" * 1000 for i in range(140)}}, run_key)
same("an environment of a create over 128 KiB is refused", (413, "env: more than 131071 bytes"), (a.status, a.error.get("message")))
a = s.ask("POST", "/v1/sandboxes", {"env": {"E": "x" * 600000}}, run_key)
same("a body beyond what a create can need is refused as such", (413, "the body is larger than 512 KiB"), (a.status, a.error.get("message")))
s.end()
s = Server("--threads", "16").start()
local = s.ask("POST", "/bash", {"command": "true"})
s.ask("POST", "/bash", {"command": "sudo true"})
slow = [threading.Thread(target=s.ask, args=("POST", "/v1/sandboxes/%s/exec" % box, {"command": "until [ -e /tmp/enough ]; do sleep 0.05; done"}, run_key)) for _ in range(4)]
for t in slow:
    t.start()
running = "/v1/sandboxes/%s/processes" % box
check("a quarter of the threads may wait for a tenant's commands",
      within(10, lambda: sum(p["running"] for p in s.ask("GET", running, None, run_key).json["processes"]) == 4))
a = s.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "true"}, run_key)
same("one command more than the quota is refused", (429, "commands", "quota", "5"), (a.status, a.error.get("rule"), a.error.get("layer"), a.headers.get("Retry-After")))
same("a command of the tools more than the quota is refused", 429, s.ask("POST", "/bash", {"command": "true", "sandbox_id": box}, run_key).status)
same("the quota of commands does not concern other tenants", 200, s.ask("POST", "/bash", {"command": "true"}).status)
same("a background process is not refused by the quota of commands", 201, s.ask("POST", running, {"command": "true"}, run_key).status)
s.ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/enough" % box, b"x", run_key)
for t in slow:
    t.join()
same("when they ended there is room again", 200, s.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "true"}, run_key).status)
s.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "sudo true"}, run_key)
same("a tenant sees its own violations alone", [1, 1],
     [len(s.ask("GET", "/v1/policy/violations", None, k).json["violations"]) for k in (run_key, None)])
s.end()
s = Server().start()

# ---- configurations that were written for E2B ----
wish = {"sandbox_type": "e2b", "e2b_api_key": "your-api-key", "e2b_template": "base",
        "resource_limits": {"cpu_cores": 2, "memory_mb": 512, "disk_mb": 1024, "timeout_seconds": 60, "max_processes": 50},
        "network": {"enabled": False, "allowed_domains": []},
        "security": {"allowed_tools": [], "blocked_tools": [], "command_blacklist": [r"rm\s+-rf\s+/", "sudo"], "enable_audit_log": True, "allow_root": False},
        "session_timeout_minutes": 60, "auto_cleanup": True, "working_directory": "/workspace"}
a = s.ask("POST", "/sandbox", wish)
same("a configuration for E2B is taken as it is", (201, None), (a.status, (a.json or {}).get("error")))
same("the black list of a configuration for E2B counts", 403, s.ask("POST", "/bash", {"command": "sudo id", "sandbox_id": (a.json or {}).get("sandbox_id")}).status)
same("the key of a configuration for E2B is in no answer and no audit log", False, b"your-api-key" in a.body + s.ask("GET", "/audit-logs?limit=100").body)
s.ask("DELETE", "/v1/sandboxes/%s" % (a.json or {}).get("sandbox_id"))
same("an unknown e2b_template is refused", 404, s.ask("POST", "/sandbox", {"e2b_template": "nope"}).status)

# ---- the root profile and sudo; a whitelist ----
rooted = s.ask("POST", "/v1/sandboxes", {"root": True, "metadata": {"a": "b"}}).json
same("a sandbox with the root profile shows its own metadata alone", {"a": "b"}, rooted["metadata"])
for how, body in (("user: root", {"command": "whoami", "user": "root"}), ("sudo", {"command": "sudo whoami"}), ("sudo as args", {"args": ["sudo", "whoami"]})):
    a = s.ask("POST", "/v1/sandboxes/%s/exec" % rooted["id"], body)
    same("the root profile allows %s" % how, (200, "root\n"), (a.status, (a.json or {}).get("stdout")))
a = s.ask("POST", "/v1/sandboxes/%s/exec" % rooted["id"], {"command": "sudo rm -rf /"})
same("the root profile does not allow what is refused without sudo", 403, a.status)
strict = s.ask("POST", "/v1/sandboxes", {}).json["id"]
same("without the root profile sudo is refused", 403, s.ask("POST", "/v1/sandboxes/%s/exec" % strict, {"command": "sudo whoami"}).status)
for id in (rooted["id"], strict):
    s.ask("DELETE", "/v1/sandboxes/%s" % id)
listed = s.ask("POST", "/sandbox", {"security": {"command_whitelist": ["echo", "ls"]}}).json["sandbox_id"]
same("a whitelist lets its programs run", 200, s.ask("POST", "/bash", {"command": "echo hello | ls", "sandbox_id": listed}).status)
a = s.ask("POST", "/bash", {"command": "echo hello | env LANG=C grep -c hello", "sandbox_id": listed})
same("a whitelist's refusal names the program", (403, True),
     (a.status, (a.json or {})["error"]["message"].startswith("refused by policy: 'env' is not on the policy's command whitelist")))
a = s.ask("POST", "/bash", {"command": "echo hello; gr\u00e9p hello", "sandbox_id": listed})
same("a whitelist's refusal does not name a program that is not plain text", (403, True), (a.status, "refused by policy: is not on" in (a.json or {})["error"]["message"]))
s.ask("DELETE", "/v1/sandboxes/%s" % listed)

# ---- who may loosen a policy ----
for name, security, field in (("root", {"allow_root": True}, "allow_root"), ("network", {"network": True}, "network"),
                              ("a higher risk", {"max_risk": "critical"}, "max_risk"),
                              ("a rule less", {"waived_rules": ["destructive.rm-root"]}, "waived_rules")):
    a = s.ask("POST", "/sandbox", {"security": security}, run_key)
    same("a key of scope run cannot give its sandbox %s" % name, (403, "security." + field, "policy"),
         (a.status, a.error.get("field"), a.error.get("layer")))
a = s.ask("POST", "/sandbox", {"security": {"blocked_tools": ["Grep"], "max_risk": "low"}}, run_key)
same("a key of scope run can tighten the security of its sandbox", 200, a.status // 100 * 100)
tight = a.json["sandbox_id"]
same("security that was tightened counts", 403, s.ask("POST", "/execute", {"tool_name": "Grep", "arguments": {"pattern": "x"}, "sandbox_id": tight}, run_key).status)
a = s.ask("POST", "/sandbox", {"preset": "development"}, run_key)
same("a looser preset gives it its sizes, but not its rules", (2048, False), (a.json["config"]["resource_limits"]["memory_mb"], "security" in a.json["config"]))
a = s.ask("POST", "/sandbox", {"security": {"allow_root": True}}, admin_key)
same("a key of scope admin can loosen", 200, a.status // 100 * 100)
same("a sandbox with allow_root has a root", "0\n", s.ask("POST", "/v1/sandboxes/%s/exec" % a.json["sandbox_id"],
                                                       {"command": "id -u", "user": "root"}, admin_key).json["stdout"])
a = s.ask("POST", "/v1/sandboxes/%s/exec" % tight, {"command": "id -u", "user": "root"}, run_key)
same("without it there is none", (403, "root_not_allowed"), (a.status, a.error.get("code")))
same("loopback's own tenant is admin", 200, s.ask("POST", "/sandbox", {"security": {"network": True}}).status // 100 * 100)
a = s.ask("POST", "/sandbox", {"session_timeout_minutes": 3000})
same("a session longer than allowed is blamed by its own name", (400, "session_timeout_minutes"), (a.status, a.error.get("field")))
s.end()

# ---- sessions end ----
s = Server("--sandbox-timeout", "3s", "--sandbox-timeout-most", "3s").start()
a = s.ask("POST", "/bash", {"command": "true"})
same("a default sandbox continues where sessions have become shorter than its own", (200, local.json["sandbox_id"]), (a.status, a.json.get("sandbox_id")))
same("a default sandbox is ended by its owner", 200, s.ask("DELETE", "/sandbox").status)
for _ in range(10):  # on a busy machine a whole session may pass between two uses
    used = []
    for _ in range(5):
        used.append(s.ask("POST", "/bash", {"command": "true"}).json["sandbox_id"])
        time.sleep(0.8)
    first = used[-1]
    if len(set(used)) == 1:
        break
same("use keeps the default sandbox", [first] * 5, used)


def state_of(sandbox):
    a = s.ask("GET", "/v1/sandboxes/" + sandbox)
    return a.json["state"] if a.status == 200 else a.status


stays = s.ask("POST", "/sandbox", {"auto_cleanup": False}).json["sandbox_id"]
check("a session that is not used ends, and its sandbox with it", within(10, lambda: state_of(first) == 404), state_of(first))
check("without auto_cleanup a sandbox is paused then", within(10, lambda: state_of(stays) == "paused"), state_of(stays))
check("a new default sandbox is made when one is needed", s.ask("POST", "/bash", {"command": "true"}).json["sandbox_id"] != first)
s.ask("DELETE", "/v1/sandboxes/" + stays)
s.end()

# ---- retention of the audit log ----
old_state = tmp + "/old"
os.makedirs(old_state)
DIRECT = os.path.join(os.path.dirname(os.environ["COVE"]), "direct/cove")  # opens the store itself: no server has it
subprocess.run([DIRECT, "--state", old_state, "tenant", "ls"], check=True, capture_output=True)
db = sqlite3.connect(old_state + "/server/cove.db")
head, day = bytes(32), 86400000
for seq, age in ((1, 10), (2, 9), (3, 8), (4, 1)):
    texts = ["local", "local", "", "exec.run", "ok", "", "", "", "", "", ""]  # as in the chain
    at = int(time.time() * 1000) - age * day
    data = head + b"".join(struct.pack(">q", n) for n in (seq, at, -1, -(1 << 63)))
    data += b"".join(struct.pack(">q", len(t)) + t.encode() for t in texts)
    head = hashlib.sha256(data).digest()
    db.execute("INSERT INTO audit VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", [seq, at, *texts, -1, -(1 << 63), head])
db.execute("UPDATE chain SET head_seq = 4, head_hash = ?", [head])
db.commit()
db.close()


def audit(*args):
    return subprocess.run([DIRECT, "--state", old_state, "audit", *args], capture_output=True, text=True).stdout


check("a log with old records is whole", audit("verify").startswith("whole records=4 first=1"), audit("verify"))


def serve(sentence, wanted, *settings):
    at = log_size()
    s = Server(*settings, state=old_state).start()
    check(sentence, within(30, lambda: wanted in log_since(at)), log_since(at))
    s.end()


serve("records older than audit_days are forgotten", "audit log pruned records=3 days=5", "--audit-days", "5")
check("the chain continues from there", audit("verify").startswith("whole records=2 first=4 "), audit("verify"))
check("the audit log says that it was cut", "audit.prune" in audit("ls"), audit("ls"))
same("cove audit prune cuts the chain", "1 records\n", audit("prune", "--older-than", "12h"))
check("cove audit prune leaves the chain whole", audit("verify").startswith("whole records=2 first=5 "), audit("verify"))


# ---- bounded by default: by days, and by size ----
def grow(ages):
    """Records of these ages in days, put behind those that are there."""
    db = sqlite3.connect(old_state + "/server/cove.db")
    seq, head = db.execute("SELECT head_seq, head_hash FROM chain").fetchone()
    rows = []
    for age in ages:
        seq += 1
        texts = ["local", "local", "", "exec.run", "ok", "", "", "", "x" * 300, "", ""]
        when = int(time.time() * 1000) - age * day
        data = head + b"".join(struct.pack(">q", n) for n in (seq, when, -1, -(1 << 63)))
        head = hashlib.sha256(data + b"".join(struct.pack(">q", len(t)) + t.encode() for t in texts)).digest()
        rows.append([seq, when, *texts, -1, -(1 << 63), head])
    db.executemany("INSERT INTO audit VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)
    db.execute("UPDATE chain SET head_seq = ?, head_hash = ?", [seq, head])
    db.commit()
    db.close()


old_state = tmp + "/year"
os.makedirs(old_state)
DIRECT = os.path.join(os.path.dirname(os.environ["COVE"]), "direct/cove")  # opens the store itself: no server has it
subprocess.run([DIRECT, "--state", old_state, "tenant", "ls"], check=True, capture_output=True)
grow([400] * 25000 + [300] * 5)
serve("records of more than a year are forgotten without a setting", "audit log pruned records=250")
check("records are forgotten in pieces, and the chain is whole", re.match(r"whole records=[5-9] ", audit("verify")), audit("verify"))
grow([1] * 30000)
size = lambda: (lambda db: [db.execute("SELECT (p.page_count - f.freelist_count) * s.page_size FROM pragma_page_count p, "
                                       "pragma_freelist_count f, pragma_page_size s").fetchone()[0], db.close()][0])(sqlite3.connect(old_state + "/server/cove.db"))
before = size()
serve("the oldest are forgotten when the store is too large", "bytes=4194304", "--audit-bytes", "4M")
check("the oldest records are forgotten until the store is small enough", before > 8 << 20 and size() <= 4 << 20, (before, size()))
found = re.match(r"whole records=(\d+) first=(\d+) ", audit("verify"))
check("the newest stay, and the chain is whole", found and int(found.group(1)) > 2000, audit("verify"))
serve("audit_bytes = 0 keeps all", "ready listen=", "--audit-bytes", "0", "--audit-days", "0")
finish()
