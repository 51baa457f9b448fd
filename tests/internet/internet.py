#!/usr/bin/env python3
"""internet.py DIR - plays the internet inside a network namespace of a test: HTTP, HTTPS with an own CA, an echo server
that speaks first, and a name server that tells the truth or lies, as its table says. Writes DIR/ready when it listens."""
import base64, hashlib, http.client, http.server, json, os, socket, socketserver, ssl, struct, subprocess, sys, threading, time

here = sys.argv[1]
WWW, OTHER, PRIVATE, METADATA = '93.184.216.34', '93.184.216.35', '10.9.9.9', '169.254.169.254'
WWW6 = '2606:2800:220::34'

# name → (addresses, ttl); a text is an alias; a function answers again each time
turn = {'n': 0}
def rebind():
    turn['n'] += 1
    return [WWW] if turn['n'] % 2 else [PRIVATE]
NAMES = {
    'www.example.com': [WWW, WWW6], 'api.example.com': [WWW], 'other.example.net': [OTHER], 'evil.test': [OTHER],
    'private.evil.test': [PRIVATE], 'meta.evil.test': [METADATA], 'loop.evil.test': ['127.0.0.1'],
    'mapped.evil.test': ['::ffff:10.9.9.9'], 'six.evil.test': ['fd00::1'], 'mixed.evil.test': [PRIVATE, OTHER],
    'cname.evil.test': 'private.evil.test', 'cname.example.com': 'www.example.com', 'rebind.evil.test': rebind,
    'localhost': ['127.0.0.1', '::1'], 'a.localhost': ['127.0.0.1'], 'six-loop.evil.test': ['::1'], 'nat-loop.evil.test': ['64:ff9b::7f00:1'],
    'host6.evil.test': ['2606:2800:220::1'], 'cname-loop.evil.test': 'localhost',
    'registry.example.com': [WWW], 'git.example.com': [WWW], 'self.evil.test': ['93.184.216.1'],
    'four6.evil.test': ['64:ff9b::a09:909'], 'short.example.com': [WWW],
    'proxy.example.com': [WWW], 'proxy6.example.com': [WWW6], 'two.example.com': ['93.184.216.36', WWW],
    'vault.example.com': [WWW], 'clear.example.com': [WWW], 'a.wild.example.com': [WWW], 'unproven.example.com': [WWW],
    **{f'c{i}.evil.test': f'c{i + 1}.evil.test' for i in range(12)}, 'c12.evil.test': [PRIVATE], 'chain.evil.test': 'c0.evil.test',
    'api.anthropic.com': [WWW], # tests/model.py, where a test starts it at port 5055 of loopback here
    'hub.example.com': [WWW], 'code.example.com': [WWW], 'npm.example.com': [WWW], 'pypi.example.com': [WWW], 'wheels.example.com': [WWW],
}
seen, seen_lock = open(os.path.join(here, 'seen'), 'a', buffering=1), threading.Lock()
asked = open(os.path.join(here, 'asked'), 'a', buffering=1)

def name_text(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode('ascii', 'replace'))
        at += data[at] + 1
    return '.'.join(labels), at + 1

def wire(name):
    return b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\0'

def answer(data):
    name, at = name_text(data, 12)
    kind = struct.unpack('>H', data[at:at + 2])[0]
    asked.write(f'{name} {kind}\n')
    question, records, code = data[12:at + 4], [], 0
    entry, owner = NAMES.get(name.lower()), wire(name)
    if entry is None:
        code = 3
    while isinstance(entry, str):
        target = wire(entry)
        records.append(owner + struct.pack('>HHIH', 5, 1, 60, len(target)) + target)
        owner, entry = target, NAMES.get(entry)
    if callable(entry):
        entry = entry()
    for address in entry or []:
        packed = socket.inet_pton(socket.AF_INET6 if ':' in address else socket.AF_INET, address)
        if kind == (28 if len(packed) == 16 else 1):
            records.append(owner + struct.pack('>HHIH', kind, 1, 0 if name.lower() == 'rebind.evil.test' else 60, len(packed)) + packed)
    return data[:2] + struct.pack('>HHHHH', 0x8180 | code, 1, len(records), 0, 0) + question + b''.join(records)

