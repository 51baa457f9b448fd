#!/usr/bin/env python3
"""bypass.py - runs inside a sandbox and tries to get out of a list policy in every way we know. One JSON line for each
attempt: what it is, what was seen, what should have been, and the event that is due. bypass_test judges."""
import json, os, re, select, socket, struct, subprocess, sys, time

WWW, OTHER, WWW6, HOST, HOST6 = '93.184.216.34', '93.184.216.35', '2606:2800:220::34', '93.184.216.1', '2606:2800:220::1'
PRIVATE, META = '10.9.9.9', '169.254.169.254'
CUT = r'^(cut|403)'                  # the gateway's: a reset, an end without a byte, or its sentence
SHUT = r'^error: Connection refused' # at the socket look-up: nobody accepted
SERVED = r'^served'
rows = []
next_port = iter(range(20001, 30000))

def row(sentence, want, event=None):
    """Decorates an attempt; it returns what it saw."""
    def add(fn):
        rows.append((sentence, fn, want, event))
        return fn
    return add

# ---- ways to speak ----

def seen(data):
    if not data:
        return 'cut: nothing came'
    if b'X-Cove-Refused' in data:
        return '403 ' + data.split(b'\r\n\r\n', 1)[1].split(b'\n')[0].decode()
    return 'served ' + repr(data[:60])

def open_to(address, port, timeout=4, options=()):
    info = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    s = socket.socket(info[0], socket.SOCK_STREAM)
    s.settimeout(timeout)
    for option in options:
        s.setsockopt(*option)
    s.connect(info[4])
    return s

def say(address, port, *pieces, first=0.0, between=0.05, options=(), enough=1, timeout=4):
    """Connects, sends the pieces, and says what came back. enough: of how many heads an answer is complete."""
    try:
        s = open_to(address, port, timeout, options)
    except OSError as e:
        return 'error: ' + (e.strerror or str(e))
    got = b''
    try:
        if first:
            time.sleep(first)
        for i, piece in enumerate(pieces):
            if i:
                time.sleep(between)
            s.sendall(piece)
        while got.count(b'HTTP/1.1 ') < enough or b'\r\n\r\n' not in got:
            data = s.recv(65536)
            if not data:
                break
            got += data
            if got[:1] in (b'\x16', b'\x15'):
                break
    except socket.timeout:
        return 'timeout' + (' after ' + seen(got) if got else '')
    except OSError as e:
        if not got:
            return 'cut: ' + (e.strerror or str(e))
    finally:
        s.close()
    if enough > 1:
        n = len(re.findall(rb'HTTP/1.1 200', got))
        return f'served {n} of {enough}' if n == enough else f'cut after {n}'
    return seen(got)

def get(host, path='/', method='GET', version='HTTP/1.1', more=''):
    return f'{method} {path} {version}\r\nHost: {host}\r\n{more}\r\n'.encode()

def hello(*names, raw=None, extra=(), record=16384, pad=0, session=b''):
    """A ClientHello of TLS 1.2 that any server answers; names: one server_name extension for each."""
    exts = []
    for name in names:
        name = name.encode('latin1')
        entry = b'\0' + struct.pack('>H', len(name)) + name
        exts.append((0, struct.pack('>H', len(entry)) + entry))
    if raw is not None:
        exts.append((0, raw))
    exts += [(10, b'\0\4\0\x1d\0\x17'), (11, b'\1\0'), (13, b'\0\6\4\3\4\1\10\4'), *extra]
    if pad:
        exts.append((21, b'\0' * pad))
    text = b''.join(struct.pack('>HH', t, len(d)) + d for t, d in exts)
    body = b'\3\3' + b'r' * 32 + bytes([len(session)]) + session + b'\0\4\xc0\x2b\xc0\x2f' + b'\1\0' + struct.pack('>H', len(text)) + text
    shake = b'\1' + struct.pack('>I', len(body))[1:] + body
    return b''.join(b'\x16\3\1' + struct.pack('>H', len(shake[i:i + record])) + shake[i:i + record] for i in range(0, len(shake), record))

def question(name, kind=1, labels=None, flags=0x0100, count=1, klass=1):
    labels = labels or [l.encode() for l in name.split('.')]
    return struct.pack('>HHHHHH', 7, flags, count, 0, 0, 0) + b''.join(bytes([len(l)]) + l for l in labels) + b'\0' + struct.pack('>HH', kind, klass)

def ask(name, kind=1, server='8.8.8.8', port=53, tcp=False, timeout=3, **more):
    q = question(name, kind, **more)
    try:
        if tcp:
            s = open_to(server, port)
            s.sendall(struct.pack('>H', len(q)) + q)
            a = s.recv(4096)[2:]
        else:
            s = socket.socket(socket.AF_INET6 if ':' in server else socket.AF_INET, socket.SOCK_DGRAM)
            s.settimeout(timeout)
            s.connect((server, port))
            s.send(q)
            a = s.recv(4096)
    except OSError as e:
        return 'error: ' + (e.strerror or str(e))
    return f'code {a[3] & 15} answers {struct.unpack(">H", a[6:8])[0]}' if len(a) >= 12 else 'cut'

def udp(address, port, data=b'x', options=()):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.3)
    try:
        for option in options:
            s.setsockopt(*option)
        s.connect((address, port))
        s.send(data)
        return 'served ' + repr(s.recv(100))
    except OSError as e:
        return 'error: ' + (e.strerror or str(e))

