// Commands and Pty: every call, in the foreground and in the background, and what goes wrong.
import { AuthenticationError, CommandExitError, InvalidArgumentError, NotFoundError, Sandbox, SandboxError, SandboxNotFoundError, TimeoutError } from 'e2b'
import { finish, holds, is, like, part, refuses, sandbox, sleep, slow, until } from './check.mjs'

const box = await sandbox()
const run = async (command, opts) => (await box.commands.run(command, opts)).stdout

await part('run', async () => {
  is('output, errors and exit code', { exitCode: 0, error: undefined, stdout: 'out\n', stderr: 'err\n' },
    { error: undefined, ...(await box.commands.run('echo out; echo err >&2')) })
  is('nothing is said by true', '', await run('true'))
  is('without a newline at the end', 'abc', await run('printf abc'))
  is('unicode', 'žluťoučký kůň 🐎 日本\n', await run("echo 'žluťoučký kůň 🐎 日本'"))
  is('quotes arrive as they are', `it's "$HOME" \\n`, await run(`printf %s 'it'\\''s "$HOME" \\n'`))
  is('a script of several lines', '1\n2\n3\n', await run('for i in 1 2 3\ndo\n  echo $i\ndone'))
  is('pipes', '3\n', await run("printf '%s\\n' a b c | wc -l | tr -d ' '"))
  is('bash it is', 'yes\n', await run('[[ -n $BASH_VERSION ]] && echo yes'))
  is('a login shell', 'yes\n', await run('shopt -q login_shell && echo yes'))
  is('stdin is empty unless asked for', '', await run('cat', { timeoutMs: 10_000 }))
  is('the default directory is the home', '/home/user\n', await run('pwd'))
  is('the default user', 'user\n', await run('whoami'))
  is('HOME, USER and LOGNAME', '/home/user user user\n', await run('echo $HOME $USER $LOGNAME'))
  like('PATH has programs', /\/usr\/bin/, await run('echo $PATH'))
})

await part('exit codes', async () => {
  const err = await refuses('a failure throws', CommandExitError, /exit status 7/, () => box.commands.run('echo a; echo b >&2; exit 7'))
  is('a failure has the exit code', 7, err?.exitCode)
  is('a failure has the output', 'a\n', err?.stdout)
  is('a failure has the errors', 'b\n', err?.stderr)
  is('a failure has the reason', 'exit status 7', err?.error)
  is('a command that is not there', 127, (await refuses('a command that is not there ends with 127', CommandExitError, /exit status 127/, () => box.commands.run('no-such-command')))?.exitCode)
  is('a file that cannot be run', 126, (await refuses('a file that cannot be run ends with 126', CommandExitError, /126/, () => box.commands.run('touch plain; ./plain')))?.exitCode)
  for (const code of [1, 2, 42, 255])
    is(`exit ${code}`, code, (await box.commands.run(`exit ${code}`).catch((e) => e)).exitCode)
  const killed = await refuses('a shell that kills itself', CommandExitError, /signal: killed/, () => box.commands.run('kill -9 $$'))
  is('a shell that kills itself has no exit code of its own', -1, killed?.exitCode)
  const term = await refuses('a shell that ends itself', CommandExitError, /signal: terminated/, () => box.commands.run('kill -15 $$'))
  is('a shell that ends itself has no exit code of its own', -1, term?.exitCode)
})

