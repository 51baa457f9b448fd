// The SDK against a real server.
import http from 'node:http'
import net from 'node:net'
import { AuthenticationError, BuildError, CommandError, ConfigurationError, ConflictError, ConnectionFailedError, Cove, CoveError, ForbiddenError, InvalidRequestError, NotFoundError, Operator, ProtocolError, RequestTimeoutError, Sandbox, SandboxNotFoundError, Tenant, UnavailableError } from '@cove/sdk'
import { spawner, SandboxProcess } from '@cove/sdk/agent'
import { end, holds, is, like, part, refuses, until } from './say.mjs'

const text = (bytes) => new TextDecoder().decode(bytes)
const box = await Sandbox.create({ template: 'host', timeoutMs: 300_000, metadata: { of: 'typescript' }, envs: { WHO: 'cove' } })

await part('life', async () => {
  is('a new sandbox runs', 'running', box.info.state)
  is('a sandbox is found by its id', box.id, (await Sandbox.connect(box.id)).id)
  const listed = []
  for await (const one of Sandbox.list({ metadata: { of: 'typescript' } })) listed.push(one.id)
  is('a list has what its filter says', [box.id], listed)
  const before = Date.parse(box.info.deadline)
  holds('more time is given', Date.parse((await box.setTimeout(900_000)).deadline) > before)
  await box.pause({ tier: 'hot' })
  is('a pause is seen', 'paused', (await box.getInfo()).state)
  is('connect resumes', 'running', (await (await Sandbox.connect(box.id)).getInfo()).state)
  await refuses('an unknown sandbox has a class of its own', SandboxNotFoundError, /sandbox/, () => Sandbox.connect('i00000000000000000000'))
  await refuses('an invalid field is named', InvalidRequestError, /./, () => Sandbox.create({ limits: { memory: '1k' } }))
  const key = { idempotencyKey: `k${Date.now()}` }
  const twice = [await Sandbox.create(key), await Sandbox.create(key)]
  is('an idempotency key makes one sandbox', twice[0].id, twice[1].id)
  is('kill says whether there was one', [true, false], [await twice[0].kill(), await twice[1].kill()])
  is('a sandbox that is gone does not run', false, await twice[0].isRunning())
  const name = await refuses('an error has code, field, status and request id', ConflictError, /./, async () => {
    const first = await Sandbox.create({ name: 'ts-name' })
    try { await Sandbox.create({ name: 'ts-name' }) } finally { await first.kill() }
  })
  is('the error of a name in use', ['name_taken', 'name', 409, true], [name?.code, name?.field, name?.status, Boolean(name?.requestId)])
  await refuses('a wrong key is refused', AuthenticationError, /./, () => Sandbox.create({ client: new Cove({ apiKey: 'cove_wrong' }) }))
})

await part('commands', async () => {
  const seen = []
  const result = await box.commands.run('echo out; echo err >&2; echo "$WHO $X"; exit 3', { envs: { X: '1' }, onStdout: (t) => seen.push(t) })
  is('a command has its output and exit code', [3, 'out\ncove 1\n', 'err\n', 'exit'], [result.exitCode, result.stdout, result.stderr, result.exitReason])
  is('output is told as it comes', 'out\ncove 1\n', seen.join(''))
  is('a list is executed as it is', '$WHO\n', (await box.commands.run(['echo', '$WHO'])).stdout)
  is('stdin is passed on', '5', (await box.commands.run('wc -c', { stdin: 'hello' })).stdout.trim())
  await refuses('check makes a failure an error', CommandError, /ended with 7/, () => box.commands.run('exit 7', { check: true }))
  is('a timeout is told', ['timeout', 124], await box.commands.run('sleep 60', { timeoutMs: 300 }).then((r) => [r.exitReason, r.exitCode]))
  await refuses('an empty command is refused before it is sent', ConfigurationError, /empty/, () => box.commands.run([]))
  const big = await box.commands.run('head -c 3000000 /dev/zero', { outputLimit: 1000 })
  is('output beyond the limit is cut, and said to be', [1000, true], [big.stdoutBytes.length, big.stdoutTruncated])
  const stop = new AbortController()
  const aborted = box.commands.run('echo up; exec sleep 987654', { signal: stop.signal, onStdout: () => stop.abort(new Error('enough')) })
  await refuses('an aborted command throws the reason', Error, /enough/, () => aborted)
  const gone = await until((n) => n === '0', async () => (await box.commands.run("pgrep -cfx '[s]leep 987654' || true")).stdout.trim())
  is('an aborted command ends inside', '0', gone)
})

