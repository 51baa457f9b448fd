"""Private ports: tokens, cookies, links, and what the server inside sees of them. Run by preview_test."""
import contextlib
import json
import os
import re
import subprocess
import time

from harness import COVED, ask, check, refused, run, same, server, within

KEY, SPARE, READ = os.environ["OWNER_KEY"], json.loads(os.environ["SPARE_KEY"]), os.environ["READ_KEY"]
WS = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
PAGE = {"Accept": "text/html,*/*", "Sec-Fetch-Mode": "navigate"}


def cove(*args):
    p = subprocess.run([os.path.join(os.path.dirname(COVED), "cove"), *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return p.returncode, p.stdout.decode()


class Box:
    """Of a tenant with keys: loopback alone may nothing."""

    def __init__(self, key=KEY, serve=True, **more):
        self.key = key
        made = ask("POST", "/v1/sandboxes", {"timeout": 600, **more}, key=key)
        self.id = made.json["id"]
        self.at = "/v1/sandboxes/" + self.id
        if serve:
            with open("tests/e2e/relay_server.py", "rb") as f:
                ask("PUT", self.at + "/files?path=server.py", f.read(), key=key)
            ask("POST", self.at + "/processes", {"command": "exec python3 server.py"}, key=key)
            within(40, lambda: self.get("/ready", X_API_Key=KEY).status == 200)

    def host(self, port=3000):
        return "%d-%s.localhost:%d" % (port, self.id, server.port)

    def get(self, path="/", method="GET", body=None, port=3000, **headers):
        return ask(method, path, body, headers={"Host": self.host(port), **{k.replace("_", "-"): v for k, v in headers.items()}})

    def link(self, port=3000, **body):
        return ask("POST", "%s/ports/%d/link" % (self.at, port), body, key=self.key)

    def token(self, port=3000, **body):
        return self.link(port, **body).json["token"]

    def raw(self, path, more=""):
        return ("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (path, self.host(), more)).encode()


box = None


def connect():
    return server.connect(20)


def first(data):
    """The first line of the answer; the connection stays."""
    s = connect()
    s.sendall(data)
    out = b""
    while b"\r\n\r\n" not in out and (got := s.recv(65536)):
        out += got
    return s, out.split(b"\r\n")[0].decode()


def cookie_of(a):
    return a.headers["Set-Cookie"].split(";")[0]


def links():
    global box
    box = Box()
    a = box.link(expires_seconds=600)
    check("a link is made", a.status == 200 and a.json["port"] == 3000 and a.json["expires_at"].endswith("Z") and
          a.json["url"] == "http://3000-%s.localhost:%d/?cove_token=%s" % (box.id, server.port, a.json["token"]), a.body)
    token = a.json["token"]
    same("a port without a token is private", 403, box.get().status)
    a = box.get("/x/y?a=1&cove_token=%s&b=%%20" % token)
    same("a link sends the browser to the same address without the token", (303, "/x/y?a=1&b=%20", "no-referrer", "no-store"),
         (a.status, a.headers["Location"], a.headers["Referrer-Policy"], a.headers["Cache-Control"]))
    attributes = a.headers["Set-Cookie"].split("; ")[1:]
    check("the cookie is of this host alone, and of no script", {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(attributes) and
          "Domain" not in a.headers["Set-Cookie"] and "Secure" not in attributes, a.headers["Set-Cookie"])
    age = int(re.search(r"Max-Age=(\d+)", a.headers["Set-Cookie"]).group(1))
    check("the cookie of a preview ends with the link", 550 < age <= 601, age)
    cookie = cookie_of(a)
    a = box.get("/x?q=1", Cookie="mine=1; %s; yours=2" % cookie)
    inside = json.loads(a.body)
    same("the cookie opens the port", 200, a.status)
    same("the server inside does not see the preview's cookie", "mine=1; yours=2", inside["headers"]["cookie"])
    inside = json.loads(box.get("/x", Cookie=cookie).body)
    check("the server inside sees no empty Cookie header in place of the preview's", "cookie" not in inside["headers"], inside)
    a = box.get("/x?cove_token=%s&a=b" % token, "POST", b"{}")
    same("a POST is not redirected, and loses the token", (200, "/x?a=b"), (a.status, json.loads(a.body)["target"]))
    a = box.get("/x", "POST", b"", Cookie=cookie, Referer="http://%s/?cove_token=%s" % (box.host(), token))
    check("a Referer with a token stays outside", a.status == 200 and "referer" not in json.loads(a.body)["headers"], a.body)
    a = box.get("/x?cove_token=" + token, "HEAD")
    same("HEAD of a link is redirected", 303, a.status)
    for name, path, more in (("a WebSocket with the cookie", "/ws", "Cookie: %s\r\n" % cookie), ("one with the token", "/ws?cove_token=" + token, "")):
        s, line = first(box.raw(path, WS + more))
        same(name, "HTTP/1.1 101 Switching Protocols", line)
        s.close()
    s, line = first(box.raw("/sse?n=2", "Cookie: %s\r\n" % cookie))
    same("server-sent events with the cookie", "HTTP/1.1 200 OK", line)
    s.close()
    asked = time.time()
    over = int(box.token().split(".")[0])
    check("the default is an hour", asked - 1 <= over - 3600 <= time.time() + 1, over)
    for bad in (0, 7 * 86400 + 1, -1, "1h", 1.5):
        refused("a time that is none: %s" % bad, box.link(expires_seconds=bad), 400, "invalid", "expires_seconds")
    refused("a port that is none", box.link(70000), 400, "invalid", "port")
    same("a key that only reads makes none", 403, ask("POST", box.at + "/ports/3000/link", {}, key=READ).status)
    same("another tenant makes no link", 404, ask("POST", box.at + "/ports/3000/link", {}).status)


def refusals():
    token = box.token()
    other = Box(serve=False)
    flipped = token[:-1] + ("0" if token[-1] != "0" else "1")
    expires, key, mac = token.split(".")
    for name, bad, word in (("altered", flipped, "altered"), ("with a later end", "%d.%s.%s" % (int(expires) + 999, key, mac), "altered"),
                            ("with another key", "%s.-.%s" % (expires, mac), "altered"), ("of another port", box.token(3001), "another port"),
                            ("of another sandbox", other.token(), "altered"), ("cut", token[:40], "not valid"), ("empty", "", "not valid"),
                            ("of dots", "...", "not valid"), ("of an endless number", "9" * 90 + "." + key + "." + mac, "not valid"),
                            ("too long", "1" * 5000, "too long"), ("percent-encoded", token.replace(".", "%2E"), "not valid"),
                            ("twice", token + "&cove_token=" + token, "twice")):
        a = box.get("/?cove_token=" + bad)
        check("a link is refused: " + name, a.status == 403 and word in a.json["message"] and a.json["sandboxId"] == box.id and
              "Set-Cookie" not in a.headers, a.body)
    a = box.get("/?cove_token=" + flipped, **PAGE)
    check("browsers get a page about a private port", a.status == 403 and a.headers["Content-Type"].startswith("text/html") and b"This port is private" in a.body and
          b"altered" in a.body and b"prefers-color-scheme" in a.body, a.body[:200])
    end = time.time() + 60
    while True:  # it may be over before it was used, where the machine is busy
        short = box.token(expires_seconds=1)
        a = box.get("/?cove_token=" + short)
        if a.headers["Set-Cookie"] or time.time() > end:
            break
    cookie = cookie_of(a)
    while (a := box.get("/?cove_token=" + short)).status != 403 and time.time() < end:
        time.sleep(0.1)
    check("a link that is over", a.status == 403 and "expired" in a.json["message"], a.body)
    a = box.get("/", Cookie=cookie)
    check("the cookie of a link that is over is refused", a.status == 403 and "expired" in a.json["message"], a.body)
    good = cookie_of(box.get("/?cove_token=" + token))
    same("a client with a good cookie is not shut out by an old link", (303, None),
         (lambda a: (a.status, a.headers["Set-Cookie"]))(box.get("/?cove_token=" + short, Cookie=good)))
    same("a cookie is of one port", 403, box.get("/", port=3001, Cookie=good).status)
    same("a cookie is of one sandbox", 403, other.get("/", Cookie=good).status)
    same("the name by TLS is the same cookie", 200, box.get("/", Cookie="__Host-" + good).status)
    # Cookies by the dozen: other hosts below the domain can set them for all.
    many = "; ".join("cove-preview=%064d" % i for i in range(100))
    same("a good cookie behind a hundred bad ones", 200, box.get("/", Cookie=many + "; " + good).status)
    same("a good cookie in a second header", "HTTP/1.1 200 OK", first(box.raw("/", "Cookie: cove-preview=bad\r\nCookie: %s\r\nConnection: close\r\n" % good))[1])
    same("a good cookie beside a long one", 200, box.get("/", Cookie="cove-preview=" + "x" * 6000 + "; " + good).status)
    same("a cookie that is too long is 431", 431, box.get("/", Cookie="cove-preview=" + "x" * 17000).status)
    inside = json.loads(box.get("/", Cookie=many + "; " + good + "; a=b").body)
    same("bad cookies do not go in", "a=b", inside["headers"]["cookie"])
    ask("DELETE", other.at, key=KEY)


def redirects():
    token = box.token()
    for path, want in (("//evil.example/", "/.//evil.example/"), ("///evil.example", "/.///evil.example"), ("/%5Cevil.example", "/%5Cevil.example"),
                       ("/a//b", "/a//b"), ("/%0d%0aX-Evil:1", "/%0d%0aX-Evil:1"), ("/.//evil.example", "/.//evil.example")):
        a = box.get(path + "?cove_token=" + token)
        same("the redirect stays here: " + path, (303, want, None), (a.status, a.headers["Location"], a.headers["X-Evil"]))
    a = box.get("/?cove_token=%s&next=//evil.example&x=%%0d%%0aSet-Cookie:a" % token)
    same("the redirect of a link keeps the query", "/?next=//evil.example&x=%0d%0aSet-Cookie:a", a.headers["Location"])
    for odd in ("/\\evil.example?cove_token=" + token, "http://evil.example/?cove_token=" + token, "/#x?cove_token=" + token):
        _, line = first(box.raw(odd, "Connection: close\r\n"))
        check("no such address gets that far: " + odd[:16], line.split()[1] in ("400", "403"), line)
    a = box.get("/%s?cove_token=%s" % ("x" * 3000, token))
    same("an address that is too long is 414", 414, a.status)


def rolls():
    a = ask("GET", box.at + "/preview", key=KEY)
    same("what a preview is from the start", (False, False, None), tuple(a.json[k] for k in ("public", "auto_resume", "mask_host")))
    traffic, link = a.json["token"], box.token()
    same("the traffic token as a header", 200, box.get("/", e2b_traffic_access_token=traffic).status)
    a = box.get("/?cove_token=" + traffic)
    same("the traffic token works as a link", 303, a.status)
    check("the cookie of the traffic token is not the token itself", traffic not in a.headers["Set-Cookie"], a.headers["Set-Cookie"])
    cookie = cookie_of(a)
    same("the cookie of the traffic token works", 200, box.get("/", Cookie=cookie).status)
    same("a key that only reads does not roll", 403, ask("POST", box.at + "/preview/roll", {}, key=READ).status)
    a = ask("POST", box.at + "/preview/roll", {}, key=KEY)
    check("a roll gives another token", a.status == 200 and a.json["token"] != traffic, a.body)
    for name, path, headers in (("the token", "/", {"e2b_traffic_access_token": traffic}), ("a link of it", "/?cove_token=" + traffic, {}),
                                ("links", "/?cove_token=" + link, {}), ("cookies", "/", {"Cookie": cookie})):
        same("a roll takes back " + name, 403, box.get(path, **headers).status)
    same("the new traffic token works after a roll", 200, box.get("/", e2b_traffic_access_token=a.json["token"]).status)
    same("new links work after a roll", 303, box.get("/?cove_token=" + box.token()).status)
    made = ask("POST", box.at + "/ports/3000/link", {}, key=SPARE["key"]).json["token"]
    cookie = cookie_of(box.get("/?cove_token=" + made))
    cove("key", "revoke", SPARE["id"])
    a = box.get("/?cove_token=" + made)
    check("a key that is revoked takes its links along", a.status == 403 and "no longer valid" in a.json["message"], a.body)
    same("a key that is revoked takes the cookies of its links along", 403, box.get("/", Cookie=cookie).status)
    code, said = cove("preview", "--tenant", "owner", "--server", "http://localhost:%d" % server.port, "--expires", "10m", box.id, "3000")
    check("cove preview prints a link", code == 0 and said.startswith("http://3000-%s.localhost:%d/?cove_token=" % (box.id, server.port)), said)
    same("the link of cove preview works", 303, box.get(said.strip().split("localhost:%d" % server.port)[1]).status)
    code, again = cove("preview", "--tenant", "owner", "--roll", box.id, "3000")
    same("--roll takes it back", (0, 403), (code, box.get(said.strip().split("localhost:%d" % server.port)[1]).status))
    for what, want, words in (("an unknown sandbox", 85, ("nobody", "80")), ("an invalid port", 64, ("nobody", "70000")),
                              ("an invalid server", 64, ("--server", "example.com", "nobody", "80")),
                              ("a time that is too long", 64, ("--expires", "8d", "nobody", "80"))):
        same("cove preview refuses " + what, want, cove("preview", *words)[0])
    log = json.dumps(ask("GET", "/audit-logs?limit=500", key=KEY).json)
    same("all of that is in the audit log", [], [a for a in ("preview.link", "preview.open", "preview.roll") if a not in log])
    gone = Box(serve=False)
    token = gone.token()
    ask("DELETE", gone.at, key=KEY)
    a = gone.get("/?cove_token=" + token, **PAGE)
    check("a sandbox that was ended takes its links along", a.status == 502 and b"No such sandbox" in a.body, a.body[:200])


def pages():
    """What a browser does on its own, and what a page can make it do."""
    cookie = cookie_of(box.get("/?cove_token=" + box.token()))
    second = Box(serve=False)
    own, foreign = "http://" + box.host(8080), "http://" + second.host()
    for name, want, headers in (
            ("the sandbox's own page", 200, {"Origin": "http://" + box.host()}), ("the page of another port of it", 200, {"Origin": own}),
            ("the page of another sandbox", 403, {"Origin": foreign}), ("a page elsewhere", 403, {"Origin": "http://evil.example"}),
            ("a page that has its name at another port", 403, {"Origin": "http://%s:1" % box.host().split(":")[0]}),
            ("the API's page", 403, {"Origin": "http://localhost:%d" % server.port}), ("a page without an origin", 403, {"Origin": "null"}),
            ("one without, that is its own", 200, {"Origin": "null", "Sec-Fetch-Site": "same-origin"}),
            ("a picture in the page of another sandbox", 403, {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}),
            ("a script in a page elsewhere", 403, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
            ("a person who follows a link", 200, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}),
            ("a person who types it", 200, {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"})):
        same("a cookie and " + name, want, ask("GET", "/", headers={"Host": box.host(), "Cookie": cookie, **headers}).status)
    a = ask("POST", "/", "a=b", headers={"Host": box.host(), "Cookie": cookie, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Origin": foreign})
    same("a form of another sandbox's page", 403, a.status)
    s, line = first(box.raw("/ws", WS + "Cookie: %s\r\nOrigin: %s\r\n" % (cookie, foreign)))
    same("a WebSocket of another sandbox's page", "403", line.split()[1])
    s.close()
    s, line = first(box.raw("/ws", WS + "Cookie: %s\r\nOrigin: http://%s\r\n" % (cookie, box.host())))
    same("a WebSocket of the sandbox's own page", "101", line.split()[1])
    s.close()
    # The API, on loopback, without a key: cookies give nothing there, and pages of sandboxes are told from people.
    for name, headers, want in (("by its origin", {"Origin": "http://" + box.host()}, 403), ("with the cookie", {"Origin": own, "Cookie": cookie}, 403),
                                ("as a picture", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
                                ("as a person", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200), ("as a program", {}, 200)):
        same("the API is asked " + name, want, ask("GET", "/v1/sandboxes", headers=headers).status)
    same("the cookie is no key", 404, ask("GET", box.at, headers={"Cookie": cookie}).status)
    ask("DELETE", second.at, key=KEY)
    # Of the local tenant, loopback is enough; a bad link is refused all the same.
    local = Box(key=None, serve=False)
    same("loopback sees its own sandboxes' ports", 502, local.get().status)
    same("loopback with a bad link is refused", 403, local.get("/?cove_token=1.-.2").status)
    same("loopback as a picture of a page elsewhere is refused", 403, local.get("/", Sec_Fetch_Site="same-site", Sec_Fetch_Mode="no-cors").status)
    ask("DELETE", local.at)


def rules():
    refused("a mask that is no host", ask("PUT", box.at + "/preview", {"mask_host": "a b"}, key=KEY), 400, "invalid", "mask_host")
    for bad in ("${HOST}", "a\r\nX: y", "x" * 300, "localhost:${PORT}${PORT}", "http://a"):
        refused("a mask that is no host: " + bad[:12].replace("\r\n", " "), ask("PUT", box.at + "/preview", {"mask_host": bad}, key=KEY), 400, "invalid", "mask_host")
    refused("an unknown rule", ask("PUT", box.at + "/preview", {"open": True}, key=KEY), 400, "invalid", "open")
    a = ask("PUT", box.at + "/preview", {"public": True, "mask_host": "localhost:${PORT}"}, key=KEY)
    same("a preview becomes public and masked", (200, True, "localhost:${PORT}"), (a.status, a.json["public"], a.json["mask_host"]))
    a = box.get("/x")
    inside = json.loads(a.body)["headers"]
    same("every client sees a public preview, and the server inside sees its own name", (200, "localhost:3000", box.host()), (a.status, inside["host"], inside["x-forwarded-host"]))
    a = ask("GET", box.at + "/ports/3000/x", key=KEY)
    same("a masked Host is seen by path", "localhost:3000", json.loads(a.body)["headers"]["host"])
    a = box.get("/x?cove_token=nonsense&a=1")
    same("a token that is not needed is taken off", (303, "/x?a=1", None), (a.status, a.headers["Location"], a.headers["Set-Cookie"]))
    a = ask("PUT", box.at + "/preview", {}, key=KEY)
    same("what is not said is not kept", (False, None, 403), (a.json["public"], a.json["mask_host"], box.get("/").status))
    made = ask("POST", "/sandboxes", {"templateID": "base", "timeout": 60, "network": {"maskRequestHost": "app.test:${PORT}"}}, key=KEY)
    if made.status == 201:
        e2b = "/v1/sandboxes/" + made.json["sandboxID"]
        a = ask("GET", e2b + "/preview", key=KEY)
        same("E2B's maskRequestHost is the same rule", (True, "app.test:${PORT}"), (a.json["public"], a.json["mask_host"]))
        ask("DELETE", e2b, key=KEY)
    else:
        check("E2B's maskRequestHost is taken", False, made.body)


def sleep():
    for name, preview in (("without auto_resume", {}), ("with it", {"auto_resume": True})):
        asleep = Box(preview=preview)
        link = asleep.token()
        cookie = cookie_of(asleep.get("/?cove_token=" + link))
        ask("POST", asleep.at + "/pause", {}, key=KEY)
        a = asleep.get("/", **PAGE)
        same("a sandbox that sleeps, %s: a client without a right does not see that" % name, 403, a.status)
        a = asleep.get("/", Cookie=cookie, **PAGE)
        if preview:
            same("a visit wakes a sandbox", 200, a.status)
            same("a sandbox that a visit resumed runs", "running", ask("GET", asleep.at, key=KEY).json["state"])
            for kind, path, more in (("a WebSocket", "/ws", WS), ("an event stream", "/sse?n=1", "Accept: text/event-stream\r\n")):
                ask("POST", asleep.at + "/pause", {}, key=KEY)
                s, line = first(asleep.raw(path, more + "Cookie: %s\r\n" % cookie))
                check("%s wakes a sandbox" % kind, line.split()[1] in ("101", "200"), line)
                s.close()
            ask("POST", asleep.at + "/pause", {}, key=KEY)
            same("a request by path wakes a sandbox", 200, ask("GET", asleep.at + "/ports/3000/", key=KEY).status)
            ask("POST", asleep.at + "/pause", {}, key=KEY)
            same("a redirect does not", (303, "paused"), (asleep.get("/?cove_token=" + link).status, ask("GET", asleep.at, key=KEY).json["state"]))
        else:
            check("the page says that it is paused", a.status == 502 and b"The sandbox is paused" in a.body, a.body[:200])
            a = asleep.get("/", Cookie=cookie)
            same("programs are told that a sandbox is paused", (502, True), (a.status, a.json.get("paused")))
        ask("DELETE", asleep.at, key=KEY)


def crowds():
    """With --relay-most 4 and short times everywhere but for relays."""
    cookie = cookie_of(box.get("/?cove_token=" + box.token()))
    held = [first(box.raw("/endless?name=crowd", "Cookie: %s\r\n" % cookie))[0] for _ in range(4)]
    a = box.get("/", Cookie=cookie)
    check("the fifth exchange at once is refused", a.status == 429 and a.headers["Retry-After"] and "4 exchanges" in a.json["message"], a.body)
    a = box.get("/", Cookie=cookie, **PAGE)
    check("browsers get a page for the fifth exchange at once", a.status == 429 and b"Too many at once" in a.body, a.body[:200])
    refused("the fifth exchange at once is refused by path", ask("GET", box.at + "/ports/3000/", key=KEY), 429, "too_many")
    other = Box()
    same("the limit of exchanges does not concern another sandbox", 200, other.get("/", X_API_Key=KEY).status)
    ask("DELETE", other.at, key=KEY)
    for s in held:
        s.close()
    check("when they have gone there is room again", within(30, lambda: box.get("/", Cookie=cookie).status == 200))
    quiet = [first(box.raw("/quiet", "Cookie: %s\r\n" % cookie))[0], first(box.raw("/ws", WS + "Cookie: %s\r\n" % cookie))[0]]
    time.sleep(2)
    for name, s in zip(("an event stream", "a WebSocket"), quiet):
        s.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            got = s.recv(100)
            check("%s that is silent for longer than any other limit is not cut" % name, False, got)
            continue
        check("%s that is silent for longer than any other limit is not cut" % name, True)
        s.close()


def last():
    server.p.terminate()
    server.p.wait(40)
    server.start("--relay-most", "4", "--stall-timeout", "500ms", "--idle", "1s")
    crowds()
    ask("DELETE", box.at, key=KEY)


run(links, refusals, redirects, rolls, pages, rules, sleep, last)