def tried(fn, *args):
    try:
        fn(*args)
        return 'done'
    except OSError as e:
        return 'error: ' + (e.strerror or str(e))

def refused(address=None, port=None, rule=None, host=None):
    return {k: v for k, v in dict(event='refused', address=address, port=port, rule=rule, host=host).items() if v is not None}

# ---- controls: what must work ----
row('control: the allowed name over HTTP', SERVED)(lambda: say('www.example.com', 80, get('www.example.com')))
row('control: the allowed name over TLS', SERVED)(lambda: say('www.example.com', 443, hello('www.example.com')))
row('control: a hello in records of one byte', SERVED)(lambda: say(WWW, 443, hello('www.example.com', record=1)))
row('control: a hello in segments', SERVED)(lambda: say(WWW, 443, *[hello('www.example.com')[i:i + 9] for i in range(0, 150, 9)], between=0.01))
row('control: an allowed address and port', SERVED)(lambda: say(OTHER, 8080, get('whatever')))
row('control: two requests for one host', r'served 2 of 2')(lambda: say(WWW, 80, get('www.example.com') + get('www.example.com'), enough=2))
row('control: a name of the rule, at an address that it does not have, goes where it belongs', r"served .*93.184.216.34|served b'HTTP/1.1 200")(
    lambda: say('93.184.216.53', 80, get('www.example.com')))
row('control: the name server answers', 'code 0 answers 1')(lambda: ask('www.example.com'))
row('control: a server that speaks first, at the address of the name', r'220 hello')(lambda: open_to(WWW, 25).recv(99).decode())
row('control: a client that waits, and asks for the allowed name', SERVED)(lambda: say(WWW, 80, get('www.example.com'), first=0.7))
row('control: a client that waits, with TLS', SERVED)(lambda: say(WWW, 443, hello('www.example.com'), first=0.7))
row('control: upper case and a dot at the end are the same name', SERVED)(lambda: say(WWW, 443, hello('WWW.Example.COM')))

# ---- addresses ----
def addresses():
    kinds = [
        ('a private address', PRIVATE, 'private'), ('the metadata service', META, 'metadata'), ('metadata of containers', '169.254.170.2', 'metadata'),
        ('metadata of another cloud', '100.100.100.200', 'metadata'), ('the host of a virtual machine', '168.63.129.16', 'metadata'),
        ('a public address that is not in the list', OTHER, 'not allowed'), ('this host', HOST, 'host'),
        ('link-local', '169.254.1.1', 'link-local'), ('carriers\' space', '100.64.0.1', 'private'), ('192.168', '192.168.1.1', 'private'),
        ('172.16', '172.31.255.1', 'private'), ('benchmarks', '198.18.0.1', 'private'), ('documentation', '203.0.113.1', 'reserved'),
        ('class E', '240.0.0.1', 'reserved'), ('zero', '0.1.2.3', 'unspecified'),
        ('decimal', '168364297', 'private'), ('octal', '012.011.011.011', 'private'), ('hexadecimal', '0x0a.0x09.0x09.0x09', 'private'),
        ('one hexadecimal number', '0x0a090909', 'private'), ('a short form', '10.592137', 'private'), ('a shorter form', '10.9.2313', 'private'),
        ('decimal metadata', '2852039166', 'metadata'), ('hexadecimal metadata', '0xa9fea9fe', 'metadata'),
        ('mapped into IPv6', '::ffff:10.9.9.9', 'private'), ('mapped metadata', '::ffff:169.254.169.254', 'metadata'),
        ('compatible IPv6', '::10.9.9.9', 'reserved'), ('NAT64', '64:ff9b::10.9.9.9', 'private'), ('NAT64 metadata', '64:ff9b::a9fe:a9fe', 'metadata'),
        ('local NAT64', '64:ff9b:1::a09:909', 'private'), ('NAT64 to this host', '64:ff9b::5db8:d801', 'host'), ('6to4', '2002:a09:909::1', 'private'),
        ('6to4 metadata', '2002:a9fe:a9fe::1', 'metadata'), ('translated IPv4', '::ffff:0:10.9.9.9', 'private'), ('Teredo', '2001:0:a09:909::1', 'reserved'),
        ('a unique local address', 'fd00::1', 'private'), ('metadata over IPv6', 'fd00:ec2::254', 'metadata'), ('a site-local address', 'fec0::1', 'private'),
        ('a public address of IPv6 that is not in the list', '2606:2800:220::99', 'not allowed'), ('this host over IPv6', HOST6, 'host'),
        ('documentation over IPv6', '2001:db8::1', 'reserved')]
    for what, address, rule in kinds:
        port = next(next_port)
        shut = rule not in ('not allowed', 'host')
        row(f'not {what}: {address}', SHUT if shut else CUT, refused(port=port, rule=rule))(lambda a=address, p=port, s=shut: paced(s, a, p))
def paced(shut, address, port):
    if shut:  # these take no time at all, and not more than 20 refusals in a second are told
        time.sleep(0.06)
    return say(address, port, b'{}')