await part('streaming', async () => {
  const out = []
  const err = []
  const times = []
  const result = await box.commands.run('for i in 1 2 3; do echo o$i; echo e$i >&2; sleep 0.3; done', {
    onStdout: (data) => { out.push(data); times.push(Date.now()) },
    onStderr: (data) => { err.push(data) },
  })
  is('all of stdout came by the callback', 'o1\no2\no3\n', out.join(''))
  is('all of stderr came by the callback', 'e1\ne2\ne3\n', err.join(''))
  is('output that came by the callback is in the result', 'o1\no2\no3\n', result.stdout)
  holds('output comes by the callback as it is written, not at the end', times.at(-1) - times[0] > 100, times)
  const slow = []
  await box.commands.run('seq 200', { onStdout: async (data) => { await sleep(1); slow.push(data) } })
  is('a slow callback loses nothing', 200, slow.join('').trim().split('\n').length)
  const halves = await run("printf '\\xf0\\x9f'; sleep 0.2; printf '\\x90\\x8e'")
  is('a character cut in two arrives whole', '🐎', halves)
  is('bytes that are no text do not end a command', 3, (await run("printf 'a\\xff\\x00'")).length)
})

await part('options', async () => {
  is('cwd', '/tmp\n', await run('pwd', { cwd: '/tmp' }))
  await refuses('a cwd that is not there', InvalidArgumentError, /cwd '\/no\/such' does not exist/, () => box.commands.run('pwd', { cwd: '/no/such' }))
  is('envs', 'x y=z é\n', await run('echo "$ONE $TWO"', { envs: { ONE: 'x', TWO: 'y=z é' } }))
  is('envs of one command are not the next one\'s', '\n', await run('echo $ONE'))
  is('envs win over the home', '/elsewhere\n', await run('echo $HOME', { envs: { HOME: '/elsewhere' } }))
  is('user root', 'root /root 0\n', await run('echo $(whoami) $HOME $(id -u)', { user: 'root' }))
  is('root starts in its home', '/root\n', await run('pwd', { user: 'root' }))
  is('user user', 'user\n', await run('whoami', { user: 'user' }))
  await refuses('a user that is not there', AuthenticationError, /invalid username: 'nobody-here'/, () => box.commands.run('true', { user: 'nobody-here' }))
  is('sudo needs no password', 'root\n', await run('sudo whoami'))
  is('root may write where it likes', 'ok\n', await run('touch /etc/by-root && echo ok', { user: 'root' }))
  await refuses('user may not', CommandExitError, /exit status 1/, () => box.commands.run('touch /etc/by-user'))
  is('a long argument', 100_000, (await run(`printf %s ${'x'.repeat(100_000)}`)).length)
  is('many variables', '500\n', await run('env | grep -c ^V_', { envs: Object.fromEntries([...Array(500).keys()].map((i) => [`V_${i}`, `${i}`])) }))
})

await part('timeouts', async () => {
  const begun = Date.now()
  await refuses('a command past its time', TimeoutError, /timeoutMs/, () => box.commands.run('sleep 31415', { timeoutMs: 700 }))
  holds('a command past its time ends in its time', Date.now() - begun < 40_000)
  is('a command past its time leaves no process', '0\n', await until((text) => text === '0\n', () => run('pgrep -cf "^sleep 31415" || true')))
  is('a command within its time', 'done\n', await run('sleep 0.2; echo done', { timeoutMs: 20_000 }))
  await run('(sleep 1.5; echo there >/tmp/behind) >/dev/null 2>&1 &', { timeoutMs: 1000 })
  is('what a command leaves behind outlives its timeout', 'there\n', await until((text) => text, () => run('cat /tmp/behind 2>/dev/null || true')))
  is('no timeout at all', 'done\n', await run('sleep 0.2; echo done', { timeoutMs: 0 }))
  const handle = await box.commands.run('sleep 31416', { background: true, timeoutMs: 700 })
  await refuses('a command in the background past its time', TimeoutError, /timeoutMs/, () => handle.wait())
})