await part('commands in the background', async () => {
  const cat = await box.commands.start(['cat'], { stdin: true })
  await cat.sendStdin('one ')
  await cat.sendStdin(new TextEncoder().encode('two'))
  await cat.closeStdin()
  const done = await cat.wait()
  is('stdin keeps its order', ['one two', 0], [done.stdout, done.exitCode])
  const ticks = await box.commands.start('for i in 1 2 3; do echo $i; done; sleep 600')
  let out = ''
  for await (const { data } of ticks) { out += text(data); if (out.length === 6) break }
  is('output is an async iterator', '1\n2\n3\n', out)
  is('a second handle knows the process', true, (await (await box.commands.connect(ticks.proc)).info()).running)
  holds('kill reaches a process', await ticks.kill())
  is('the end says how', 'signal', (await ticks.wait()).exitReason)
  holds('a list has the process', (await box.commands.list()).some((p) => p.proc === ticks.proc))
})

await part('files', async () => {
  await box.files.write('dir/a.txt', 'héllo')
  is('what was written is read', 'héllo', await box.files.read('dir/a.txt'))
  await box.files.write('dir/a.txt', '!', { append: true })
  is('append appends', 'héllo!', await box.files.read('dir/a.txt'))
  const bytes = Uint8Array.from({ length: 700_001 }, (_, i) => i & 255)
  const told = []
  const stream = new ReadableStream({ start(c) { c.enqueue(bytes.slice(0, 400_000)); c.enqueue(bytes.slice(400_000)); c.close() } })
  await box.files.write('big', stream, { onProgress: (n) => told.push(n) })
  const back = await box.files.readBytes('big', { onProgress: (n, total) => told.push(total) })
  holds('a stream goes in and comes out whole', Buffer.compare(Buffer.from(back), Buffer.from(bytes)) === 0)
  is('progress is told', [400_000, 700_001, 700_001], [told[0], told[1], told.at(-1)])
  is('exists tells whether a file is there', [true, false], [await box.files.exists('big'), await box.files.exists('nope')])
  await refuses('a missing file is an error', NotFoundError, /./, () => box.files.read('nope'))
  await box.files.makeDir('made')
  await box.files.rename('big', 'made/big')
  await box.files.chmod('made/big', '600')
  is('info has size and mode', [700_001, '0600'], await box.files.getInfo('made/big').then((i) => [i.size, i.mode]))
  like('a list has the name', /a\.txt/, JSON.stringify(await box.files.list('dir')))
  like('a pattern finds a file', /a\.txt/, JSON.stringify(await box.files.glob('**/*.txt')))
  is('a search finds the line', 'héllo!', (await box.files.search('h.*llo', { path: 'dir' })).matches[0].text)
  const stop = new AbortController()
  const changes = box.files.watchDir('made', { signal: stop.signal })
  let changed = ''
  const watching = (async () => {
    for await (const change of changes) {
      changed = String(change.to ?? change.path)
      if (changed.endsWith('made/new')) return
    }
  })()
  await until(() => changed.endsWith('made/new'), () => box.files.write('made/new', 'x'))
  await watching
  like('a change is told', /made\/new$/, changed)
  stop.abort()
  const tar = await box.files.readTar('dir')
  await box.files.writeTar('copy', tar)
  is('a tar archive goes out and in', 'héllo!', await box.files.read('copy/a.txt'))
  const link = await box.files.signUrl('dir/a.txt')
  is('a signed URL needs no key', 'héllo!', await (await fetch(link.url)).text())
  await box.files.remove('dir')
  is('a directory is removed', false, await box.files.exists('dir'))
})

