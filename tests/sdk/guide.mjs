// What a newcomer does first, in the shape of the guides that E2B's users know: each part is a small program.
import { CommandExitError, FilesystemEventType, Sandbox } from 'e2b'
import { Sandbox as Interpreter } from '@e2b/code-interpreter'
import { finish, holds, is, like, part, slow, template, until } from './check.mjs'

await part('quick start', async () => {
  const sbx = await Interpreter.create(template)
  const execution = await sbx.runCode("print('hello world')")
  is('output', ['hello world\n'], execution.logs.stdout)
  const files = await sbx.files.list('/')
  holds('files', ['etc', 'home', 'usr'].every((name) => files.some((f) => f.name === name)))
  await sbx.kill()
})

await part('lifecycle', async () => {
  const sandbox = await Sandbox.create(template, { timeoutMs: 60_000 * slow })
  await sandbox.setTimeout(30_000)
  const info = await sandbox.getInfo()
  holds('a sandbox ends in half a minute', info.endAt - Date.now() < 31_000)
  await sandbox.kill()
  is('a killed sandbox is gone', false, await sandbox.isRunning())
})

await part('persistence', async () => {
  const sbx = await Sandbox.create(template)
  await sbx.commands.run('echo kept > note.txt; sleep 300 & echo $! > pid')
  const counter = await sbx.commands.run('i=0; while :; do i=$((i+1)); echo $i; sleep 0.2; done', { background: true, timeoutMs: 0 })
  await until((text) => text, () => counter.stdout)
  is('paused', true, await sbx.pause())
  is('a paused sandbox does not run', false, await sbx.isRunning())
  const paused = await Sandbox.list({ query: { state: ['paused'] } }).nextItems()
  is('listed as paused', 'paused', paused.find((info) => info.sandboxId === sbx.sandboxId)?.state)
  is('paused already', false, await sbx.pause())
  const same = await Sandbox.connect(sbx.sandboxId, { timeoutMs: 60_000 * slow })
  is('connect gives the same sandbox', sbx.sandboxId, same.sandboxId)
  is('a resumed sandbox runs', true, await same.isRunning())
  is('a resumed sandbox has its files', 'kept\n', await same.files.read('note.txt'))
  is('a resumed sandbox has its processes', 'alive\n', (await same.commands.run('kill -0 $(cat pid) && echo alive')).stdout)
  const again = await same.commands.connect(counter.pid)
  holds('processes of a resumed sandbox continue', await until((text) => text, () => again.stdout))
  is('paused ones can be killed', true, (await same.pause(), await same.kill()))
})

await part('metadata', async () => {
  const sandbox = await Sandbox.create(template, { metadata: { userId: '123', session: 'guide' } })
  const paginator = Sandbox.list({ query: { metadata: { userId: '123', session: 'guide' } } })
  const sandboxes = await paginator.nextItems()
  is('found', [sandbox.sandboxId], sandboxes.map((s) => s.sandboxId))
  is('a sandbox has its metadata', '123', sandboxes[0]?.metadata.userId)
  await sandbox.kill()
})

await part('environment variables', async () => {
  const sandbox = await Sandbox.create(template, { envs: { MY_VAR: 'global' } })
  is('global', 'global\n', (await sandbox.commands.run('echo $MY_VAR')).stdout)
  is('a variable of one command', 'local\n', (await sandbox.commands.run('echo $MY_VAR', { envs: { MY_VAR: 'local' } })).stdout)
  is('global again', 'global\n', (await sandbox.commands.run('echo $MY_VAR')).stdout)
  await sandbox.kill()
})

await part('read, write, upload, download', async () => {
  const sandbox = await Sandbox.create(template)
  await sandbox.files.write('/home/user/my-file', 'hello')
  is('read', 'hello', await sandbox.files.read('/home/user/my-file'))
  await sandbox.files.write([{ path: '/home/user/a', data: 'a' }, { path: '/home/user/b', data: 'b' }])
  is('two', ['a', 'b'], await Promise.all(['a', 'b'].map((name) => sandbox.files.read(`/home/user/${name}`))))
  const url = await sandbox.uploadUrl('up.txt', { useSignatureExpiration: 10_000 })
  const form = new FormData()
  form.append('file', new Blob(['uploaded']), 'up.txt')
  is('uploaded', 200, (await fetch(url, { method: 'POST', body: form })).status)
  is('downloaded', 'uploaded', await (await fetch(await sandbox.downloadUrl('up.txt', { useSignatureExpiration: 10_000 }))).text())
  await sandbox.kill()
})

await part('watch a directory', async () => {
  const sandbox = await Sandbox.create(template)
  await sandbox.files.makeDir('/home/user/my-folder')
  const wrote = []
  const handle = await sandbox.files.watchDir('/home/user/my-folder', async (event) => {
    if (event.type === FilesystemEventType.WRITE) wrote.push(event.name)
  })
  await sandbox.files.write('/home/user/my-folder/my-file', 'hello')
  is('a write is seen', 'my-file', await until((name) => name, () => wrote[0]))
  await handle.stop()
  await sandbox.kill()
})

await part('commands', async () => {
  const sandbox = await Sandbox.create(template)
  const lines = []
  await sandbox.commands.run('echo hello; sleep 0.2; echo world', { onStdout: (data) => { lines.push(data) } })
  is('streamed', 'hello\nworld\n', lines.join(''))
  const command = await sandbox.commands.run('echo hello; sleep 10; echo world', { background: true, onStdout: () => {} })
  is('a command is killed', true, await command.kill())
  const failure = await sandbox.commands.run('ls /does-not-exist').catch((err) => err)
  is('a failure', [true, 2], [failure instanceof CommandExitError, failure.exitCode])
  await sandbox.kill()
})

await part('a server inside', async () => {
  const sandbox = await Sandbox.create(template)
  await sandbox.files.write('site/index.html', '<h1>inside</h1>')
  await sandbox.commands.run('python3 -m http.server 3000 --directory site', { background: true, timeoutMs: 0 })
  const ask = () => fetch(process.env.E2B_SANDBOX_URL, { headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '3000' } })
  const answer = await until((a) => a.status === 200, async () => { const a = await ask(); a.said = await a.text(); return a })
  is('answers outside', [200, '<h1>inside</h1>'], [answer.status, answer.said])
  like('a port has a host name', /^3000-i[a-z0-9]{20}\./, sandbox.getHost(3000))
  await sandbox.kill()
  is('a port of a killed sandbox is 502', 502, (await ask()).status)
})

await part('a program that the model wrote', async () => {
  const sbx = await Interpreter.create(template)
  const code = 'numbers = [3, 1, 2]\nprint(sorted(numbers))\nsum(numbers) / len(numbers)'
  const { text, logs, error } = await sbx.runCode(code)
  is('what it said', ['2.0', ['[1, 2, 3]\n'], undefined], [text, logs.stdout, error])
  const wrong = await sbx.runCode('sum(numberz)')
  is('what went wrong, for the next prompt', 'NameError', wrong.error?.name)
  const table = await sbx.runCode("rows = [('a', 1), ('b', 2)]\n'\\n'.join(f'{k}: {v}' for k, v in rows)")
  like('what it made', /a: 1/, table.text)
  await sbx.kill()
})

await finish()
