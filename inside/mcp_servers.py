"""MCP servers that speak on standard input and output: which ones a configuration names, and one process of each. Used by mcp-gateway."""
import collections
import json
import os
import pwd
import re
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time

VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26"]
REPOSITORIES = "/opt/mcp-servers"
LOG = "/var/log/mcp-gateway.log"
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
REPOSITORY = re.compile(r"github/([A-Za-z0-9_-][A-Za-z0-9_.-]{0,99})/([A-Za-z0-9_-][A-Za-z0-9_.-]{0,99})\Z")
LIST_SECONDS, WRITE_SECONDS = 30, 5
PIPE_PART = 4096  # what a pipe takes at once where it takes anything (PIPE_BUF)
LINE_MAX, LOG_MAX = 16 << 20, 4 << 20
SERVERS_MAX, PAGES_MAX = 32, 100
METHOD_UNKNOWN, FAILED = -32601, -32603


class Refused(Exception):
    """A sentence for who asked, and the code of JSON-RPC."""

    def __init__(self, sentence, code=FAILED, data=None):
        super().__init__(sentence)
        self.error = {"code": code, "message": sentence, **({"data": data} if data is not None else {})}


def log(text):
    """One line in the log, which ends at LOG_MAX."""
    try:
        with open(LOG if os.geteuid() == 0 else "/tmp/mcp-gateway.log", "a") as file:
            if file.tell() < LOG_MAX:
                file.write("%s %s\n" % (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), text))
    except OSError:
        pass


# ---- what is to run ----

def texts(value):
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, str) and k and "=" not in k and "\0" not in k + v for k, v in value.items())


def only(name, entry, allowed):
    unknown = sorted(set(entry) - set(allowed))
    if unknown:
        raise Refused("%s: unknown field '%s'; there are %s" % (name, unknown[0], ", ".join(allowed)))


def command_entry(name, entry):
    only(name, entry, ("command", "args", "env", "cwd"))
    args = entry.get("args", [])
    if not isinstance(entry["command"], str) or not entry["command"]:
        raise Refused("%s: command must be a text" % name)
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        raise Refused("%s: args must be a list of texts" % name)
    if not isinstance(entry.get("cwd", ""), str):
        raise Refused("%s: cwd must be a path" % name)
    return {"argv": [entry["command"], *args], "env": entry.get("env", {}), "cwd": entry.get("cwd") or None}


def repository_entry(name, entry):
    only(name, entry, ("runCmd", "installCmd", "envs"))
    if not isinstance(entry.get("runCmd"), str) or not entry["runCmd"]:
        raise Refused("%s: runCmd must be the command of a server that speaks on standard input and output" % name)
    if not isinstance(entry.get("installCmd", ""), str):
        raise Refused("%s: installCmd must be a text" % name)
    return {"argv": ["/bin/sh", "-c", entry["runCmd"]], "env": entry.get("envs", {}), "repository": REPOSITORY.match(name).groups(),
            "install": entry.get("installCmd")}


