"""Shares of the gateway: each limit is exceeded by one tenant, while another does not notice."""
import os
import re
import resource
import signal

from harness import ask, check, must, run, same, server, within

GREEDY, MODEST, INTERNET = os.environ["GREEDY"], os.environ["MODEST"], os.environ["INTERNET"]
SETTINGS = ("--network-dns", "93.184.216.53", "--policy", "minimal", "--network-connects", "1000", "--network-ca", INTERNET + "/ca.pem")
DESCRIPTORS = 1200
ALL = DESCRIPTORS // 4  # connections of all sandboxes: half of the descriptors, and each takes two


def make(key, network=None):
    a = ask("POST", "/v1/sandboxes", {"timeout": 600, "network": network or {"mode": "public"}}, key=key)
    must("a sandbox is made", a.status == 201, a.body)
    return key, a.json["id"]


def put(box, path, text):
    ask("PUT", "/v1/sandboxes/%s/files?path=%s" % (box[1], path), text, key=box[0])


def say(box, command):
    a = ask("POST", "/v1/sandboxes/%s/exec" % box[1], {"command": command + " 2>&1", "timeout": 60}, key=box[0])
    return (a.json or {}).get("stdout", "%s" % a.body).strip()


def start(box, script, *words):
    """Runs on while the test does."""
    put(box, "/tmp/run.py", script)
    ask("POST", "/v1/sandboxes/%s/processes" % box[1], {"command": " ".join(("python3 /tmp/run.py", *words, ">/tmp/out 2>&1"))}, key=box[0])


def reasons(box):
    events = ask("GET", "/v1/sandboxes/%s/network/events" % box[1], key=box[0]).json["events"]
    return {e.get("reason") for e in events if e["rule"] == "limit"}


def metric(name, **labels):
    text = ask("GET", "/metrics").body.decode()
    found = re.search(r"^%s\{%s\} (\d+)$" % (name, ",".join('%s="%s"' % l for l in labels.items())), text, re.M)
    return int(found.group(1)) if found else -1


def limited(share):
    return sum(metric("cove_network_limited_total", share=share, of=of) for of in ("sandbox", "tenant", "server"))


def again(*settings):
    server.p.send_signal(signal.SIGTERM)
    server.p.wait(40)
    server.start(*SETTINGS, *settings)


# ---- connections ----
HOLD = """import socket, sys, time
held = []
for i in range(int(sys.argv[1])):
    try:
        s = socket.create_connection(('93.184.216.34', 25), 5); s.settimeout(5)
        if s.recv(10): held.append(s)
    except OSError: pass
print('held', len(held), flush=True)
time.sleep(600)
"""


def held(box):
    return within(60, lambda: re.search(r"held (\d+)", say(box, "cat /tmp/out")))


