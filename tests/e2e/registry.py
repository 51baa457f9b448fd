"""registry.py MODE FILE [SEED]: a registry of the tests that lies, asks for tokens, redirects, stalls; on a free port of 127.0.0.1.

Prints its port, then serves one image, test/app:latest, until its standard input ends. What it was asked is written to FILE,
one line each: PATH AUTHORIZATION RANGE. Registries with the same SEED have the same image."""
import base64
import json
import os
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from images import Image, entry, layer, sha  # noqa: E402

mode, log = sys.argv[1], sys.argv[2]
seed = sys.argv[3] if len(sys.argv) > 3 else None
data = random.Random(seed).randbytes(3 << 20)
image = Image([layer([entry("data", data=data)])], "none", Env=["MODE=" + (seed or mode)])
blobs = {"sha256:" + sha(b): b for b in [image.config] + image.packed}
manifest = image.manifest()
if mode == "large":  # more than it has, but who would know before the download
    manifest = json.dumps({**json.loads(manifest), "layers": [{**one, "size": 100 << 20} for one in json.loads(manifest)["layers"]]}).encode()
cuts = {}
stop = threading.Event()
TOKEN = "token-of-the-tests"


def index(descriptors):
    return json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": descriptors}).encode()


def descriptor(document, architecture, system="linux"):
    return {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:" + sha(document), "size": len(document),
            "platform": {"os": system, "architecture": architecture}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        auth = self.headers.get("Authorization", "-")
        with open(log, "a") as out:
            out.write("%s %s %s\n" % (self.path, auth, self.headers.get("Range", "-")))
        port = self.server.server_address[1]
        if self.path.startswith("/token"):
            good = "Basic " + base64.b64encode(b"me:secret").decode()
            if mode == "token-private" and auth != good:
                return self.answer(401)
            return self.answer(200, json.dumps({"token": TOKEN}).encode())
        if mode.startswith("token") and auth != "Bearer " + TOKEN:
            where = "http://localhost:%d/token" % port if mode == "token-elsewhere" else "http://127.0.0.1:%d/token" % port
            return self.answer(401, headers=[("WWW-Authenticate", 'Bearer realm="%s",service="tests",scope="repository:test/app:pull"' % where)])
        if mode == "busy":
            return self.answer(429, headers=[("Retry-After", "17")])
        if "/manifests/" in self.path:
            return self.manifest(self.path.rsplit("/", 1)[1])
        return self.blob(self.path.rsplit("/", 1)[1], port)

    def manifest(self, wanted):
        other = b'{"schemaVersion": 2}'
        if mode == "schema1":
            return self.answer(200, b'{"schemaVersion": 1, "fsLayers": []}')
        if mode in ("index", "no-platform") and not wanted.startswith("sha256:"):
            here = [descriptor(manifest, "amd64")] if mode == "index" else []
            return self.answer(200, index([descriptor(other, "arm64"), descriptor(other, "unknown", "unknown")] + here))
        if mode == "wrong-manifest" and wanted.startswith("sha256:"):
            return self.answer(200, manifest + b" ")
        return self.answer(200, manifest)

    def blob(self, digest, port):
        body = blobs.get(digest)
        if body is None or mode == "no-blob":
            return self.answer(404)
        if mode == "redirect" and "moved" not in self.path:
            return self.answer(307, headers=[("Location", "/moved/" + digest)])
        if mode == "redirect-split":  # would be a request with another first line
            return self.answer(307, headers=[("Location", "/moved/%s HTTP/1.1 x" % digest)])
        if mode == "redirect-inner":
            return self.answer(307, headers=[("Location", "http://localhost:%d/x/%s" % (port, digest))])
        if mode == "redirect-loop":
            return self.answer(307, headers=[("Location", self.path)])
        if mode == "wrong-blob":
            return self.answer(200, bytes([body[0] ^ 1]) + body[1:])
        if mode == "long-blob":
            return self.answer(200, body + b"x")
        if mode == "ranges":
            start = int(self.headers.get("Range", "bytes=0-").split("=")[1].rstrip("-"))
            return self.answer(206 if start else 200, body[start:])
        if mode == "wrong-cut":  # the connection breaks after a third, which is wrong
            self.answer(200, bytes([body[0] ^ 1]) + body[1:len(body) // 3], length=len(body))
            self.close_connection = True
            return None
        if mode == "stall":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:10])
            self.wfile.flush()
            return stop.wait()
        if mode == "cut":
            cuts[digest] = cuts.get(digest, 0) + 1
            start = int(self.headers.get("Range", "bytes=0-").split("=")[1].rstrip("-"))
            if cuts[digest] < 3 and len(body) > 100000:  # two thirds never come
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body) - start))
                self.end_headers()
                self.wfile.write(body[start:start + len(body) // 3])
                self.close_connection = True
                return None
            return self.answer(206 if start else 200, body[start:])
        return self.answer(200, body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], "sha256:" + sha(manifest), flush=True)
sys.stdin.read()