addresses()
row('not a scoped address', r'^(error|cut)')(lambda: say('fe80::1%lo', next(next_port), b'{}'))
row('not a scoped address of a private one', r'^(error|cut)')(lambda: say('fe80::a09:909%lo', next(next_port), b'{}'))
row('not the allowed address at another port', CUT, refused(OTHER, 8081, 'not allowed'))(lambda: say(OTHER, 8081, b'{}'))
row('not the allowed address at port 80', r'^403 This sandbox may not reach', refused(OTHER, 80))(lambda: say(OTHER, 80, get(OTHER)))
row('not an address that was given out for no name', CUT, refused('93.184.216.53', 25, 'not allowed'))(lambda: say('93.184.216.53', 25, b'{}'))

# ---- names in DNS ----
def names():
    for sentence, name in (('a name that leads to a private address', 'private.evil.test'), ('to metadata', 'meta.evil.test'), ('to loopback', 'loop.evil.test'),
                           ('an alias of a private one', 'cname.evil.test'), ('a name of this host', 'self.evil.test')):
        row(f'DNS: {sentence}', 'code 5 answers 0', {'event': 'name_refused', 'host': name})(lambda n=name: ask(n))
    for sentence, name in (('a mapped address', 'mapped.evil.test'), ('a unique local one', 'six.evil.test'), ('NAT64', 'four6.evil.test')):
        row(f'DNS: {sentence}', 'code 5 answers 0', {'event': 'name_refused', 'host': name})(lambda n=name: ask(n, 28))
    row('DNS: of mixed answers only the public one', 'code 0 answers 1')(lambda: ask('mixed.evil.test'))
    for sentence, name in (('a name that is not in the list', 'evil.test'), ('a neighbour of an allowed name', 'api.example.com'), ('the parent', 'example.com'),
                           ('a longer end', 'xwww.example.com'), ('a secret in it', 'c2vjcmv0.tunnel.attacker.test'), ('the end as a beginning', 'www.example.com.evil.net')):
        row(f'DNS: not {sentence}', 'code 5 answers 0', {'event': 'name_refused', 'host': name})(lambda n=name: ask(n))
    for kind, number in (('TXT', 16), ('NULL', 10), ('ANY', 255), ('HTTPS', 65), ('SVCB', 64), ('MX', 15), ('AXFR', 252), ('CNAME', 5), ('SRV', 33)):
        row(f'DNS: {kind} of an allowed name is empty', 'code 0 answers 0')(lambda n=number: ask('www.example.com', n))
        row(f'DNS: {kind} of another is refused', 'code 5 answers 0', {'event': 'name_refused', 'host': f't{number}.attacker.test'})(
            lambda n=number: ask(f't{n}.attacker.test', n))
    row('DNS: over TCP the same', 'code 5 answers 0', {'event': 'name_refused', 'host': 'tcp.attacker.test'})(lambda: ask('tcp.attacker.test', tcp=True))
    row('DNS: AXFR over TCP is empty', 'code 0 answers 0')(lambda: ask('www.example.com', 252, tcp=True))
    for server in ('1.2.3.4', PRIVATE, META, '2606:4700:4700::1111', '127.0.0.1', '192.0.2.2', '93.184.216.53'):
        row(f'DNS: {server} is the gateway, too', 'code 5 answers 0', {'event': 'name_refused', 'host': f'x{server.replace(".", "-").replace(":", "-").strip("-")}.test'})(
            lambda s=server: ask(f'x{s.replace(".", "-").replace(":", "-").strip("-")}.test', server=s))
    row('DNS: other ports are no way', r'^error')(lambda: ask('www.example.com', server='93.184.216.53', port=5353))
    row('DNS: a label of 64 bytes', r'^(code 1|error)')(lambda: ask('', labels=[b'a' * 64, b'www', b'example', b'com']))
    row('DNS: a name of 300 bytes', r'^(code 1|error)')(lambda: ask('', labels=[b'a' * 60] * 5 + [b'evil', b'test']))
    row('DNS: a dot inside a label', 'code 1 answers 0')(lambda: ask('', labels=[b'www.example', b'com']))
    row('DNS: a NUL inside a label', 'code 1 answers 0')(lambda: ask('', labels=[b'www', b'example', b'com\0evil']))
    row('DNS: two questions at once', 'code 1 answers 0')(lambda: ask('www.example.com', count=2))
    row('DNS: an answer is no question', r'^error: timed out')(lambda: ask('www.example.com', flags=0x8180, timeout=1))
    row('DNS: an update', r'^code [14] ')(lambda: ask('www.example.com', flags=0x2800))
    def rebind():
        results = set()
        for _ in range(4):
            try:
                address = socket.gethostbyname('rebind.evil.test')
            except OSError:
                continue
            results.add(address)
        return 'private' if PRIVATE in results else 'never: ' + ' '.join(sorted(results))
    row('DNS: a name that changes its mind', r'^never: 93.184.216.34')(rebind)
names()

