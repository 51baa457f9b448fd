// With a domain and TLS: no address but E2B_DOMAIN, and servers inside sandboxes under names of their own.
import https from 'node:https'
import { Sandbox, SandboxError, TimeoutError } from 'e2b'
import { finish, holds, is, like, part, refuses, sandbox, until } from './check.mjs'

const site = `import asyncio, base64, hashlib, struct, sys

seen = asyncio.Semaphore(0)

async def client(reader, writer):
    head = (await reader.readuntil(b'\\r\\n\\r\\n')).decode()
    path = head.split(' ')[1]
    fields = dict(line.split(': ', 1) for line in head.split('\\r\\n')[1:] if ': ' in line)
    fields = {k.lower(): v for k, v in fields.items()}
    if 'sec-websocket-key' in fields:
        key = base64.b64encode(hashlib.sha1((fields['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()).decode()
        writer.write(('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: %s\\r\\n\\r\\n' % key).encode())
        while True:
            a, b = await reader.readexactly(2)
            n = b & 127
            if n == 126: n = struct.unpack('>H', await reader.readexactly(2))[0]
            mask = await reader.readexactly(4)
            data = bytes(c ^ mask[i % 4] for i, c in enumerate(await reader.readexactly(n)))
            if a & 15 == 8: break
            back = b'echo ' + data
            writer.write(bytes([0x81]) + (bytes([len(back)]) if len(back) < 126 else bytes([126]) + struct.pack('>H', len(back))) + back)
    elif path == '/slow':
        writer.write(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\nConnection: close\\r\\n\\r\\n')
        for i in range(4):
            writer.write(b'data: %d\\n\\n' % i); await writer.drain(); await seen.acquire()
    else:
        if path == '/seen': seen.release()
        body = await reader.readexactly(int(fields.get('content-length', 0)))
        text = ('%s %s host=%s %s' % (head.split(' ')[0], path, fields.get('host'), body.decode())).encode()
        writer.write(b'HTTP/1.1 200 OK\\r\\nX-Inside: yes\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(text) + text)
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(client, '127.0.0.1', int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
`

async function serve(box, port = 8080) {
  await box.files.write('site.py', site)
  await box.commands.run(`python3 site.py ${port}`, { background: true, timeoutMs: 0 })
  await until((open) => open, () => box.commands.run(`python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${port}))'`).then(() => true, () => false))
}

await part('a domain is all that is said', async () => {
  is('no address but the domain', [undefined, undefined], [process.env.E2B_API_URL, process.env.E2B_SANDBOX_URL])
  const box = await sandbox()
  is('the domain', process.env.E2B_DOMAIN, box.sandboxDomain)
  is('commands', 'tls\n', (await box.commands.run('echo tls')).stdout)
  await box.files.write('a.txt', 'over tls')
  is('files', 'over tls', await box.files.read('a.txt'))
  like('links name the sandbox', new RegExp(`^https://49983-${box.sandboxId}\\.`), await box.downloadUrl('a.txt'))
  is('links to files work over TLS', 'over tls', await (await fetch(await box.downloadUrl('a.txt'))).text())
  is('a sandbox over TLS runs', true, await box.isRunning())
  const found = await Sandbox.connect(box.sandboxId)
  is('connect', box.sandboxId, found.sandboxId)
  const handle = await box.commands.run('echo up; sleep 300', { background: true })
  await until((text) => text, () => handle.stdout)
  await box.kill()
  await refuses('a command in a sandbox that is killed', TimeoutError, /killed or reached its end/, () => handle.wait())
  is('a killed sandbox over TLS does not run', false, await box.isRunning())
})

await part('a server inside', async () => {
  const box = await sandbox()
  await serve(box)
  const url = `https://${box.getHost(8080)}`
  const answer = await fetch(`${url}/path?q=1`)
  is('answers by its host name', [200, 'yes'], [answer.status, answer.headers.get('x-inside')])
  like('the answer has path and host as they were asked', new RegExp(`^GET /path\\?q=1 host=8080-${box.sandboxId}`), await answer.text())
  like('takes a body', /^POST \/ .* hello$/, await (await fetch(url, { method: 'POST', body: 'hello' })).text())
  const many = await Promise.all([...Array(50).keys()].map((i) => fetch(`${url}/${i}`).then((a) => a.text())))
  holds('fifty at once', many.every((text, i) => text.startsWith(`GET /${i} `)), many[0])
  // The server sends an event when the one before was seen: who holds one back for the next waits for ever.
  const events = []
  for await (const chunk of (await fetch(`${url}/slow`, { signal: AbortSignal.timeout(60_000) })).body) {
    events.push(Buffer.from(chunk).toString())
    await fetch(`${url}/seen`)
  }
  is('events as they come', ['data: 0\n\n', 'data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n'], events)
  const socket = new WebSocket(`wss://${box.getHost(8080)}/ws`)
  const said = await new Promise((done, fail) => {
    socket.onopen = () => socket.send('hello 🐎')
    socket.onmessage = (event) => done(event.data)
    socket.onerror = () => fail(new Error('the socket failed'))
  })
  is('a WebSocket', 'echo hello 🐎', said)
  socket.close()
  const closed = await fetch(`https://${box.getHost(8081)}`)
  is('a port that nobody listens on', [502, { sandboxId: box.sandboxId, message: 'The sandbox is running but port is not open', port: 8081, code: 502 }], [closed.status, await closed.json()])
  const page = await new Promise((done, fail) => {
    https.get(`https://${box.getHost(8081)}`, { headers: { Accept: 'text/html,*/*;q=0.8', 'User-Agent': 'Mozilla/5.0' } }, async (got) => {
      let text = ''
      for await (const chunk of got) text += chunk
      done(text)
    }).on('error', fail)
  })
  like('a browser gets a page', /<html|<!doctype/i, page)
  await box.kill()
  const none = await fetch(url)
  is('a sandbox that is gone', [502, 'The sandbox was not found'], [none.status, (await none.json()).message])
})

await part('ports that are not public', async () => {
  const box = await sandbox({ network: { allowPublicTraffic: false } })
  await serve(box)
  const url = `https://${box.getHost(8080)}`
  is('no token', 403, (await fetch(url)).status)
  is('a wrong one', 403, (await fetch(url, { headers: { 'e2b-traffic-access-token': 'x' } })).status)
  is('the right one', 200, (await fetch(url, { headers: { 'e2b-traffic-access-token': box.trafficAccessToken } })).status)
  is('the sandbox itself needs none', 'ok\n', (await box.commands.run('echo ok')).stdout)
})

await part('e2b_policy = standard', async () => {
  const box = await sandbox()
  is('an ordinary command', 'fine\n', (await box.commands.run('echo fine')).stdout)
  await refuses('a command that asks for root', SandboxError, /permission_denied.*privilege\.root/, () => box.commands.run('sudo whoami'))
  await refuses('a path that is blocked', SandboxError, /./, () => box.files.read('/etc/shadow'))
})

await finish()
