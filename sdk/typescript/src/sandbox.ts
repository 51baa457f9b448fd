// A sandbox, and what belongs to it.
//
//   const sandbox = await Sandbox.create({ timeoutMs: 600_000 })
//   console.log((await sandbox.commands.run('uname')).stdout)
//   await sandbox.kill()
import { defaultClient, type Answer, type BinaryBody, type Body, type Cove, type RequestOptions } from './client.js'
import { Commands, collect, commandOf, type Command, type OutputOptions } from './commands.js'
import { apiError, ConfigurationError, NotFoundError } from './errors.js'
import type { CommandResult } from './events.js'
import { Files } from './files.js'
import { Git } from './git.js'
import { Interpreter, type CodeContext, type Execution, type RunCodeOptions } from './interpreter.js'
import { Pty } from './pty.js'
import type { components, operations as Schema } from './schema.js'
import { randomBytes } from './websocket.js'
import { Tunnel } from './tunnel.js'
import { openSocket } from './websocket.js'

type Schemas = components['schemas']
export type SandboxInfo = Schemas['Sandbox']
export type Limits = NonNullable<Schemas['CreateSandbox']['limits']>
export type NetworkRules = NonNullable<Schemas['CreateSandbox']['network']>
export type SnapshotInfo = Schemas['Snapshot']
export type Metrics = Answer<'sandboxStats'>

export interface ClientOption {
  /** Else one made of COVE_URL and COVE_API_KEY. */
  client?: Cove
}

export interface CreateOptions extends RequestOptions, ClientOption {
  template?: string
  name?: string
  /** Milliseconds that the sandbox lives (five minutes); setTimeout() gives it more. */
  timeoutMs?: number
  onTimeout?: 'kill' | 'pause'
  limits?: Limits
  envs?: Record<string, string>
  metadata?: Record<string, string>
  network?: NetworkRules
  preview?: Schemas['Preview']
  volumes?: Schemas['Mount'][]
  /** Id or name of what the sandbox is made of, in place of a template. */
  snapshot?: string
  /** false, with `snapshot`: its files only. */
  memory?: boolean
  autoResume?: boolean
  idlePauseMs?: number
  idleDiskMs?: number
  root?: boolean
  isolation?: string
  /** A second create with the same key gets the first one's sandbox. */
  idempotencyKey?: string
}

export interface ListOptions extends RequestOptions, ClientOption {
  state?: NonNullable<NonNullable<Schema['listSandboxes']['parameters']['query']>['state']>
  name?: string
  metadata?: Record<string, string>
}

export interface RunOnceOptions extends RequestOptions, ClientOption, OutputOptions {
  template?: string
  limits?: Limits
  network?: NetworkRules
  root?: boolean
  files?: Body<'run'>['files']
  stdin?: string
  envs?: Record<string, string>
  cwd?: string
  user?: string
  timeoutMs?: number
  cpuTimeoutMs?: number
  returnFiles?: string[]
}

export type RunOnceResult = CommandResult & { sandbox?: string; files: NonNullable<Answer<'run'>['files']> }

/** A pause, a snapshot or a fork may take long. */
const SLOW_MS = 600_000
const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000)
const slow = (options: RequestOptions): RequestOptions => ({ requestTimeoutMs: SLOW_MS, ...options })

function orderOf(options: CreateOptions): Body<'createSandbox'> {
  return {
    template: options.template,
    name: options.name,
    timeout: seconds(options.timeoutMs),
    on_timeout: options.onTimeout,
    limits: options.limits,
    env: options.envs,
    metadata: options.metadata,
    network: options.network,
    preview: options.preview,
    volumes: options.volumes,
    snapshot: options.snapshot,
    memory: options.memory,
    auto_resume: options.autoResume,
    idle_pause_seconds: seconds(options.idlePauseMs),
    idle_disk_seconds: seconds(options.idleDiskMs),
    root: options.root,
    isolation: options.isolation,
  } as Body<'createSandbox'>
}

