// A web application in a sandbox: started, asked, changed, asked again.
import { Sandbox } from 'e2b'

const port = 3000
const sandbox = await Sandbox.create({ timeoutMs: 10 * 60_000 })
const page = (title) => `<!doctype html><title>${title}</title><h1>${title}</h1><p id="n">…</p>
<script>fetch('count').then(r => r.json()).then(c => { document.getElementById('n').textContent = c.visits + ' visits' })</script>\n`

await sandbox.files.write([
  { path: 'app/index.html', data: page('Hello') },
  {
    path: 'app/server.py',
    data: `import http.server, json
visits = 0
class App(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        global visits
        if self.path != '/count':
            return super().do_GET()
        visits += 1
        body = json.dumps({'visits': visits}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(('0.0.0.0', ${port}), App).serve_forever()
`,
  },
])
await sandbox.commands.run('python3 server.py', { cwd: '/home/user/app', background: true, timeoutMs: 0 })

// By name where there is a domain, else by headers at the server's own address.
const direct = process.env.E2B_SANDBOX_URL
const ask = (path) => direct
  ? fetch(new URL(path, direct), { headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': String(port) } })
  : fetch(`https://${sandbox.getHost(port)}${path}`)

async function ready() {
  for (let i = 0; i < 100; i++) {
    const answer = await ask('/')
    if (answer.status === 200) return answer.text()
    await new Promise((done) => setTimeout(done, 100))
  }
  throw new Error('the application does not answer')
}

const title = (html) => html.match(/<h1>(.*?)<\/h1>/)[1]
console.log(direct ? `preview: port ${port} of ${sandbox.sandboxId}, at ${direct}` : `preview: https://${sandbox.getHost(port)}`)
console.log(`it says: ${title(await ready())}`)
for (let i = 0; i < 2; i++) await ask('/count')
console.log(`visits: ${(await (await ask('/count')).json()).visits}`)
await sandbox.files.write('app/index.html', page('Hello again'))
console.log(`changed, it says: ${title(await (await ask('/')).text())}`)

if (process.env.KEEP) console.log(`it continues for ten minutes; end it with Sandbox.kill('${sandbox.sandboxId}')`)
else await sandbox.kill()
process.exit(0)