await part('terminals', async () => {
  let shown = ''
  const terminal = await box.pty.create({ rows: 30, columns: 100, onData: (data) => { shown += text(data) } })
  terminal.send('stty size; echo done-$((40+2))\n')
  await until(() => /done-42/.test(shown), async () => shown)
  like('a terminal has its size', /30 100/, shown)
  terminal.resize(10, 20)
  terminal.send('stty size\n')
  like('a terminal is resized', /10 20/, await until((s) => /10 20/.test(s), async () => shown))
  terminal.send('exit 4\n')
  is('the end of a terminal has the exit code', 4, (await terminal.wait()).exitCode)
  await refuses('a terminal of an unknown sandbox is refused', SandboxNotFoundError, /./, () => new Sandbox({ ...box.info, id: 'i00000000000000000000' }, box.client).pty.create())
})

await part('ports and previews', async () => {
  const server = await box.commands.start('cd /tmp && echo hi > index.html && exec python3 -m http.server 8123')
  await until((ports) => ports.some((p) => p.port === 8123), () => box.ports.list())
  is('a server inside answers', 'hi\n', await (await box.ports.request(8123, '/index.html')).text())
  const link = await box.ports.link(8123)
  like('a link names the port', /8123/, link.url)
  const tunnel = await box.ports.connect(8123)
  tunnel.send('GET /index.html HTTP/1.0\r\n\r\n')
  let answer = ''
  for await (const data of tunnel) answer += text(data)
  tunnel.close()
  like('a tunnel passes bytes both ways', /^HTTP\/1\.0 200 OK[^]*hi\n$/, answer)
  await refuses('a tunnel to a port where nothing listens is refused', UnavailableError, /nothing listens/, () => box.ports.connect(8124))
  await server.kill()
})

await part('git', async () => {
  await box.git.init('repo', { initialBranch: 'main' })
  await box.files.write('repo/f', '1')
  is('a new file is in the status', ['main', ['f'], false], await box.git.status('repo').then((s) => [s.branch, s.files.map((f) => f.path), s.clean]))
  await box.git.add('repo')
  await box.git.commit('repo', 'first', { authorName: 'A', authorEmail: 'a@example.com' })
  like('the log has the commit', /first/, (await box.git.log('repo')).join())
  is('a new repository has no remote', undefined, await box.git.remoteGet('repo'))
  await box.git.createBranch('repo', 'next')
  is('branches are listed', ['main', 'next'], (await box.git.branches('repo')).sort())
})

await part('cells', async () => {
  const first = await box.runCode('x = 20\nprint("out")\nx + 1')
  is('a cell has text and output', ['21', 'out\n'], [first.text, first.logs.stdout.join('')])
  is('variables stay', '40', (await box.runCode('x * 2')).text)
  is('an exception is part of the answer', 'ZeroDivisionError', (await box.runCode('1/0')).error?.name)
  const context = await box.createCodeContext({ language: 'python' })
  is('a second context has its own variables', 'NameError', (await box.runCode('x', { context })).error?.name)
  await box.removeCodeContext(context)
  await refuses('a cell that takes too long is interrupted', RequestTimeoutError, /longer than/, () => box.runCode('import time; time.sleep(60)', { timeoutMs: 500 }))
})

await part('one request', async () => {
  const result = await Sandbox.run('cat in.txt; cp in.txt out.txt; exit 5', { files: { 'in.txt': 'data' }, returnFiles: ['out.txt'] })
  is('a command in a sandbox of its own', [5, 'data', 'data'], [result.exitCode, result.stdout, result.files[0].data])
  is('code in a sandbox of its own', '42\n', (await Sandbox.run({ code: 'print(6*7)' })).stdout)
})

