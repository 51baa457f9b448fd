// Claude Code and the Agent SDK, both as they are on npm, with their hands in a sandbox. The model is model.py, which follows a script and
// writes down what it was sent.
import { spawn } from 'node:child_process'
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { Readable } from 'node:stream'
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk'
import { end, holds, is, like, part, refuses, until } from './say.mjs'

const { ConfigurationError, Sandbox } = await import(`${process.env.COVE_SDK}/index.js`)
const { claudeInside, sandboxCallback, sandboxTools, toolCallback } = await import(`${process.env.COVE_SDK}/agent.js`)
const home = process.env.HOME
const silent = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', ANTHROPIC_API_KEY: 'x' }

async function all(messages) {
  const got = []
  for await (const one of messages) got.push(one)
  return got
}

// A model on the host; the function returns what it was sent, and ends it.
async function model(script) {
  writeFileSync(`${home}/script.json`, JSON.stringify(script))
  writeFileSync(`${home}/model.log`, '')
  const child = spawn('/usr/bin/python3', [`${home}/model.py`, '0', `${home}/script.json`, `${home}/model.log`], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise((go, fail) => { child.stdout.once('data', (d) => go(Number(d))); child.once('exit', () => fail(new Error('model.py ended'))) })
  return { url: `http://127.0.0.1:${port}`, sent: () => (child.kill(), readFileSync(`${home}/model.log`, 'utf8')) }
}

await part('Claude Code inside', async () => {
  const box = await Sandbox.create({ template: 'host', timeoutMs: 300_000, limits: { memory: '2g', disk: '2g', pids: 512 }, envs: silent })
  try {
    await box.files.write('claude', Readable.toWeb(createReadStream(process.env.CLAUDE_CLI)), { mode: '755' })
    await box.files.write('model.py', readFileSync(`${home}/model.py`))
    await box.files.write('script.json', JSON.stringify([
      { tool: 'Bash', input: { command: 'uname -n; id -un; echo here > made; echo "[$HOST_SECRET]"' } }, { tool: 'mcp__host__clock', input: {} }, { text: 'the end' }]))
    await box.files.write('model.log', '')
    const stand = await box.commands.start(['/usr/bin/python3', 'model.py', '5055', 'script.json', 'model.log'], { cwd: '/home/user' })
    for await (const _ of stand) break // the model said its port
    const hooked = []
    process.env.HOST_SECRET = 'HOST-ENVIRONMENT'
    const options = claudeInside(box, {
      executable: '/home/user/claude',
      envs: { ...silent, ANTHROPIC_BASE_URL: 'http://127.0.0.1:5055' },
      more: {
        permissionMode: 'bypassPermissions',
        allowDangerouslySkipPermissions: true,
        persistSession: false,
        hooks: { PreToolUse: [{ hooks: [async (about) => (hooked.push(about.tool_name), {})] }] },
        mcpServers: { host: createSdkMcpServer({ name: 'host', tools: [tool('clock', 'the clock of the host', {}, async () => ({ content: [{ type: 'text', text: 'HOST-CLOCK' }] }))] }) },
      },
    })
    const messages = await all(query({ prompt: 'Continue.', options }))
    const sent = await box.files.read('model.log')
    is('the run ends well', 'success', messages.at(-1)?.subtype)
    holds('commands run in the sandbox, as its user', sent.includes(box.id) && (await box.files.read('made')) === 'here\n', sent.slice(-400))
    is('hooks of this program are asked', ['Bash', 'mcp__host__clock'], hooked)
    like('a tool of this program answers', /HOST-CLOCK/, sent)
    holds('the environment of this program stays here', !sent.includes('HOST-ENVIRONMENT'))
    is('nothing was written on the host', false, existsSync(`${home}/made`))
    await box.files.write('model.log', '')
    const ran = await run('claude_inside.mjs', { SANDBOX: box.id, CLAUDE: '/home/user/claude', ANTHROPIC_BASE_URL: 'http://127.0.0.1:5055' })
    holds('the example claude_inside.mjs runs Claude Code in the sandbox', ran.code === 0 && /the end\nfiles: .*made/.test(ran.said) && (await box.files.read('model.log')).includes(box.id), ran.said)
    await refuses('an option that claudeInside sets is refused', ConfigurationError, /sets cwd itself/, async () => claudeInside(box, { more: { cwd: '/' } }))
  } finally {
    await box.kill()
  }
}, 400_000)

await part('tools of the sandbox', async () => {
  const project = `${home}/project`
  mkdirSync(`${project}/.claude`, { recursive: true })
  writeFileSync(`${project}/secret.txt`, 'HOST-FILE')
  writeFileSync(`${project}/CLAUDE.md`, 'PROJECT-RULES')
  writeFileSync(`${project}/.mcp.json`, JSON.stringify({ mcpServers: { evil: { command: 'touch', args: [`${project}/mcp`] } } }))
  writeFileSync(`${project}/.claude/settings.json`, JSON.stringify({ hooks: { SessionStart: [{ hooks: [{ type: 'command', command: `touch ${project}/hooked` }] }] } }))
  const box = await Sandbox.create({ template: 'host', timeoutMs: 300_000 })
  const stand = await model([
    { tool: 'Bash', input: { command: 'uname -n; echo made > made; pwd' } }, { tool: 'Read', input: { file_path: `${project}/secret.txt` } },
    { tool: 'mcp__cove__write', input: { file_path: 'a.txt', content: 'from the model' } }, { tool: 'Task', input: { description: 'x', prompt: 'y', subagent_type: 'general-purpose' } },
    { text: 'the end' }])
  try {
    const options = sandboxTools({ sandbox: box, more: { cwd: project, pathToClaudeCodeExecutable: process.env.CLAUDE_CLI, persistSession: false, env: { ...silent, ANTHROPIC_BASE_URL: stand.url } } })
    const messages = await all(query({ prompt: 'Look at @secret.txt and continue.', options }))
    const sent = stand.sent()
    is('the run ends well', 'success', messages.at(-1)?.subtype)
    is('nothing of the host is sent', [], ['HOST-FILE', 'PROJECT-RULES'].filter((word) => sent.includes(word)))
    is('nothing of the host is touched', [], ['hooked', 'mcp', 'made', 'a.txt'].filter((file) => existsSync(`${project}/${file}`)))
    like("Bash is the sandbox's", new RegExp(box.id), sent)
    is('files are written in the sandbox that was given', ['made\n', 'from the model'], [await box.files.read('made'), await box.files.read('a.txt')])
    const offered = JSON.parse(sent.split('\n')[0]).tools.map((t) => t.name).filter((n) => n !== 'DeferredToolPlaceholder')
    holds('no other tools are offered', offered.length > 3 && offered.every((n) => n.startsWith('mcp__cove__')), offered)
    for (const [name, value] of [['tools', ['Bash']], ['extraArgs', { settings: '{}' }], ['managedSettings', {}]]) {
      await refuses(`an option that would open the host is refused: ${name}`, ConfigurationError, new RegExp(`sets ${name} itself`), async () => sandboxTools({ more: { [name]: value } }))
    }
  } finally {
    stand.sent()
    await box.kill()
  }
})

await part('the callback', async () => {
  const project = `${home}/callback`
  mkdirSync(`${project}/.claude`, { recursive: true })
  writeFileSync(`${project}/inside.txt`, 'HOST-FILE')
  writeFileSync(`${project}/.claude/settings.json`, JSON.stringify({ permissions: { allow: ['Bash', 'Read', 'Write'] } }))
  const box = await Sandbox.create({ template: 'host', timeoutMs: 300_000 })
  const script = [
    { tool: 'Bash', input: { command: 'uname -n', description: 'x', dangerouslyDisableSandbox: true } }, { tool: 'Read', input: { file_path: `${project}/inside.txt` } },
    { tool: 'Bash', input: { command: `touch ${project}/made; echo gone >&2; exit 3` } }, { tool: 'Write', input: { file_path: `${project}/a.txt`, content: 'x' } },
    { tool: 'mcp__host__clock', input: {} }, { tool: 'WebFetch', input: { url: 'http://127.0.0.1:1/', prompt: 'x' } }, { text: 'the end' }]
  const clock = createSdkMcpServer({ name: 'host', tools: [tool('clock', 'the clock of the host', {}, async () => ({ content: [{ type: 'text', text: 'HOST-CLOCK' }] }))] })
  const results = (sent) => JSON.parse(sent.trim().split('\n').at(-1)).messages.flatMap((m) => (m.role === 'user' && Array.isArray(m.content) ? m.content : []))
    .filter((b) => b.type === 'tool_result').map((b) => (typeof b.content === 'string' ? b.content : b.content.map((c) => c.text ?? '').join('')))
  const ask = async (options) => {
    const stand = await model(script)
    try {
      const base = { cwd: project, pathToClaudeCodeExecutable: process.env.CLAUDE_CLI, persistSession: false, mcpServers: { host: clock }, env: { ...process.env, ...silent, IS_SANDBOX: '1', ANTHROPIC_BASE_URL: stand.url } }
      const messages = await all(query({ prompt: 'Continue.', options: options(base) }))
      return { end: messages.at(-1)?.subtype, results: results(stand.sent()) }
    } finally {
      stand.sent()
    }
  }
  try {
    const alone = await ask((base) => ({ ...base, settingSources: [], permissionMode: 'default', canUseTool: toolCallback(box) }))
    holds('alone, reads and harmless commands run on the host', alone.results[0].trim() !== box.id && alone.results[1].includes('HOST-FILE'), alone.results)
    const hooked = []
    const allows = async (about) => (hooked.push(about.tool_name), { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow' } })
    const whole = await ask((more) => sandboxCallback(box, { allowTools: ['mcp__host__*'], more: { ...more, hooks: { PreToolUse: [{ hooks: [allows] }] } } }))
    is('the run ends well', 'success', whole.end)
    is("with the hook, every call is the sandbox's, whatever settings of the project and other hooks allow", [box.id, true], [whole.results[0], /No such file/.test(whole.results[1])])
    is('a command that fails has its output and its code', 'gone\nError: exit code 3', whole.results[2])
    is('nothing was written on the host', [], ['made', 'a.txt'].filter((file) => existsSync(`${project}/${file}`)))
    is('a tool that was allowed runs here', 'HOST-CLOCK', whole.results[4])
    like('a tool that the sandbox does not have is refused', /the tool WebFetch does not exist in the sandbox/, whole.results[5])
    is('hooks of this program are asked beside the hook', ['Bash', 'Read', 'Bash', 'Write', 'mcp__host__clock', 'WebFetch'], hooked)
    await refuses('an option that sandboxCallback sets is refused', ConfigurationError, /sets allowedTools itself/, async () => sandboxCallback(box, { more: { allowedTools: ['Bash'] } }))

    const call = toolCallback(box)
    const started = (await call('Bash', { command: 'echo begun; sleep 300', run_in_background: true })).message
    const id = /\d+/.exec(started)?.[0]
    like('names and arguments of Claude Code are understood', /^begun\n\[process \d+ is running\]$/, (await until((got) => /begun/.test(got.message), () => call('TaskOutput', { task_id: id, block: true }))).message)
    await call('TaskStop', { task_id: id })
    like('a task that was ended has ended', /\[process \d+ has ended\]$/, (await until((got) => /has ended/.test(got.message), () => call('TaskOutput', { task_id: id }))).message)
    const stop = new AbortController()
    const waits = call('Bash', { command: 'echo $$ > pid; exec sleep 300', one_shot: true }, { signal: stop.signal })
    const pid = await until((got) => /\d\n/.test(got), async () => ((await box.files.exists('pid')) ? await box.files.read('pid') : ''))
    stop.abort()
    like('a call that is aborted is a denial', /^Error: Bash failed: /, (await waits).message)
    is('a call that is aborted ends its command', '', await until((got) => !got, async () => (await box.commands.run(`ls -d /proc/${pid.trim()} 2>/dev/null`)).stdout))
    like('a call that the policy refuses is a denial that says so', /^Error: refused by policy: .*destructive\.rm-root/, (await call('Bash', { command: 'rm -rf /' })).message)
  } finally {
    await box.kill()
  }
  like('without the sandbox every call is a denial', /^Error: /, (await toolCallback(box)('Bash', { command: 'true' })).message)
}, 400_000)

// What an example prints, and the code that it ends with.
async function run(name, env) {
  const child = spawn(process.execPath, ['--no-warnings', `${home}/examples/${name}`], { cwd: `${home}/examples`, env: { ...process.env, ...silent, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stdout.on('data', (data) => (said += data))
  child.stderr.on('data', (data) => (said += data))
  const code = await new Promise((go) => child.once('close', go))
  return { code, said }
}

await part('examples', async () => {
  const page = readFileSync(`${home}/claude.md`, 'utf8')
  const blocks = [...page.matchAll(/^```js\n\/\/ examples\/typescript\/(\S+)\n(.*?)^```$/gms)]
  is('docs/claude.md shows every example', readdirSync(`${home}/examples`).filter((file) => file.endsWith('.mjs')).sort(), blocks.map(([, name]) => name).sort())
  for (const [, name, code] of blocks) is(`docs/claude.md shows ${name} as it is`, readFileSync(`${home}/examples/${name}`, 'utf8').split('\n').slice(1).join('\n'), code)

  const tools = await model([{ tool: 'Bash', input: { command: 'echo print > fizzbuzz.py; pwd' } }, { text: 'written and run' }])
  let ran = await run('claude_tools.mjs', { ANTHROPIC_BASE_URL: tools.url, CLAUDE: process.env.CLAUDE_CLI })
  tools.sent()
  holds('claude_tools.mjs: the agent here writes files in a sandbox', ran.code === 0 && /written and run\nfiles: .*fizzbuzz\.py/.test(ran.said), ran.said)

  const asked = await model([{ tool: 'Bash', input: { command: 'echo print > fizzbuzz.py; pwd' } }, { text: 'written and run' }])
  ran = await run('claude_callback.mjs', { ANTHROPIC_BASE_URL: asked.url, CLAUDE: process.env.CLAUDE_CLI })
  asked.sent()
  holds('claude_callback.mjs: a call of the own Bash of Claude Code writes files in a sandbox', ran.code === 0 && /written and run\nfiles: .*fizzbuzz\.py/.test(ran.said) && !existsSync(`${home}/examples/fizzbuzz.py`), ran.said)

  const web = await model([
    { tool: 'Write', input: { file_path: '/home/user/site/index.html', content: '<h1>Welcome</h1>' } },
    { tool: 'Bash', input: { command: 'cd /home/user/site && exec python3 -m http.server 3000', run_in_background: true } },
    { tool: 'Bash', input: { command: "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 3000))' 2>/dev/null; do sleep 0.1; done" } },
    { text: 'the page is ready' }])
  ran = await run('web_app.mjs', { ANTHROPIC_BASE_URL: web.url, CLAUDE: process.env.CLAUDE_CLI, KEEP: '1' })
  web.sent()
  holds('web_app.mjs: an agent builds a web application', ran.code === 0 && /the page is ready\nit answers: 200 <h1>Welcome<\/h1>\n/.test(ran.said), ran.said)
  const link = /look at it: (http:\S+)/.exec(ran.said)?.[1] ?? ''
  like('web_app.mjs: the link names the port of the sandbox', /^http:\/\/3000-i\w+\..*token=/, link)
  const { host, pathname, search } = new URL(link)
  const shown = await new Promise((go, fail) => get({ host: '127.0.0.1', port: new URL(process.env.COVE_URL).port, path: pathname + search, headers: { Host: host } }, go).once('error', fail))
  shown.resume()
  holds('web_app.mjs: the server knows the link', [200, 302, 303].includes(shown.statusCode), shown.statusCode)
  for await (const info of Sandbox.list()) await (await Sandbox.connect(info.id)).kill()
}, 400_000)

end()