class Dns(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        if b'\x05never\x04test' not in data:  # names below never.test have no answer at all
            sock.sendto(answer(data), self.client_address)

class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *a):
        pass
    def reply(self, body=b'', kind=None):
        self.send_response(200)
        if kind:
            self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def write_down(self):
        with seen_lock:
            seen.write(json.dumps({'path': self.path, 'tls': hasattr(self.connection, 'cipher'),
                                   'headers': [list(h) for h in self.headers.items()]}) + '\n')
    def do_GET(self):
        if self.path == '/late':  # answers when the test says so
            open(os.path.join(here, 'late'), 'w').close()
            while not os.path.exists(os.path.join(here, 'late.go')):
                time.sleep(0.05)
            self.reply(b'late\n')
            return open(os.path.join(here, 'late.done'), 'w').close()
        if self.path.startswith('/big/'):
            return self.reply(b'x' * int(self.path[5:]))
        if self.path == '/ws' and self.headers.get('Upgrade', '').lower() == 'websocket':
            return self.echo_frames()
        if self.path.startswith('/seen'):  # what came is written down, not sent back
            self.write_down()
            return self.reply(b'seen\n')
        # Names that have files of their own (DIR/www/NAME) serve those.
        root = os.path.join(here, 'www', (self.headers.get('Host') or '').split(':')[0])
        if os.path.isdir(root):
            wanted = os.path.join(root, '.authorization')
            if os.path.exists(wanted) and self.headers.get('Authorization') != open(wanted).read():
                self.send_response(401)
                self.send_header('WWW-Authenticate', 'Basic realm="hub"')
                self.send_header('Content-Length', '0')
                return self.end_headers()
            path = os.path.normpath(os.path.join(root, self.path.split('?')[0].lstrip('/')))
            path = os.path.join(path, 'index.html') if os.path.isdir(path) else path
            if not path.startswith(root) or not os.path.isfile(path):
                return self.send_error(404)
            return self.reply(open(path, 'rb').read(), 'text/html' if path.endswith('.html') else 'application/octet-stream')
        at = self.connection.getsockname()[0].replace('::ffff:', '')
        self.reply(f'{at} host={self.headers.get("Host")} path={self.path} from={self.client_address[0].replace("::ffff:", "")}\n'.encode())
    def echo_frames(self):  # short frames of a WebSocket, until the client has enough
        key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.send_response(101)
        for header, value in (('Upgrade', 'websocket'), ('Connection', 'Upgrade'),
                              ('Sec-WebSocket-Accept', base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())):
            self.send_header(header, value)
        self.end_headers()
        self.wfile.flush()
        while (head := self.rfile.read(2)) and len(head) == 2 and head[0] & 15 != 8:
            mask, data = self.rfile.read(4), self.rfile.read(head[1] & 127)
            self.wfile.write(bytes([head[0], len(data)]) + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
            self.wfile.flush()
        self.close_connection = True
    def ask_model(self):
        self.write_down()
        model = http.client.HTTPConnection('127.0.0.1', 5055)
        model.request('POST', self.path, self.rfile.read(int(self.headers.get('Content-Length', 0))))
        said = model.getresponse()
        self.reply(said.read(), said.headers['Content-Type'])
        model.close()
    def do_POST(self):
        if self.headers.get('Host') == 'api.anthropic.com':
            return self.ask_model()
        left, total = int(self.headers.get('Content-Length', 0)), 0
        while left > 0:
            n = len(self.rfile.read(min(65536, left)))
            left -= n
            total += n
        self.reply(b'got %d\n' % total)

class Server6(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True
    request_queue_size = 512

class Echo(socketserver.BaseRequestHandler):  # speaks first, as mail and ssh servers do
    def handle(self):
        self.request.sendall(b'220 hello\r\n')
        while True:
            data = self.request.recv(65536)
            if not data:
                return
            self.request.sendall(data)

class Echo6(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    daemon_threads = allow_reuse_address = True
    request_queue_size = 512

def make_certificates():
    names = 'DNS:www.example.com,DNS:api.example.com,DNS:other.example.net,DNS:registry.example.com,DNS:git.example.com,DNS:evil.test,' \
        'DNS:api.anthropic.com,DNS:vault.example.com,DNS:clear.example.com,DNS:*.wild.example.com,DNS:hub.example.com,DNS:code.example.com,DNS:npm.example.com,DNS:pypi.example.com,DNS:wheels.example.com'
    run = lambda *a: subprocess.run(a, cwd=here, check=True, stderr=subprocess.DEVNULL)
    run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'ca.key', '-out', 'ca.pem',
        '-days', '2', '-subj', '/CN=test CA')
    run('openssl', 'req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'key.pem', '-out', 'req.pem',
        '-subj', '/CN=www.example.com', '-addext', 'subjectAltName=' + names)
    run('openssl', 'x509', '-req', '-in', 'req.pem', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-out', 'cert.pem',
        '-copy_extensions', 'copy')

make_certificates()
serve = lambda s: threading.Thread(target=s.serve_forever, daemon=True).start()
web, secure = Server6(('::', 80), Web), Server6(('::', 443), Web)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(here, 'cert.pem'), os.path.join(here, 'key.pem'))
# Shaking hands in the thread of the connection, or one silent client would stop all others.
class Secure(Web):
    def setup(self):
        self.request = context.wrap_socket(self.request, server_side=True)
        super().setup()
secure.RequestHandlerClass = Secure
for server in web, secure, Server6(('::', 8080), Web), Echo6(('::', 25), Echo), socketserver.ThreadingUDPServer(('93.184.216.53', 53), Dns):
    serve(server)
open(os.path.join(here, 'ready'), 'w').close()
threading.Event().wait()
