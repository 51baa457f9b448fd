// Sandbox: every call of the control plane, and the classes of its errors.
import {
  ALL_TRAFFIC, AuthenticationError, BuildError, E2B, InvalidArgumentError, RateLimitError, Sandbox, SandboxError,
  SandboxNotFoundError, Secret, SecretError, Template, TemplateError, TimeoutError, Volume, VolumeError,
} from 'e2b'
import { finish, holds, is, like, part, refuses, sandbox, template, until } from './check.mjs'

const gone = 'i' + '0'.repeat(20)
const foreign = { apiKey: process.env.OTHER_KEY }

await part('create', async () => {
  const before = Date.now()
  const box = await sandbox({
    metadata: { owner: 'Ö & co', kind: 'all options' },
    envs: { COLOUR: 'blue', EMPTY: '', LONG: 'x'.repeat(5000) },
    timeoutMs: 90_000,
    secure: true,
    allowInternetAccess: false,
    lifecycle: { onTimeout: 'kill' },
  })
  like('an id is i and twenty letters or digits', /^i[a-z0-9]{20}$/, box.sandboxId)
  holds('the domain is a name', typeof box.sandboxDomain === 'string' && box.sandboxDomain.length > 0, box.sandboxDomain)
  is('a new sandbox runs', true, await box.isRunning())
  const info = await box.getInfo()
  is('getInfo has the id', box.sandboxId, info.sandboxId)
  is('getInfo has the metadata', { owner: 'Ö & co', kind: 'all options' }, info.metadata)
  is('getInfo has the state running', 'running', info.state)
  like('the version of envd is new enough for everything', /^0\.6\.\d+$/, info.envdVersion)
  holds('getInfo has the start', Math.abs(info.startedAt.getTime() - before) < 30_000, info.startedAt)
  const life = info.endAt.getTime() - info.startedAt.getTime()
  holds('getInfo has the end that was asked for', Math.abs(life - 90_000) < 3_000, life)
  holds('getInfo has processors', Number.isInteger(info.cpuCount) && info.cpuCount >= 1, info.cpuCount)
  holds('getInfo has memory', info.memoryMB >= 128, info.memoryMB)
  holds('getInfo has a template', typeof info.templateId === 'string' && info.templateId.length > 0, info.templateId)
  is('getInfo says that the internet is off, as was asked', false, info.allowInternetAccess)
  is('getInfo says that the sandbox is killed at its end', 'kill', info.lifecycle?.onTimeout)
  is('environment variables are in every command', 'blue::5000', (await box.commands.run('echo "$COLOUR:$EMPTY:${#LONG}"')).stdout.trim())
  is('a sandbox knows that it is one', `true ${box.sandboxId}`, (await box.commands.run('echo $E2B_SANDBOX $E2B_SANDBOX_ID')).stdout.trim())
  is('kill says that it was there', true, await box.kill())
  is('kill again says that it was not', false, await box.kill())
  is('a killed sandbox does not run', false, await box.isRunning())
})

await part('create without options', async () => {
  const box = await Sandbox.create(template)
  const info = await box.getInfo()
  is('metadata is empty', {}, info.metadata)
  const life = info.endAt.getTime() - info.startedAt.getTime()
  holds('five minutes is the lifetime', Math.abs(life - 300_000) < 3_000, life)
  is('the static kill', true, await Sandbox.kill(box.sandboxId))
})

await part('create with the template in the options', async () => {
  const box = await Sandbox.create({ template, timeoutMs: 60_000, metadata: { way: 'options' } })
  is('a sandbox is made with the template in the options', 'options', (await box.getInfo()).metadata.way)
  await box.kill()
})

