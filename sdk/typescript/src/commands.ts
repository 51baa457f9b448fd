// Commands in a sandbox.
//
//   const result = await sandbox.commands.run('make test', { onStdout: (text) => process.stdout.write(text) })
//   const server = await sandbox.commands.start('python3 -m http.server 8000')
import type { Body, Cove, RequestOptions } from './client.js'
import { ConfigurationError, ConnectionFailedError, CoveError, NotFoundError } from './errors.js'
import { decodeData, OutputCollector, type CommandResult, type StreamName } from './events.js'
import type { components } from './schema.js'

export type ProcessInfo = components['schemas']['Process']

/** A text is run by the user's login shell; a list is executed as it is. */
export type Command = string | readonly string[]

export interface StartOptions extends RequestOptions {
  envs?: Record<string, string>
  cwd?: string
  user?: string
  /** Milliseconds; then the command is killed with all its processes. */
  timeoutMs?: number
  /** Milliseconds of processor time, of all its processes together. */
  cpuTimeoutMs?: number
  tag?: string
}

export interface BackgroundOptions extends StartOptions {
  /** true keeps stdin open; a text or bytes are all of it. */
  stdin?: boolean | string | Uint8Array
  /** Bytes of each stream that the server keeps (256 KiB). */
  outputKept?: number
}

export interface OutputOptions {
  onStdout?: (text: string) => unknown
  onStderr?: (text: string) => unknown
  /** Bytes of each stream that the result has (16 MiB). */
  outputLimit?: number
  /** Throw a CommandError for an exit code other than 0. */
  check?: boolean
}

export interface RunOptions extends StartOptions, OutputOptions {
  /** All of stdin. */
  stdin?: string
}

export interface Output {
  stream: StreamName
  data: Uint8Array
}

/** A command that failed, where `check` asked for an error. */
export class CommandError extends CoveError {
  constructor(readonly result: CommandResult) {
    super(`the command ended with ${result.exitCode} (${result.exitReason}): ${result.stderr.trim().slice(-400)}`)
  }
}

const OUTPUT_LIMIT = 16 << 20
const STDIN_PART = 512 << 10
const ATTACH_TRIES = 5

export function commandOf(command: Command): { command?: string; args?: string[] } {
  if (typeof command === 'string') {
    if (!command) throw new ConfigurationError('the command is empty', { field: 'command' })
    return { command }
  }
  if (!command.length) throw new ConfigurationError('the list of arguments is empty', { field: 'args' })
  return { args: [...command] }
}

const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000)

function startOf(options: StartOptions): Partial<Body<'startProcess'>> {
  return {
    env: options.envs,
    cwd: options.cwd,
    user: options.user,
    tag: options.tag,
    timeout: seconds(options.timeoutMs),
    cpu_timeout: seconds(options.cpuTimeoutMs),
  }
}

export async function collect(
  events: AsyncIterable<Record<string, unknown>>,
  options: OutputOptions,
  output = new OutputCollector(options.outputLimit ?? OUTPUT_LIMIT),
): Promise<OutputCollector> {
  for await (const event of events) {
    const part = output.take(event)
    if (!part?.text) continue
    await (part.stream === 'stdout' ? options.onStdout : options.onStderr)?.(part.text)
  }
  return output
}

function checked(result: CommandResult, options: OutputOptions): CommandResult {
  if (options.check && result.exitCode !== 0) throw new CommandError(result)
  return result
}

/** A command in the background. */
export class CommandHandle implements AsyncIterable<Output> {
  constructor(
    private readonly client: Cove,
    private readonly sandbox: string,
    readonly proc: number,
    readonly pid: number = 0,
  ) {}

  private get path() {
    return { id: this.sandbox, proc: this.proc }
  }

  /** Follows the command to its end. A connection that breaks meanwhile is made again, and nothing is shown twice. */
  async wait(options: OutputOptions & RequestOptions & { from?: number; fromStderr?: number } = {}): Promise<CommandResult> {
    const output = new OutputCollector(options.outputLimit ?? OUTPUT_LIMIT)
    output.from('stdout', options.from ?? 0)
    output.from('stderr', options.fromStderr ?? 0)
    for (let tries = 0; !output.end; ) {
      const before = output.next('stdout') + output.next('stderr')
      try {
        await collect(this.events(output.next('stdout'), output.next('stderr'), options), options, output)
        if (!output.end) throw new ConnectionFailedError('the connection ended before the command')
      } catch (error) {
        tries = output.next('stdout') + output.next('stderr') > before ? 1 : tries + 1
        if (!(error instanceof ConnectionFailedError) || tries > ATTACH_TRIES) throw error
      }
    }
    return checked(output.result(), options)
  }

