// Cove: a server, and requests to it. Every operation of the specification can be called by its operationId:
//
//   const cove = new Cove({ url: 'https://cove.example.com', apiKey: process.env.COVE_API_KEY })
//   const page = await cove.call('listSandboxes', { query: { state: 'running' } })
//
// The classes Sandbox, Commands, Files and so on stand on this one.
import { apiError, ConfigurationError, ConnectionFailedError, CoveError, ProtocolError, RequestTimeoutError, TooManyError, UnavailableError } from './errors.js'
import { jsonLines } from './events.js'
import { operations } from './operations.js'
import type { operations as Schema } from './schema.js'

export type OperationId = keyof typeof operations & keyof Schema

type Content<T> = T extends { content: { 'application/json': infer J } } ? J : never
type Answers<O> = O extends { responses: infer R } ? { [S in keyof R]: S extends 200 | 201 | 202 ? Content<R[S]> : never }[keyof R] : never
/** What the server answers with, as the specification has it. */
export type Answer<Op extends OperationId> = Answers<Schema[Op]>
/** The JSON body of an operation. */
export type Body<Op extends OperationId> = Schema[Op] extends { requestBody?: infer R } ? Content<NonNullable<R>> : never

/** The query of an operation. */
export type Query<Op extends OperationId> = Schema[Op] extends { parameters: { query?: infer Q } } ? Partial<NonNullable<Q>> : never

export type QueryValue = string | number | boolean | undefined | null
export type BinaryBody = Uint8Array | string | Blob | ArrayBuffer | ReadableStream<Uint8Array>

export interface RequestOptions {
  /** Ends the request, and the command that the server runs for it. */
  signal?: AbortSignal
  /** Milliseconds until the answer begins; 0: no limit. */
  requestTimeoutMs?: number
}

export interface CallArguments<Op extends OperationId> extends RequestOptions {
  path?: Record<string, string | number>
  query?: Query<Op>
  json?: Body<Op>
  body?: BinaryBody
  headers?: Record<string, string>
  /** Whether sending the request a second time does no more than sending it once. Else: by its method. */
  repeatable?: boolean
}

export interface CoveOptions {
  /** Of the server; else COVE_URL, else http://127.0.0.1:8000. */
  url?: string
  /** Else COVE_API_KEY or COVE_KEY. From loopback a server needs none. */
  apiKey?: string
  headers?: Record<string, string>
  /** Milliseconds until an answer begins (60,000); 0: no limit. */
  requestTimeoutMs?: number
  /** How often a request that is safe to repeat is sent again (2). */
  retries?: number
  fetch?: typeof fetch
}

/** Operations other than GET, PUT and DELETE that do no more the second time. */
const repeatablePosts = new Set<string>(['extendSandbox', 'resumeSandbox', 'linkPort', 'createPrivateNetwork', 'signFile', 'makeDirectory', 'chmodFile', 'analyzeCommand', 'toolRead', 'toolSearch'])
/** GETs and PUTs that go to servers inside, which may do anything. */
const onceOnly = new Set<string>(['relayGet', 'relayPut', 'relayDelete', 'session', 'terminal', 'tunnel'])
const LONGEST_WAIT_S = 5

const environment = (name: string): string | undefined => {
  const process = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process
  return process?.env?.[name] || undefined
}

export class Cove {
  readonly url: string
  readonly apiKey?: string
  readonly headers: Record<string, string>
  readonly requestTimeoutMs: number
  readonly retries: number
  private readonly fetch: typeof fetch

