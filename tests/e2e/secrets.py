"""Secrets that are used but never seen: a sandbox has placeholders, the gateway puts the values into requests to their
hosts, in plain HTTP and in TLS that it opens for that; nothing inside, no answer and no file ever shows one."""
import base64, json, os, re, stat, subprocess

from harness import COVED, LOG, STATE, ask, check, refused, run, same, server, within

INTERNET = os.environ["INTERNET"]
ONE, OTHER = ("%s-Value-%d-do-not-show" % (w, os.getpid()) for w in ("0ne", "0ther"))
NEXT, CLI = ("%s-Value-%d-do-not-show" % (w, os.getpid()) for w in ("n3xt", "c11"))
VAULT = ["vault.example.com", "http://clear.example.com", "*.wild.example.com", "hub.example.com", "unproven.example.com"]
answers = []


def call(method, path, body=None):
    a = ask(method, path, body)
    answers.append(a.body)
    return a


def set_secret(name, value, hosts):
    return call("PUT", "/v1/secrets/" + name, {"value": value, "hosts": hosts}).status


def make(network, **more):
    a = call("POST", "/v1/sandboxes", {"timeout": 600, "network": network, **more})
    return a.json["id"] if a.status == 201 else "failed: %s" % a.body


def inside(box, script):
    """What a shell script prints, in the sandbox; from a file, since the policy reads command lines."""
    ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/step.sh" % box, script)
    a = call("POST", "/v1/sandboxes/%s/exec" % box, {"command": "sh /tmp/step.sh 2>&1", "timeout": 60})
    return (a.json or {}).get("stdout", "%s" % a.body)


def put(box, path, local):
    ask("PUT", "/v1/sandboxes/%s/files?path=%s" % (box, path), open(local, "rb").read())


def seen(path, header):
    """What the last request for that path had as a header."""
    found = [e for e in map(json.loads, open(INTERNET + "/seen")) if e["path"] == path]
    return ",".join(v for n, v in found[-1]["headers"] if n.lower() == header) if found else "never came"


def cove(*words, stdin=""):
    return subprocess.run([os.path.dirname(COVED) + "/cove", *words], env=dict(os.environ, COVE_STATE=STATE), input=stdin,
                          capture_output=True, text=True)


# ---- secrets of a tenant ----
def tenant():
    same("a secret is set", 204, set_secret("TOKEN", ONE, VAULT))
    same("a second secret is set", 204, set_secret("OTHER", OTHER, ["www.example.com:443"]))
    same("a secret of the largest size is set", 204, set_secret("BIG", "x" * 8192, ["vault.example.com"]))
    listed = call("GET", "/v1/secrets").json["secrets"]
    same("secrets are listed by name", ["BIG", "OTHER", "TOKEN"], [s["name"] for s in listed])
    same("a listed secret has its hosts", VAULT, listed[2]["hosts"])
    same("a listed secret has name, hosts and times, and no more", {"name", "hosts", "created", "updated"}, set(listed[2]))
    same("the API has no route to read a secret", 405, call("GET", "/v1/secrets/TOKEN").status)
    for bad in "a-b", "1A", "A" * 64:
        same("a name must be one of a variable, not %.8s" % bad, 400, set_secret(bad, "x", ["a.example.com"]))
    for what, value in ("a line break", "a\r\nHost: b"), ("a NUL", "a\0b"), ("nothing", ""), ("blanks", " a "), ("a number", 1):
        same("a value must fit into a header: %s does not" % what, 400, set_secret("BAD", value, ["a.example.com"]))
    for what, hosts in (("none", []), ("everything", ["*"]), ("a top domain", ["*.com"]), ("an address", ["10.0.0.1"]),
                        ("a range", ["0.0.0.0/0"]), ("a number", [1]), ("17", ["a.b"] * 17), ("a path", ["a.b/c"]),
                        ("a port that is none", ["a.b:0"]), ("another scheme", ["ftp://a.b"])):
        same("hosts must be names: not %s" % what, 400, set_secret("BAD", "x", hosts))
    same("a value has a largest size", 413, set_secret("BAD", "x" * 8193, ["a.example.com"]))
    for i in range(97):
        set_secret("MANY_%d" % i, "x", ["a.example.com"])
    same("a tenant has a largest number", 429, set_secret("ONE_MORE", "x", ["a.example.com"]))
    same("a secret can be changed when a tenant has the largest number", 204, set_secret("MANY_0", "y", ["a.example.com"]))
    refused("an unknown secret is refused by its place", call("POST", "/v1/sandboxes", {"network": {"secrets": ["TOKEN", "NOPE"]}}),
            400, "invalid", "network.secrets[1]")
    refused("a sandbox has so many at most", call("POST", "/v1/sandboxes", {"network": {"secrets": ["MANY_%d" % i for i in range(33)]}}),
            400, "invalid", "network.secrets")
    for i in range(97):
        call("DELETE", "/v1/secrets/MANY_%d" % i)
    same("a secret that was removed is gone", 404, call("DELETE", "/v1/secrets/MANY_1").status)