await part('create refused', async () => {
  await refuses('an unknown template', SandboxError, /404: .*no-such-template/, () => Sandbox.create('no-such-template'))
  await refuses('a template name that is none', SandboxError, /40[04]/, () => Sandbox.create('../etc'))
  await refuses('no lifetime at all', SandboxError, /400: .*[Tt]imeout/, () => Sandbox.create(template, { timeoutMs: 0 }))
  await refuses('a lifetime beyond the greatest', SandboxError, /400: .*timeout/i, () => Sandbox.create(template, { timeoutMs: 1000 * 3600 * 24 * 30 }))
  await refuses('no key', AuthenticationError, /API key is required/, async () => {
    const key = process.env.E2B_API_KEY
    delete process.env.E2B_API_KEY
    try { return await Sandbox.create(template) } finally { process.env.E2B_API_KEY = key }
  })
  await refuses('a wrong key', AuthenticationError, /./, () => Sandbox.create(template, { apiKey: 'e2b_' + '0'.repeat(40) }))
  await refuses('a key of another shape', AuthenticationError, /./, () => Sandbox.create(template, { apiKey: 'secret' }))
  await refuses('a volume', SandboxError, /(400|403|404|501): /, () => Sandbox.create(template, { volumeMounts: { '/mnt/v': 'none' } }))
  await refuses('an egress proxy at a private address', SandboxError, /400: .*egressProxy.address/, () =>
    Sandbox.create(template, { network: { egressProxy: { address: '10.0.0.1:1080' } } }))
  await refuses('rules that would send requests elsewhere', SandboxError, /400: /, () =>
    Sandbox.create(template, { network: { rules: { 'api.example': [{ transform: { headers: { host: 'b' } } }] } } }))
  await refuses('names in allowOut without a denial of the rest', SandboxError, /400: /, () =>
    Sandbox.create(template, { network: { allowOut: ['example.com'] } }))
  await refuses('a token for another service', SandboxError, /(400|501): /, () =>
    Sandbox.create(template, { iam: { tokens: { t: { audience: 'a', tokenType: 'JWT-SVID' } } } }))
  await refuses('a lifecycle that the SDK itself knows to be wrong', InvalidArgumentError, /onTimeout/, () =>
    Sandbox.create(template, { lifecycle: { onTimeout: 'vanish' } }))
})

await part('network options', async () => {
  const shut = await sandbox({ allowInternetAccess: false })
  is('no internet', false, (await shut.getInfo()).allowInternetAccess)
  const denied = await sandbox({ network: { denyOut: [ALL_TRAFFIC] } })
  is('all traffic denied: told by getInfo', [ALL_TRAFFIC], (await denied.getInfo()).network?.denyOut)
  is('all traffic denied: no address can be reached', 'no', (await denied.commands.run('timeout 2 bash -c "</dev/tcp/192.0.2.1/80" 2>/dev/null && echo yes || echo no')).stdout.trim())
  const guarded = await sandbox({ network: { allowPublicTraffic: false } })
  holds('a sandbox whose ports are not public has a token for them', guarded.trafficAccessToken?.length > 16, guarded.trafficAccessToken)
  is('getInfo says that the ports are not public', false, (await guarded.getInfo()).network?.allowPublicTraffic)
  const open = await sandbox()
  is('a sandbox whose ports are public has no token for them', undefined, open.trafficAccessToken)
  const listed = { denyOut: [ALL_TRAFFIC], allowOut: ['api.example.com', '*.example.org', '8.8.4.0/24'] }
  const some = await sandbox({ network: listed })
  is('what is allowed is told', listed, (({ denyOut, allowOut }) => ({ denyOut, allowOut }))((await some.getInfo()).network ?? {}))
  await some.updateNetwork({ denyOut: [ALL_TRAFFIC], allowOut: ['8.8.4.4'] })
  is('rules that are allowed can be changed', ['8.8.4.4'], (await some.getInfo()).network?.allowOut)
  await Sandbox.updateNetwork(some.sandboxId, { allowInternetAccess: false })
  is('what is left out is cleared', [], (await some.getInfo()).network?.allowOut ?? [])
  const proxied = await sandbox({ network: { egressProxy: { address: 'proxy.example:1080', username: 'me', password: 'hush' } } })
  is('an egress proxy is told, without its login', { address: 'proxy.example:1080' }, (await proxied.getInfo()).network?.egressProxy)
  await proxied.updateNetwork({ egressProxy: { address: '93.184.216.34:1080' } })
  is('an egress proxy can be changed', '93.184.216.34:1080', (await proxied.getInfo()).network?.egressProxy?.address)
  await refuses('an egress proxy at a private address', SandboxError, /400: .*egressProxy.address/, () => proxied.updateNetwork({ egressProxy: { address: '10.0.0.1:1080' } }))
  await refuses('a name without a denial of the rest', SandboxError, /400: /, () => some.updateNetwork({ allowOut: ['example.com'] }))
  await refuses('an address that is not public', SandboxError, /400: .*network_ranges/, () => some.updateNetwork({ denyOut: [ALL_TRAFFIC], allowOut: ['203.0.113.7'] }))
  await refuses('an address that is none', SandboxError, /400: /, () => some.updateNetwork({ denyOut: ['nonsense/99'] }))
  await refuses('updateNetwork of a sandbox that is not there', SandboxNotFoundError, /not found/, () => Sandbox.updateNetwork(gone, { denyOut: [ALL_TRAFFIC] }))
})