  constructor(options: CoveOptions = {}) {
    const url = options.url ?? environment('COVE_URL') ?? 'http://127.0.0.1:8000'
    if (!/^https?:\/\/[^\s/?#]+(\/[^\s?#]*)?$/.test(url)) {
      throw new ConfigurationError(`invalid address of a server: '${url}' (for example http://127.0.0.1:8000)`, { field: 'url' })
    }
    this.url = url.replace(/\/+$/, '')
    this.apiKey = options.apiKey ?? environment('COVE_API_KEY') ?? environment('COVE_KEY')
    if (this.apiKey !== undefined && !/^[\x21-\x7e]+$/.test(this.apiKey)) {
      throw new ConfigurationError('invalid key: it has spaces or characters that a key cannot have', { field: 'apiKey' })
    }
    this.headers = { ...options.headers, ...(this.apiKey ? { 'X-API-Key': this.apiKey } : {}) }
    this.requestTimeoutMs = options.requestTimeoutMs ?? 60_000
    this.retries = options.retries ?? 2
    this.fetch = options.fetch ?? ((...args) => globalThis.fetch(...args))
  }

  /** Where an operation is. Values of the path are escaped; a missing one, or one that leads elsewhere, is an error. */
  address(op: OperationId, path: Record<string, string | number> = {}, query: Record<string, QueryValue> = {}): string {
    const invalid = (name: string) => new ConfigurationError(`${op}: '${name}' has an invalid value: it would lead to another address`, { field: name })
    const fill = (template: string) => template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = path[name]
      if (value === undefined || value === '') throw new ConfigurationError(`${op}: '${name}' is missing`, { field: name })
      // The path below a port continues as it is; everything else is one segment.
      if (name === 'path') return String(value).replace(/^\/+/, '')
      // URLs have no escape for these.
      if (/^\.\.?$/.test(String(value))) throw invalid(name)
      return encodeURIComponent(String(value))
    })
    const where = fill(operations[op][1])
    const [above, below] = operations[op][1].split('{path}') as [string, string?]
    if (below !== undefined && !new URL(this.url + where).pathname.startsWith(new URL(this.url + fill(above)).pathname)) throw invalid('path')
    const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
    const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString()
    return this.url + where + (text ? (where.includes('?') ? '&' : '?') + text : '')
  }

  /** An operation whose answer is JSON (undefined where it has no content). */
  async call<Op extends OperationId>(op: Op, args: CallArguments<Op> = {}): Promise<Answer<Op>> {
    const response = await this.request(op, args)
    const text = await this.read(response.text(), args.signal)
    if (!text) return undefined as Answer<Op>
    try {
      return JSON.parse(text) as Answer<Op>
    } catch (cause) {
      throw new ProtocolError(`${op}: the answer is no JSON`, { cause, requestId: requestId(response) })
    }
  }

  /** DELETE and the like: false where there was nothing to remove. */
  async remove<Op extends OperationId>(op: Op, args: CallArguments<Op> = {}): Promise<boolean> {
    try {
      const response = await this.request(op, args)
      await response.arrayBuffer()
      return true
    } catch (error) {
      if (error instanceof CoveError && error.status === 404) return false
      throw error
    }
  }

  /** Events of an operation, as they come. Ending the loop early ends the request. */
  async *stream<Op extends OperationId>(op: Op, args: CallArguments<Op> = {}): AsyncGenerator<Record<string, unknown>> {
    const stop = new AbortController()
    const give = () => stop.abort(args.signal?.reason)
    if (args.signal?.aborted) give()
    args.signal?.addEventListener('abort', give, { once: true })
    try {
      const response = await this.request(op, { ...args, signal: stop.signal, headers: { Accept: 'application/x-ndjson', ...args.headers } })
      if (!response.body) return
      for await (const event of this.lines(response, args.signal)) {
        if (event.type === 'error' && event.error !== undefined) throw apiError(0, event, { requestId: requestId(response) })
        if (event.type !== 'ping') yield event
      }
    } finally {
      args.signal?.removeEventListener('abort', give)
      stop.abort()
    }
  }

  private async *lines(response: Response, signal?: AbortSignal): AsyncGenerator<Record<string, unknown>> {
    const events = jsonLines(chunks(response.body as ReadableStream<Uint8Array>))
    for (;;) {
      const next = await this.read(events.next(), signal)
      if (next.done) return
      yield next.value
    }
  }

  /** Waits for a part of an answer; a connection that breaks is a ConnectionFailedError. */
  private async read<T>(part: Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await part
    } catch (cause) {
      if (cause instanceof CoveError || signal?.aborted) throw cause
      throw new ConnectionFailedError('the connection broke before the answer was whole', { cause })
    }
  }

  /** The answer of an operation, or an error for one that is not 2xx. Safe requests are sent again. */
  async request<Op extends OperationId>(op: Op, args: CallArguments<Op> = {}): Promise<Response> {
    const [method] = operations[op]
    const address = this.address(op, args.path, args.query as Record<string, QueryValue> | undefined)
    const streamed = typeof ReadableStream !== 'undefined' && args.body instanceof ReadableStream
    const repeatable = !streamed && (args.repeatable ?? ((method !== 'POST' && method !== 'PATCH' && !onceOnly.has(op)) || repeatablePosts.has(op)))
    for (let tried = 1; ; tried++) {
      try {
        return await this.once(method, address, args, streamed)
      } catch (error) {
        const wait = tried > this.retries || streamed || args.signal?.aborted ? undefined : waitBefore(error, tried, repeatable)
        if (wait === undefined) throw error
        await pause(wait * 1000, args.signal)
      }
    }
  }

  private async once(method: string, address: string, args: CallArguments<any>, streamed: boolean): Promise<Response> {
    const stop = new AbortController()
    const give = () => stop.abort(args.signal?.reason)
    if (args.signal?.aborted) throw args.signal.reason
    args.signal?.addEventListener('abort', give, { once: true })
    const limit = args.requestTimeoutMs ?? this.requestTimeoutMs
    let late = false
    const timer = limit > 0 && !streamed ? setTimeout(() => ((late = true), stop.abort()), limit) : undefined
    let response: Response
    try {
      response = await this.fetch(address, {
        method,
        headers: { ...this.headers, ...(args.json !== undefined ? { 'Content-Type': 'application/json' } : {}), ...args.headers },
        body: args.json !== undefined ? JSON.stringify(args.json) : (args.body as BodyInit | undefined),
        signal: stop.signal,
        redirect: 'manual',
        ...(streamed ? { duplex: 'half' } : {}),
      } as RequestInit)
    } catch (cause) {
      args.signal?.removeEventListener('abort', give)
      if (late) throw new RequestTimeoutError(`no answer within ${limit} ms`, { cause })
      if (args.signal?.aborted) throw args.signal.reason
      throw new ConnectionFailedError(`${new URL(address).host} cannot be reached, or the connection broke: ${reasonOf(cause)}`, { cause })
    } finally {
      clearTimeout(timer)
    }
    if (response.ok) return response // the signal stays tied to the body
    args.signal?.removeEventListener('abort', give)
    throw await failure(response)
  }
}