# ---- used ----
FETCH = """
cat >/tmp/fetch.py <<'PY'
import os, urllib.request
print(urllib.request.urlopen(urllib.request.Request('https://vault.example.com/seen/py', headers={'X-Key': os.environ['TOKEN']})).read().decode().strip())
PY
cat >/tmp/fetch.mjs <<'JS'
console.log((await (await fetch('https://vault.example.com/seen/js', {headers: {'x-key': process.env.TOKEN}})).text()).trim())
JS
cat >/tmp/late.py <<'PY'
import os, socket, ssl, time
s = socket.create_connection(('vault.example.com', 443), 5)
time.sleep(1)
s = ssl.create_default_context().wrap_socket(s, server_hostname='vault.example.com')
s.sendall(f'GET /seen/late HTTP/1.1\\r\\nHost: vault.example.com\\r\\nX-Key: {os.environ["TOKEN"]}\\r\\nConnection: close\\r\\n\\r\\n'.encode())
s.recv(65536)
PY
python3 /tmp/late.py &
curl="curl -sS -m 20"
$curl -H "Authorization: Bearer $TOKEN" https://vault.example.com/seen/curl
$curl -H "X-Key: $TOKEN" https://a.wild.example.com/seen/wild
$curl -u "me:$TOKEN" https://vault.example.com/seen/basic
$curl -H "X-Key: $TOKEN" https://vault.example.com/seen/k1 https://vault.example.com/seen/k2 https://vault.example.com/seen/k3
$curl -H "X-Key: $OTHER" https://www.example.com/seen/other
$curl -H "X-Key: $TOKEN" http://clear.example.com/seen/clear
python3 /tmp/fetch.py
node /tmp/fetch.mjs
wait
"""
BULK = """
curl -s https://vault.example.com/big/10000000 | wc -c
head -c 10000000 /dev/zero | curl -s -H "X-Key: $TOKEN" --data-binary @- https://vault.example.com/
for host in api vault; do
    echo | openssl s_client -connect $host.example.com:443 -servername $host.example.com 2>/dev/null | openssl x509 -noout -issuer | sed 's/.*CN *= *//'
done
cd /tmp
GIT_TERMINAL_PROMPT=0 git clone -q https://hub.example.com/demo.git no 2>&1 | grep -Ec 'terminal prompts disabled|could not read'
git clone -q https://bot:$TOKEN@hub.example.com/demo.git yes && cat yes/greeting
"""
boxes = {}


def used():
    boxes["one"] = box = make({"mode": "public", "secrets": ["TOKEN", "OTHER", "BIG"]})
    same("a sandbox tells which secrets it has", ["TOKEN", "OTHER", "BIG"], call("GET", "/v1/sandboxes/%s/network" % box).json.get("secrets"))
    mark = inside(box, "printf %s $TOKEN")
    check("inside is a placeholder", re.fullmatch("cove-secret-[0-9a-f]{32}", mark), mark)
    twin = make({"mode": "public", "secrets": ["TOKEN"]}, env={"CURL_CA_BUNDLE": "/mine"})
    check("a placeholder is different in every sandbox", mark != inside(twin, "printf %s $TOKEN"))
    same("a variable that was asked for stays", "/mine", inside(twin, "printf %s $CURL_CA_BUNDLE"))
    call("DELETE", "/v1/sandboxes/" + twin)
    same("curl, Python and Node get their answers", ["seen"] * 10, inside(box, FETCH).split())
    basic = "Basic " + base64.b64encode(("me:" + ONE).encode()).decode()
    for what, path, header, want in (
            ("with curl", "curl", "authorization", "Bearer " + ONE), ("at a name below", "wild", "x-key", ONE),
            ("in Basic credentials", "basic", "authorization", basic), ("in the first of a connection", "k1", "x-key", ONE),
            ("in the third of a connection", "k3", "x-key", ONE), ("of another secret", "other", "x-key", OTHER),
            ("in plain HTTP where that is meant", "clear", "x-key", ONE), ("with Python", "py", "x-key", ONE),
            ("with Node", "js", "x-key", ONE), ("of who says nothing at first", "late", "x-key", ONE)):
        same("the value arrives: " + what, want, seen("/seen/" + path, header))
    open(INTERNET + "/www/hub.example.com/.authorization", "w").write("Basic " + base64.b64encode(("bot:" + ONE).encode()).decode())
    got = inside(box, BULK).split("\n")
    same("10 MB come whole through TLS that is opened", "10000000", got[0])
    same("10 MB go whole through TLS that is opened", "got 10000000", got[1])
    same("hosts without secrets are not opened", "test CA", got[2])
    same("hosts with secrets are opened", "authority of one sandbox", got[3])
    same("a repository wants credentials", "1", got[4])
    same("git clones with a placeholder for its credentials", "hello from git", got[5])