# ---- TLS ----
N = 'what it says cannot be read'
def tls():
    bad = lambda s, data, **k: row(f'TLS: {s}', CUT, refused(WWW, 443, N))(lambda: say(WWW, 443, *(data if isinstance(data, tuple) else (data,)), **k))
    row('TLS: another name at the address of an allowed one', CUT, refused(WWW, 443, 'not allowed', 'api.example.com'))(lambda: say(WWW, 443, hello('api.example.com')))
    row('TLS: another name after a silence', CUT, refused(WWW, 443, 'not allowed', 'api.example.com'))(lambda: say(WWW, 443, hello('api.example.com'), first=0.7))
    row('TLS: another name in pieces after a silence', CUT, refused(WWW, 443, 'not allowed', 'git.example.com'))(
        lambda: say(WWW, 443, hello('git.example.com')[:20], hello('git.example.com')[20:], first=0.7, between=0.3))
    row('TLS: an allowed name at a private address', SHUT, refused(PRIVATE, 443, 'private'))(lambda: say(PRIVATE, 443, hello('www.example.com')))
    row('TLS: no name at an address that nobody was given', CUT, refused('93.184.216.53', 443, 'not allowed'))(lambda: say('93.184.216.53', 443, hello()))
    row('TLS: an allowed name at a foreign address goes to its own', SERVED)(lambda: say('93.184.216.53', 443, hello('www.example.com')))
    row('TLS: a name below that is not at its port', CUT, refused(None, 8443, 'not allowed', 'other.example.net'))(lambda: say(OTHER, 8443, hello('other.example.net')))
    row('TLS: another name split over records', CUT, refused(WWW, 443, 'not allowed', 'registry.example.com'))(lambda: say(WWW, 443, hello('registry.example.com', record=3)))
    row('TLS: another name split over segments', CUT, refused(WWW, 443, 'not allowed', 'evil.test'))(
        lambda: say(WWW, 443, *[hello('evil.test')[i:i + 16] for i in range(0, 144, 16)], between=0.02))
    row('TLS: upper case of another name', CUT, refused(WWW, 443, 'not allowed', 'api.example.com'))(lambda: say(WWW, 443, hello('API.EXAMPLE.COM')))
    row('TLS: another name with a dot at the end', CUT, refused(WWW, 443, 'not allowed', 'api.example.com'))(lambda: say(WWW, 443, hello('api.example.com.')))
    row('TLS: a name that ends as an allowed one', CUT, refused(WWW, 443, 'not allowed', 'evilwww.example.com'))(lambda: say(WWW, 443, hello('evilwww.example.com')))
    row('TLS: an address for a name', CUT, refused(WWW, 443, 'not allowed'))(lambda: say(WWW, 443, hello(OTHER)))
    bad('an empty name', hello(''))
    bad('an empty list of names', hello(raw=b'\0\0'))
    bad('two names', hello('www.example.com', 'api.example.com'))
    bad('two names the other way round', hello('api.example.com', 'www.example.com'))
    two = b'\0\0\x0fwww.example.com\0\0\x0fapi.example.com'
    bad('two names in one list', hello(raw=struct.pack('>H', len(two)) + two))
    bad('a NUL in the name', hello('www.example.com\0.evil.test'))
    bad('a NUL behind the name', hello('www.example.com\0'))
    bad('a blank in the name', hello('www.example.com evil.test'))
    bad('two dots at the end', hello('www.example.com..'))
    bad('bytes of other alphabets', hello('www.ex\xe4mple.com'))
    bad('another type of name', hello(raw=b'\0\x12\1\0\x0fwww.example.com'))
    bad('a list that is longer than its extension', hello(raw=b'\0\xff\0\0\x0fwww.example.com'))
    bad('an inner hello in the open (ECH)', hello('www.example.com', extra=[(0xfe0d, b'\1')]))
    row('TLS: an outer hello (ECH) with another name', CUT, refused(WWW, 443, 'not allowed', 'api.example.com'))(
        lambda: say(WWW, 443, hello('api.example.com', extra=[(0xfe0d, b'\0' + b'x' * 80)])))
    bad('a hello that is larger than any', hello('www.example.com', pad=17000))
    bad('a handshake that is no hello', b'\x16\3\1\0\4\2\0\0\0')
    bad('an empty record first', b'\x16\3\1\0\0' + hello('api.example.com'))
    bad('an alert first', b'\x15\3\1\0\2\1\0' + hello('api.example.com'))
    bad('a change of ciphers first', b'\x14\3\1\0\1\1' + hello('api.example.com'))
    bad('a record of another version', b'\x16\2' + hello('www.example.com')[2:])
    row('TLS: at the port of HTTP, another name', CUT, refused(WWW, 80, 'not allowed', 'api.example.com'))(lambda: say(WWW, 80, hello('api.example.com')))
    row('TLS: HTTP at its port, another host', r'^403', refused(WWW, 443, 'not allowed', 'api.example.com'))(lambda: say(WWW, 443, get('api.example.com')))
tls()