await part('templates', async () => {
  const { builds, templates } = new Tenant()
  const lines = []
  const build = await builds.create({ name: 'ts-made:one', from: 'host', steps: [{ type: 'RUN', args: ['echo hello > greeting; echo built', 'user'] }, { type: 'ENV', args: ['COLOUR', 'blue'] }] })
  is('a build is followed to its end', 'ready', (await build.wait({ onLog: (line) => lines.push(line.text) })).state)
  holds("the lines of a build's log are shown", lines.some((line) => line.includes('built')), lines)
  const made = await Sandbox.create({ template: 'ts-made:one' })
  is('a sandbox of the template has what was built', 'hello\nblue\n', (await made.commands.run('cat greeting; echo $COLOUR')).stdout)
  await made.kill()
  const failing = await builds.create({ name: 'ts-made:bad', from: 'host', steps: [{ type: 'RUN', args: ['exit 3', 'user'] }] })
  const error = await refuses('a build that fails is an error', BuildError, /./, () => failing.wait())
  is('the error says where the build failed', ['failed', '1'], [error?.build.state, error?.build.step])
  const slow = await builds.create({ name: 'ts-made:slow', from: 'host', steps: [{ type: 'RUN', args: ['sleep 600', 'user'] }] })
  await slow.cancel()
  is('a build is cancelled', 'cancelled', await (await builds.get(slow.id)).wait().catch((err) => err.build.state))
  is('builds of a template are listed, newest first', [slow.id, failing.id, build.id], (await builds.list({ template: 'ts-made' })).map((one) => one.id))
  is('files for a build are taken', 3, (await builds.putFiles('0'.repeat(64), new Uint8Array(3))).bytes)
  await templates.tag('ts-made', ['two'], { from: 'one' })
  is('a template has its tags', ['one', 'two'], (await templates.get('ts-made')).tags.map((tag) => tag.tag).filter((tag) => tag !== 'default').sort())
  is('a tag is removed once', [true, false], [await templates.untag('ts-made', 'two'), await templates.untag('ts-made', 'two')])
  await refuses('a tenant cannot publish', ForbiddenError, /./, () => templates.publish('ts-made'))
  holds('a template is listed', (await templates.list()).some((one) => one.name === 'ts-made'))
  is('a template is removed once', [true, false], [await templates.remove('ts-made'), await templates.remove('ts-made')])
})

await part('the operator', async () => {
  const { tenants, keys } = new Operator(new Cove({ apiKey: process.env.OPERATOR_KEY }))
  is('a tenant is made', 1, (await tenants.add({ name: 'ts-team', quotas: { sandboxes: 1 } })).quotas.sandboxes)
  is('a tenant is changed', 2, (await tenants.change('ts-team', { quotas: { sandboxes: 2 } })).quotas.sandboxes)
  holds('a tenant is listed', (await tenants.list()).some((one) => one.name === 'ts-team'))
  const made = await keys.create({ tenant: 'ts-team', label: 'test' })
  is("the key is the tenant's", 'ts-team', (await new Tenant(new Cove({ apiKey: made.key })).stats()).tenant)
  holds('a key is listed, without the key', (await keys.list({ tenant: 'ts-team' })).some((one) => one.id === made.id && !one.key))
  await keys.revoke(made.id)
  is('a key is revoked', 'revoked', (await keys.list({ tenant: 'ts-team' })).find((one) => one.id === made.id).state)
  is('a tenant is removed once', ['ts-team', true, false], [(await tenants.get('ts-team')).name, await tenants.remove('ts-team'), await tenants.remove('ts-team')])
  await refuses('a key of another scope is refused', ForbiddenError, /./, () => new Operator().tenants.list())
})