# ---- limits of TLS that is opened: 64 at once, 50 handshakes in a second ----
CROWD = """
import os, socket, ssl, time
at = socket.gethostbyname('vault.example.com')
def hello():
    data = ssl.MemoryBIO()
    try: ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), data, server_hostname='vault.example.com').do_handshake()
    except ssl.SSLWantReadError: return data.read()
def say(name, value):
    open('/tmp/crowd.new', 'w').write(str(value))
    os.rename('/tmp/crowd.new', '/tmp/crowd.' + name)
def burst(words, cut=0):
    crowd = [socket.create_connection((at, 443), 20) for i in range(62)]
    for s in crowd: s.send(words)
    for s in crowd:
        try: cut += not s.recv(1)
        except ConnectionResetError: cut += 1
        s.close()
    return cut
tries = 0
while not (cut := burst(hello())) and tries < 20: # a slow machine may take a second for one
    tries += 1
    time.sleep(1.2)
say('burst', cut)
time.sleep(1.2)
held, cut, trust = [], 0, ssl.create_default_context()
for i in range(70):
    time.sleep(0.03) # never 50 in a second
    try: held.append(trust.wrap_socket(socket.create_connection((at, 443), 20), server_hostname='vault.example.com'))
    except OSError: cut += 1
say('held', '%d %d' % (len(held), cut))
while not os.path.exists('/tmp/crowd.end'): time.sleep(0.05)
held.pop().close()
end, again = time.time() + 30, False
while not again and time.time() < end:
    try: again = bool(trust.wrap_socket(socket.create_connection((at, 443), 20), server_hostname='vault.example.com'))
    except OSError: time.sleep(0.1)
say('again', again)
"""


def limits():
    box, reason = make({"mode": "public", "secrets": ["TOKEN"]}), "too many connections to hosts of secrets at once"
    ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/crowd.py" % box, CROWD)
    ask("POST", "/v1/sandboxes/%s/processes" % box, {"command": "python3 /tmp/crowd.py 2>/tmp/crowd.log"})

    def told(what):
        within(90, lambda: inside(box, "cat /tmp/crowd.%s 2>/dev/null" % what))
        return inside(box, "cat /tmp/crowd.%s || cat /tmp/crowd.log" % what)

    def events():
        return [e for e in ask("GET", "/v1/sandboxes/%s/network/events" % box).json["events"] if e["rule"] == reason]
    cut = told("burst")
    check("more than 50 handshakes in a second are cut, and not those before", cut.isdigit() and 0 < int(cut) <= 12, cut)
    check("a cut handshake has an event", within(10, events) and all((e["event"], e["host"], e["port"]) == ("refused", "vault.example.com", 443) for e in events()))
    same("64 connections at once are opened, and no more", "64 6", told("held"))
    check("a handshake beyond 64 at once has its event", within(10, lambda: sum(e.get("count", 1) for e in events()) > 1), events())
    same("a neighbour does not feel the limit of handshakes", "seen\n", inside(boxes["one"], 'curl -sS -m 30 -H "X-Key: $TOKEN" https://vault.example.com/seen/neighbour'))
    same("the limit of handshakes does not concern other hosts from the same sandbox", "93.184.216.34", inside(box, "curl -sS -m 30 http://www.example.com/").split(" ")[0])
    inside(box, "touch /tmp/crowd.end")
    same("when one has ended, there is room for one", "True", told("again"))
    call("DELETE", "/v1/sandboxes/" + box)


