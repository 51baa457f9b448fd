"""Asks E2B's control plane what its SDKs ask, byte by byte as they do. Run by e2b_control_test."""
import datetime
import json
import os
import re
import signal
import time
from urllib.parse import quote, urlencode

from harness import LOG, Server, check, finish, must, same, within

KEY, READ_KEY, OTHER_KEY = (os.environ[k] for k in ("KEY", "READ_KEY", "OTHER_KEY"))
UNKNOWN = "i0000aaaaaaaaaaaaaaaa"
server = Server()


def ask(method, path, body=None, key=KEY, headers=None, chunked=False):
    h = dict(headers or {})
    if isinstance(body, (dict, list)):
        body = json.dumps(body, indent=2)
    if isinstance(body, str):
        body = body.encode()
    if body is not None:
        h.setdefault("Content-Type", "application/json")
    if chunked:
        body = iter([body[i:i + 7] for i in range(0, len(body), 7)])
    return server.ask(method, path, body, key, h, encode_chunked=chunked)


def envd(method, path, sandbox, body=None, token=None):
    h = {"E2b-Sandbox-Id": sandbox, "E2b-Sandbox-Port": "49983"}
    if token:
        h["X-Access-Token"] = token
    return ask(method, path, body, key=None, headers=h)


def refused(sentence, a, status, text=None):
    """An error of the control plane: its code is the status, as a number, and its type is JSON."""
    j = a.json if isinstance(a.json, dict) else {}
    good = (a.status == status and j.get("code") == status and type(j.get("code")) is int and j.get("message")
            and a.type.startswith("application/json") and (text is None or text in j["message"]))
    check(sentence, good, "%s %s %s" % (a.status, a.type, a.body[:200]))


def create(path="/v2/sandboxes", **body):
    body.setdefault("templateID", "base")
    a = ask("POST", path, body)
    must("a sandbox is made", a.status == 201, "%s %s" % (a.status, a.body))
    return a.json


def kill(*boxes):
    for box in boxes:
        ask("DELETE", "/sandboxes/" + box["sandboxID"])


def info(box):
    return ask("GET", "/sandboxes/" + box["sandboxID"]).json


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def ends_after(sentence, box, seconds, asked):
    """The box ends so many seconds after a request that was made between `asked` and now."""
    end = moment(info(box)["endAt"])
    check(sentence, asked - 1 <= end - seconds <= time.time() + 1, (end, asked))


def encoded(metadata):
    """As the SDKs do it: each key and value, the form, and then the query."""
    return quote(urlencode({quote(k): quote(v) for k, v in metadata.items()}))


server.start("--public-domain", "sbx.test:8443")

