"""What operates a server: the PROXY protocol, SIGHUP. Run by server_test."""
import os
import signal
import ssl
import struct
import subprocess
import sys

from served import LOG, STATE, Server, check, finish, log_since, log_size, read_all, same, status_of, within

tmp = os.environ["TMP"]
GET = b"GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def v2(source, command=0x21):
    four = bytes(int(n) for n in source.split("."))
    return SIGNATURE + struct.pack(">BBH", command, 0x11, 12) + four + b"\x7f\0\0\1" + struct.pack(">HH", 4000, 80)


def v1(source, kind="TCP4", target="127.0.0.1"):
    return ("PROXY %s %s %s 4000 80\r\n" % (kind, source, target)).encode()


# ---- off, as it is by default ----
s = Server().start()
for name, preamble in (("version 1", v1("127.0.0.1")), ("version 2", v2("127.0.0.1"))):
    same("a preamble of %s where none is expected is refused" % name, 400, status_of(s.raw(preamble + GET)))
same("and a request without one is served", 200, status_of(s.raw(GET)))
s.end()

# ---- on ----
s = Server("--proxy-protocol", "yes", "--head-timeout", "700ms").start()
same("with proxy_protocol, a connection without a preamble is refused", 400, status_of(s.raw(GET)))
check("and told why", b"the PROXY preamble is missing" in s.raw(GET), s.raw(GET))
same("loopback behind the proxy is the local tenant", 200, status_of(s.raw(v1("127.0.0.1") + GET)))
same("also in version 2", 200, status_of(s.raw(v2("127.0.0.1") + GET)))
same("also of IPv6", 200, status_of(s.raw(v1("::1", "TCP6", "::1") + GET)))
for name, preamble in (("version 1", v1("198.51.100.9")), ("version 2", v2("198.51.100.9"))):
    same("a client from elsewhere needs a key though the proxy is on loopback, %s" % name, 401,
         status_of(s.raw(preamble + GET)))
same("a client without an address needs one, too", 401, status_of(s.raw(b"PROXY UNKNOWN\r\n" + GET)))
same("and so does the proxy itself", 401, status_of(s.raw(v2("127.0.0.1", 0x20) + GET)))
same("a broken preamble is refused", 400, status_of(s.raw(b"PROXY TCP4 1.2.3.4 nonsense 1 2\r\n" + GET)))
c = s.connect()
for byte in v1("127.0.0.1") + GET:
    c.sendall(bytes([byte]))
same("a preamble that comes byte by byte is read", 200, status_of(read_all(c)))
c = s.connect()
c.sendall(b"PROXY TCP4 127.0")
same("one that does not end is a slow head", 408, status_of(read_all(c)))
key = os.environ["ADMIN_KEY"]
answer = s.raw(v1("203.0.113.77") + GET.replace(b"\r\n\r\n", b"\r\nX-API-Key: " + key.encode() + b"\r\n\r\n"))
same("with its key a client from elsewhere is served", 200, status_of(answer))
s.raw(v1("203.0.113.88") + GET)
export = subprocess.run([os.environ["COVE"], "--state", STATE, "audit", "export"], capture_output=True, text=True).stdout
check("the audit log has the client's address, not the proxy's", '"peer": "203.0.113.88"' in export, export[-300:])
s.end()

s = Server("--proxy-protocol", "yes", "--proxy-from", "192.0.2.0/24").start()
same("a peer that is not a proxy of ours is refused, whatever it says", 403, status_of(s.raw(v1("127.0.0.1") + GET)))
s.end()

cert, cert_key = tmp + "/cert.pem", tmp + "/key.pem"


def make_cert(name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", cert_key, "-out", cert, "-days", "2", "-subj", "/CN=" + name],
                   check=True, capture_output=True)


def tls_ask(server, before=b"", want=None):
    context = ssl._create_unverified_context()
    c = server.connect()
    if before:
        c.sendall(before)
    t = context.wrap_socket(c, server_hostname="localhost")
    name = t.getpeercert(True)
    t.sendall(GET)
    return status_of(read_all(t)), name


make_cert("one")
s = Server("--proxy-protocol", "yes", "--tls-cert", cert, "--tls-key", cert_key).start()
same("with TLS the preamble comes before the handshake", 200, tls_ask(s, v2("127.0.0.1"))[0])
same("and decides whether a key is needed", 401, tls_ask(s, v1("198.51.100.9"))[0])
s.end()

# ---- SIGHUP ----
conf = tmp + "/coved.conf"


def configure(text):
    with open(conf, "w") as f:
        f.write(text)


def hup(server):
    at = log_size()
    server.p.send_signal(signal.SIGHUP)
    within(5, lambda: "reloaded" in log_since(at))
    return log_since(at)


configure("sandbox_timeout_most = 1h\ntls_cert = %s\ntls_key = %s\n" % (cert, cert_key))
s = Server("--config", conf).start()
first = tls_ask(s)[1]
make_cert("two")
said = hup(s)
check("SIGHUP takes a new certificate", tls_ask(s)[1] != first, said)
second = tls_ask(s)[1]
with open(cert, "w") as f:
    f.write("nonsense")
said = hup(s)
check("a certificate that cannot be used is said", "not reloaded, nothing is changed: the certificate" in said, said)
same("and the old one stays", second, tls_ask(s)[1])
s.end()

configure("sandbox_timeout_most = 1h\n")
s = Server("--config", conf).start()


def create(seconds):
    return s.ask("POST", "/v1/sandboxes", {"timeout": seconds}).status


same("a lifetime over the limit is refused", 400, create(7200))
configure("sandbox_timeout_most = 3h\nlisten = 127.0.0.1:1\npolicy = minimal\n")
said = hup(s)
check("SIGHUP says which settings were changed", "reload: sandbox_timeout_most is changed" in said, said)
same("and they count from then on", 201, create(7200))
check("which of them need a restart", "reload: policy needs a restart" in said, said)
check("a flag still wins over the file", "listen" not in said, said)
configure("sandbox_timeout_most = 4h\nthreads = many\n")
said = hup(s)
check("a bad file is said, with line and name", "nothing is changed: %s: line 2: threads" % conf in said, said)
same("and leaves everything as it was", 400, create(4 * 3600 - 60))
os.unlink(conf)
said = hup(s)
check("a file that is gone is said", "nothing is changed: cannot read " + conf in said, said)
configure("sandbox_timeout_most = 4h\nlocal = no\nverbose = yes\n")
hup(s)
same("whether loopback needs a key changes, too", 401, create(60))
check("and what is logged", within(5, lambda: "status=401" in log_since(0)), log_since(0)[-200:])
same("coved ends as it should", 0, s.end())
finish()