await part('background', async () => {
  const handle = await box.commands.run('echo begun; sleep 1; echo ended; exit 3', { background: true })
  holds('a pid at once', Number.isInteger(handle.pid) && handle.pid > 1, handle.pid)
  is('no exit code yet', undefined, handle.exitCode)
  await until((text) => text, () => handle.stdout)
  is('output so far', 'begun\n', handle.stdout)
  const err = await refuses('wait throws what run throws', CommandExitError, /exit status 3/, () => handle.wait())
  is('all output', 'begun\nended\n', err?.stdout)
  is('the exit code', 3, handle.exitCode)
  is('the reason', 'exit status 3', handle.error)
  const fine = await box.commands.run('echo fine; echo no >&2', { background: true })
  is('wait of a good one', 0, (await fine.wait()).exitCode)
  is('the errors of a good command', 'no\n', fine.stderr)
  is('wait again', 0, (await fine.wait()).exitCode)
})

await part('list and kill', async () => {
  const handle = await box.commands.run('sleep 600', { background: true, envs: { LISTED: 'yes' }, cwd: '/tmp' })
  const found = (await box.commands.list()).find((info) => info.pid === handle.pid)
  holds('a background command is listed', found, await box.commands.list())
  is('a listed command has its program', '/bin/bash', found?.cmd)
  is('a listed command has its arguments', ['-l', '-c', 'sleep 600'], found?.args)
  is('a listed command does not tell its variables', {}, found?.envs)
  is('a listed command has its directory', '/tmp', found?.cwd)
  is('kill says that it was there', true, await handle.kill())
  await refuses('wait says how it ended', CommandExitError, /signal: killed/, () => handle.wait())
  is('kill again says that it was not', false, await until((was) => !was, () => box.commands.kill(handle.pid)))
  is('a killed command is not listed', undefined, (await box.commands.list()).find((info) => info.pid === handle.pid))
  is('kill of a pid that never was', false, await box.commands.kill(999_999))
  const other = await box.commands.run('sleep 600', { background: true })
  is('kill by pid', true, await box.commands.kill(other.pid))
  is('the exit code of a command that was killed by pid', -1, (await other.wait().catch((e) => e)).exitCode)
})

await part('stdin', async () => {
  const handle = await box.commands.run('cat', { background: true, stdin: true })
  await box.commands.sendStdin(handle.pid, 'one\n')
  await handle.sendStdin('two\n')
  await handle.sendStdin(new TextEncoder().encode('drei 🐎\n'))
  is('what went in comes out', 'one\ntwo\ndrei 🐎\n', await until((text) => text.includes('🐎\n'), () => handle.stdout))
  await handle.closeStdin()
  is('closing stdin ends cat', 0, (await handle.wait()).exitCode)
  const sum = await box.commands.run('sha256sum', { background: true, stdin: true })
  const block = new Uint8Array(100_000).fill(97)
  for (let i = 0; i < 10; i++) await box.commands.sendStdin(sum.pid, block)
  await box.commands.closeStdin(sum.pid)
  like('a million bytes', /^cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0/, (await sum.wait()).stdout)
  const deaf = await box.commands.run('sleep 600', { background: true })
  await refuses('a command that was not given one', SandboxError, /stdin/, () => deaf.sendStdin('x'))
  await deaf.kill()
  await refuses('a process that is not there: send', NotFoundError, /not.found|no process/i, () => box.commands.sendStdin(999_999, 'x'))
  await refuses('a process that is not there: close', NotFoundError, /not.found|no process/i, () => box.commands.closeStdin(999_999))
  const empty = await box.commands.run('wc -c', { background: true, stdin: true })
  await empty.closeStdin()
  is('an empty stdin', '0', (await empty.wait()).stdout.trim())
})