# ---- create: refusals first ----
REFUSED = [
    ("no template is named", {}, 400, "templateID"),
    ("an unknown template", {"templateID": "no-such"}, 404, "no-such"),
    ("a tag that is not there", {"templateID": "base:v7"}, 404, "base:v7"),
    ("a name that cannot be", {"templateID": "../base"}, 400, None),
    ("a template that is no text", {"templateID": 7}, 400, "templateID"),
    ("no time at all", {"timeout": 0}, 400, "Timeout must be greater than 0"),
    ("a negative time", {"timeout": -5}, 400, "Timeout must be greater than 0"),
    ("more time than is allowed", {"timeout": 10**9}, 400, "Timeout cannot be greater than 24 hours"),
    ("a time that is a text", {"timeout": "5"}, 400, "timeout"),
    ("a time with a fraction", {"timeout": 1.5}, 400, "timeout"),
    ("metadata that is no object", {"metadata": ["a"]}, 400, "metadata"),
    ("metadata that is no text", {"metadata": {"a": 1}}, 400, "metadata"),
    ("metadata of our own names", {"metadata": {"cove.notes": "{}"}}, 400, "metadata"),
    ("too much metadata", {"metadata": {"a": "x" * 5000}}, 400, "metadata"),
    ("variables that are no text", {"envVars": {"A": None}}, 400, "envVars"),
    ("variables with a bad name", {"envVars": {"A=B": "c"}}, 400, "envVars"),
    ("too many variables", {"envVars": {"A%d" % i: "x" * 1000 for i in range(140)}}, 400, "env"),
    ("internet access that is no truth", {"allow_internet_access": "yes"}, 400, "allow_internet_access"),
    ("allowOut with a name and all else open", {"network": {"allowOut": ["example.com"]}}, 400, "network.allowOut"),
    ("allowOut with something else", {"network": {"allowOut": ["a b"], "denyOut": ["0.0.0.0/0"]}}, 400, "network.allowOut"),
    ("a private egress proxy", {"network": {"egressProxy": {"address": "10.0.0.1:1080"}}}, 400, "network.egressProxy.address"),
    ("rules", {"network": {"rules": {"a.b": [{"transform": {"headers": {"Host": "c.d"}}}]}}}, 400, "network.rules"),
    ("a masked host that is none", {"network": {"maskRequestHost": "a b"}}, 400, "network.maskRequestHost"),
    ("https ports", {"network": {"httpsPorts": [3000]}}, 501, "network.httpsPorts"),
    ("a field of the network that nobody knows", {"network": {"allowIn": []}}, 400, "allowIn"),
    ("denyOut with a name", {"network": {"denyOut": ["example.com"]}}, 400, "network.denyOut"),
    ("denyOut with too many bits", {"network": {"denyOut": ["10.0.0.0/33"]}}, 400, "network.denyOut"),
    ("denyOut too long", {"network": {"denyOut": ["10.0.0.1"] * 200}}, 400, "network.denyOut"),
    ("autoPauseMemory without autoPause", {"autoPauseMemory": False}, 400, "autoPauseMemory"),
    ("autoPauseMemory with autoResume",
     {"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}}, 400, "autoPauseMemory"),
    ("autoResume without a word", {"autoResume": {}}, 400, "autoResume"),
    ("identity tokens", {"iam": {"tokens": {"a": {"audience": "b"}}}}, 501, "iam"),
    ("a volume that is not there", {"volumeMounts": [{"name": "v", "path": "/v"}]}, 404, "v"),
    ("a volume in /dev", {"volumeMounts": [{"name": "v", "path": "/dev/v"}]}, 400, "/dev"),
]
for what, body, status, text in REFUSED:
    if what != "no template is named":
        body.setdefault("templateID", "base")
    refused("create refuses: " + what, ask("POST", "/v2/sandboxes", body), status, text)
refused("create refuses: what is no JSON", ask("POST", "/v2/sandboxes", "{"), 400)
refused("create refuses: a body too big", ask("POST", "/v2/sandboxes", "{" + " " * 300000 + "}"), 413)
refused("create refuses: private ports without tokens",
        ask("POST", "/sandboxes", {"templateID": "base", "network": {"allowPublicTraffic": False}}), 400, "allowPublic")
refused("an unknown key is 401", ask("POST", "/v2/sandboxes", {"templateID": "base"}, key="e2b_" + "0" * 40), 401)
refused("a key that may only look is 403", ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=READ_KEY), 403)
same("refused creates made no sandbox", [], ask("GET", "/v2/sandboxes").json)

# ---- create ----
begun = time.time()
a = ask("POST", "/v2/sandboxes", {"templateID": "Base:default", "timeout": 60, "metadata": {"user": "ann"},
                                  "envVars": {"GREETING": "hi there", "LONG": "x" * 100000},
                                  "later": {"than": "us"}}, chunked=True)
box = a.json or {}
same("create answers 201", 201, a.status)
check("create answers with an id as SDKs know it", re.fullmatch(r"i[a-z0-9]{20}", box.get("sandboxID", "")), box)
same("the template's name", ("base", "base"), (box.get("templateID"), box.get("alias")))
same("the version of envd", "0.6.13", box.get("envdVersion"))
check("a client id", isinstance(box.get("clientID"), str) and box["clientID"], box)
check("create answers with a token", re.fullmatch("[0-9a-f]{64}", box.get("envdAccessToken", "")), box)
check("no token for ports that are public", not box.get("trafficAccessToken"), box)
same("the domain of ports", "sbx.test:8443", box.get("domain"))

detail = info(box)
same("the page of a sandbox has the ids and the token of the create", {k: box[k] for k in ("sandboxID", "templateID", "clientID", "envdAccessToken")},
     {k: detail.get(k) for k in ("sandboxID", "templateID", "clientID", "envdAccessToken")})
same("the page of a sandbox has state, metadata and size", ("running", {"user": "ann"}, 2, 512, 1024),
     tuple(detail.get(k) for k in ("state", "metadata", "cpuCount", "memoryMB", "diskSizeMB")))
check("the page of a sandbox has start and end", abs(moment(detail["startedAt"]) - begun) < 10
      and abs(moment(detail["endAt"]) - moment(detail["startedAt"]) - 60) < 1, detail)
same("internet access that was not spoken of is null", (True, None),
     ("allowInternetAccess" in detail, detail.get("allowInternetAccess")))
same("the page of a sandbox has its lifecycle", {"autoResume": False, "onTimeout": "kill"}, detail.get("lifecycle"))
same("the old form of its id is known", box["sandboxID"],
     (ask("GET", "/sandboxes/%s-abcd1234" % box["sandboxID"]).json or {}).get("sandboxID"))
looked = ask("GET", "/sandboxes/" + box["sandboxID"], key=READ_KEY)
same("a key that may only look gets no token", (200, False), (looked.status, "envdAccessToken" in looked.json))

ran = ask("POST", "/v1/sandboxes/%s/exec" % box["sandboxID"],
          {"command": 'echo "$E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID $GREETING ${#LONG}"'}).json
same("commands know where they are, and have the variables, long ones too",
     "true %s base hi there 100000\n" % box["sandboxID"], ran.get("stdout"))

v1 = create("/sandboxes", secure=True, autoPause=False, autoResume={"enabled": False}, allow_internet_access=True,
            metadata={}, envVars={}, timeout=300, network=None, mcp=None)
detail = info(v1)
check("the older path has what Python sends", v1.get("envdAccessToken") and detail["allowInternetAccess"] is True, v1)
open_box = create("/sandboxes")
detail = info(open_box)
check("without 'secure' there is no token, and the time is short",
      "envdAccessToken" not in open_box and abs(moment(detail["endAt"]) - moment(detail["startedAt"]) - 15) < 1, detail)
closed = create(allow_internet_access=False, autoPause=True,
                network={"allowPublicTraffic": False, "denyOut": ["0.0.0.0/0", "10.0.0.1", "::/0"], "allowOut": []})
detail = info(closed)
check("private ports have a token", re.fullmatch("[0-9a-f]{64}", closed.get("trafficAccessToken") or "")
      and closed["trafficAccessToken"] != closed["envdAccessToken"], closed)
same("what was said of the network is shown", (False, {"allowPublicTraffic": False,
                                                      "denyOut": ["0.0.0.0/0", "10.0.0.1", "::/0"]}, "pause"),
     (detail["allowInternetAccess"], detail["network"], detail["lifecycle"]["onTimeout"]))

a = ask("PUT", "/sandboxes/%s/network" % closed["sandboxID"], {"denyOut": ["192.168.0.0/16"]})
detail = info(closed)
same("the network can be said again; what is left out is cleared",
     (204, None, {"allowPublicTraffic": False, "denyOut": ["192.168.0.0/16"]}),
     (a.status, detail["allowInternetAccess"], detail["network"]))
refused("an update of the network with an option that is not implemented is refused", ask("PUT", "/sandboxes/%s/network" % closed["sandboxID"], {"httpsPorts": [8443]}),
        501, "httpsPorts")
refused("an update of the network cannot change who may come in", ask("PUT", "/sandboxes/%s/network" % closed["sandboxID"],
                                       {"allowPublicTraffic": True}), 400, "allowPublicTraffic")
same("refusals change nothing", {"allowPublicTraffic": False, "denyOut": ["192.168.0.0/16"]}, info(closed)["network"])

# ---- others' sandboxes, and none ----
for who, sandbox, key in (("unknown", UNKNOWN, KEY), ("foreign", box["sandboxID"], OTHER_KEY), ("impossible", "x" * 300, KEY)):
    at = "/sandboxes/" + sandbox
    for method, path, body in (("GET", at, None), ("DELETE", at, None), ("POST", at + "/connect", {"timeout": 5}),
                               ("POST", "/v2" + at + "/connect", {}), ("POST", at + "/pause", {}),
                               ("POST", at + "/resume", {}), ("POST", at + "/timeout", {"timeout": 5}),
                               ("POST", at + "/refreshes", {}), ("PUT", at + "/network", {}),
                               ("POST", at + "/snapshots", {}), ("POST", at + "/fork", {}),
                               ("GET", at + "/metrics", None), ("GET", at + "/logs", None),
                               ("GET", "/v2" + at + "/logs", None)):
        refused("%s: %s %s is 404" % (who, method, path.replace(sandbox, "{id}")), ask(method, path, body, key=key), 404)
same("metrics of unknown sandboxes are empty", {"sandboxes": {}},
     ask("GET", "/sandboxes/metrics?sandbox_ids=%s,%s" % (UNKNOWN, box["sandboxID"]), key=OTHER_KEY).json)
same("the sandbox is still there", 200, ask("GET", "/sandboxes/" + box["sandboxID"]).status)

# ---- time ----
at = "/sandboxes/" + box["sandboxID"]
before = moment(info(box)["endAt"])
a = ask("POST", at + "/connect", {"timeout": 5})
same("connect to one that runs is 200 with the same token", (200, box["envdAccessToken"]),
     (a.status, a.json["envdAccessToken"]))
same("connect never shortens the time of a sandbox", before, moment(info(box)["endAt"]))
asked = time.time()
same("connect may extend", 200, ask("POST", "/v2" + at + "/connect").status)
ends_after("connect extends by 300 seconds if no timeout is given", box, 300, asked)
asked = time.time()
same("timeout answers 204", 204, ask("POST", at + "/timeout", {"timeout": 100}).status)
ends_after("timeout may shorten the time of a sandbox", box, 100, asked)
asked = time.time()
same("refreshes answer 204", 204, ask("POST", at + "/refreshes", {"duration": 200}).status)
ends_after("refreshes only extend the time of a sandbox", box, 200, asked)
same("a short one changes nothing", 204, ask("POST", at + "/refreshes", {"duration": 1}).status)
ends_after("refreshes extend by the duration", box, 200, asked)
refused("a refresh has its bounds", ask("POST", at + "/refreshes", {"duration": 3601}), 400)
refused("a timeout without a number is refused", ask("POST", at + "/timeout", {}), 400, "timeout")
refused("a timeout that is too long is refused", ask("POST", at + "/timeout", {"timeout": 86401}), 400, "24 hours")
refused("connect knows the same bounds", ask("POST", at + "/connect", {"timeout": 0}), 400, "greater than 0")
same("a timeout of 0 is accepted", 204, ask("POST", "/sandboxes/%s/timeout" % v1["sandboxID"], {"timeout": 0}).status)
check("a timeout of 0 ends a sandbox", within(15, lambda: ask("GET", "/sandboxes/" + v1["sandboxID"]).status == 404))
same("envd of a sandbox that ended is 502", 502, envd("GET", "/health", v1["sandboxID"]).status)
same("the log of a sandbox that ended is still there", 200, ask("GET", "/v2/sandboxes/%s/logs" % v1["sandboxID"]).status)

# ---- pauses ----
def clock():
    return ask("POST", "/v1" + at + "/exec", {"command": "cat /tmp/clock 2>/dev/null"}).json["stdout"]


ask("POST", "/v1" + at + "/processes", {"command": "while :; do date +%s%N > /tmp/clock.new; mv /tmp/clock.new /tmp/clock; sleep 0.05; done"})
check("a process in it works", within(15, clock), clock())
same("a running sandbox is healthy", 204, envd("GET", "/health", box["sandboxID"]).status)
same("pause answers 204", 204, ask("POST", at + "/pause").status)
refused("a second pause is 409", ask("POST", at + "/pause", {"memory": True}), 409, "already paused")
same("a paused sandbox is 502 to envd", (502, "The sandbox was not found"),
     (lambda a: (a.status, a.json["message"]))(envd("GET", "/health", box["sandboxID"])))
detail = info(box)
check("a paused sandbox has the state paused, and its end is the time of the pause",
      detail["state"] == "paused" and abs(moment(detail["endAt"]) - time.time()) < 30, detail)
same("lists show it among the paused", [box["sandboxID"]],
     [s["sandboxID"] for s in ask("GET", "/v2/sandboxes?state=paused").json])
refused("the timeout of a paused sandbox cannot be set", ask("POST", at + "/timeout", {"timeout": 60}), 404, "paused")
a = ask("POST", "/v2" + at + "/connect", {"timeout": 60})
same("connect resumes it: 201, the same id, the same token", (201, box["sandboxID"], box["envdAccessToken"]),
     (a.status, a.json["sandboxID"], a.json["envdAccessToken"]))
tick = clock()
check("processes continue after a pause", tick and within(15, lambda: clock() != tick), tick)
refused("resume of one that runs is 409", ask("POST", at + "/resume", {"timeout": 60}), 409)
refused("resume cannot change what happens at the end", ask("POST", at + "/resume", {"autoPause": True}), 501, "autoPause")
asked = time.time()
same("pause and resume, the old way", (204, 201),
     (ask("POST", at + "/pause", {}).status, ask("POST", at + "/resume", {"timeout": 60}).status))
ends_after("a deadline of its own again", box, 60, asked)
same("pause, with seconds left", (204, 204), (ask("POST", at + "/timeout", {"timeout": 6}).status,
                                              ask("POST", at + "/pause", {}).status))
over = time.time() + 6

sleeper = create(timeout=3, autoPause=True, autoResume={"enabled": True})
deaf = create(timeout=3, autoPause=True)
for b in (sleeper, deaf):
    check("time that is up pauses a sandbox with autoPause", within(15, lambda: info(b)["state"] == "paused"), info(b))
within(15, lambda: time.time() > over)
same("a pause outlives the deadline of the sandbox", (200, "paused"),
     (lambda a: (a.status, a.json["state"]))(ask("GET", at)))
LIST = "/process.Process/List"
same("asking for /health does not wake a sandbox", (502, "paused"),
     (envd("GET", "/health", sleeper["sandboxID"]).status, info(sleeper)["state"]))
same("a wrong token does not wake a sandbox", (502, "paused"),
     (envd("POST", LIST, sleeper["sandboxID"], {}, "0" * 64).status, info(sleeper)["state"]))
same("autoResume: a request wakes a sandbox", (200, "running"),
     (envd("POST", LIST, sleeper["sandboxID"], {}, sleeper["envdAccessToken"]).status, info(sleeper)["state"]))
check("autoResume: a sandbox is awake for five minutes at least", moment(info(sleeper)["endAt"]) - time.time() > 290, info(sleeper)["endAt"])
same("without it, nothing does", (502, "paused"),
     (envd("POST", LIST, deaf["sandboxID"], {}, deaf["envdAccessToken"]).status, info(deaf)["state"]))

server.end(signal.SIGKILL)
server.start()
same("pauses outlive the server", ["paused", "paused"], [info(b)["state"] for b in (box, deaf)])
same("tokens outlive the server", box["envdAccessToken"], info(box)["envdAccessToken"])
same("kill of a paused sandbox deletes the sandbox", (204, 404), (ask("DELETE", at).status, ask("GET", at).status))
refused("a second kill is 404", ask("DELETE", at), 404)
kill(sleeper, deaf, closed, open_box)

# ---- lists ----
odd = {"a": "b c&", "k=": "100% ü+日本", "empty": ""}
boxes = [create(metadata=dict(odd, n=str(i), half=str(i % 2)), timeout=600) for i in range(30)]
ids = [b["sandboxID"] for b in boxes]
ask("POST", "/sandboxes/%s/pause" % ids[3])
ask("POST", "/sandboxes/%s/pause" % ids[4])
other = ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=OTHER_KEY)
same("a tenant with a quota of one gets its first sandbox", 201, other.status)
limit = ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=OTHER_KEY)
refused("a tenant with a quota of one gets no second sandbox: 429", limit, 429)
check("a refusal by the quota has seconds to wait", (limit.headers.get("Retry-After") or "").isdigit(), limit.headers)