await part('getInfo, kill, connect of what is not there', async () => {
  await refuses('getInfo', SandboxNotFoundError, /not found/, () => Sandbox.getInfo(gone))
  await refuses('getFullInfo', SandboxNotFoundError, /not found/, () => Sandbox.getFullInfo(gone))
  await refuses('connect', SandboxNotFoundError, /not found/, () => Sandbox.connect(gone))
  await refuses('setTimeout', SandboxNotFoundError, /not found/, () => Sandbox.setTimeout(gone, 60_000))
  await refuses('getMetrics', SandboxNotFoundError, /not found/, () => Sandbox.getMetrics(gone))
  is('kill', false, await Sandbox.kill(gone))
  is('an id that is none', false, await Sandbox.kill('nonsense').catch((err) => (/400/.test(err.message) ? false : err)))
  await refuses('pause', SandboxNotFoundError, /not found/, () => Sandbox.pause(gone))
  await refuses('createSnapshot', SandboxNotFoundError, /not found/, () => Sandbox.createSnapshot(gone))
  await refuses('fork', SandboxNotFoundError, /no sandbox/, () => Sandbox.fork(gone))
})

await part('connect', async () => {
  const box = await sandbox({ timeoutMs: 60_000, envs: { A: '1' } })
  const end = (await box.getInfo()).endAt.getTime()
  const same = await Sandbox.connect(box.sandboxId)
  is('connect gives the same sandbox', box.sandboxId, same.sandboxId)
  is('commands run through the second handle', '1', (await same.commands.run('echo $A')).stdout.trim())
  await Sandbox.connect(box.sandboxId, { timeoutMs: 10_000 })
  holds('connect never shortens a life', (await box.getInfo()).endAt.getTime() >= end, await box.getInfo())
  await Sandbox.connect(box.sandboxId, { timeoutMs: 600_000 })
  holds('connect may lengthen a life', (await box.getInfo()).endAt.getTime() > end + 500_000)
  is('connect of an instance is the instance', box, await box.connect())
  await same.files.write('from-second', 'x')
  is('what one writes the other reads', 'x', await box.files.read('from-second'))
  await box.kill()
  await refuses('connect after the end of a sandbox', SandboxNotFoundError, /not found/, () => Sandbox.connect(box.sandboxId))
})

await part('setTimeout', async () => {
  const box = await sandbox({ timeoutMs: 60_000 })
  await box.setTimeout(600_000)
  let left = (await box.getInfo()).endAt.getTime() - Date.now()
  holds('setTimeout lengthens a life', Math.abs(left - 600_000) < 25_000, left)
  await Sandbox.setTimeout(box.sandboxId, 30_000)
  left = (await box.getInfo()).endAt.getTime() - Date.now()
  holds('the static setTimeout shortens a life', Math.abs(left - 30_000) < 25_000, left)
  await box.setTimeout(1000)
  is('setTimeout ends the sandbox', false, await until((running) => !running, () => box.isRunning()))
  await refuses('commands then say why', TimeoutError, /sandbox/i, () => box.files.read('x'))
  await refuses('a command too', SandboxNotFoundError, /not running anymore/, () => box.commands.run('true'))
  is('getInfo', SandboxNotFoundError, (await until((err) => err, () => box.getInfo().then(() => undefined, (err) => err)))?.constructor)
})

