#!/usr/bin/env python3
"""mcp-gateway: one MCP server over HTTP in front of MCP servers that speak on standard input and output.

    GATEWAY_ACCESS_TOKEN=TOKEN mcp-gateway --config JSON     start; returns when every server answers, or fails with the reason
    mcp-gateway pull github/OWNER/REPO...                    fetch repositories before the start, into a template

JSON is an object of servers by name:

    {"NAME": {"command": "npx", "args": ["-y", "PACKAGE"], "env": {"K": "V"}, "cwd": "/home/user"},
     "github/OWNER/REPO": {"installCmd": "npm install", "runCmd": "node index.js", "envs": {"K": "V"}}}

The gateway listens at port 50005, path /mcp, and answers requests with the header "Authorization: Bearer TOKEN". It joins tools, prompts and
resources of all servers. A name that two servers have becomes SERVER_name. Started by root, the gateway runs the servers as the sandbox's user.
Standard library only; the protocol is MCP's streamable HTTP, revisions 2025-03-26 to 2025-11-25.
"""
import collections
import hmac
import http.server
import json
import os
import re
import select
import socket
import sys
import threading
import time
import urllib.parse
import uuid

sys.path.insert(0, "/opt/cove/mcp")
from mcp_servers import FAILED, LISTS, LOG, METHOD_UNKNOWN, REPOSITORY, VERSIONS, Child, Refused, cannot, fetch, log, parse_config  # noqa: E402

PORT = 50005
DIRECTORY = "/etc/mcp-gateway"
START_SECONDS = 50  # E2B's SDK waits for a minute
BODY_MAX = 4 << 20
PROGRESS_SECONDS = 5  # for a client to take a message about progress
SESSIONS_MAX, CONNECTIONS_MAX, REQUESTS_MAX = 1000, 128, 64
PARAMS_WRONG, REQUEST_WRONG, NOT_JSON = -32602, -32600, -32700
CALLS = {"tools/call": ("tools", "name"), "prompts/get": ("prompts", "name")}


class Gateway:
    def __init__(self, children):
        self.children = children
        self.sessions, self.lock = collections.OrderedDict(), threading.Lock()
        self.running = {}  # (session, id of the request) to the event that cancels the request

    def joined(self, kind):
        """{name for clients: (child, name at the child, item)}; a name of two servers gets the server's before it."""
        key, all_items = LISTS[kind][3], []
        for child in self.children:
            try:
                lists = child.refresh()
            except Refused as refused:
                log("%s: %s" % (child.name, refused))
                lists = child.lists  # what the server had: a call of it says what is wrong
            all_items += [(child, item[key], item) for item in lists.get(kind, []) if isinstance(item.get(key), str)]
        count = collections.Counter(name for _, name, _ in all_items)
        out = {}
        for child, name, item in all_items:
            shown = name if key != "name" or count[name] == 1 else "%s_%s" % (child.label(), name)
            out.setdefault(shown, (child, name, {**item, key: shown}))
        return out

    def answer(self, method, params, tell, gone, session):
        """The result of a client's request."""
        if method == "initialize":
            version = params.get("protocolVersion")
            return {"protocolVersion": version if version in VERSIONS else VERSIONS[0], "serverInfo": {"name": "mcp-gateway", "version": "1"},
                    "capabilities": {name: {} for name in ("tools", "prompts", "resources") if any(name in child.capabilities for child in self.children)}}
        if method == "ping":
            return {}
        for kind, (list_method, key, _, _) in LISTS.items():
            if method == list_method:
                return {key: [item for _, _, item in self.joined(kind).values()]}
        if method in CALLS:
            kind, key = CALLS[method]
            found = self.joined(kind).get(params.get(key)) if isinstance(params.get(key), str) else None
            if not found:
                raise Refused("unknown %s '%s'" % (kind[:-1], str(params.get(key))[:128]), PARAMS_WRONG)
            child, name, _ = found
            child.ensure()
            return child.ask(method, {**params, key: name}, tell=tell, gone=gone)
        if method == "resources/read":
            return self.read_resource(params, gone)
        raise Refused("unknown method '%s'" % method[:80], METHOD_UNKNOWN)

    def read_resource(self, params, gone):
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise Refused("uri must be a text", PARAMS_WRONG)
        listed = self.joined("resources").get(uri)
        askable = [listed[0]] if listed else [child for child in self.children if "resources" in child.capabilities]
        refused = Refused("unknown resource '%s'" % uri[:200], PARAMS_WRONG)
        for child in askable:
            try:
                child.ensure()
                return child.ask("resources/read", params, gone=gone)
            except Refused as why:
                refused = why
        raise refused

    def open_session(self):
        name = uuid.uuid4().hex
        with self.lock:
            self.sessions[name] = True
            while len(self.sessions) > SESSIONS_MAX:
                self.sessions.popitem(last=False)
        return name