/** Symbol.asyncDispose, where the platform has it. */
const dispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose)

export class Sandbox {
  readonly id: string
  readonly client: Cove
  readonly commands: Commands
  readonly files: Files
  readonly pty: Pty
  readonly git: Git
  readonly network: SandboxNetwork
  readonly ports: Ports
  private readonly interpreter: Interpreter
  /** As the sandbox was when the server last told of it; getInfo() asks again. */
  info: SandboxInfo

  constructor(info: SandboxInfo, client: Cove) {
    this.id = info.id
    this.info = info
    this.client = client
    this.commands = new Commands(client, info.id)
    this.files = new Files(client, info.id)
    this.pty = new Pty(client, info.id)
    this.git = new Git(this.commands)
    this.network = new SandboxNetwork(client, info.id)
    this.ports = new Ports(client, info.id)
    this.interpreter = new Interpreter(client, info.id)
  }

  get sandboxId(): string {
    return this.id
  }

  private get path() {
    return { id: this.id }
  }

  /** Makes a sandbox. A create that is sent again because the connection broke makes no second one. */
  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    const client = options.client ?? defaultClient()
    const key = options.idempotencyKey ?? Array.from(randomBytes(16), (b) => b.toString(16).padStart(2, '0')).join('')
    const info = await client.call('createSandbox', {
      json: orderOf(options),
      headers: { 'Idempotency-Key': key },
      repeatable: true,
      signal: options.signal,
      requestTimeoutMs: options.requestTimeoutMs ?? (options.snapshot ? SLOW_MS : undefined),
    })
    return new Sandbox(info, client)
  }

  /** A sandbox that is there, by id or name. One that is paused is resumed. */
  static async connect(id: string, options: RequestOptions & ClientOption & { timeoutMs?: number } = {}): Promise<Sandbox> {
    const { client = defaultClient(), timeoutMs, ...rest } = options
    const sandbox = new Sandbox(await client.call('getSandbox', { path: { id }, ...rest }), client)
    if (sandbox.info.state === 'paused' || sandbox.info.state === 'pausing') await sandbox.resume({ timeoutMs, ...rest })
    else if (timeoutMs !== undefined) await sandbox.setTimeout(timeoutMs, rest)
    return sandbox
  }

  /** All sandboxes, newest first, page by page. */
  static async *list(options: ListOptions = {}): AsyncGenerator<SandboxInfo> {
    const { client = defaultClient(), state, name, metadata, ...rest } = options
    const wanted = metadata && Object.entries(metadata).map(([key, value]) => `${key}:${value}`).join(',')
    let cursor: string | undefined
    do {
      const page = await client.call('listSandboxes', { query: { state, name, metadata: wanted, limit: 100, cursor }, ...rest })
      yield* page.sandboxes
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
  }

  /** One command in a sandbox of its own, in one request. Aborting `signal` ends the command and the sandbox. */
  static async run(command: Command | { code: string; language?: Body<'run'>['language'] }, options: RunOnceOptions = {}): Promise<RunOnceResult> {
    const client = options.client ?? defaultClient()
    const what = typeof command === 'object' && 'code' in command ? command : commandOf(command as Command)
    const json = {
      ...what,
      template: options.template,
      limits: options.limits,
      network: options.network,
      root: options.root,
      files: options.files,
      stdin: options.stdin,
      env: options.envs,
      cwd: options.cwd,
      user: options.user,
      timeout: seconds(options.timeoutMs),
      cpu_timeout: seconds(options.cpuTimeoutMs),
      return_files: options.returnFiles,
      stream: 'ndjson',
    } as Body<'run'>
    const output = await collect(client.stream('run', { json, signal: options.signal, requestTimeoutMs: options.requestTimeoutMs }), options)
    const result = output.result()
    return { ...result, sandbox: output.start.sandbox as string | undefined, files: (output.end?.files ?? []) as RunOnceResult['files'] }
  }

  /** Ends the sandbox; nothing of it is left. false: it was gone. */
  kill(options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('killSandbox', { path: this.path, ...options })
  }

  /** `await using sandbox = await Sandbox.create()` ends the sandbox with the block. */
  async [dispose](): Promise<void> {
    await this.kill()
  }

  async getInfo(options: RequestOptions = {}): Promise<SandboxInfo> {
    return (this.info = await this.client.call('getSandbox', { path: this.path, ...options }))
  }

  async isRunning(options: RequestOptions = {}): Promise<boolean> {
    try {
      return (await this.getInfo(options)).state === 'running'
    } catch (error) {
      if (error instanceof NotFoundError) return false
      throw error
    }
  }

  /** The deadline becomes now and so many milliseconds. */
  async setTimeout(timeoutMs: number, options: RequestOptions = {}): Promise<SandboxInfo> {
    return (this.info = await this.client.call('extendSandbox', { path: this.path, json: { timeout: timeoutMs / 1000 }, ...options }))
  }

  /** Puts the sandbox to sleep. `memory: false` keeps its files only. */
  async pause(options: RequestOptions & { tier?: 'auto' | 'hot' | 'warm' | 'disk'; memory?: boolean } = {}): Promise<SandboxInfo> {
    const { tier, memory, ...rest } = options
    return (this.info = await this.client.call('pauseSandbox', { path: this.path, json: { tier, memory } as Body<'pauseSandbox'>, ...slow(rest) }))
  }

  async resume(options: RequestOptions & { timeoutMs?: number } = {}): Promise<SandboxInfo> {
    const { timeoutMs, ...rest } = options
    return (this.info = await this.client.call('resumeSandbox', { path: this.path, json: { timeout: seconds(timeoutMs) }, ...slow(rest) }))
  }

  /** Saves the sandbox, which continues. `Sandbox.create({ snapshot })` makes sandboxes of it. */
  async createSnapshot(options: RequestOptions & { name?: string; memory?: boolean } = {}): Promise<SnapshotInfo> {
    const { name, memory, ...rest } = options
    return this.client.call('createSnapshot', { path: this.path, json: { name, memory } as Body<'createSnapshot'>, ...slow(rest) })
  }

  /** Copies, with all processes. If one cannot be made, those that were made are ended and the reason is thrown. */
  async fork(options: RequestOptions & { count?: number; timeoutMs?: number } = {}): Promise<Sandbox[]> {
    const { count = 1, timeoutMs, ...rest } = options
    const json = { count, timeout: seconds(timeoutMs) }
    const answer = await this.client.call('forkSandbox', { path: this.path, json, ...slow(rest) })
    const made = answer.forks.flatMap((one) => (one.sandbox ? [new Sandbox(one.sandbox, this.client)] : []))
    const failed = answer.forks.find((one) => one.error)
    if (failed) {
      await Promise.allSettled(made.map((one) => one.kill()))
      throw apiError(0, failed)
    }
    return made
  }

  getMetrics(options: RequestOptions = {}): Promise<Metrics> {
    return this.client.call('sandboxStats', { path: this.path, ...options })
  }

  /** System calls that the sandbox's filter refused. */
  refusals(options: RequestOptions = {}): Promise<Answer<'listRefusals'>> {
    return this.client.call('listRefusals', { path: this.path, ...options })
  }

  /** The host name under which a browser sees a port. */
  async getHost(port: number, options: RequestOptions = {}): Promise<string> {
    return new URL((await this.ports.link(port, options)).url).host
  }

  getPreview(options: RequestOptions = {}): Promise<Answer<'getPreview'>> {
    return this.client.call('getPreview', { path: this.path, ...options })
  }

  setPreview(rules: Body<'setPreview'>, options: RequestOptions = {}): Promise<Answer<'setPreview'>> {
    return this.client.call('setPreview', { path: this.path, json: rules, ...options })
  }

  /** Takes back the token, every link and the cookies made of them. */
  rollPreview(options: RequestOptions = {}): Promise<Answer<'rollPreview'>> {
    return this.client.call('rollPreview', { path: this.path, ...options })
  }

  /** Runs a cell. An exception of the code is `error` of the execution. */
  runCode(code: string, options: RunCodeOptions = {}): Promise<Execution> {
    return this.interpreter.runCode(code, options)
  }

  createCodeContext(options: RequestOptions & { language?: string; cwd?: string } = {}): Promise<CodeContext> {
    return this.interpreter.createContext(options)
  }

  listCodeContexts(options: RequestOptions = {}): Promise<CodeContext[]> {
    return this.interpreter.listContexts(options)
  }

  removeCodeContext(context: CodeContext | string, options: RequestOptions = {}): Promise<void> {
    return this.interpreter.removeContext(context, options)
  }

  restartCodeContext(context: CodeContext | string, options: RequestOptions = {}): Promise<void> {
    return this.interpreter.restartContext(context, options)
  }
}