await part('list', async () => {
  const tag = `t${process.pid}`
  const boxes = []
  for (let i = 0; i < 5; i++) boxes.push(await sandbox({ metadata: { tag, even: String(i % 2 === 0), 'odd key': 'a=b&c%20d é' } }))
  const all = async (opts) => {
    const found = []
    const pages = Sandbox.list(opts)
    while (pages.hasNext) found.push(...(await pages.nextItems()))
    return found.map((info) => info.sandboxId)
  }
  const ids = boxes.map((box) => box.sandboxId)
  is('a list by metadata, newest first', [...ids].reverse(), await all({ query: { metadata: { tag } } }))
  is('oldest first when asked', ids, await all({ query: { metadata: { tag } }, order: 'asc' }))
  is('all pairs must match', [ids[4], ids[2], ids[0]], await all({ query: { metadata: { tag, even: 'true' } } }))
  is('a pair of difficult characters', [...ids].reverse(), await all({ query: { metadata: { tag, 'odd key': 'a=b&c%20d é' } } }))
  is('a value that nobody has', [], await all({ query: { metadata: { tag, even: 'maybe' } } }))
  is('running ones', [...ids].reverse(), await all({ query: { metadata: { tag }, state: ['running'] } }))
  is('running and paused ones', [...ids].reverse(), await all({ query: { metadata: { tag }, state: ['running', 'paused'] } }))
  is('no paused ones', [], await all({ query: { metadata: { tag }, state: ['paused'] } }))
  is('a list by template', [...ids].reverse(), await all({ query: { metadata: { tag }, template } }))
  is('an unknown template has none', [], await all({ query: { metadata: { tag }, template: 'no-such' } }))
  is('after a moment that is past', 5, (await all({ query: { metadata: { tag }, startedAfter: new Date(Date.now() - 600_000) } })).length)
  is('after one to come', [], await all({ query: { metadata: { tag }, startedAfter: new Date(Date.now() + 600_000) } }))
  const pages = Sandbox.list({ query: { metadata: { tag } }, limit: 2 })
  const sizes = []
  const paged = []
  while (pages.hasNext) {
    const items = await pages.nextItems()
    sizes.push(items.length)
    paged.push(...items.map((info) => info.sandboxId))
  }
  is('pages of two', [2, 2, 1], sizes)
  is('have each once and in order', [...ids].reverse(), paged)
  await refuses('no page after the last', Error, /No more items/, () => pages.nextItems())
  const first = Sandbox.list({ query: { metadata: { tag } }, limit: 3 })
  await first.nextItems()
  is('a token continues where another stopped', [ids[1], ids[0]], await all({ query: { metadata: { tag } }, limit: 3, nextToken: first.nextToken }))
  const up = Sandbox.list({ query: { metadata: { tag } }, limit: 4, order: 'asc' })
  await up.nextItems()
  is('pages also upwards', [ids[4]], (await up.nextItems()).map((info) => info.sandboxId))
  await refuses('a token that is none', SandboxError, /400: /, () => Sandbox.list({ nextToken: '???' }).nextItems())
  await refuses('a limit beyond a hundred', SandboxError, /400: /, () => Sandbox.list({ limit: 1000 }).nextItems())
  const [one] = await Sandbox.list({ query: { metadata: { tag } }, limit: 1 }).nextItems()
  is('an item has its metadata', tag, one.metadata.tag)
  holds('an item has its dates', one.startedAt instanceof Date && one.endAt > one.startedAt)
  holds('an item has its sizes', one.cpuCount >= 1 && one.memoryMB >= 128)
  is("the list of another tenant has none of the sandboxes", [], (await Sandbox.list({ ...foreign, query: { metadata: { tag } } }).nextItems()).map((info) => info.sandboxId))
  await boxes[0].kill()
  is('a killed one is not listed', 4, (await all({ query: { metadata: { tag } } })).length)
  await Promise.all(boxes.map((box) => box.kill()))
})

