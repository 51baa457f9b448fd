// E2B's Sandbox.create({mcp}) with the gateway of cove inside, asked by the official MCP client, unmodified.
import { readFileSync } from 'node:fs'
import { Sandbox, SandboxError } from 'e2b'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { finish, holds, is, like, part, refuses, until } from './check.mjs'

// A server of two tools that speaks on standard input and output, for Python as every template has it.
const small = `
import json, os, sys, time
def out(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    method, params = asked["method"], asked.get("params", {})
    if method == "initialize": result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}, "prompts": {}}, "serverInfo": {"name": "small", "version": "1"}}
    elif method == "tools/list": result = {"tools": [{"name": n, "description": n, "inputSchema": {"type": "object"}} for n in ("who", "shared", "end", "deaf")]}
    elif method == "prompts/list": result = {"prompts": None}  # as servers in Go have it for an empty list
    elif params["name"] == "end": sys.exit(7)
    elif params["name"] == "deaf":
        open("/tmp/deaf", "w").close()
        time.sleep(1000)
    else:
        text = "%s %d %s %s" % (os.environ.get("NAME"), os.getuid(), os.environ.get("GATEWAY_ACCESS_TOKEN"), params["name"])
        result = {"content": [{"type": "text", "text": text}]}
    out({"id": asked["id"], "result": result})
`
// A server whose lists are not what the protocol says, but for its prompts, and whose refusals are not Unicode.
const odd = `
import json, sys
answers = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}, "resources": {}}, "serverInfo": {"name": "odd", "version": "1"}},
           "tools/list": {"tools": None}, "prompts/list": {"prompts": [7, {"name": "greet"}]}, "resources/list": {"resources": 5}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    answer = {"result": answers[asked["method"]]} if asked["method"] in answers else {"error": {"code": -32601, "message": "\\ud800"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
`
const server = (name) => ({ command: 'python3', args: ['-c', small], env: { NAME: name } })
const text = (result) => result.content.map((one) => one.text).join('')
const made = []
const create = async (opts) => (made.push(await Sandbox.create({ timeoutMs: 240_000, ...opts })), made.at(-1))

async function client(box, token) {
  const it = new Client({ name: 'test', version: '1' })
  const headers = { Authorization: `Bearer ${token ?? (await box.getMcpToken())}` }
  await it.connect(new StreamableHTTPClientTransport(new URL(box.getMcpUrl()), { requestInit: { headers } }))
  return it
}

const post = async (box, body, headers = {}) =>
  fetch(box.getMcpUrl(), { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers: { Authorization: `Bearer ${await box.getMcpToken()}`, ...headers } })

await part('mcp-gateway', async () => {
  const box = await create({ mcp: { one: server('first'), two: server('second'), odd: { command: 'python3', args: ['-c', odd] } } })
  const it = await client(box)
  is('lists of a server that are none are empty; its others are offered', [['greet'], []],
    [(await it.listPrompts()).prompts.map((prompt) => prompt.name), (await it.listResources()).resources])
  like('what a server refuses is told, whatever its text is', /./, await it.getPrompt({ name: 'greet' }).then(() => '', (err) => err.message))
  const names = (await it.listTools()).tools.map((tool) => tool.name).sort()
  is('tools of all servers are offered; names of two servers have the server before them', ['one_deaf', 'one_end', 'one_shared', 'one_who', 'two_deaf', 'two_end', 'two_shared', 'two_who'], names)
  is('a tool of the first server answers, as the user of the sandbox and without the token', 'first 1000 None who', text(await it.callTool({ name: 'one_who', arguments: {} })))
  is('a tool of the second server answers', 'second 1000 None shared', text(await it.callTool({ name: 'two_shared', arguments: {} })))
  like('a server that ends is named', /one ended with 7/, await it.callTool({ name: 'one_end', arguments: {} }).then(() => '', (err) => err.message))
  is('a server that ended is started again', 'first 1000 None who',
    await until((got) => got.startsWith('first'), () => it.callTool({ name: 'one_who', arguments: {} }).then(text, (err) => err.message)))
  const deaf = it.callTool({ name: 'two_deaf', arguments: {} }).then(() => '', (err) => err.message)
  await until((there) => there, () => box.files.exists('/tmp/deaf')) // before the next call reaches the server
  like('a server that does not read is named', /two does not read/, await it.callTool({ name: 'two_who', arguments: { pad: 'x'.repeat(300_000) } }).then(() => '', (err) => err.message))
  like('a server that does not read is ended', /two ended with -9/, await deaf)
  is('a server that did not read is started again', 'second 1000 None who',
    await until((got) => got.startsWith('second'), () => it.callTool({ name: 'two_who', arguments: {} }).then(text, (err) => err.message)))
  like('an unknown tool is refused by name', /unknown tool 'nope'/, await it.callTool({ name: 'nope', arguments: {} }).then(() => '', (err) => err.message))
  is('the token is what the SDK reads from the sandbox', await box.getMcpToken(), (await box.files.read('/etc/mcp-gateway/.token', { user: 'root' })))
  like("the sandbox's user cannot read the token", /Permission denied/, await box.commands.run('id -un; cat /etc/mcp-gateway/.token').then(() => 'read', (err) => err.stderr))
  is('a wrong token gets 401', 401, (await post(box, {}, { Authorization: 'Bearer wrong' })).status)
  is('a page of another origin gets 403', 403, (await post(box, {}, { Origin: 'https://evil.example' })).status)
  is('an origin that is no address gets 403', 403, (await post(box, {}, { Origin: 'http://[' })).status)
  is('text that is not JSON gets 400', [400, -32700], await post(box, '{').then(async (got) => [got.status, (await got.json()).error.code]))
  is('a batch gets 400', [400, -32600], await post(box, '[]').then(async (got) => [got.status, (await got.json()).error.code]))
  is('an unknown method is refused', -32601, (await (await post(box, { jsonrpc: '2.0', id: 1, method: 'nope' })).json()).error.code)
  is('an unknown session gets 404', 404, (await post(box, { jsonrpc: '2.0', id: 1, method: 'ping' }, { 'Mcp-Session-Id': 'x' })).status)
  is('a message over the limit gets 413', 413, (await post(box, 'x'.repeat((4 << 20) + 1))).status)
  is('GET gets 405', 405, (await fetch(box.getMcpUrl(), { headers: { Authorization: `Bearer ${await box.getMcpToken()}` } })).status)
  const again = await box.commands.run(`mcp-gateway --config '{}'`, { user: 'root', envs: { GATEWAY_ACCESS_TOKEN: 'x'.repeat(20) } }).catch((err) => err)
  like('a second gateway is refused', /port 50005: Address already in use; is a gateway running already/, again.stderr)
  await it.close()
  await box.pause()
  const back = await Sandbox.connect(box.sandboxId)
  const later = await client(back)
  is('the gateway answers after a pause', 'second 1000 None who', text(await later.callTool({ name: 'two_who', arguments: {} })))
  await later.close()
})