# ---- HTTP ----

def host_of(address):
    """None: the address has no host, or is none."""
    try:
        return urllib.parse.urlsplit(address).hostname
    except ValueError:
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "mcp-gateway", ""
    timeout = 120  # of a silent client
    gateway = token = None  # set before the server starts
    room = threading.Semaphore(REQUESTS_MAX)

    def log_message(self, *about):
        pass

    def reply(self, status, body=None, headers=()):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, code, sentence, number=None, headers=()):
        self.close_connection = True  # the body may be unread
        self.reply(status, {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": sentence}}, (("Connection", "close"), *headers))

    def admitted(self):
        """Whether path, key and origin are right; else the client was told."""
        if self.path.split("?")[0] != "/mcp":
            self.refuse(404, REQUEST_WRONG, "there is only /mcp")
            return False
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), ("Bearer " + self.token).encode()):
            self.refuse(401, REQUEST_WRONG, "Authorization: Bearer with the gateway's token is needed", headers=(("WWW-Authenticate", "Bearer"),))
            return False
        origin = self.headers.get("Origin")
        if origin is not None and host_of(origin) not in ("localhost", "127.0.0.1", "::1", host_of("//" + self.headers.get("Host", "")) or "localhost"):
            self.refuse(403, REQUEST_WRONG, "pages of this origin may not ask")
            return False
        session = self.headers.get("Mcp-Session-Id")
        if session is not None and session not in self.gateway.sessions:
            self.refuse(404, REQUEST_WRONG, "unknown session: initialize again")
            return False
        return True

    def do_GET(self):
        if self.admitted():
            self.refuse(405, REQUEST_WRONG, "POST is the only method with messages", headers=(("Allow", "POST, DELETE"),))

    def do_DELETE(self):
        if self.admitted():
            self.gateway.sessions.pop(self.headers.get("Mcp-Session-Id"), None)
            self.reply(204)

    def do_POST(self):
        if not self.admitted():
            return
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,10}", length):
            return self.refuse(411, REQUEST_WRONG, "Content-Length is needed")
        if int(length) > BODY_MAX:
            return self.refuse(413, REQUEST_WRONG, "a message has at most %d bytes" % BODY_MAX)
        body = self.rfile.read(int(length))
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return self.refuse(400, NOT_JSON, "the body is not JSON")
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("params", {}), dict):
            return self.refuse(400, REQUEST_WRONG, "the body is not one message of JSON-RPC 2.0")
        if not self.room.acquire(blocking=False):
            return self.refuse(503, FAILED, "too many requests in progress", message.get("id") if isinstance(message.get("id"), (int, str)) else None)
        try:
            self.message(message)
        finally:
            self.room.release()

    def message(self, message):
        method, number, params = message.get("method"), message.get("id"), message.get("params", {})
        if not isinstance(method, str) or "id" not in message:  # a notification, or an answer to nothing
            if method == "notifications/cancelled":
                self.cancel(params.get("requestId"))
            return self.reply(202)
        if not isinstance(number, (int, str)) or isinstance(number, bool):
            return self.refuse(400, REQUEST_WRONG, "id must be a text or an integer")
        if method == "server/discover":  # a client of a later revision asks; it goes on with initialize
            return self.refuse(400, METHOD_UNKNOWN, "this server begins with initialize", number)
        self.serve_request(method, number, params)

    def cancel(self, number):
        session = self.headers.get("Mcp-Session-Id")
        event = self.gateway.running.get((session, json.dumps(number))) if session else None
        if event:
            event.set()

    def serve_request(self, method, number, params):
        session, cancelled = self.headers.get("Mcp-Session-Id"), threading.Event()
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        stream = Stream(self, token) if method == "tools/call" and isinstance(token, (str, int)) and "text/event-stream" in self.headers.get("Accept", "") else None
        key = (session, json.dumps(number))
        if session:
            self.gateway.running[key] = cancelled
        try:
            result = {"result": self.gateway.answer(method, params, stream.progress if stream else None, lambda: cancelled.is_set() or self.gone(), session)}
        except Refused as refused:
            result = {"error": refused.error}
        finally:
            self.gateway.running.pop(key, None)
        answer = {"jsonrpc": "2.0", "id": number, **result}
        if stream and stream.begun:
            stream.event(answer)
            return None
        return self.reply(200, answer, (("Mcp-Session-Id", self.gateway.open_session()),) if method == "initialize" else ())

    def gone(self):
        """Whether the client closed its connection."""
        try:
            return bool(select.select([self.connection], [], [], 0)[0]) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True