/** What a sandbox may reach. */
export class SandboxNetwork {
  constructor(
    private readonly client: Cove,
    private readonly sandbox: string,
  ) {}

  get(options: RequestOptions = {}): Promise<Answer<'getNetwork'>> {
    return this.client.call('getNetwork', { path: { id: this.sandbox }, ...options })
  }

  /** At once; connections that are no longer allowed are cut. */
  set(rules: Body<'putNetwork'>, options: RequestOptions = {}): Promise<Answer<'putNetwork'>> {
    return this.client.call('putNetwork', { path: { id: this.sandbox }, json: rules, ...options })
  }

  /** One thing more, such as `api.example.com`. */
  allow(rule: string, options: RequestOptions = {}): Promise<Answer<'allowNetwork'>> {
    return this.client.call('allowNetwork', { path: { id: this.sandbox }, json: { rule }, ...options })
  }

  /** What was refused and what was let out, oldest first. */
  async events(options: RequestOptions & { after?: number } = {}): Promise<Schemas['NetworkEvent'][]> {
    const { after, ...rest } = options
    const query = { after } as Record<string, number>
    const answer = await this.client.call('listNetworkEvents', { path: { id: this.sandbox }, query: query as never, ...rest })
    return answer.events ?? []
  }
}

const relays = { GET: 'relayGet', PUT: 'relayPut', POST: 'relayPost', DELETE: 'relayDelete', PATCH: 'relayPatch' } as const