def listed(query="", key=KEY):
    a = ask("GET", "/v2/sandboxes" + query, key=key)
    if a.status != 200:
        return a.status, None, None
    return [s["sandboxID"] for s in a.json], a.headers.get("X-Next-Token"), a.headers.get("X-Total-Running")


def pages(query):
    out, token, sizes = [], "", []
    while token is not None and len(sizes) < 50:
        got, token, running = listed("?" + query + ("&nextToken=" + quote(token) if token else ""))
        out += got
        sizes.append(len(got))
    return out, sizes


same("a list is newest first, paused and running together", (ids[::-1], None, "28"), listed())
same("a list comes in pages of seven", (ids[::-1], [7, 7, 7, 7, 2]), pages("limit=7"))
same("oldest first, in pages", (ids, [15, 15]), pages("limit=15&order=asc"))
same("only those that run", [i for n, i in enumerate(ids[::-1]) if 29 - n not in (3, 4)], listed("?state=running")[0])
same("only the paused, in pages", ([ids[4], ids[3]], [1, 1]), pages("state=paused&limit=1"))
same("a list of states has both, with a comma", 30, len(listed("?state=running,paused")[0]))
same("metadata, encoded three times", ids[::-1], listed("?metadata=" + encoded(odd))[0])
same("all pairs must match", [ids[7]], listed("?metadata=" + encoded({"n": "7", "half": "1"}))[0])
same("metadata must match exactly", [], listed("?metadata=" + encoded({"n": "7", "half": "0"}))[0])
same("metadata in the SDK's way of writing is understood", ids[::-1], listed("?metadata=a%3Db%252520c%252526")[0])
same("metadata in pages, none twice", (ids[1::2][::-1], [4, 4, 4, 3]), pages("limit=4&metadata=" + encoded({"half": "1"})))
same("the total is what the filter lets through", "14", listed("?limit=1&metadata=" + encoded({"half": "1"}))[2])
same("a list by template", 30, len(listed("?template=base")[0]))
same("a list by an unknown template is empty", [], listed("?template=nope")[0])
started = info(boxes[20])["startedAt"]
same("a list from a time on, that time included", ids[20:][::-1], listed("?startedAfter=" + quote(started))[0])
same("a page stays where it was while others come and go", ids[:26][::-1][:5],
     (lambda first: (kill(boxes[29], boxes[26]), listed("?limit=5&nextToken=" + first[1]))[1][0])(listed("?limit=4")))