function reasonOf(cause: unknown): string {
  const inner = (cause as { cause?: { code?: string; message?: string } })?.cause
  return inner?.code ?? inner?.message ?? (cause as Error)?.message ?? String(cause)
}

const requestId = (response: Response): string | undefined => response.headers.get('x-request-id') ?? undefined

async function failure(response: Response): Promise<CoveError> {
  const after = Number.parseFloat(response.headers.get('retry-after') ?? '')
  const about = { requestId: requestId(response), ...(Number.isFinite(after) ? { retryAfter: after } : {}) }
  if (response.status < 400) {
    await response.body?.cancel()
    return new ProtocolError(`the server answered ${response.status}: is this the address of a cove server?`, { status: response.status, ...about })
  }
  const text = await response.text().catch(() => '')
  try {
    return apiError(response.status, JSON.parse(text), about)
  } catch {
    return apiError(response.status, { message: text.slice(0, 200).trim() || undefined }, about)
  }
}

/** Seconds until the next try, or undefined: the error is the caller's. */
function waitBefore(error: unknown, tried: number, repeatable: boolean): number | undefined {
  const backoff = 0.1 * 2 ** (tried - 1) * (0.5 + Math.random() / 2)
  // Refused for now, before anything was done: safe whatever the request is.
  if (error instanceof TooManyError) return error.retryAfter !== undefined && error.retryAfter <= LONGEST_WAIT_S ? error.retryAfter : undefined
  if (!repeatable) return undefined
  if (error instanceof ConnectionFailedError) return backoff
  if (error instanceof UnavailableError && error.status === 503) {
    const after = error.retryAfter ?? backoff
    return after <= LONGEST_WAIT_S ? after : undefined
  }
  return undefined
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => (signal?.removeEventListener('abort', stop), resolve())
    const timer = setTimeout(done, ms)
    const stop = () => (clearTimeout(timer), reject(signal?.reason))
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** A body as parts, also where streams are not iterable (older browsers). */
export async function* chunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader()
  let whole = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      yield value
    }
    whole = true
  } finally {
    if (!whole) await reader.cancel().catch(() => undefined)
    reader.releaseLock()
  }
}

let shared: Cove | undefined

/** The client that sandboxes use which are told none: as the environment says. */
export function defaultClient(): Cove {
  const fresh = new Cove()
  if (!shared || shared.url !== fresh.url || shared.apiKey !== fresh.apiKey) shared = fresh
  return shared
}