await part('another tenant', async () => {
  const box = await sandbox()
  const id = box.sandboxId
  await refuses('a sandbox cannot be seen', SandboxNotFoundError, /not found/, () => Sandbox.getInfo(id, foreign))
  await refuses('cannot connect', SandboxNotFoundError, /not found/, () => Sandbox.connect(id, foreign))
  await refuses('the end of a sandbox cannot be changed', SandboxNotFoundError, /not found/, () => Sandbox.setTimeout(id, 1000, foreign))
  is('a sandbox cannot be killed', false, await Sandbox.kill(id, foreign))
  const spy = new Sandbox({ sandboxId: id, envdVersion: '0.6.13', envdAccessToken: 'f'.repeat(64) })
  await refuses('a wrong access token: files', AuthenticationError, /./, () => spy.files.read('/etc/passwd'))
  await refuses('a wrong access token: listing', AuthenticationError, /./, () => spy.files.list('/'))
  await refuses('a wrong access token: commands', AuthenticationError, /./, () => spy.commands.list())
  const bare = new Sandbox({ sandboxId: id, envdVersion: '0.6.13' })
  await refuses('no access token', AuthenticationError, /./, () => bare.files.read('/etc/passwd'))
  is('a sandbox survives requests with a wrong token', true, await box.isRunning())
})

await part('quota and rate', async () => {
  const boxes = [await Sandbox.create(template, foreign), await Sandbox.create(template, foreign)]
  const err = await refuses('one sandbox more than the tenant may have', RateLimitError, /./, () => Sandbox.create(template, { ...foreign, retries: 0 }))
  is('a sandbox beyond the quota is 429', 429, err?.statusCode)
  await Promise.all(boxes.map((box) => box.kill()))
  const after = await until((box) => box, () => Sandbox.create(template, { ...foreign, retries: 0 }).catch(() => undefined))
  holds('a create succeeds again when the tenant has room', after)
  await after?.kill()
})

await part('getMetrics', async () => {
  const box = await sandbox()
  const busy = await box.commands.run('timeout 20 sh -c "while :; do :; done"', { background: true })
  const points = await until((list) => list.length > 0, () => box.getMetrics(), 30_000)
  holds('a point comes', points.length > 0, points)
  const p = points.at(-1) ?? {}
  holds('a date', p.timestamp instanceof Date && Math.abs(p.timestamp - Date.now()) < 60_000, p)
  holds('a share of processors', typeof p.cpuUsedPct === 'number' && p.cpuUsedPct >= 0, p)
  holds('a count of processors', p.cpuCount >= 1, p)
  holds('memory', p.memUsed > 0 && p.memTotal >= p.memUsed, p)
  holds('memory of the cache', p.memCache >= 0, p)
  holds('disk', p.diskTotal > 0 && p.diskUsed >= 0 && p.diskUsed < p.diskTotal, p)
  is('no point before the sandbox existed', [], await box.getMetrics({ start: new Date(Date.now() - 7200_000), end: new Date(Date.now() - 3600_000) }))
  holds('all since it began', (await Sandbox.getMetrics(box.sandboxId, { start: new Date(Date.now() - 60_000), end: new Date() })).length > 0)
  await busy.kill()
}, 40_000)

