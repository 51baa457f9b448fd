// Claude Code and the Agent SDK, both as they are on npm, with their hands in a sandbox. The model is model.py, which follows a script and
// writes down what it was sent.
import { spawn } from 'node:child_process'
import { createReadStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk'
import { end, holds, is, like, part, refuses } from './say.mjs'

const { ConfigurationError, Sandbox } = await import(`${process.env.COVE_SDK}/index.js`)
const { claudeInside, sandboxTools } = await import(`${process.env.COVE_SDK}/agent.js`)
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
  const box = await Sandbox.create({ template: 'host', timeoutMs: 300_000, limits: { memory: '2g', disk: '2g', pids: 512 } })
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
    await refuses('an option that claudeInside sets is refused', ConfigurationError, /sets cwd itself/, async () => claudeInside(box, { more: { cwd: '/' } }))
  } finally {
    await box.kill()
  }
})

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
    await refuses('an option that would open the host is refused', ConfigurationError, /sets tools itself/, async () => sandboxTools({ more: { tools: ['Bash'] } }))
  } finally {
    stand.sent()
    await box.kill()
  }
})

end()