  private events(from: number, fromStderr: number, options: RequestOptions) {
    return this.client.stream('attachProcess', { path: this.path, query: { from, from_stderr: fromStderr }, signal: options.signal })
  }

  /** What the command writes, as bytes, until it ends. */
  async *output(options: RequestOptions & { from?: number; fromStderr?: number } = {}): AsyncGenerator<Output> {
    for await (const event of this.events(options.from ?? 0, options.fromStderr ?? 0, options)) {
      if (event.type === 'stdout' || event.type === 'stderr') yield { stream: event.type, data: decodeData(event.data, event.data_encoding) }
    }
  }

  [Symbol.asyncIterator](): AsyncIterator<Output> {
    return this.output()
  }

  async info(options: RequestOptions = {}): Promise<ProcessInfo> {
    return this.client.call('getProcess', { path: this.path, ...options })
  }

  /** Bytes for stdin of a command that was started with `stdin: true`. Writes keep their order if each is awaited. */
  async sendStdin(data: string | Uint8Array, options: RequestOptions = {}): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    for (let at = 0; at < bytes.length; at += STDIN_PART) {
      await this.client.call('writeStdin', { path: this.path, body: bytes.slice(at, at + STDIN_PART), ...options })
    }
  }

  async closeStdin(options: RequestOptions = {}): Promise<void> {
    await this.client.call('writeStdin', { path: this.path, query: { end: true }, body: '', ...options })
  }

  /** Sends a signal to the command's process group, or to all its descendants. */
  async signal(signal: number | string, options: RequestOptions & { all?: boolean } = {}): Promise<void> {
    const { all, ...rest } = options
    await this.client.call('signalProcess', { path: this.path, json: { signal, ...(all ? { all } : {}) } as Body<'signalProcess'>, ...rest })
  }

  /** Kills the command with all its descendants. false: it had ended. */
  async kill(options: RequestOptions = {}): Promise<boolean> {
    try {
      await this.signal('KILL', { all: true, ...options })
      return true
    } catch (error) {
      if (error instanceof NotFoundError) return false
      throw error
    }
  }
}

export class Commands {
  constructor(
    private readonly client: Cove,
    private readonly sandbox: string,
  ) {}

  /** Runs a command to its end. Aborting `signal` ends the command. A command that fails is an answer, unless `check` is true. */
  async run(command: Command, options: RunOptions = {}): Promise<CommandResult> {
    const json = { ...startOf(options), ...commandOf(command), stdin: options.stdin, stream: 'ndjson' } as Body<'exec'>
    const events = this.client.stream('exec', { path: { id: this.sandbox }, json, signal: options.signal, requestTimeoutMs: options.requestTimeoutMs })
    return checked((await collect(events, options)).result(), options)
  }

  /** Starts a command in the background. */
  async start(command: Command, options: BackgroundOptions = {}): Promise<CommandHandle> {
    const keep = options.stdin !== undefined && options.stdin !== false
    const json = { ...startOf(options), ...commandOf(command), ...(keep ? { stdin: true } : {}), output_kept: options.outputKept } as Body<'startProcess'>
    const started = (await this.client.call('startProcess', {
      path: { id: this.sandbox },
      json,
      signal: options.signal,
      requestTimeoutMs: options.requestTimeoutMs,
    })) as { proc: number; pid?: number }
    const handle = new CommandHandle(this.client, this.sandbox, started.proc, started.pid)
    if (typeof options.stdin === 'string' || options.stdin instanceof Uint8Array) {
      try {
        await handle.sendStdin(options.stdin, { signal: options.signal })
        await handle.closeStdin({ signal: options.signal })
      } catch (error) {
        await handle.kill().catch(() => undefined)
        throw error
      }
    }
    return handle
  }

  /** All that were started, running or not. */
  async list(options: RequestOptions = {}): Promise<ProcessInfo[]> {
    const answer = (await this.client.call('listProcesses', { path: { id: this.sandbox }, ...options })) as { processes?: ProcessInfo[] }
    return answer.processes ?? []
  }

  /** A handle for a command that was started before, also by another program. */
  async connect(proc: number, options: RequestOptions = {}): Promise<CommandHandle> {
    const info = await this.client.call('getProcess', { path: { id: this.sandbox, proc }, ...options })
    return new CommandHandle(this.client, this.sandbox, proc, info.pid)
  }

  kill(proc: number, options: RequestOptions = {}): Promise<boolean> {
    return new CommandHandle(this.client, this.sandbox, proc).kill(options)
  }
}