await part('mcp-gateway refuses', async () => {
  const failing = (mcp) => () => Sandbox.create({ mcp })
  await refuses('names that cannot be had, by name', SandboxError, /Failed to start MCP gateway.*cannot be had here: 'exa', 'duckduckgo'/, failing({ exa: { apiKey: 'x' }, one: server('x'), duckduckgo: {} }))
  await refuses('a server that does not start, with its last words', SandboxError, /broken ended with 3: the reason/, failing({ broken: { command: 'sh', args: ['-c', 'echo the reason >&2; exit 3'] } }))
  await refuses('a program that is not there', SandboxError, /missing: there is no program 'no-such-program'/, failing({ missing: { command: 'no-such-program' } }))
  await refuses('a repository without runCmd', SandboxError, /github\/a\/b: runCmd must be/, failing({ 'github/a/b': { installCmd: 'true' } }))
  await refuses('a field that is unknown', SandboxError, /one: unknown field 'image'/, failing({ one: { command: 'true', image: 'x' } }))
  is('nothing is left of them', [], (await Sandbox.list().nextItems()).map((one) => one.sandboxId).filter((id) => !made.some((box) => box.sandboxId === id)))
})

await part('mcp-gateway with repositories and a server of npm', async () => {
  const box = await create({})
  const token = 'a-token-of-this-test'
  await box.files.write('server.py', small)
  // The repository of github.com is one on the sandbox's own disk.
  await box.commands.run(`set -e; mkdir -p /home/user/hub/own/repo && cd /home/user/hub/own/repo && git init -q && cp /home/user/server.py . &&
    git add . && git -c user.name=a -c user.email=a@b commit -qm one && git config --global url./home/user/hub/.insteadOf https://github.com/`)
  await box.files.write('everything.tar', readFileSync(process.env.EVERYTHING_TAR))
  await box.commands.run('mkdir everything && tar -xf everything.tar -C everything')
  const config = {
    'github/own/repo': { installCmd: 'echo installed > mark', runCmd: 'test -e mark && exec python3 server.py', envs: { NAME: 'cloned' } },
    everything: { command: 'node', args: ['/home/user/everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js', 'stdio'] },
  }
  await box.commands.run(`mcp-gateway --config '${JSON.stringify(config)}'`, { user: 'root', envs: { GATEWAY_ACCESS_TOKEN: token } })
  const it = await client(box, token)
  is('a repository is fetched, installed and run', 'cloned 1000 None who', text(await it.callTool({ name: 'who', arguments: {} })))
  const tools = (await it.listTools()).tools.map((tool) => tool.name)
  holds('the tools of server-everything are offered', tools.includes('echo') && tools.length > 5, tools)
  like('server-everything answers', /hello/, text(await it.callTool({ name: 'echo', arguments: { message: 'hello' } })))
  const seen = []
  const long = tools.find((name) => /long|longRunning/i.test(name))
  await it.callTool({ name: long, arguments: { duration: 1, steps: 3 } }, undefined, { onprogress: (p) => seen.push(p.progress) })
  is('progress arrives', [1, 2, 3], seen)
  const stop = new AbortController()
  const asked = it.callTool({ name: long, arguments: { duration: 200, steps: 200 } }, undefined, { signal: stop.signal, onprogress: () => stop.abort() })
  holds('a call can be cancelled', await asked.then(() => false, () => true))
  const resources = (await it.listResources()).resources
  holds('resources can be read', resources.length > 0 && (await it.readResource({ uri: resources[0].uri })).contents.length > 0, resources.length)
  const prompts = (await it.listPrompts()).prompts
  holds('prompts can be had', prompts.length > 0 && (await it.getPrompt({ name: prompts.find((p) => !p.arguments?.length).name })).messages.length > 0, prompts)
  await it.close()
})

await Promise.allSettled(made.map((box) => box.kill()))
finish()