await part('pause and resume', async () => {
  const box = await sandbox({ timeoutMs: 60_000, envs: { KEPT: 'yes' } })
  const token = await box.downloadUrl('x')
  is('pause', true, await box.pause())
  is('pause again', false, await box.pause())
  is('betaPause', false, await box.betaPause())
  is('static pause', false, await Sandbox.pause(box.sandboxId))
  is('static betaPause', false, await Sandbox.betaPause(box.sandboxId))
  is('a paused sandbox does not run', false, await box.isRunning())
  is('a paused sandbox has the state paused', 'paused', (await box.getInfo()).state)
  await refuses('a command', SandboxNotFoundError, /not running anymore/, () => box.commands.run('true'))
  await refuses('a file', TimeoutError, /sandbox/i, () => box.files.read('x'))
  const same = await Sandbox.connect(box.sandboxId)
  is('connect resumes', [box.sandboxId, true], [same.sandboxId, await same.isRunning()])
  is('a resumed sandbox has the state running', 'running', (await box.getInfo()).state)
  is('a resumed sandbox has the same token', token, await same.downloadUrl('x'))
  is('the old handle works too', 'yes\n', (await box.commands.run('echo $KEPT')).stdout)
  const booted = () => box.files.read('/proc/sys/kernel/random/boot_id')
  const boot = await booted()
  is('pause with memory', true, await box.pause())
  await Sandbox.connect(box.sandboxId)
  is('a pause with memory is no new boot', boot, await booted())
  await box.files.write('kept.txt', 'yes')
  const background = await box.commands.run('sleep 300', { background: true })
  is('pause without memory', true, await box.pause({ keepMemory: false }))
  const cold = await Sandbox.connect(box.sandboxId)
  is('a pause without memory keeps files, and no processes', ['yes', 0],
    [await cold.files.read('kept.txt'), (await cold.commands.list()).filter((one) => one.pid === background.pid).length])
  holds('a pause without memory is a new boot', boot !== await booted())
  const ends = await sandbox({ timeoutMs: 1500, lifecycle: { onTimeout: 'pause' } })
  is('a sandbox can be paused at its end', 'pause', (await ends.getInfo()).lifecycle?.onTimeout)
  is('a sandbox is paused at its end', 'paused', (await until((info) => info.state === 'paused', () => ends.getInfo(), 10_000)).state)
  is('kill of a paused one', true, await ends.kill())
  await refuses('connect after that', SandboxNotFoundError, /not found/, () => Sandbox.connect(ends.sandboxId))
})

await part('snapshots and forks', async () => {
  const box = await sandbox({ timeoutMs: 60_000 })
  await box.files.write('kept.txt', 'before')
  const { pid } = await box.commands.run('python3 -c "import time; time.sleep(300)"', { background: true })
  const alive = async (one) => (await one.commands.run(`kill -0 ${pid} && echo alive`)).stdout.trim()
  const own = async (one) => (await one.commands.run('echo $E2B_SANDBOX_ID')).stdout.trim()
  const named = await box.createSnapshot({ name: 'one' })
  holds('a named snapshot', /^[a-z0-9-]+\/one:default$/.test(named.snapshotId), named)
  const plain = await Sandbox.createSnapshot(box.sandboxId)
  holds('a snapshot without a name', /^i[a-z0-9]{20}:default$/.test(plain.snapshotId), plain)
  is('the sandbox continues', [true, 'alive'], [await box.isRunning(), await alive(box)])
  is('snapshots with and without a name are listed', [plain.snapshotId, named.snapshotId], (await box.listSnapshots().nextItems()).map((one) => one.snapshotId))
  is('snapshots in pages', 1, (await Sandbox.listSnapshots({ limit: 1 }).nextItems()).length)
  await box.files.write('kept.txt', 'after')
  for (const [what, id] of [['named', named.snapshotId], ['other', plain.snapshotId]]) {
    const made = await Sandbox.create(id, { timeoutMs: 30_000 })
    is(`a sandbox of the ${what} one has its files and processes`, ['before', 'alive'], [await made.files.read('kept.txt'), await alive(made)])
    is('a sandbox of a snapshot has its own id, inside too', made.sandboxId, await own(made))
    await made.kill()
  }
  const again = await box.createSnapshot({ name: 'one' })
  is('a second snapshot of a name takes the place of the first', [named.snapshotId, 2], [again.snapshotId, (await box.listSnapshots().nextItems()).length])
  is('deleteSnapshot, twice', [true, false], [await Sandbox.deleteSnapshot(again.snapshotId), await Sandbox.deleteSnapshot(again.snapshotId)])
  is('a snapshot without a name is deleted', true, await Sandbox.deleteSnapshot(plain.snapshotId))
  const forks = await box.fork({ count: 2, timeoutMs: 30_000 })
  is('two forks', [true, true], forks.map((one) => one instanceof Sandbox))
  is('each has files and processes', ['after alive', 'after alive'],
    await Promise.all(forks.map(async (one) => `${await one.files.read('kept.txt')} ${await alive(one)}`)))
  is('each fork has its own id', forks.map((one) => one.sandboxId), await Promise.all(forks.map(own)))
  await Promise.all(forks.map((one) => one.kill()))
  const [single] = await Sandbox.fork(box.sandboxId, { timeoutMs: 10_000 })
  is('static fork', 'alive', await alive(single))
  await single.kill()
  is('the forked sandbox is as it was', 'alive', await alive(box))
  await refuses('a fork of none', SandboxError, /400: /, () => box.fork({ count: 0 }))
  await box.kill()
})

