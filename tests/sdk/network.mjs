// What a sandbox may reach and who may reach it, asked for by the SDK and tried in fact, against an internet of the test's.
import { ALL_TRAFFIC, Sandbox } from 'e2b'
import { finish, holds, is, like, part, sandbox, until } from './check.mjs'

const get = async (box, url) => {
  const { stdout } = await box.commands.run(`curl -sS -m 8 ${url} 2>&1 || true`)
  return stdout.trim().split('\n')[0]
}
const [www, other] = ['http://www.example.com/', 'http://93.184.216.35/']
const shown = /^93\.184\.216\.34 host=www\.example\.com/, shownOther = /^93\.184\.216\.35 host=/
const kept = /may not reach|resolve|unreachable|connect/i

await part('allowInternetAccess', async () => {
  const [open, shut] = await Promise.all([sandbox(), sandbox({ allowInternetAccess: false })])
  like('a name, where nothing was said', shown, await get(open, www))
  like('an address', shownOther, await get(open, other))
  like('a private address is not reached', kept, await get(open, 'http://10.9.9.9/'))
  like('the metadata service is not reached', kept, await get(open, 'http://169.254.169.254/'))
  like('false: no name', kept, await get(shut, www))
  like('allowInternetAccess false: no address', kept, await get(shut, other))
})

await part('network at the create', async () => {
  const [list, deny] = await Promise.all([
    sandbox({ network: { allowOut: ['www.example.com'], denyOut: [ALL_TRAFFIC] } }), sandbox({ network: { denyOut: ['93.184.216.35'] } })])
  like('allowOut lets a name out', shown, await get(list, www))
  like('allowOut lets nothing else out', kept, await get(list, other))
  like('denyOut keeps an address in', kept, await get(deny, other))
  like('denyOut keeps nothing else in', shown, await get(deny, www))
})

await part('updateNetwork', async () => {
  const box = await sandbox()
  like('open', shown, await get(box, www))
  await box.updateNetwork({ denyOut: [ALL_TRAFFIC] })
  like('shut while it runs', kept, await get(box, www))
  await box.updateNetwork({ allowOut: ['www.example.com'], denyOut: [ALL_TRAFFIC] })
  like('updateNetwork with one name allows the name', shown, await get(box, www))
  like('updateNetwork with one name allows no more', kept, await get(box, other))
  await Sandbox.updateNetwork(box.sandboxId, { allowInternetAccess: false })
  like('updateNetwork by id', kept, await get(box, www))
  await box.updateNetwork({})
  like('open again', shownOther, await get(box, other))
})

const echo = `import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = (self.path + '\\n' + str(self.headers)).encode()
        self.send_response(200); self.send_header('Content-Length', str(len(text))); self.end_headers(); self.wfile.write(text)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 3000), H).serve_forever()
`
async function serve(box) {
  await box.files.write('echo.py', echo)
  await box.commands.run('python3 echo.py', { background: true, timeoutMs: 0 })
  const headers = box.trafficAccessToken ? { 'e2b-traffic-access-token': box.trafficAccessToken } : {}
  await until((status) => status === 200, async () => (await fetch(`http://${box.getHost(3000)}/`, { headers })).status)
}

await part('the way in', async () => {
  const [open, shut] = await Promise.all([
    sandbox({ network: { maskRequestHost: 'localhost:${PORT}' } }), sandbox({ network: { allowPublicTraffic: false } })])
  await Promise.all([serve(open), serve(shut)])
  const [url, closed] = [open, shut].map((box) => `http://${box.getHost(3000)}`)
  like('maskRequestHost is the Host inside', /^Host: localhost:3000\r?$/m, await (await fetch(url)).text())
  like('maskRequestHost leaves the client\'s Host in X-Forwarded-Host', new RegExp(`^X-Forwarded-Host: 3000-${open.sandboxId}`, 'm'), await (await fetch(url)).text())
  is('getInfo tells the mask', 'localhost:${PORT}', (await open.getInfo()).network?.maskRequestHost)
  is('a closed port without the traffic token', 403, (await fetch(closed)).status)
  is('a closed port opens with the traffic token', 200, (await fetch(closed, { headers: { 'e2b-traffic-access-token': shut.trafficAccessToken } })).status)
  is('a wrong traffic token does not open a closed port', 403, (await fetch(closed, { headers: { 'e2b-traffic-access-token': '0'.repeat(64) } })).status)
  const link = await fetch(`${closed}/a?b=c&cove_token=${shut.trafficAccessToken}`, { redirect: 'manual' })
  is('a link with the traffic token is redirected without the token', [303, '/a?b=c'], [link.status, link.headers.get('location')])
  const page = await (await fetch(`${closed}/a?b=c`, { headers: { cookie: `${link.headers.get('set-cookie').split(';')[0]}; own=1` } })).text()
  holds('the cookie of a link opens the page, which does not see it', page.startsWith('/a?b=c\n') && /^Cookie: own=1\r?$/im.test(page), page)
})

await finish()
