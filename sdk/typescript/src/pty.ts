// Terminals in a sandbox.
//
//   const terminal = await sandbox.pty.create({ onData: (bytes) => process.stdout.write(bytes) })
//   terminal.send('ls\n')
import type { Cove, RequestOptions } from './client.js'
import { CommandHandle } from './commands.js'
import { apiError, ConnectionFailedError, ProtocolError } from './errors.js'
import { jsonOf, openSocket, type Socket } from './websocket.js'

export interface PtyOptions extends RequestOptions {
  rows?: number
  columns?: number
  /** Instead of the login shell. */
  command?: string
  cwd?: string
  user?: string
  onData?: (data: Uint8Array) => unknown
}

export interface PtyEnd {
  exitCode: number
  exitReason: string
}

export class Terminal implements AsyncIterable<Uint8Array> {
  private ended?: PtyEnd
  private reading?: Promise<PtyEnd>
  /** Bytes that came so far: `connect` continues from here. */
  offset: number

  constructor(
    private readonly socket: Socket,
    readonly handle: CommandHandle,
    offset: number,
    onData?: (data: Uint8Array) => unknown,
  ) {
    this.offset = offset
    if (onData) {
      this.reading = this.follow(onData)
      this.reading.catch(() => undefined) // told by wait()
    }
  }

  get proc(): number {
    return this.handle.proc
  }

  send(data: string | Uint8Array): void {
    this.socket.send(typeof data === 'string' ? new TextEncoder().encode(data) : data)
  }

  resize(rows: number, columns: number): void {
    this.socket.send(JSON.stringify({ type: 'resize', rows, columns }))
  }

  /** What is shown, until the command ends. Not together with `onData`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const message = await this.socket.receive()
      if (message === undefined) break
      if (typeof message !== 'string') {
        this.offset += message.length
        yield message
      } else if (this.take(message)) return
    }
    if (!this.ended) throw new ConnectionFailedError('the connection ended before the command')
  }

  private take(message: string): boolean {
    const event = jsonOf(message)
    if (event.type === 'error') throw apiError(0, event)
    if (event.type !== 'end') return false
    this.ended = { exitCode: Number(event.exit_code ?? -1), exitReason: String(event.exit_reason ?? 'lost') }
    return true
  }

  private async follow(onData: (data: Uint8Array) => unknown): Promise<PtyEnd> {
    for await (const data of this) await onData(data)
    return this.ended as PtyEnd
  }

  /** How the command ended. */
  async wait(onData: (data: Uint8Array) => unknown = () => undefined): Promise<PtyEnd> {
    this.reading ??= this.follow(onData)
    return this.reading
  }

  kill(options: RequestOptions = {}): Promise<boolean> {
    return this.handle.kill(options)
  }

  /** Leaves; the command continues, and `connect` attaches again. */
  close(): void {
    this.socket.close()
  }
}

export class Pty {
  constructor(
    private readonly client: Cove,
    private readonly sandbox: string,
  ) {}

  /** A new terminal with the user's login shell, or with a command. */
  create(options: PtyOptions = {}): Promise<Terminal> {
    const { rows = 24, columns = 80, command, cwd, user } = options
    return this.open({ rows, columns, command, cwd, user }, 0, options)
  }

  /** Attaches to a terminal that is there, from byte `from` of what it showed. */
  connect(proc: number, options: PtyOptions & { from?: number } = {}): Promise<Terminal> {
    return this.open({ proc, from: options.from, rows: options.rows, columns: options.columns }, options.from ?? 0, options)
  }

  private async open(query: Record<string, string | number | undefined>, offset: number, options: PtyOptions): Promise<Terminal> {
    const socket = await openSocket(this.client.address('terminal', { id: this.sandbox }, query), this.client.headers, options.signal)
    try {
      const first = await socket.receive()
      if (first === undefined) throw new ConnectionFailedError('the server closed the connection')
      const event = jsonOf(first)
      if (event.type === 'error') throw apiError(0, event)
      if (event.type !== 'start' || typeof event.proc !== 'number') throw new ProtocolError('the server sent no start of the terminal')
      return new Terminal(socket, new CommandHandle(this.client, this.sandbox, event.proc), offset, options.onData)
    } catch (error) {
      socket.close()
      throw error
    }
  }
}