# ---- HTTP ----
def http():
    A, W = 'api.example.com', 'www.example.com'
    other = lambda s, *data, host=A, **k: row(f'HTTP: {s}', CUT, refused(WWW, 80, 'not allowed', host))(lambda: say(WWW, 80, *data, **k))
    bad = lambda s, *data, **k: row(f'HTTP: {s}', CUT, refused(WWW, 80, N))(lambda: say(WWW, 80, *data, **k))
    # what the watch refuses: the first may have been answered, the second never is
    cut = lambda s, *data, rule=None, **k: row(f'HTTP: {s}', r'^(cut|403|served 1 of|timeout)', refused(WWW, 80, rule))(lambda: say(WWW, 80, *data, **k))
    second = 'a request on this connection is for another host'
    other('another host at the address of an allowed one', get(A))
    other('another host after a silence', get(A), first=0.7)
    other('another host, byte by byte', *[bytes([b]) for b in get(A)], between=0.002)
    other('upper case of another host', get('API.EXAMPLE.COM'))
    other('another host with a port', get(A + ':80'))
    other('another host with a dot at the end', get(A + '.'))
    other('another host behind blanks', b'GET / HTTP/1.1\r\nHost: \t  api.example.com \t\r\n\r\n')
    other('a method that nobody knows', get(A, method='FROB'))
    other('WebDAV\'s method', get(A, method='PROPFIND'))
    other('a method in lower case', get(A, method='get'))
    other('an address for a host', get(WWW), host=WWW)
    row('HTTP: an allowed host at a private address', SHUT, refused(PRIVATE, 80, 'private'))(lambda: say(PRIVATE, 80, get(W)))
    row('HTTP: an allowed host at metadata', SHUT, refused(META, 80, 'metadata'))(lambda: say(META, 80, get(W)))
    bad('an empty line first', b'\r\n' + get(A))
    bad('a line end first', b'\n' + get(A))
    bad('a blank first', b' ' + get(A))
    bad('a tab for a blank', get(A).replace(b'GET /', b'GET\t/'))
    bad('another tab for a blank', get(A).replace(b'/ HTTP', b'/\tHTTP'))
    bad('a whole address in the request', get(W, path='http://api.example.com/'))
    bad('a whole address of the host itself', get(A, path='http://www.example.com/'))
    bad('CONNECT', get(W, method='CONNECT', path='api.example.com:443'))
    bad('two hosts', get(W, more=f'Host: {A}\r\n'))
    bad('two hosts the other way round', get(A, more=f'Host: {W}\r\n'))
    bad('a folded line', b'GET / HTTP/1.1\r\nX: y\r\n Host: api.example.com\r\nHost: www.example.com\r\n\r\n')
    bad('a folded host', b'GET / HTTP/1.1\r\nHost:\r\n www.example.com\r\n\r\n')
    bad('a user in the host', get('www.example.com@' + A))
    bad('a list of hosts', get(f'{W},{A}'))
    bad('a slash in the host', get(f'{A}/'))
    bad('a NUL in the host', get(f'{A}\0.{W}'))
    bad('HTTP/2 without TLS', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\0' * 9)
    bad('a line of the PROXY protocol first', b'PROXY TCP4 1.1.1.1 2.2.2.2 1 80\r\n' + get(A))
    bad('the PROXY protocol in binary', b'\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c' + b'\0' * 12 + get(A))
    bad('a head that is larger than any', b'GET / HTTP/1.1\r\nHost: www.example.com\r\n' + b'X: ' + b'y' * 17000)
    cut('a blank before the colon', f'GET / HTTP/1.1\r\nHost : {A}\r\n\r\n'.encode())
    cut('ends of lines without CR', f'GET / HTTP/1.1\nHost: {A}\n\nGET / HTTP/1.1\r\nHost: {W}\r\n\r\n'.encode())
    cut('no host, and ends of lines without CR', f'GET / HTTP/1.1\nX: y\n\nGET / HTTP/1.1\r\nHost: {W}\r\n\r\n'.encode())
    cut('HTTP/0.9 with an end', b'GET /\r\n\r\n')
    cut('a version that nobody knows', get(W, version='HTTP/3.0'))
    cut('a second request for another host', get(W) + get(A), enough=2, rule=second)
    cut('a second request for another host, later', get(W), get(A), enough=2, between=0.3, rule=second)
    cut('a second request without a host', get(W) + b'GET / HTTP/1.0\r\n\r\n', enough=2, rule=second)
    cut('no host first, another second', b'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n' + get(A), enough=2, rule=second)
    cut('an address of IPv6 first, another host second', get('[::1]') + get(A), enough=2, rule=second)
    cut('a whole address in the second request', get(W) + get(A, path='http://api.example.com/'), enough=2, rule=second)
    cut('CONNECT as the second request', get(W) + get(A, method='CONNECT', path='api.example.com:80'), enough=2)
    cut('length and chunks', f'POST / HTTP/1.1\r\nHost: {W}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'.encode() + get(A), enough=2)
    cut('chunks and length', f'POST / HTTP/1.1\r\nHost: {W}\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n'.encode() + get(A), enough=2)
    cut('two lengths', f'POST / HTTP/1.1\r\nHost: {W}\r\nContent-Length: 0\r\nContent-Length: 99\r\n\r\n'.encode() + get(A), enough=2)
    cut('a length with a sign', f'POST / HTTP/1.1\r\nHost: {W}\r\nContent-Length: +0\r\n\r\n'.encode() + get(A), enough=2)
    cut('chunks with another name', f'POST / HTTP/1.1\r\nHost: {W}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'.encode() + get(A), enough=2)
    cut('chunks twice', f'POST / HTTP/1.1\r\nHost: {W}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n'.encode() + get(A), enough=2)
    cut('a size of a chunk in 0x', f'POST / HTTP/1.1\r\nHost: {W}\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n'.encode() + get(A), enough=2)
    cut('a chunk that ends with LF', f'POST / HTTP/1.1\r\nHost: {W}\r\nTransfer-Encoding: chunked\r\n\r\n0\n\n'.encode() + get(A), enough=2)
    cut('an upgrade that the server ignores', get(W, more='Connection: Upgrade\r\nUpgrade: websocket\r\n') + get(A), enough=2, rule=second)
    cut('an upgrade that the server ignores, later', get(W, more='Connection: Upgrade\r\nUpgrade: websocket\r\n'), get(A), between=0.3, enough=2, rule=second)
    cut('an upgrade to HTTP/2', get(W, more='Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n') + get(A), enough=2, rule=second)
    cut('another host after a silence and one request', get(W), get(A), first=0.7, between=0.2, enough=2, rule=second)
    row('HTTP: variables of a proxy are no way', r'Failed to connect to 10.9.9.9 port 3128', refused(PRIVATE, 3128, 'private'))(
        lambda: subprocess.run(['curl', '-sS', '-m', '4', 'http://evil.test/'], env={**os.environ, 'http_proxy': f'http://{PRIVATE}:3128'}, capture_output=True).stderr.decode())
    row('HTTP: nor for TLS', r'Failed to connect to 10.9.9.9 port 3129', refused(PRIVATE, 3129, 'private'))(
        lambda: subprocess.run(['curl', '-sS', '-m', '4', 'https://evil.test/'], env={**os.environ, 'https_proxy': f'http://{PRIVATE}:3129'}, capture_output=True).stderr.decode())
http()

# ---- other ways ----
def others():
    for sentence, address, port in (('QUIC', WWW, 443), ('time', WWW, 123), ('a private address', PRIVATE, 5000), ('IPv6', WWW6, 443),
                                    ('multicast', '224.0.0.251', 5353), ('multicast of IPv6', 'ff02::fb', 5353)):
        row(f'UDP: {sentence}', r'^error')(lambda a=address, p=port: udp(a, p))
    row('UDP: broadcast', r'^error')(lambda: udp('255.255.255.255', 9999, options=[(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)]))
    row('UDP: a foreign source to a name server changes nothing', r'^error|code 5')(lambda: foreign_source())
    for sentence, args in (('ICMP', (socket.AF_INET, socket.SOCK_RAW, 1)), ('ICMP of IPv6', (socket.AF_INET6, socket.SOCK_RAW, 58)),
                           ('TCP', (socket.AF_INET, socket.SOCK_RAW, 6)), ('IP', (socket.AF_INET, socket.SOCK_RAW, 255)),
                           ('packets', (socket.AF_PACKET, socket.SOCK_RAW, 0x0300)), ('cooked packets', (socket.AF_PACKET, socket.SOCK_DGRAM, 0x0300))):
        row(f'raw sockets: {sentence}', r'not permitted|denied')(lambda a=args: tried(lambda: socket.socket(*a)))
    row('SCTP', r'^error')(lambda: tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).connect((WWW, 80))))
    row('UDP-Lite', r'^error')(lambda: lite())
    row('vsock to the host', r'^error')(lambda: tried(lambda: socket.socket(40, socket.SOCK_STREAM).connect((2, 8000))))
    for sentence, command in (('a route', 'ip route add 10.0.0.0/8 dev lo'), ('an address', 'ip addr add 10.1.1.1/8 dev lo'), ('a rule', 'ip rule add from all lookup 7'),
                              ('a device', 'ip link add d0 type dummy'), ('the loopback down', 'ip link set lo down'), ('a namespace', 'unshare -n true')):
        row(f'netlink: {sentence}', r'^rc [1-9]')(lambda c=command: 'rc %d' % subprocess.run(c.split(), capture_output=True).returncode)
    row('netlink: the route of all stays', r'^served')(lambda: say(WWW, 80, get('www.example.com')))
    lo = [(socket.SOL_SOCKET, 25, b'lo\0')]
    port1, port2, port3, port4, port5 = (next(next_port) for _ in range(5))
    row('bound to the loopback device', r'^(cut|error)')(lambda: say(PRIVATE, port1, b'{}', options=lo))
    row('IP_TRANSPARENT', r'not permitted')(lambda: tried(lambda: socket.socket().setsockopt(0, 19, 1)))
    row('SO_MARK', r'not permitted')(lambda: tried(lambda: socket.socket().setsockopt(1, 36, 1)))
    row('from a foreign address', r'^(cut|error)', refused(PRIVATE, port2, 'private'))(lambda: bound(WWW, PRIVATE, port2))
    row('from the private address itself', r'^(cut|error)', refused(PRIVATE, port3, 'private'))(lambda: bound(PRIVATE, PRIVATE, port3))
    row('from loopback', r'^(cut|error)')(lambda: bound('127.0.0.1', PRIVATE, next(next_port)))
    row('loose source routing', r'^(cut|error)')(lambda: say(WWW, 8088, b'{}', options=[(0, 4, b'\x83\x07\x04' + socket.inet_aton(PRIVATE) + b'\0')]))
    row('strict source routing', r'^(cut|error)')(lambda: say(WWW, 8089, b'{}', options=[(0, 4, b'\x89\x07\x04' + socket.inet_aton(PRIVATE) + b'\0')]))
    row('TCP fast open', r'^(cut|error)', refused(PRIVATE, port4, 'private'))(lambda: fast_open(PRIVATE, port4))
    row('multicast over TCP', r'^(cut|error)')(lambda: say('224.0.0.1', port5, b'{}'))
    row('broadcast over TCP', r'^(cut|error)')(lambda: say('255.255.255.255', next(next_port), b'{}'))
    row('the unspecified address is the sandbox', r'^error: Connection refused')(lambda: say('0.0.0.0', 8000, b'{}'))
    for address in ('127.0.0.1', '127.1.2.3', '::1', '192.0.2.2', 'localhost'):
        row(f'coved at {address} is not there', r'^error: Connection refused')(lambda a=address: say(a, 8000, get('x')))
    for address, shown in ((HOST, HOST), (HOST6, HOST6), ('::ffff:' + HOST, HOST)):
        row(f'coved at {address} is refused', r'^403', refused(shown, 8000, 'host'))(lambda a=address: say(a, 8000, get('x')))
    row('the server of another sandbox', r'^error: Connection refused')(lambda: say('192.0.2.2', 9191, get('x')))
    row('the listener of the gateway by loopback', r'^(cut|no listener)')(lambda: own_listener('127.0.0.1'))
    row('the listener of the gateway by its address', r'^(cut|no listener)')(lambda: own_listener('192.0.2.2'))
    row('an abstract socket of the host', r'^error: Connection refused')(lambda: tried(lambda: socket.socket(socket.AF_UNIX).connect('\0' + sys.argv[1])))
    row('the keeper\'s socket by its path', r'^error')(lambda: tried(lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[2] + '/keeper.sock')))
    row('port 53 by TCP is the gateway also at a private address', 'code 5 answers 0')(lambda: ask('p.attacker.test', server=PRIVATE, tcp=True))
    row('no TLS and no HTTP through port 53', r'^cut')(lambda: say(WWW, 53, hello('www.example.com')))