same("a tenant lists its own sandboxes alone", [other.json["sandboxID"]], listed(key=OTHER_KEY)[0])
for query in ("limit=0", "limit=101", "limit=x", "order=up", "state=dead", "state=running,", "nextToken=zzz",
              "nextToken=asc-1", "startedAfter=yesterday", "template=base:v1", "metadata=a", "metadata=a%3Db%3Dc"):
    refused("a list refuses " + query, ask("GET", "/v2/sandboxes?" + query), 400)
same("the old list has those that run", [i for n, i in enumerate(ids[::-1]) if 29 - n not in (3, 4, 26, 29)],
     [s["sandboxID"] for s in ask("GET", "/sandboxes").json])
entry = ask("GET", "/v2/sandboxes?limit=1").json[0]
same("an entry has these fields and no token",
     ["alias", "clientID", "cpuCount", "diskSizeMB", "endAt", "envdVersion", "isolation", "memoryMB", "metadata", "sandboxID",
      "startedAt", "state", "templateID"], sorted(entry))
ask("DELETE", "/sandboxes/" + other.json["sandboxID"], key=OTHER_KEY)
kill(*boxes[2:])

# ---- metrics ----
at = "/sandboxes/" + ids[0]
ask("POST", "/v1" + at + "/exec", {"command": "head -c 3000000 /dev/zero > /home/user/zeros; cat /home/user/zeros | wc -c"})
check("a point comes within 30 seconds", within(30, lambda: ask("GET", at + "/metrics").json))
check("a second point of metrics comes", within(15, lambda: len(ask("GET", at + "/metrics").json) >= 2))
check("a point knows of a file that was written before the point", within(60, lambda: ask("GET", at + "/metrics").json[-1]["diskUsed"] >= 3000000))
points = ask("GET", at + "/metrics").json
same("a point has these fields", ["cpuCount", "cpuUsedPct", "diskTotal", "diskUsed", "memCache", "memTotal", "memUsed",
                                 "timestamp", "timestampUnix"], sorted(points[-1]))