def parse_config(text):
    """The servers by name, or Refused with every name that cannot be had."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("--config is not JSON: %s" % error)
    if not isinstance(config, dict):
        raise Refused("--config must be an object of servers by name")
    if len(config) > SERVERS_MAX:
        raise Refused("at most %d servers" % SERVERS_MAX)
    servers, missing = {}, []
    for name, entry in config.items():
        repository = bool(REPOSITORY.match(name))
        if not repository and not (NAME.match(name) and isinstance(entry, dict) and "command" in entry):
            missing.append(name)
            continue
        if not isinstance(entry, dict):
            raise Refused("%s: an object with runCmd is expected" % name)
        servers[name] = (repository_entry if repository else command_entry)(name, entry)
        if not texts(servers[name]["env"]):
            raise Refused("%s: the environment must be an object of texts" % name)
    if missing:
        raise Refused(cannot(missing))
    return servers


def cannot(names):
    return ("cannot be had here: %s. Servers of Docker's catalogue are container images. "
            "Name a server by {\"command\": ..., \"args\": [...]} or as github/OWNER/REPO with runCmd" % ", ".join("'%s'" % name[:80] for name in names))


# ---- running it ----

def person():
    """Whom servers run as: root is not needed for them."""
    if os.geteuid() != 0:
        return None
    for name in ("user", 1000):
        try:
            return pwd.getpwnam(name) if isinstance(name, str) else pwd.getpwuid(name)
        except KeyError:
            continue
    return None


def as_person():
    """Arguments of Popen."""
    who = person()
    return {} if not who else {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


def environment(more):
    env = {k: v for k, v in os.environ.items() if k != "GATEWAY_ACCESS_TOKEN"}
    who = person()
    if who:
        env.update(HOME=who.pw_dir, USER=who.pw_name, LOGNAME=who.pw_name)
    env.update(more)
    return env


def home():
    who = person()
    return who.pw_dir if who else os.environ.get("HOME", "/")


def kill_group(process):
    """With all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def run_step(what, argv, cwd, env, until):
    """A command that has to succeed; its last lines are the reason if it does not."""
    try:
        done = subprocess.Popen(argv, cwd=cwd, env=environment(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True, **as_person())
    except (OSError, ValueError) as error:
        raise Refused("%s: %s" % (what, error))
    with done:
        try:
            said = done.communicate(timeout=max(1, until - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            kill_group(done)
            raise Refused("%s: %s takes too long" % (what, shlex.join(argv)[:200]))
    if done.returncode != 0:
        tail = said.decode("utf-8", "replace").strip().splitlines()[-3:]
        raise Refused("%s: %s ended with %d: %s" % (what, shlex.join(argv)[:200], done.returncode, " / ".join(tail)[:600]))


def fetch(owner, repository, until):
    """The repository on disk: as it was pulled into the template, or fetched now."""
    place = os.path.join(REPOSITORIES, owner, repository)
    if os.path.isdir(os.path.join(place, ".git")):
        return place
    parent = os.path.dirname(place)
    try:
        os.makedirs(parent, exist_ok=True)
        who = person()
        if who:
            os.chown(parent, who.pw_uid, who.pw_gid)
    except OSError as error:
        raise Refused("%s: %s" % (parent, error))
    name = "github/%s/%s" % (owner, repository)
    run_step(name, ["git", "clone", "--quiet", "--depth", "1", "--", "https://github.com/%s/%s" % (owner, repository), place], "/",
             {"GIT_TERMINAL_PROMPT": "0"}, until)
    return place


class Child:
    """One server: a process that is asked by lines of JSON-RPC. Started again by the next request after it ended."""

    def __init__(self, name, how):
        self.name, self.how = name, how
        self.lock, self.write_lock = threading.Lock(), threading.Lock()
        self.process, self.waiting, self.progress, self.number = None, {}, {}, 0
        self.capabilities, self.lists, self.stale = {}, {}, True
        self.begun = 0.0

    def label(self):
        return re.sub(r"[^A-Za-z0-9_-]", "_", self.name.rsplit("/", 1)[-1])

    def prepare(self, until):
        if "repository" in self.how:
            self.how["cwd"] = fetch(*self.how["repository"], until)
            if self.how["install"]:
                run_step(self.name, ["/bin/sh", "-c", self.how["install"]], self.how["cwd"], self.how["env"], until)

    def start(self, until):
        """Under self.lock."""
        self.begun = time.monotonic()
        env = environment(self.how["env"])
        if not shutil.which(self.how["argv"][0], path=env.get("PATH")):
            raise Refused("%s: there is no program '%s'" % (self.name, self.how["argv"][0][:200]))
        try:
            process = subprocess.Popen(self.how["argv"], cwd=self.how["cwd"] or home(), env=env, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **as_person())
        except (OSError, ValueError) as error:
            raise Refused("%s: %s" % (self.name, error))
        self.process = process
        tail = collections.deque(maxlen=3)
        threading.Thread(target=self.read, args=(process,), daemon=True).start()
        errors = threading.Thread(target=self.hear, args=(process, tail), daemon=True)
        errors.start()
        try:
            hello = self.ask("initialize", {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": {"name": "mcp-gateway", "version": "1"}}, until)
            self.capabilities = hello.get("capabilities") if isinstance(hello, dict) and isinstance(hello.get("capabilities"), dict) else {}
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except Refused as refused:
            self.end(process)
            errors.join(2)
            said = ": " + " / ".join(tail)[:600] if tail else ""
            raise Refused("%s%s" % (refused if str(refused).startswith(self.name) else "%s: %s" % (self.name, refused), said))
        self.stale = True

    def ensure(self):
        with self.lock:
            if self.process and self.process.poll() is None:
                return
            if time.monotonic() - self.begun < 1:
                raise Refused("%s has just ended; ask again in a second" % self.name)
            log("%s is started again" % self.name)
            self.start(time.monotonic() + LIST_SECONDS)

    def end(self, process=None):
        process = process or self.process
        if process:
            kill_group(process)
            process.wait()

    def hear(self, process, tail):
        for line in iter(lambda: process.stderr.readline(4096), b""):
            text = line.decode("utf-8", "replace").rstrip()
            tail.append(text)
            log("%s: %s" % (self.name, text))

    def read(self, process):
        while True:
            line = process.stdout.readline(LINE_MAX + 1)
            if not line or len(line) > LINE_MAX:
                break
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                log("%s said a line that is not JSON" % self.name)
                continue
            if isinstance(message, dict):
                self.take(message)
        self.end(process)
        log("%s ended with %s" % (self.name, process.returncode))
        for box in list(self.waiting.values()):
            if box["process"] is process:
                box["answer"] = {"error": {"code": FAILED, "message": "%s ended with %s" % (self.name, process.returncode)}}
                box["came"].set()

    def take(self, message):
        number, method = message.get("id"), message.get("method")
        if method is None:
            box = self.waiting.get(number) if isinstance(number, int) else None
            if box:
                box["answer"] = message
                box["came"].set()
        elif number is not None:  # servers may ask the client for nothing: the gateway announced no capability
            answer = {"result": {}} if method == "ping" else {"error": {"code": METHOD_UNKNOWN, "message": "the gateway does not offer %s" % str(method)[:80]}}
            try:
                self.send({"jsonrpc": "2.0", "id": number, **answer})
            except Refused:
                pass  # the server is ending, which read() finds out
        elif method == "notifications/progress" and isinstance(message.get("params"), dict):
            tell = self.progress.get(message["params"].get("progressToken")) if isinstance(message["params"].get("progressToken"), (str, int)) else None
            if tell:
                tell(message["params"])
        elif isinstance(method, str) and method.endswith("/list_changed"):
            self.stale = True

    def send(self, message):
        """A server that stops to read in the middle of a message is ended: the rest of the message would be taken for another."""
        process, data, until = self.process, json.dumps(message).encode() + b"\n", time.monotonic() + WRITE_SECONDS
        try:
            with self.write_lock:
                while data:
                    left = until - time.monotonic()
                    if left <= 0 or not select.select([], [process.stdin], [], left)[1]:
                        os.killpg(process.pid, signal.SIGKILL)
                        raise Refused("%s does not read" % self.name)
                    data = data[os.write(process.stdin.fileno(), data[:PIPE_PART]):]
        except (OSError, ValueError):
            raise Refused(self.why_silent(process))

    def why_silent(self, process):
        """Of a server that does not read, or not answer, any more. The code is the server's own, not that of a signal which came later."""
        try:
            return "%s ended with %d" % (self.name, process.wait(2))
        except subprocess.TimeoutExpired:
            return "%s does not read" % self.name

    def ask(self, method, params, until=None, tell=None, gone=None):
        """The result of a request. `tell` gets progress; `gone` says whether the asking client went away, which cancels."""
        process, box = self.process, {"came": threading.Event(), "answer": None, "process": self.process}
        with self.write_lock:
            self.number += 1
            number = self.number
        if tell:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": number}}
            self.progress[number] = tell
        self.waiting[number] = box
        try:
            self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            while not box["came"].wait(0.5):
                late, away = until is not None and time.monotonic() > until, gone is not None and gone()
                if late or away:
                    self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number, "reason": "timeout" if late else "cancelled"}})
                    raise Refused("%s: no answer to %s in time" % (self.name, method) if late else "cancelled")
                if process.poll() is not None and not box["came"].wait(2):
                    raise Refused(self.why_silent(process))
        finally:
            self.waiting.pop(number, None)
            self.progress.pop(number, None)
        answer = box["answer"]
        if isinstance(answer.get("error"), dict):
            raise Refused(str(answer["error"].get("message", "failed")), answer["error"].get("code", FAILED), answer["error"].get("data"))
        return answer.get("result", {})

    def items(self, method, key, capability):
        """A list of the server, page by page."""
        if not isinstance(self.capabilities.get(capability), dict):
            return []
        found, cursor = [], None
        for _ in range(PAGES_MAX):
            try:
                page = self.ask(method, {"cursor": cursor} if cursor else {}, time.monotonic() + LIST_SECONDS)
            except Refused as refused:
                if refused.error["code"] == METHOD_UNKNOWN:  # a server with resources need not have templates
                    break
                raise
            page = page if isinstance(page, dict) else {}
            part = page.get(key)  # null from servers in Go, for an empty list
            found += [one for one in part if isinstance(one, dict)] if isinstance(part, list) else []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                break
        return found

    def refresh(self):
        self.ensure()
        with self.lock:
            if self.stale:
                self.stale = False
                try:
                    self.lists = {kind: self.items(method, key, capability) for kind, (method, key, capability, _) in LISTS.items()}
                except Refused:
                    self.stale = True
                    raise
        return self.lists


#           of a client's and a server's method, the member with the list, the capability, what an item is known by
LISTS = {
    "tools": ("tools/list", "tools", "tools", "name"),
    "prompts": ("prompts/list", "prompts", "prompts", "name"),
    "resources": ("resources/list", "resources", "resources", "uri"),
    "templates": ("resources/templates/list", "resourceTemplates", "resources", "uriTemplate"),
}
