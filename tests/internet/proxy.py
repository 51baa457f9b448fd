#!/usr/bin/env python3
"""proxy.py DIR - proxies in a network namespace of a test: SOCKS5 (RFC 1928, 1929) and HTTP CONNECT, with and without a login,
and such as are broken in one way each. What they were asked for is in DIR/proxied. Writes DIR/proxies when all listen."""
import base64, os, socket, struct, sys, threading, time

here = sys.argv[1]
USER, PASSWORD = 'cove', 'open:sesame'
NAMES = {'www.example.com': '93.184.216.34', 'api.example.com': '93.184.216.34', 'other.example.net': '93.184.216.35'}
asked = open(os.path.join(here, 'proxied'), 'a', buffering=1)

def exactly(sock, count):
    data = b''
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise OSError('ended')
        data += piece
    return data

def copy(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass

def join(sock, host, port, agreed, refused):
    try:
        far = socket.create_connection((NAMES.get(host, host), port), 5)
    except OSError:
        return sock.sendall(refused)
    # The answer in two pieces: what it means must not depend on how it comes.
    sock.sendall(agreed[:3]); time.sleep(.02); sock.sendall(agreed[3:])
    back = threading.Thread(target=copy, args=(far, sock), daemon=True)
    back.start()
    copy(sock, far)
    back.join()
    far.close()

def socks5(sock, login=False):
    version, count = exactly(sock, 2)
    methods = exactly(sock, count)
    if login:
        if 2 not in methods:
            return sock.sendall(b'\5\xff')
        sock.sendall(b'\5\2')
        _, length = exactly(sock, 2)
        user = exactly(sock, length)
        password = exactly(sock, exactly(sock, 1)[0])
        good = (user.decode(), password.decode()) == (USER, PASSWORD)
        sock.sendall(b'\1' + (b'\0' if good else b'\1'))
        if not good:
            return
    else:
        sock.sendall(b'\5\0')
    _, _, _, kind = exactly(sock, 4)
    if kind == 3:
        host = exactly(sock, exactly(sock, 1)[0]).decode()
    else:
        host = socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, exactly(sock, 4 if kind == 1 else 16))
    port = struct.unpack('>H', exactly(sock, 2))[0]
    asked.write(f'socks5 {"name" if kind == 3 else "address"} {host} {port} {"login" if login else "open"}\n')
    join(sock, host, port, b'\5\0\0\3\x0bproxy.local\x12\x34', b'\5\5\0\1\0\0\0\0\0\0')

def connect(sock, login=False):
    head = b''
    while b'\r\n\r\n' not in head:
        head += exactly(sock, 1)
    lines = head.decode().split('\r\n')
    host, _, port = lines[0].split()[1].rpartition(':')
    want = 'Proxy-Authorization: Basic ' + base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()
    if login and want not in lines:
        return sock.sendall(b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n')
    asked.write(f'http {lines[0].split()[1]} {"login" if login else "open"}\n')
    join(sock, host.strip('[]'), int(port), b'HTTP/1.0 200 Connection established\r\nVia: test\r\n\r\n', b'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nno\n')

def says(text):
    def run(sock):
        sock.recv(1024)
        sock.sendall(text)
    return run

def endless(sock):
    sock.recv(1024)
    sock.sendall(b'HTTP/1.1 200 OK\r\n')
    for _ in range(100000):
        sock.sendall(b'X-More: ' + b'x' * 1000 + b'\r\n')

def drip(sock):
    sock.recv(1024)
    for c in b'HTTP/1.1 200 OK\r\nX: ' + b'y' * 60:
        sock.sendall(bytes([c])); time.sleep(1)

def lie(sock):  # SOCKS5 at first, and then something else
    sock.recv(1024)
    sock.sendall(b'\5\0')
    sock.recv(1024)
    sock.sendall(b'\4\0\0\1' + b'\0' * 6)

KINDS = {1080: socks5, 1081: lambda s: socks5(s, True), 3128: connect, 3129: lambda s: connect(s, True),
         4001: lambda s: None, 4002: lambda s: time.sleep(60), 4003: says(b'\0\xff\x16garbage' * 100), 4004: endless,
         4005: says(b'\5\xff'), 4006: says(b'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n'), 4007: lie, 4008: drip,
         4010: says(b'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n')}

def serve(port, kind):
    listener = socket.create_server(('::', port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
    def each(sock):
        try:
            kind(sock)
        except (OSError, ValueError):
            pass
        sock.close()
    def loop():
        while True:
            threading.Thread(target=each, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()

for port, kind in KINDS.items():
    serve(port, kind)
open(os.path.join(here, 'proxies'), 'w').close()
threading.Event().wait()