class Stream:
    """The answer as events: begun by the first progress, ended by the response."""

    def __init__(self, handler, token):
        self.handler, self.token, self.begun, self.broken, self.lock = handler, token, False, False, threading.Lock()

    def progress(self, params):
        """By the thread that reads from the server: one client that does not read must not hold up the others."""
        self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {**params, "progressToken": self.token}}, PROGRESS_SECONDS)

    def event(self, message, seconds=Handler.timeout):
        with self.lock:
            if self.broken:
                return
            try:
                self.handler.connection.settimeout(seconds)
                if not self.begun:
                    self.begun = self.handler.close_connection = True
                    self.handler.send_response(200)
                    for name, value in (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no"), ("Connection", "close")):
                        self.handler.send_header(name, value)
                    self.handler.end_headers()
                self.handler.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
                self.handler.wfile.flush()
            except (OSError, ValueError):  # ValueError: the connection was closed meanwhile
                self.broken = True
                self.hang_up()  # so that gone() finds out

    def hang_up(self):
        try:
            self.handler.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    room = threading.Semaphore(CONNECTIONS_MAX)

    def process_request(self, request, client_address):
        if self.room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, request, client_address):
        log("a connection failed: %r" % (sys.exc_info()[1],))


# ---- start ----

def start_all(children):
    """Every server, at the same time; Refused with all reasons if one does not answer."""
    until, reasons = time.monotonic() + START_SECONDS, []

    def one(child):
        try:
            child.prepare(until)
            with child.lock:
                child.start(until)
            child.refresh()
        except Refused as refused:
            reasons.append(str(refused) if str(refused).startswith(child.name) else "%s: %s" % (child.name, refused))
    threads = [threading.Thread(target=one, args=(child,)) for child in children]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if reasons:
        for child in children:
            child.end()
        raise Refused("; ".join(reasons))


def keep_token(token):
    """Where the SDK finds the token later. For root alone."""
    try:
        os.makedirs(DIRECTORY, mode=0o700, exist_ok=True)
        with open(os.open(DIRECTORY + "/.token", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(token)
    except OSError as error:
        raise Refused("keep the token: %s" % error)


def serve(servers, token, ready):
    """In the background: says on `ready` what is wrong, or nothing, when it listens."""
    try:
        try:
            server = Server(("0.0.0.0", PORT), Handler)
        except OSError as error:
            raise Refused("port %d: %s; is a gateway running already?" % (PORT, error.strerror))
        children = [Child(name, how) for name, how in servers.items()]
        start_all(children)
        if os.geteuid() == 0:
            keep_token(token)
        Handler.gateway, Handler.token = Gateway(children), token
    except Refused as refused:
        os.write(ready, str(refused).encode("utf-8", "replace")[:4000])
        os._exit(1)
    os.write(ready, b"\0")
    os.close(ready)
    server.serve_forever()


def start(text):
    token = os.environ.get("GATEWAY_ACCESS_TOKEN", "")
    if not re.fullmatch(r"[\x21-\x7e]{16,256}", token):
        raise Refused("GATEWAY_ACCESS_TOKEN must have 16 to 256 characters, without blanks")
    servers = parse_config(text)
    heard, ready = os.pipe()
    if os.fork() == 0:
        os.close(heard)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        os.chdir("/")
        serve(servers, token, ready)
        os._exit(0)
    os.close(ready)
    said = b"".join(iter(lambda: os.read(heard, 4096), b""))
    if said != b"\0":
        raise Refused(said.decode("utf-8", "replace") or "the gateway ended at its start; see %s" % LOG)


def pull(names):
    """For templates: repositories are there when sandboxes start."""
    missing = [name for name in names if not REPOSITORY.match(name)]
    if missing or not names:
        raise Refused(cannot(missing) if missing else "pull: name github/OWNER/REPO")
    for name in names:
        fetch(*REPOSITORY.match(name).groups(), time.monotonic() + 600)


def main(argv):
    try:
        if argv[:1] == ["pull"]:
            pull(argv[1:])
        elif len(argv) == 2 and argv[0] == "--config":
            start(argv[1])
        elif argv in (["--help"], ["-h"]):
            print(__doc__.strip())
        else:
            raise Refused("say --config JSON, or pull NAME; --help tells more")
    except Refused as refused:
        print("mcp-gateway: %s" % refused, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
