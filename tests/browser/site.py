"""A site inside a sandbox: a page with everything that browsers load, and what was seen of each request."""
import base64
import hashlib
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"""<!doctype html><meta charset=utf-8><title>waiting</title><link rel=stylesheet href=/style.css><img id=i src=/dot.gif>
<script src=/script.js></script><script>
const told = {}, say = (k, v) => { told[k] = v; if (Object.keys(told).length === 7) document.title = JSON.stringify(told) }
say('script', window.fromScript)
say('address', location.href)
say('cookies', document.cookie)
const i = document.getElementById('i')
const pic = () => say('picture', i.naturalWidth)
i.complete ? pic() : (i.onload = i.onerror = pic)
fetch('/post', { method: 'POST', body: 'x' }).then((a) => say('post', a.status), (e) => say('post', String(e)))
const w = new WebSocket(location.origin.replace('http', 'ws') + '/ws')
w.onmessage = (e) => { say('socket', e.data); w.close() }
w.onerror = () => say('socket', 'refused')
const s = new EventSource('/events')
s.onmessage = (e) => { say('events', e.data); s.close() }
s.onerror = () => { if (!told.events) say('events', 'refused'); s.close() }
</script>"""
# A page that wants at another sandbox and at the server itself, with whatever cookies the browser has.
EVIL = b"""<!doctype html><meta charset=utf-8><title>waiting</title><body><script>
const [other, api] = [decodeURIComponent(location.hash.slice(1)).split(' ')[0], decodeURIComponent(location.hash.slice(1)).split(' ')[1]]
const told = {}, say = (k, v) => { told[k] = v; if (Object.keys(told).length === 7) document.title = JSON.stringify(told) }
const tag = (k, name, url) => { const e = document.createElement(name); e.onload = () => say(k, 'loaded'); e.onerror = () => say(k, 'refused')
  e.src = url; document.body.append(e) }
const get = (k, url, more) => fetch(url, { credentials: 'include', ...more }).then((a) => say(k, a.type === 'opaque' ? 'opaque' : a.status), () => say(k, 'refused'))
tag('picture', 'img', other + '/dot.gif?evil')
tag('script', 'script', other + '/script.js?evil')
get('read', other + '/read?evil')
get('blind', other + '/blind?evil', { method: 'POST', mode: 'no-cors', body: 'x' })
get('api', api + '/v1/sandboxes')
get('create', api + '/v1/sandboxes', { method: 'POST', mode: 'no-cors', body: '{"metadata":{"evil":"yes"}}' })
const w = new WebSocket(other.replace('http', 'ws') + '/ws?evil')
w.onmessage = (e) => say('socket', e.data)
w.onerror = () => say('socket', 'refused')
</script>"""
DOT = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
seen = []


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def give(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        seen.append(self.requestline + "\n" + str(self.headers))
        self.give("text/plain", b"taken")

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/seen":
            return self.give("application/json", json.dumps(seen).encode())
        seen.append(self.requestline + "\n" + str(self.headers))
        if path == "/style.css":
            return self.give("text/css", b"body { color: green }")
        if path == "/script.js":
            return self.give("text/javascript", b"window.fromScript = 'ran'")
        if path == "/dot.gif":
            return self.give("image/gif", DOT)
        if path == "/evil":
            return self.give("text/html", EVIL)
        if path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"data: event\n\n")
            self.wfile.flush()
            time.sleep(1)
            self.close_connection = True
            return None
        if path == "/ws":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            self.wfile.write(b"\x81\x05hello")
            self.wfile.flush()
            self.rfile.read(1)
            self.close_connection = True
            return None
        return self.give("text/html", PAGE)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Site).serve_forever()