# ---- refused ----
def refusals():
    box = boxes["one"]
    got = inside(box, """curl="curl -sS -m 20"
$curl -H "X-Key: $TOKEN" https://unproven.example.com/seen/unproven
$curl -H "X-Key: $TOKEN" http://vault.example.com/seen/down
$curl -H "X-Key: $TOKEN" http://other.example.net/seen/elsewhere""").split("\n")
    check("a host that cannot prove its name gets nothing", re.search("unproven.example.com port 443 was not sent: certificate: .*mismatch", got[0]), got)
    check("a host in the clear gets nothing where HTTPS is meant", "the secret TOKEN may not be sent to this host in the clear" in got[1], got)
    check("a host that the secret does not name gets nothing", "other.example.net port 80 was not sent: the secret TOKEN may not be sent" in got[2], got)
    same("hosts that may not have the secret had no request", ["never came"] * 3, [seen("/seen/" + p, "x-key") for p in ("unproven", "down", "elsewhere")])

    def event():
        return any(e["rule"] == "secret" and e.get("host") == "other.example.net" and e["event"] == "refused"
                   for e in call("GET", "/v1/sandboxes/%s/network/events" % box).json["events"])
    check("an event says that a secret may not be sent", within(5, event))
    check("the audit log says that a secret may not be sent", within(5, lambda: b"other.example.net 93.184.216.35 port 80: secret" in call("GET", "/audit-logs?limit=100").body))

    put(box, "/tmp/tricks.py", "tests/e2e/secrets_tricks.py")
    before = os.path.getsize(INTERNET + "/seen")
    ended = dict(l.split() for l in inside(box, "python3 /tmp/tricks.py").splitlines())
    maybe = {"two_hosts", "folded", "absolute", "garbage_tls", "flood_tls", "pipelined_elsewhere", "pipelined_elsewhere_tls"}
    harmless = {"split_lines", "split_value"}
    check("the list of tricks is long", len(ended) > 30, ended)
    for trick, end in ended.items():
        if trick not in harmless:
            check("a trick that does not work: " + trick, end == "403" or (trick in maybe and end in ("cut", "200")), end)
    with open(INTERNET + "/seen") as f:
        f.seek(before)
        came = f.read()
    check("no trick reached a server", '"path": "/seen/t' not in came, came)
    check("a placeholder that was cut in two is not replaced", "/seen/split" in came and "/seen/spread" in came and
          not any(ONE in l for l in came.splitlines() if "/seen/sp" in l), came)


