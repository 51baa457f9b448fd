// Claude's Agent SDK with its hands in a sandbox; for Node. Three ways (docs/claude.md):
//
//   query({ prompt, options: claudeInside(sandbox) })                // Claude Code itself runs in the sandbox
//   query({ prompt, options: sandboxTools({ sandbox }) })            // Claude Code runs here, all its tools are the sandbox's
//   query({ prompt, options: sandboxCallback(sandbox) })             // Claude Code runs here, the sandbox answers calls of its own tools
//
// This module imports nothing of the Agent SDK: the options are plain objects.
import { EventEmitter } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { defaultClient, type Cove } from './client.js'
import { ConfigurationError } from './errors.js'
import type { Sandbox } from './sandbox.js'
import { openSocket, type Socket } from './websocket.js'

export { sandboxCallback, toolCallback, toolHooks, type CallbackOptions, type Permission } from './callback.js'

/** What the Agent SDK hands to a spawner. */
export interface SpawnRequest {
  command: string
  args: string[]
  cwd?: string
  env?: Record<string, string | undefined>
  signal?: AbortSignal
}

/** What the Agent SDK says of itself to the CLI; nothing of it is secret. */
const FORWARDED = [
  'CLAUDE_CODE_ENTRYPOINT',
  'CLAUDE_AGENT_SDK_VERSION',
  'CLAUDE_CODE_SDK_READS_SESSION_STATE',
  'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING',
  'CLAUDE_CODE_STREAM_CLOSE_TIMEOUT',
]

export interface InsideOptions {
  /** Variables of the CLI inside. */
  envs?: Record<string, string>
  /** Names of variables of this program that go in, too. Everything else of the environment stays here. */
  forwardEnv?: readonly string[]
  /** Directory inside (the user's home). */
  cwd?: string
  /** The program inside. */
  executable?: string
  /** What the CLI writes to stderr. */
  onStderr?: (text: string) => unknown
}

/** A process in a sandbox with the members of a Node ChildProcess that the Agent SDK uses. It ends with the connection. */
export class SandboxProcess extends EventEmitter {
  readonly stdin: Writable
  readonly stdout = new PassThrough()
  readonly stderr = new PassThrough()
  killed = false
  exitCode: number | null = null
  private socket?: Socket
  private over = false
  private readonly ready: Promise<Socket>

  constructor(client: Cove, sandbox: string, process: Record<string, unknown>, signal?: AbortSignal) {
    super()
    this.ready = openSocket(client.address('session'), client.headers)
    this.ready.then(
      (socket) => this.begin(socket, sandbox, process),
      (error) => this.finish(error),
    )
    this.stdin = new Writable({
      write: (data: Uint8Array, _, done) => this.pass((socket) => socket.send(new Uint8Array(data)), done),
      final: (done) => this.pass((socket) => socket.send(JSON.stringify({ type: 'stdin_end' })), done),
    })
    this.stdin.on('error', () => undefined) // the process ended first: told by 'exit'
    if (signal?.aborted) this.kill()
    signal?.addEventListener('abort', () => this.kill(), { once: true })
  }

  private pass(send: (socket: Socket) => void, done: (error?: Error) => void): void {
    this.ready.then(
      (socket) => {
        if (this.over) return done(new Error('the process has ended'))
        send(socket)
        done()
      },
      (error: Error) => done(error),
    )
  }

  private begin(socket: Socket, sandbox: string, process: Record<string, unknown>): void {
    this.socket = socket
    if (this.killed) return void socket.close()
    socket.send(JSON.stringify({ sandbox, process: { ...process, stdin: true } }))
    this.read(socket).then(
      (code) => this.finish(undefined, code),
      (error) => this.finish(error),
    )
  }

  private async read(socket: Socket): Promise<number | null> {
    for (;;) {
      const message = await socket.receive()
      if (message === undefined) return null
      if (typeof message !== 'string') {
        const stream = message[0] === 1 ? this.stdout : this.stderr
        // A reader that is slow makes the command slow: the next message waits.
        if (!stream.write(message.subarray(1))) await new Promise((go) => stream.once('drain', go))
        continue
      }
      const event = JSON.parse(message) as { type?: string; exit_code?: number; error?: { message?: string } }
      if (event.type === 'error') throw new ConfigurationError(event.error?.message ?? 'the server could not start the process')
      if (event.type === 'end') return event.exit_code ?? null
    }
  }

  private finish(error?: unknown, code: number | null = null): void {
    if (this.over) return
    this.over = true
    this.exitCode = code
    this.stdout.end()
    this.stderr.end()
    this.socket?.close()
    if (error && !this.killed) this.emit('error', error)
    else this.emit('exit', code, this.killed && code === null ? 'SIGTERM' : null)
  }