await part('connect', async () => {
  const first = await box.commands.run('for i in $(seq 100); do echo line $i; sleep 0.05; done; exit 5', { background: true })
  await until((text) => text.includes('line 3'), () => first.stdout)
  await first.disconnect()
  const seen = []
  const second = await box.commands.connect(first.pid, { onStdout: (data) => seen.push(data) })
  is('connect has the same process', first.pid, second.pid)
  await until((text) => text.includes('line 40'), () => second.stdout)
  is('a client that left did not end the command', undefined, second.exitCode)
  const third = await Sandbox.connect(box.sandboxId).then((other) => other.commands.connect(first.pid))
  const err = await refuses('the end of a command comes to a second client', CommandExitError, /exit status 5/, () => second.wait())
  like('a second client has the last line', /line 100\n$/, err?.stdout)
  is('a second client has the output by the callback', err?.stdout, seen.join(''))
  like('a third client has the last line', /line 100\n$/, (await third.wait().catch((e) => e)).stdout)
  await refuses('a pid that is not there', NotFoundError, /not.found|no process/i, () => box.commands.connect(999_999))
  const over = await box.commands.run('exit 4', { background: true })
  await over.wait().catch(() => {})
  is('an end just past is still told', 4, (await box.commands.connect(over.pid).then((h) => h.wait()).catch((e) => e)).exitCode)
  const cat = await box.commands.run('cat', { background: true, stdin: true })
  await cat.disconnect()
  const again = await box.commands.connect(cat.pid)
  await again.sendStdin('still here\n')
  is('stdin of a command lives on after a disconnect', 'still here\n', await until((text) => text, () => again.stdout))
  is('a command that was connected to again can be killed', true, await again.kill())
})

await part('what stays behind', async () => {
  await run('nohup sleep 271828 >/dev/null 2>&1 & echo started')
  is('a daemon outlives its shell', '1\n', await run('pgrep -cf "^sleep 271828"'))
  await run('pkill -f "^sleep 271828"')
  await run('echo kept > kept; mkdir -p dir/deeper')
  is('files are there for the next command', 'kept\n', await run('cat kept'))
  is('a shell that leaves a child with its output ends', 'parent\n', await run('echo parent; (sleep 30) >/dev/null 2>&1 &', { timeoutMs: 10_000 }))
})

await part('a hundred commands at once', async () => {
  const results = await Promise.all([...Array(100).keys()].map((i) => box.commands.run(`echo ${i}; sleep 0.2; echo ${i} >&2; exit ${i % 3}`, { timeoutMs: 60_000 * slow })
    .catch((e) => (e instanceof CommandExitError ? e : { stdout: `${e}`, stderr: `${e}`, exitCode: `${e}` }))))
  is('each has its own output', [...Array(100).keys()].map((i) => `${i}\n`), results.map((r) => r.stdout))
  is('each command has its own errors', [...Array(100).keys()].map((i) => `${i}\n`), results.map((r) => r.stderr))
  is('each command has its own exit code', [...Array(100).keys()].map((i) => i % 3), results.map((r) => r.exitCode))
  const handles = await Promise.all([...Array(50).keys()].map(() => box.commands.run('cat', { background: true, stdin: true, timeoutMs: 60_000 * slow })))
  await Promise.all(handles.map((h, i) => h.sendStdin(`${i}\n`).then(() => h.closeStdin())))
  is('fifty with input', [...Array(50).keys()].map((i) => `${i}\n`), (await Promise.all(handles.map((h) => h.wait()))).map((r) => r.stdout))
}, 90_000)

await part('much output', async () => {
  const MB = 1024 * 1024
  let bytes = 0
  let wrong = 0
  const handle = await box.commands.run(`head -c ${100 * MB} /dev/zero | tr '\\0' z`, {
    background: true,
    onStdout: (data) => { bytes += data.length; if (/[^z]/.test(data)) wrong++ },
    timeoutMs: 120_000 * slow,
  })
  is('a hundred megabytes end well', 0, (await handle.wait()).exitCode)
  is('every byte came', 100 * MB, bytes)
  is('no byte of a hundred megabytes is wrong', 0, wrong)
  is('lines in order', 200_000, (await run('seq 200000', { timeoutMs: 60_000 * slow })).trim().split('\n').filter((line, i) => line === String(i + 1)).length)
}, 120_000)