p = points[-1]
check("a point has plausible numbers", p["cpuCount"] == 2 and p["memTotal"] == 512 << 20 and 0 < p["memUsed"] < p["memTotal"]
      and p["diskTotal"] == 1 << 30 and p["diskUsed"] >= 3000000 and 0 <= p["cpuUsedPct"] <= 100
      and 0 <= p["memCache"] <= p["memUsed"], p)
check("about five seconds apart", all(4 <= b["timestampUnix"] - a["timestampUnix"] <= 7
                                      for a, b in zip(points, points[1:])), points)
same("no point is older than the sandbox", [], ask("GET", at + "/metrics?start=1&end=1000").json)
same("metrics have the points that were asked for", [p], ask("GET", at + "/metrics?start=%d&end=%d" % ((p["timestampUnix"],) * 2)).json)
refused("metrics from the end to the start are refused", ask("GET", at + "/metrics?start=10&end=5"), 400)
same("metrics of several sandboxes have the last point of each", {ids[0], ids[1]},
     set(ask("GET", "/sandboxes/metrics?sandbox_ids=%s,%s,%s" % (ids[0], ids[1], UNKNOWN)).json["sandboxes"]))
refused("metrics of no sandbox are refused", ask("GET", "/sandboxes/metrics"), 400)
refused("metrics of more than a hundred sandboxes are refused", ask("GET", "/sandboxes/metrics?sandbox_ids=" + ",".join([UNKNOWN] * 101)), 400)