await part('a server that is no WebSocket server', async () => {
  const server = http.createServer().on('upgrade', (_, stream) => stream.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n'))
  await new Promise((go) => server.listen(0, '127.0.0.1', go))
  const strange = await Sandbox.connect(box.id, { client: new Cove({ url: `http://127.0.0.1:${server.address().port}`, fetch: (address, init) => fetch(String(address).replace(/:\d+\//, `:${new URL(process.env.COVE_URL).port}/`), init) }) })
  await refuses('a wrong Sec-WebSocket-Accept is refused', ProtocolError, /did not accept the WebSocket/, () => strange.pty.create())
  server.close()
})

await part('what a tenant has', async () => {
  const tenant = new Tenant()
  await tenant.volumes.create({ name: 'ts-volume', size: '16m' })
  holds('a volume is listed', (await tenant.volumes.list()).some((v) => v.name === 'ts-volume'))
  is('a volume is removed once', [true, false], [await tenant.volumes.remove('ts-volume'), await tenant.volumes.remove('ts-volume')])
  await tenant.networks.create({ name: 'ts-net' })
  await tenant.networks.join('ts-net', box.id)
  like('a private network has its member', new RegExp(box.id), JSON.stringify(await tenant.networks.get('ts-net')))
  is('a private network is removed', true, await tenant.networks.delete('ts-net'))
  is('policy is asked', false, (await tenant.analyze({ command: 'rm -rf /' })).allowed)
  is('the server is well', 'healthy', (await tenant.health()).status)
  like('rules of the network are read', /off|none|mode/, JSON.stringify(await box.network.get()))
})

await part('a connection that breaks', async () => {
  // A proxy that cuts the connection: before it sent anything, and in the middle of an answer.
  const target = new URL(process.env.COVE_URL)
  let mode = 'pass'
  let asked = 0
  const proxy = net.createServer((client) => {
    asked++
    if (mode === 'cut' && asked === 1) return client.destroy()
    const upstream = net.connect(Number(target.port), target.hostname)
    let bytes = 0
    upstream.on('data', (data) => {
      bytes += data.length
      if (mode === 'middle' && bytes > 2000) { client.destroy(); upstream.destroy(); mode = 'pass' } else client.write(data)
    })
    client.pipe(upstream)
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
    upstream.on('end', () => client.end())
  })
  await new Promise((go) => proxy.listen(0, '127.0.0.1', go))
  const client = new Cove({ url: `http://127.0.0.1:${proxy.address().port}`, apiKey: process.env.COVE_API_KEY })
  const through = new Sandbox(box.info, client)
  mode = 'cut'
  is('a request that is safe is sent again', [box.id, 2], [(await through.getInfo()).id, asked])
  asked = 0
  await refuses('a command is not sent twice', ConnectionFailedError, /./, () => through.commands.run('true'))
  mode = 'pass'
  const proc = await through.commands.start('seq 1 2000')
  mode = 'middle'
  const result = await proc.wait()
  is('output continues where the connection broke', Array.from({ length: 2000 }, (_, i) => `${i + 1}\n`).join(''), result.stdout)
  proxy.close()
  await refuses('a server that is not there is named', ConnectionFailedError, /127\.0\.0\.1:1 cannot be reached/, () =>
    new Cove({ url: 'http://127.0.0.1:1', retries: 0 }).call('getHealth'))
  const html = http.createServer((_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<p>'))
  await new Promise((go) => html.listen(0, '127.0.0.1', go))
  await refuses('a server that is no cove is told', ProtocolError, /no JSON/, () => new Cove({ url: `http://127.0.0.1:${html.address().port}` }).call('getHealth'))
  html.close()
  html.closeAllConnections()
})

await part('a process for the Agent SDK', async () => {
  const spawn = spawner(box, { envs: { MINE: 'in' }, forwardEnv: ['KEPT'] })
  const child = spawn({ command: 'sh', args: ['-c', 'read line; echo "$line $MINE $KEPT [$HOST_SECRET]"; cat; exit 6'], cwd: '/tmp', env: { HOST_SECRET: 'no', KEPT: 'yes' } })
  let out = ''
  child.stdout.on('data', (d) => { out += d })
  const exit = new Promise((go) => child.once('exit', go))
  child.stdin.write('first\n')
  child.stdin.end('rest')
  is('a process that spawn started ends with its exit code', 6, await exit)
  is('stdin, stdout and the environment that was asked for', 'first in yes []\nrest', out)
  const long = spawn({ command: 'sleep', args: ['876543'] })
  await until((n) => n === '1', async () => (await box.commands.run("pgrep -cfx '[s]leep 876543' || true")).stdout.trim())
  const killed = new Promise((go) => long.once('exit', (code, signal) => go(signal)))
  long.kill()
  is('kill ends it here', 'SIGTERM', await killed)
  is('kill ends the process inside', '0', await until((n) => n === '0', async () => (await box.commands.run("pgrep -cfx '[s]leep 876543' || true")).stdout.trim()))
  const none = new SandboxProcess(box.client, box.id, { args: ['/does/not/exist'] })
  const how = await new Promise((go) => { none.once('exit', (code) => go(code)); none.once('error', (e) => go(e.message)) })
  like('a program that does not exist is told', /127|not|exist|No such/, String(how))
})

await part('the end', async () => {
  const snapshot = await box.createSnapshot({ memory: false }).catch((error) => error)
  if (snapshot instanceof Error) like('a host that cannot save says so', /criu|support/i, snapshot.message)
  else {
    const copy = await Sandbox.create({ snapshot: snapshot.id, memory: false })
    is('a sandbox of a snapshot has its files', '1', await copy.files.read('repo/f'))
    await copy.kill()
    is('a snapshot is deleted', true, await new Tenant().snapshots.delete(snapshot.id))
  }
  holds('the sandbox ends', await box.kill())
})

end()