await part('Pty', async () => {
  const decoder = new TextDecoder()
  let screen = ''
  const term = await box.pty.create({ cols: 97, rows: 31, onData: (data) => { screen += decoder.decode(data, { stream: true }) }, envs: { SHOWN: 'in pty' }, cwd: '/tmp' })
  const type = (text) => box.pty.sendInput(term.pid, new TextEncoder().encode(text))
  const shows = (pattern) => until((text) => pattern.test(text), () => screen)
  holds('a terminal has a pid', term.pid > 1, term.pid)
  await type('stty size\r')
  like('a terminal has its size', /31 97\r\n/, await shows(/31 97\r\n/))
  await type('echo $SHOWN $TERM $LANG; pwd; tty\r')
  like('a terminal has its variables', /in pty xterm-256color C\.UTF-8\r\n/, await shows(/in pty xterm\S* \S+\r\n/))
  like('a terminal has its directory', /\r\n\/tmp\r\n/, await shows(/\r\n\/tmp\r\n/))
  like('a terminal', /\/dev\/pts\/\d+/, await shows(/\/dev\/pts/))
  await box.pty.resize(term.pid, { cols: 120, rows: 40 })
  await type('stty size\r')
  like('resized', /40 120\r\n/, await shows(/40 120\r\n/))
  await type('sleep 27183\r')
  await until((text) => text === '1\n', () => run('pgrep -cf "^sleep 27183" || true'))
  await type('\x03')
  await type('echo after $?\r')
  like('control-C interrupts', /after 130/, await shows(/after 130/))
  await term.disconnect()
  let second = ''
  const again = await box.pty.connect(term.pid, { onData: (data) => { second += new TextDecoder().decode(data) } })
  await type('echo re$((40+2))attached\r')
  like('a second client takes over a terminal', /re42attached/, await until((text) => /re42attached/.test(text), () => second))
  await type('exit 6\r')
  is('a terminal tells its exit code', 6, (await again.wait().catch((e) => e)).exitCode)
  const doomed = await box.pty.create({ cols: 80, rows: 24, onData: () => {} })
  is('kill says that it was there', true, await box.pty.kill(doomed.pid))
  is('a killed terminal ends by a signal', -1, (await doomed.wait().catch((e) => e)).exitCode)
  is('kill again says that it was not', false, await until((was) => !was, () => box.pty.kill(doomed.pid)))
  await refuses('input for none', NotFoundError, /./, () => box.pty.sendInput(999_999, new Uint8Array([1])))
  await refuses('a size for none', NotFoundError, /./, () => box.pty.resize(999_999, { cols: 1, rows: 1 }))
  let root = ''
  const admin = await box.pty.create({ cols: 80, rows: 24, user: 'root', onData: (data) => { root += new TextDecoder().decode(data) } })
  await box.pty.sendInput(admin.pid, new TextEncoder().encode('id -un\r'))
  like('a terminal for root', /root\r\n/, await until((text) => /root\r\n/.test(text), () => root))
  await admin.kill()
  await refuses('past its time', TimeoutError, /timeoutMs/, async () => (await box.pty.create({ cols: 80, rows: 24, onData: () => {}, timeoutMs: 600 })).wait())
})

await part('a sandbox that is killed', async () => {
  const doomed = await sandbox()
  const handle = await doomed.commands.run('echo up; sleep 600', { background: true })
  await until((text) => text, () => handle.stdout)
  await doomed.kill()
  await refuses('during a command: a timeout of the sandbox', TimeoutError, /sandbox was killed or reached its end of life/, () => handle.wait())
  await refuses('run afterwards', SandboxNotFoundError, /not running anymore/, () => doomed.commands.run('true'))
  await refuses('list afterwards', TimeoutError, /./, () => doomed.commands.list())
  await refuses('pty afterwards', SandboxNotFoundError, /./, () => doomed.pty.create({ cols: 80, rows: 24, onData: () => {} }))
})

await finish()