# ---- logs ----
ask("POST", "/v1" + at + "/exec", {"command": "exit 3"})
a = ask("GET", "/v2" + at + "/logs").json["logs"]
check("the log begins with the create", a and a[0]["message"].startswith("sandbox.create ok") and a[0]["level"] == "info", a[:1])
same("every entry has these fields", {("fields", "level", "message", "timestamp")}, {tuple(sorted(e)) for e in a})
check("a command that failed is a warning", any(e["level"] == "warn" and "exit=3" in e["message"] for e in a), a[-1])
check("commands are not in the log", "head -c" not in json.dumps(a))
same("backward is the other way round", a[::-1], ask("GET", "/v2" + at + "/logs?direction=backward").json["logs"])
same("a log has at most as many entries as asked for", a[:1], ask("GET", "/v2" + at + "/logs?limit=1").json["logs"])
same("a log by level", [e for e in a if e["level"] == "warn"], ask("GET", "/v2" + at + "/logs?level=warn").json["logs"])
same("a log by text", a[:1], ask("GET", "/v2" + at + "/logs?search=sandbox.create").json["logs"])
same("a log from a time on", [], ask("GET", "/v2" + at + "/logs?cursor=%d" % (1000 * (time.time() + 60))).json["logs"])
old = ask("GET", at + "/logs").json
same("the older form has lines and entries", ([e["message"] for e in a], a),
     ([e["line"] for e in old["logs"]], old["logEntries"]))