def connections():
    boxes = [make(GREEDY) for _ in range(3)]
    for box in boxes:
        start(box, HOLD, "250")
    counts = [int(held(box).group(1)) for box in boxes]
    check("a tenant alone has at most half of all connections", 50 <= sum(counts) <= ALL // 2, counts)
    check("each of its sandboxes has some", min(counts) >= 5, counts)
    other = make(MODEST)
    start(other, HOLD, "20")
    same("a tenant keeps its connections while another tenant uses its whole share", "20", held(other).group(1))
    said = set().union(*map(reasons, boxes))
    check("an event says that it was the tenant's share", any("the tenant's share is used up: its sandboxes have" in r and "connections at once" in r for r in said), said)
    check("connections that a share refused are counted", metric("cove_network_limited_total", share="connections", of="tenant") > 0)
    same("the metrics have the number of all connections", ALL, metric("cove_network_share_most", share="connections"))
    check("the metrics have the connections of the greediest tenant", metric("cove_network_share_tenant", share="connections") == sum(counts),
          (metric("cove_network_share_tenant", share="connections"), counts))
    for key, box in boxes:
        ask("DELETE", "/v1/sandboxes/" + box, key=key)
    back = lambda: metric("cove_network_share_used", share="connections") <= 20
    check("what a sandbox had is free when it ends", within(30, back), metric("cove_network_share_used", share="connections"))
    ask("DELETE", "/v1/sandboxes/" + other[1], key=MODEST)


def of_a_sandbox():
    again("--network-connections", "25")
    small = make(MODEST, {"mode": "public"})
    start(small, HOLD, "30")
    check("a sandbox has a limit of its own", int(held(small).group(1)) == 25, held(small).group(1))
    check("an event says that it was the limit of the sandbox", within(30, lambda: "this sandbox has 25 connections at once, and may not have more" in reasons(small)), reasons(small))
    ask("DELETE", "/v1/sandboxes/" + small[1], key=MODEST)


# ---- look-ups ----
ASK = """import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.05)
last, failed = time.time() + 600, 0
i = 0
while time.time() < last:
    for _ in range(10):
        name = 'n%d' % i; i += 1
        q = struct.pack('>H', i & 0xffff) + b'\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0' + bytes([len(name)]) + name.encode() + b'\\x05never\\x04test\\0\\0\\x01\\0\\x01'
        s.sendto(q, ('8.8.8.8', 53))
    try:
        while True: failed += s.recv(600)[3] & 15 == 2
    except OSError: pass
    print('failed', failed, flush=True)
    time.sleep(0.2)
"""


def lookups():
    again("--network-all-lookups", "24")
    boxes = [make(GREEDY) for _ in range(2)]
    for box in boxes:
        start(box, ASK)
    full = lambda: limited("lookups") > 20
    check("a tenant asks for more names than its share", within(30, full), limited("lookups"))
    check("a tenant has at most half of all look-ups", metric("cove_network_share_tenant", share="lookups") <= 12, metric("cove_network_share_tenant", share="lookups"))
    other = make(MODEST)
    good = [say(other, "curl -sS -m 5 http://%s/" % name) for name in ("www.example.com", "api.example.com", "git.example.com", "short.example.com") * 3]
    check("names of a modest tenant are all answered", all(g.startswith("93.184.216.34 host=") for g in good), good)
    failed = lambda: any(int(n) > 0 for n in re.findall(r"failed (\d+)", say(boxes[0], "tail -n 1 /tmp/out")))
    check("what is too many is a failure of the server, not a silence", within(30, failed), say(boxes[0], "tail -n 1 /tmp/out"))
    check("an event says why", within(30, lambda: any("look-ups of names at once" in r for r in reasons(boxes[0]) | reasons(boxes[1]))), reasons(boxes[0]))
    for key, box in boxes + [other]:
        ask("DELETE", "/v1/sandboxes/" + box, key=key)


# ---- handshakes ----
SHAKE = """import socket, ssl, sys, threading, time
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
def shake():
    try:
        with socket.create_connection(('vault.example.com', 443), 5) as s:
            with context.wrap_socket(s, server_hostname='vault.example.com') as t:
                t.sendall(b'GET / HTTP/1.1\\r\\nHost: vault.example.com\\r\\nConnection: close\\r\\n\\r\\n')
                return t.recv(20).startswith(b'HTTP/1.1 200')
    except OSError:
        return False
if sys.argv[1] == 'flood':
    def flood():
        while True: shake()
    for _ in range(8): threading.Thread(target=flood, daemon=True).start()
    time.sleep(600)
good = 0
for _ in range(int(sys.argv[1])):
    good += shake(); time.sleep(0.3)
print('good', good)
"""


def handshakes():
    again("--network-all-handshakes", "16")
    for key in GREEDY, MODEST:
        same("a secret is set", 204, ask("PUT", "/v1/secrets/TOKEN", {"value": "do-not-show", "hosts": ["vault.example.com"]}, key=key).status)
    boxes = [make(key, {"mode": "public", "secrets": ["TOKEN"]}) for key in (GREEDY, GREEDY, MODEST)]
    for box in boxes[:2]:
        start(box, SHAKE, "flood")
    full = lambda: limited("handshakes") > 20
    check("a tenant begins more handshakes than its share", within(30, full), limited("handshakes"))
    check("a tenant has at most half of all handshakes in a second", metric("cove_network_share_tenant", share="handshakes") <= 8, metric("cove_network_share_tenant", share="handshakes"))
    put(boxes[2], "/tmp/run.py", SHAKE)
    same("handshakes of a modest tenant are all made", "good 10", say(boxes[2], "python3 /tmp/run.py 10"))
    check("an event says why", within(30, lambda: any("TLS handshakes in a second" in r for r in reasons(boxes[0]) | reasons(boxes[1]))), reasons(boxes[0]))


resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
run(connections, of_a_sandbox, lookups, handshakes, settings=SETTINGS)