await part('volumes', async () => {
  const made = await Volume.create('kept')
  is('a volume has an id and its name', [true, 'kept'], [/^v[a-z0-9]{20}$/.test(made.volumeId), made.name])
  await refuses('a name that is taken', VolumeError, /409: /, () => Volume.create('kept'))
  is('a volume is listed', [[made.volumeId, 'kept']], (await Volume.list()).map((one) => [one.volumeId, one.name]))
  is('getInfo', 'kept', (await Volume.getInfo(made.volumeId)).name)
  is('connect', made.volumeId, (await Volume.connect(made.volumeId)).volumeId)
  const mount = () => Sandbox.create(template, { timeoutMs: 60_000, volumeMounts: { '/mnt/kept': made } })
  const first = await mount()
  await first.commands.run('echo data >/mnt/kept/file')
  await refuses('a second sandbox that would write to the volume', SandboxError, /409: /, mount)
  is('a volume stays while a sandbox has it', 'VolumeError', await Volume.destroy(made.volumeId).catch((error) => error.constructor.name))
  await first.kill()
  const second = await mount()
  is('a volume outlives a sandbox', 'data', (await second.commands.run('cat /mnt/kept/file')).stdout.trim())
  await second.kill()
  is('destroy, twice', [true, false], [await Volume.destroy(made.volumeId), await Volume.destroy(made.volumeId)])
  is('no volume is left', [], await Volume.list())
})

await part('what is not there yet says so', async () => {
  const box = await sandbox()
  await refuses("an MCP server of Docker's catalogue", SandboxError, /cannot be had here: 'time'/, () => Sandbox.create({ mcp: { time: {} } }))
  await refuses('Secret.list', SecretError, /^(403|404|501): /, () => Secret.list().nextItems())
  await refuses('Secret.create', SecretError, /^(403|404|501): /, () => Secret.create('s', 'v'))
  is('a template that is not there', false, await Template.exists('no-such-template'))
  is('an alias that is not there', false, await Template.aliasExists('no-such-template'))
  await refuses('the status of a build that is not there', BuildError, /404/, () => Template.getBuildStatus({ templateId: 't', buildId: 'b' }))
  await refuses('a tag of a template that is not there', TemplateError, /404/, () => Template.assignTags('mine:one', 'two'))
  await refuses('the removal of a tag of a template that is not there', TemplateError, /404/, () => Template.removeTags('mine', 'two'))
  await refuses('the list of tags of a template that is not there', TemplateError, /404/, () => Template.getTags('mine'))
  is('a template can be described', true, (await Template.toDockerfile(Template().fromImage('debian:12').runCmd('true'))).includes('FROM debian:12'))
  is('the sandbox is as it was', true, await box.isRunning())
})

await part('hosts', async () => {
  const box = await sandbox()
  is('getHost is port, id, domain', `3000-${box.sandboxId}.${box.sandboxDomain}`, box.getHost(3000))
  is('getMcpUrl', `https://50005-${box.sandboxId}.${box.sandboxDomain}/mcp`, box.getMcpUrl())
  is('no gateway, no token', undefined, await box.getMcpToken().catch(() => undefined))
})

await part('a bound client', async () => {
  const client = new E2B({ apiKey: process.env.E2B_API_KEY, apiUrl: process.env.E2B_API_URL, sandboxUrl: process.env.E2B_SANDBOX_URL })
  const box = await client.Sandbox.create(template, { timeoutMs: 60_000 })
  is('works as the functions do', 'bound', (await box.commands.run('echo bound')).stdout.trim())
  is('a bound client kills', true, await box.kill())
})

await part('request timeouts and abortion', async () => {
  const box = await sandbox()
  const stop = new AbortController()
  stop.abort()
  await refuses('a request that was aborted before it began', DOMException, /abort/i, () => box.getInfo({ signal: stop.signal }))
  holds('the request after an aborted one is answered', await box.isRunning())
})

await finish()