refused("a level that is none", ask("GET", "/v2" + at + "/logs?level=loud"), 400)
refused("a direction that is none", ask("GET", "/v2" + at + "/logs?direction=up"), 400)

# ---- what a create can always ask for ----
for name, want in (("base", "base"), ("team%2FBase:default", "base"), ("code-interpreter-v1", "code-interpreter-v1")):
    a = ask("GET", "/templates/aliases/" + name)
    same("the template %s is there" % name, (200, {"templateID": want, "public": True}), (a.status, a.json))
refused("a template's name that cannot be", ask("GET", "/templates/aliases/..%2F..%2Fetc"), 400)

# ---- templates ----
same("a new tenant has no templates of its own", (200, []), (ask("GET", "/templates").status, ask("GET", "/v2/templates").json))
refused("tags of a template that is not there", ask("POST", "/templates/tags", {"target": "t:a", "tags": ["b"]}), 404)

# ---- what there is not ----
for method, path, status in (
        ("POST", "/v3/templates", 400),
        ("POST", "/v2/templates", 501), ("POST", "/templates", 501), ("GET", "/templates/t", 404),
        ("POST", "/v2/templates/t/builds/b", 404), ("GET", "/templates/t/builds/b/status", 404),
        ("GET", "/templates/t/files/" + "0" * 64, 404), ("GET", "/templates/aliases/x", 404),
        ("POST", "/templates/tags", 400), ("DELETE", "/templates/tags", 400), ("GET", "/templates/t/tags", 404),
        ("DELETE", "/templates/t", 404), ("DELETE", "/templates/team%2Fname%3Atag", 404),
        ("GET", "/volumes/v", 404), ("DELETE", "/volumes/v", 404),
        ("GET", "/volumecontent/v/path?path=/", 501), ("PUT", "/volumecontent/v/file?path=/f", 501), ("GET", "/volumecontent/v/dir?path=/", 501),
        ("GET", "/sandboxes/%s/nope" % ids[0], 404), ("GET", "/v2/nope", 404), ("GET", "/templates/t/nope/x", 404), ("PATCH", "/sandboxes", 405),
        ("POST", "/secrets", 403), ("GET", "/secrets", 403), ("DELETE", "/secrets/s", 403)):
    refused("%s %s says that it is not there" % (method, path.replace(ids[0], "{id}")),
            ask(method, path, {} if method == "POST" else None), status)