# ---- headers of E2B's rules ----
def rules():
    def of(headers, host="vault.example.com"):
        return {"rules": {host: [{"transform": {"headers": headers}}]}}

    def create(network):
        return call("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600, "network": network})
    box = create(of({"Authorization": "Bearer ${e2b.secrets.TOKEN}", "X-Team": "blue"})).json["sandboxID"]
    same("a sandbox of E2B's dialect gets headers put in", "seen\n", inside(box, "curl -sS -m 20 -H 'X-Team: red' https://vault.example.com/seen/e2b"))
    same("headers of E2B's dialect have secrets in them, in the place of the sandbox's own", ("Bearer " + ONE, "blue"), (seen("/seen/e2b", "authorization"), seen("/seen/e2b", "x-team")))
    same("rules are shown, without values", of({"Authorization": "Bearer ${e2b.secrets.TOKEN}", "X-Team": "***"})["rules"],
         call("GET", "/sandboxes/" + box).json["network"].get("rules"))
    same("rules of E2B's dialect can be changed", 204, call("PUT", "/sandboxes/%s/network" % box, of({"X-Team": "green"})).status)
    inside(box, "curl -sS -m 20 https://vault.example.com/seen/e2b2")
    same("changed rules of E2B's dialect count at once", ("green", ""), (seen("/seen/e2b2", "x-team"), seen("/seen/e2b2", "authorization")))
    for what, network in (("a Host", of({"Host": "a"})), ("a length", of({"content-length": "3"})), ("a line break", of({"X": "a\r\nb"})),
                          ("an unknown secret", of({"X": "${e2b.secrets.NOPE}"})), ("identity tokens", of({"X": "${e2b.identity.tokens.a}"})),
                          ("an address", of({"X": "y"}, "10.0.0.1")), ("two rules", {"rules": {"a.example.com": [{}, {}]}}),
                          ("something else", {"rules": {"a.example.com": [{"transform": {"body": "x"}}]}}),
                          ("11 hosts", {"rules": {"h%d.example.com" % i: [{"transform": {"headers": {"X": "y"}}}] for i in range(11)}}),
                          ("21 headers", of({"X-%d" % i: "y" for i in range(21)})), ("a long name", of({"X" * 65: "y"})),
                          ("a long value", of({"X": "y" * 2049}))):
        same("rules that cannot be: " + what, 400, create(network).status)
    call("DELETE", "/sandboxes/" + box)


# ---- changes and restarts ----
def changes():
    box = boxes["one"]

    def arrives(path, value):
        inside(box, 'curl -sS -m 20 -H "X-Key: $TOKEN" https://vault.example.com/seen/' + path)
        return seen("/seen/" + path, "x-key") == value
    same("a value can be changed", 204, set_secret("TOKEN", NEXT, ["vault.example.com"]))
    check("a changed value counts for sandboxes that run", arrives("next", NEXT), seen("/seen/next", "x-key"))
    server.kill()
    server.start(*SETTINGS)
    check("the next server takes secrets, placeholders and authority up again", within(10, lambda: arrives("again", NEXT)))
    same("the command line sets one", 0, cove("secret", "set", "TOKEN", "vault.example.com", stdin=CLI + "\n").returncode)
    check("the server takes up a value of the command line", within(15, lambda: arrives("cli", CLI)))
    listed = cove("secret", "ls").stdout
    check("cove secret ls lists secrets without values", re.search("TOKEN .*vault.example.com", listed) and CLI not in listed, listed)
    for what, value, host in ("an empty value", "", "a.example.com"), ("a large one", "x" * 9000, "a.example.com"), ("a bad host", "x", "*"):
        check("cove secret set refuses " + what, cove("secret", "set", "BAD", host, stdin=value).returncode != 0)
    check("cove secret set knows the tenants", "there is no tenant" in cove("secret", "set", "--tenant", "nobody", "A", "a.example.com", stdin="x").stderr)
    same("cove secret rm removes one", 0, cove("secret", "rm", "TOKEN").returncode)
    check("the placeholder of a removed secret is refused everywhere", within(15, lambda: "the secret TOKEN may not be sent" in inside(
        box, 'curl -sS -m 20 -H "X-Key: $TOKEN" http://clear.example.com/seen/gone')))


# ---- nobody sees one ----
def hidden():
    values = [v.encode() for v in (ONE, OTHER, NEXT, CLI)]
    values += [base64.b64encode(b"me:" + v)[4:24] for v in values]

    def clean(what, data):
        check("no value is in " + what, len(data) > 0 and not any(v in data for v in values), "one is in it, or nothing is")
    files = inside(boxes["one"], "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; cat /tmp/.cove/*")
    check("the certificate of the authority is inside", "BEGIN CERTIFICATE" in files, files[:200])
    check("the key of the authority is not inside", "PRIVATE KEY" not in files)
    clean("processes and files inside", files.encode())
    audit = ask("GET", "/audit-logs?limit=1000").body
    check("the audit log has who set one", b'"secret.set"' in audit)
    clean("the audit log", audit)
    clean("any answer", b"".join(answers))
    clean("the server's log", open(LOG, "rb").read())
    server.kill()
    store = b"".join(open(STATE + "/server/" + f, "rb").read() for f in os.listdir(STATE + "/server") if f.startswith("cove.db"))
    clean("the store", store)
    check("the key of an authority is not in the store", b"PRIVATE KEY" not in store)
    key = STATE + "/server/secrets.key"
    same("the key of the seals is for its owner alone", 0o600, stat.S_IMODE(os.stat(key).st_mode))
    os.rename(key, key + ".old")
    server.start(*SETTINGS)
    a = call("POST", "/v1/sandboxes", {"network": {"secrets": ["OTHER"]}})
    check("without that key nothing opens", a.status == 503 and b"cannot be opened" in a.body, a.body)


SETTINGS = ("--network-dns", "93.184.216.53", "--network-ca", INTERNET + "/ca.pem", "--verbose", "yes")
run(tenant, used, limits, refusals, rules, changes, hidden, settings=SETTINGS)