  /** Ends the process inside, with all its descendants: the server kills what its connection leaves. */
  kill(): boolean {
    if (this.killed || this.over) return false
    this.killed = true
    this.socket?.close()
    if (this.socket) this.finish()
    else this.ready.then((socket) => (socket.close(), this.finish()), () => undefined)
    return true
  }
}

/** A function for the option `spawnClaudeCodeProcess`: what the SDK would start here is started in the sandbox. */
export function spawner(sandbox: Sandbox, options: InsideOptions = {}): (request: SpawnRequest) => SandboxProcess {
  return (request) => {
    const env: Record<string, string> = {}
    for (const name of [...FORWARDED, ...(options.forwardEnv ?? [])]) {
      const value = request.env?.[name]
      if (value !== undefined) env[name] = value
    }
    const cwd = options.cwd ?? request.cwd
    const order = { args: [request.command, ...request.args], env: { ...env, ...options.envs }, ...(cwd ? { cwd } : {}) }
    const child = new SandboxProcess(sandbox.client, sandbox.id, order, request.signal)
    if (options.onStderr) child.stderr.on('data', (data: Uint8Array) => options.onStderr?.(new TextDecoder().decode(data)))
    else child.stderr.resume()
    return child
  }
}

/** Options of query() whose CLI runs in the sandbox. Hooks and tools of this program keep working: they travel over stdin and stdout.
 *  Give the key of the model as a secret of cove, and let the network reach the model's host only (docs/secrets.md). */
export function claudeInside<T extends object = object>(sandbox: Sandbox, options: InsideOptions & { more?: T } = {}) {
  const { more, executable = 'claude', cwd = '/home/user', ...rest } = options
  for (const name of ['spawnClaudeCodeProcess', 'pathToClaudeCodeExecutable', 'cwd']) {
    if (more && name in more) throw new ConfigurationError(`claudeInside() sets ${name} itself`, { field: name })
  }
  return { ...(more as T), cwd, pathToClaudeCodeExecutable: executable, spawnClaudeCodeProcess: spawner(sandbox, { ...rest, cwd }) }
}

/** Options that would open a way to the host, or that sandboxTools() sets itself. */
const FIXED = [
  'tools', 'strictMcpConfig', 'settingSources', 'permissionMode', 'verbatimPrompts', 'toolAliases', 'canUseTool', 'plugins',
  'additionalDirectories', 'agents', 'skills', 'settings', 'managedSettings', 'disallowedTools', 'extraArgs', 'permissionPromptToolName',
]

const SERVER = 'cove'
const ALIASES: Record<string, string> = {
  Bash: 'bash', BashOutput: 'bash_output', KillShell: 'kill_process', Read: 'read', Write: 'write', Edit: 'edit', MultiEdit: 'multi_edit',
  Glob: 'glob', Grep: 'grep', LS: 'ls',
}

/** Options of query() without any tool of the host: no built-in tools, no settings of the project, no file mentions. The tools are those of the
 *  server's /mcp, in one sandbox if one is given, else in the tenant's default sandbox. */
export function sandboxTools<T extends Record<string, unknown> = Record<string, unknown>>(
  options: { sandbox?: Sandbox; client?: Cove; more?: T } = {},
) {
  const { sandbox, more } = options
  const client = sandbox?.client ?? options.client ?? defaultClient()
  for (const name of FIXED) {
    if (more && name in more) throw new ConfigurationError(`sandboxTools() sets ${name} itself; build the options by hand to change it`, { field: name })
  }
  const { mcpServers, allowedTools, env, ...rest } = (more ?? {}) as { mcpServers?: object; allowedTools?: string[]; env?: object }
  const url = `${client.url}/mcp${sandbox ? `?sandbox=${encodeURIComponent(sandbox.id)}` : ''}`
  const headers: Record<string, string> = client.apiKey ? { Authorization: `Bearer ${client.apiKey}` } : {}
  return {
    ...rest,
    tools: [] as string[],
    mcpServers: { ...mcpServers, [SERVER]: { type: 'http' as const, url, headers, alwaysLoad: true } },
    strictMcpConfig: true,
    settingSources: [] as never[],
    allowedTools: [`mcp__${SERVER}__*`, ...(allowedTools ?? [])],
    permissionMode: 'dontAsk' as const,
    toolAliases: Object.fromEntries(Object.entries(ALIASES).map(([name, tool]) => [name, `mcp__${SERVER}__${tool}`])),
    verbatimPrompts: true,
    env: { ...globalThis.process.env, ...env, CLAUDE_CODE_DISABLE_FILE_MENTIONS: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
  }
}