refused("the content of volumes: says what to do instead", ask("GET", "/volumecontent/v/path?path=/"), 501, "volumeMounts")
same("an unknown path of no dialect has the native form", "path_not_found", ask("GET", "/nope").json["error"]["code"])
with open(LOG) as log:
    check("without a public domain the log says what getHost() will name", "getHost() of E2B's SDKs" in log.read())
same("a new tenant has no snapshots", [], ask("GET", "/snapshots?limit=5").json)
refused("a list of snapshots needs a key", ask("GET", "/snapshots", key="e2b_" + "1" * 40), 401)
same("an encoded slash is still no way around", 400, ask("GET", "/v1/sandboxes/a%2Fb").status)
same("health needs no key", 200, ask("GET", "/health", key=None).status)

kill(boxes[0], boxes[1])

# ---- volumes ----
a = ask("POST", "/volumes", {"name": "shared"})
volume = a.json or {}
same("a volume is made", (201, "shared"), (a.status, volume.get("name")))
check("a volume has the id and token that SDKs want", volume.get("volumeID") and volume.get("token"), volume)
refused("a second of that name is 409", ask("POST", "/volumes", {"name": "shared"}), 409)
refused("a volume without a name is 400", ask("POST", "/volumes", {}), 400, "name")
same("a volume is listed", [{"volumeID": volume["volumeID"], "name": "shared"}], ask("GET", "/volumes").json)
same("a volume is found by its id", volume, ask("GET", "/volumes/" + volume["volumeID"]).json)
refused("a volume of another tenant is not found", ask("GET", "/volumes/shared", key=OTHER_KEY), 404)
mounted = {"templateID": "base", "volumeMounts": [{"name": "shared", "path": "/mnt/shared"}]}
a = ask("POST", "/v2/sandboxes", mounted)
same("a sandbox gets a volume", 201, a.status)
holder = (a.json or {}).get("sandboxID", "none")
same("a sandbox shows its volume", [{"name": "shared", "path": "/mnt/shared"}],
     (ask("GET", "/sandboxes/" + holder).json or {}).get("volumeMounts"))
refused("a second writer is 409", ask("POST", "/v2/sandboxes", mounted), 409)
refused("a volume is not removed while a sandbox has it", ask("DELETE", "/volumes/" + volume["volumeID"]), 409)
kill({"sandboxID": holder})
same("a volume is removed once no sandbox has it", 204, ask("DELETE", "/volumes/" + volume["volumeID"]).status)
same("a removed volume is not listed", [], ask("GET", "/volumes").json)
same("all are gone", [], ask("GET", "/v2/sandboxes").json)
server.end()
finish()