def foreign_source():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.bind((PRIVATE, 0))
    s.sendto(question('spoof.attacker.test'), ('8.8.8.8', 53))
    a, at = s.recvfrom(999)
    return f'code {a[3] & 15}'

def lite():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136)
    s.settimeout(0.3)
    s.connect((WWW, 53))
    s.send(question('www.example.com'))
    return 'served ' + repr(s.recv(99))

def bound(source, address, port):
    s = socket.socket()
    s.settimeout(3)
    try:
        s.bind((source, 0))
        s.connect((address, port))
        s.sendall(b'{}')
        return seen(s.recv(99))
    except OSError as e:
        return 'error: ' + (e.strerror or str(e))

def fast_open(address, port):
    s = socket.socket()
    try:
        s.sendto(b'{}', socket.MSG_FASTOPEN, (address, port))
        return seen(s.recv(99))
    except OSError as e:
        return 'error: ' + (e.strerror or str(e))

def own_listener(address):
    for line in open('/proc/net/tcp6').read().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        if state == '0A' and local.startswith('0' * 32):
            return say(address, int(local[33:], 16), get('www.example.com').replace(b'\r\n\r\n', b'\r\n\r\n'), timeout=3).replace('403', 'cut 403')
    return 'no listener'
others()

# ---- what came to mind later ----
def later():
    A, W = 'api.example.com', 'www.example.com'
    named = lambda name: {'event': 'name_refused', 'host': name}
    row('control: DNS: mixed case of an allowed name', 'code 0 answers 1')(lambda: ask('wWw.ExAmPlE.cOm'))
    row('DNS: mixed case of another', 'code 5 answers 0', named('git.example.com'))(lambda: ask('gIt.eXaMpLe.CoM'))
    row('DNS: a long chain of aliases to a private address', r'^code \d answers 0')(lambda: ask('chain.evil.test'))
    row('DNS: a name of other alphabets', 'code 5 answers 0', named('xn--www-example-7fg.com'))(lambda: ask('xn--www-example-7fg.com'))
    row('DNS: another class', r'^code [145] answers 0')(lambda: ask('www.example.com', 16, klass=3))
    row('DNS: a name that points to itself', r'^(code 1|error)')(lambda: sent(struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + b'\xc0\x0c\0\1\0\1'))
    row('DNS: a question that ends too early', r'^(code 1|error)')(lambda: sent(question('www.example.com')[:-3]))
    row('DNS: port 53 cannot be taken over', 'code 5 answers 0', named('taken.attacker.test'))(taken)
    row('TLS: a name of other alphabets', CUT, refused(WWW, 443, 'not allowed', 'xn--www-example-7fg.com'))(lambda: say(WWW, 443, hello('xn--www-example-7fg.com')))
    row('TLS: another name around an urgent byte, which cannot be sent', CUT)(lambda: urgent(443, hello(A)[:30], b'x', hello(A)[30:]))
    row('HTTP: another host around an urgent byte, which cannot be sent', CUT)(lambda: urgent(80, b'GET / HTTP/1.1\r\nHost: a', b'x', b'pi.example.com\r\n\r\n'))
    row('HTTP: an urgent byte that makes an allowed host of another is gone behind the gateway, too', r'^served|^cut')(
        lambda: urgent(80, b'GET / HTTP/1.1\r\nHost: w', b'x', b'ww.example.com\r\n\r\n'))
    for sentence, data in (('the same host twice', get(W, more=f'Host: {W}\r\n')), ('a whole address with TLS', get(W, path='https://api.example.com/')),
                           ('a host in percent signs', get('www%2eexample.com')), ('two ports', get(W + ':80:80')), ('a scope in the host', get('[fe80::1%25lo]')),
                           ('a backslash in the host', get(f'{A}\\\\.{W}'))):
        row(f'HTTP: {sentence}', CUT, refused(WWW, 80))(lambda d=data: say(WWW, 80, d))
    row('HTTP: all of another host', CUT, refused(WWW, 80, 'not allowed', A))(lambda: say(WWW, 80, get(A, method='OPTIONS', path='*')))
    row('HTTP: HTTP/2 after a silence', CUT, refused(WWW, 80))(lambda: say(WWW, 80, b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\0' * 9, first=0.7))
    for name in 'rebind.evil.test', 'mixed.evil.test':
        row(f'HTTP: never to the private address of {name}', r'^never, [1-9]')(lambda n=name: whose(n))
    port = next(next_port)
    row('not a private address behind Teredo', SHUT, refused(port=port, rule='reserved'))(lambda p=port: say('2001:0:5db8:d822:0:ffff:f5f6:f6f6', p, b'{}'))
    for address in '::', '::ffff:0.0.0.0', '::ffff:127.0.0.1', '::ffff:192.0.2.2':
        row(f'coved at {address} is not there', r'^(error|cut)')(lambda a=address: say(a, 8000, get('x')))
    for sentence, args in (('SMC', (43, 1, 0)), ('TIPC', (30, 1, 0)), ('RDS', (21, 5, 0)), ('XDP', (44, 3, 0)), ('KCM', (41, 5, 0)), ('CAN', (29, 3, 1)),
                           ('Bluetooth', (31, 3, 0)), ('DCCP', (2, 6, 33)), ('L2TP', (2, 2, 115)), ('InfiniBand', (27, 1, 0)), ('X.25', (9, 5, 0))):
        row(f'no sockets of {sentence}', r'^error')(lambda a=args: tried(lambda: socket.socket(*a)))
    row('MPTCP', r'^(cut|error)')(lambda: multipath(PRIVATE, next(next_port)))
    row('no io_uring', r'^error')(lambda: uring())
    row('TCP_REPAIR', r'not permitted')(lambda: tried(lambda: socket.socket().setsockopt(6, 19, 1)))
    row('nothing is known of where a connection was meant to go', r'^error')(lambda: tried(lambda: open_to(WWW, 25).getsockopt(0, 80, 16)))

def sent(data):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.connect(('8.8.8.8', 53))
    s.send(data)
    a = s.recv(999)
    return f'code {a[3] & 15}'

def taken():
    thieves = []
    for family, address in (socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::'), (socket.AF_INET, '8.8.8.8'):
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        tried(s.bind, (address, 53))
        thieves.append(s)
    return ask('taken.attacker.test')

def urgent(port, before, byte, after):
    s = open_to(WWW, port)
    try:
        s.sendall(before)
        s.send(byte, socket.MSG_OOB)
        s.sendall(after)
        return seen(s.recv(9999))
    except OSError as e:
        return 'cut: ' + (e.strerror or str(e))

def whose(name):
    """Who answers for a name that leads to two places, asked of the place that is allowed."""
    count = 0
    for _ in range(8):
        s = open_to(WWW, 80)
        s.sendall(get(name, more='Connection: close\r\n'))
        got = b''
        try:
            while data := s.recv(9999):
                got += data
        except OSError:
            pass
        if PRIVATE.encode() + b' host=' in got:
            return 'the private one'
        count += b' host=' in got
    return f'never, {count} times the other'

def multipath(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    s.settimeout(4)
    s.connect((address, port))
    s.sendall(b'{}')
    return seen(s.recv(99))

def uring():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(425, 8, ctypes.create_string_buffer(120))
    return 'error: ' + os.strerror(ctypes.get_errno()) if fd < 0 else 'done'
later()

# ---- how much ----
def flood_names():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    s.connect(('8.8.8.8', 53))
    got = 0
    for i in range(400):
        try:
            s.send(question(f'flood{i}.evil.test'))
        except OSError:
            pass
    end = time.monotonic() + 2
    while time.monotonic() < end:
        if select.select([s], [], [], 0.1)[0]:
            try:
                s.recv(999)
                got += 1
            except OSError:
                pass
    return 'few' if got <= 170 else f'many: {got}'
row('how much: of 400 questions at once few are answered', 'few')(flood_names)

def half_open():
    held = []
    for _ in range(320):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex((WWW, 80))
        held.append(s)
    time.sleep(0.5)
    for s in held:
        s.close()
    time.sleep(1.5)
    for _ in range(10):
        last = say(WWW, 80, get('www.example.com'))
        if last.startswith('served'):
            break
        time.sleep(0.3)
    return last
row('how much: after 320 connections that say nothing, the allowed one works', SERVED)(half_open)

only = sys.argv[3] if len(sys.argv) > 3 else ''
for sentence, fn, want, event in rows:
    if only and only not in sentence:
        continue
    begun = time.monotonic()
    try:
        got = fn()
    except OSError as e:
        got = 'error: ' + (e.strerror or str(e))
    except Exception as e:
        got = f'broken test: {e!r}'
    print(json.dumps({'sentence': sentence, 'got': got, 'want': want, 'fits': bool(re.search(want, got)), 'event': event,
                      'ms': int(1000 * (time.monotonic() - begun))}), flush=True)
    if event:
        time.sleep(max(0, 0.055 - (time.monotonic() - begun)))  # or they would be too many to be told