/** TCP ports that programs listen on inside. */
export class Ports {
  constructor(
    private readonly client: Cove,
    private readonly sandbox: string,
  ) {}

  async list(options: RequestOptions = {}): Promise<NonNullable<Answer<'listPorts'>['ports']>> {
    return (await this.client.call('listPorts', { path: { id: this.sandbox }, ...options })).ports ?? []
  }

  /** A link that shows one port in a browser, without a key, until it expires. */
  link(port: number, options: RequestOptions & { expiresSeconds?: number } = {}): Promise<Answer<'linkPort'>> {
    const { expiresSeconds, ...rest } = options
    const json = { ...(expiresSeconds === undefined ? {} : { expires_seconds: expiresSeconds }) } as Body<'linkPort'>
    return this.client.call('linkPort', { path: { id: this.sandbox, port }, json, ...rest })
  }

  /** A request to a server inside. An answer that is not 2xx is an error. */
  request(
    port: number,
    path = '/',
    options: RequestOptions & { method?: keyof typeof relays; body?: BinaryBody; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const { method = 'GET', ...rest } = options
    const op = relays[method]
    if (!op) throw new ConfigurationError(`unknown method '${method}'`, { field: 'method' })
    return this.client.request(op, { path: { id: this.sandbox, port, path: path.replace(/^\/+/, '') || '.' }, ...rest })
  }

  /** A connection to the port, whatever protocol is spoken there. */
  async connect(port: number, options: RequestOptions = {}): Promise<Tunnel> {
    return new Tunnel(await openSocket(this.client.address('tunnel', { id: this.sandbox, port }), this.client.headers, options.signal))
  }
}
