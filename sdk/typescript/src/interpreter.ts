// Cells of the code interpreter: variables stay for the next cell of the same context (docs/interpreter.md).
import type { Cove, RequestOptions } from './client.js'
import { apiError, ConfigurationError, ConnectionFailedError, ProtocolError, RequestTimeoutError } from './errors.js'
import { jsonLines } from './events.js'
import { chunks } from './client.js'

export interface CodeContext {
  id: string
  language: string
  cwd: string
}

/** One result of a cell, by kind: text, html, png, svg, json … */
export type CellResult = Record<string, unknown> & { text?: string; html?: string; png?: string; svg?: string; json?: unknown; is_main_result?: boolean }

export interface CellError {
  name: string
  value: string
  traceback: string
}

export interface Execution {
  results: CellResult[]
  logs: { stdout: string[]; stderr: string[] }
  error?: CellError
  executionCount?: number
  /** Text of the main result. */
  text?: string
}

export interface RunCodeOptions extends RequestOptions {
  /** python unless said otherwise. Not together with `context`. */
  language?: string
  context?: CodeContext | string
  envs?: Record<string, string>
  /** Milliseconds (300,000); then the cell is interrupted. 0: no limit. */
  timeoutMs?: number
  onStdout?: (text: string) => unknown
  onStderr?: (text: string) => unknown
  onResult?: (result: CellResult) => unknown
  onError?: (error: CellError) => unknown
}

const PORT = 49999

const contextOf = (one: Record<string, unknown>): CodeContext => ({ id: String(one.id), language: String(one.language), cwd: String(one.cwd) })

/** What the events of a cell add up to. Pure. */
export class CellCollector {
  private readonly execution: Execution = { results: [], logs: { stdout: [], stderr: [] } }
  private ended = false

  take(event: Record<string, unknown>, options: RunCodeOptions = {}): unknown {
    const text = String(event.text ?? '')
    switch (event.type) {
      case 'stdout':
        this.execution.logs.stdout.push(text)
        return options.onStdout?.(text)
      case 'stderr':
        this.execution.logs.stderr.push(text)
        return options.onStderr?.(text)
      case 'result': {
        const { type: _, ...result } = event
        this.execution.results.push(result)
        if (result.is_main_result) this.execution.text = result.text as string | undefined
        return options.onResult?.(result)
      }
      case 'error':
        this.execution.error = { name: String(event.name ?? ''), value: String(event.value ?? ''), traceback: String(event.traceback ?? '') }
        return options.onError?.(this.execution.error)
      case 'number_of_executions':
        this.execution.executionCount = Number(event.execution_count)
        return undefined
      case 'end_of_execution':
        this.ended = true
        return undefined
      default:
        return undefined
    }
  }

  result(): Execution {
    if (!this.ended) throw new ProtocolError('the stream ended before the cell did')
    return this.execution
  }
}

/** The interpreter of one sandbox. It listens below the server's own address; a token of the sandbox opens it. */
export class Interpreter {
  private token?: string

  constructor(
    private readonly client: Cove,
    private readonly sandbox: string,
  ) {}

  private async ask(method: string, path: string, json?: unknown, signal?: AbortSignal): Promise<Response> {
    if (this.token === undefined) {
      const access = await send(this.client, 'GET', `/sandboxes/${encodeURIComponent(this.sandbox)}`, this.client.headers, undefined, signal)
      this.token = String(((await access.json()) as { envdAccessToken?: string }).envdAccessToken ?? '')
    }
    const headers = { ...this.client.headers, 'E2b-Sandbox-Id': this.sandbox, 'E2b-Sandbox-Port': String(PORT), 'X-Access-Token': this.token }
    return send(this.client, method, path, headers, json, signal)
  }

  async runCode(code: string, options: RunCodeOptions = {}): Promise<Execution> {
    const { language, context, envs, timeoutMs = 300_000, signal } = options
    if (language !== undefined && context !== undefined) {
      throw new ConfigurationError('language belongs to the context: give one of language, context', { field: 'language' })
    }
    const stop = new AbortController()
    const give = () => stop.abort(signal?.reason)
    if (signal?.aborted) give()
    signal?.addEventListener('abort', give, { once: true })
    const late = new RequestTimeoutError(`the cell took longer than ${timeoutMs} ms and was interrupted`, { code: 'timeout' })
    const timer = timeoutMs > 0 ? setTimeout(() => stop.abort(late), timeoutMs) : undefined
    try {
      const json = { code, language, context_id: typeof context === 'object' ? context.id : context, env_vars: envs }
      const response = await this.ask('POST', '/execute', json, stop.signal)
      const cell = new CellCollector()
      for await (const event of jsonLines(chunks(response.body as ReadableStream<Uint8Array>))) await cell.take(event, options)
      return cell.result()
    } catch (error) {
      if (stop.signal.aborted) throw stop.signal.reason
      throw error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', give)
      stop.abort()
    }
  }

  async createContext(options: RequestOptions & { language?: string; cwd?: string } = {}): Promise<CodeContext> {
    const { language, cwd, signal } = options
    return contextOf((await (await this.ask('POST', '/contexts', { language, cwd }, signal)).json()) as Record<string, unknown>)
  }

  async listContexts(options: RequestOptions = {}): Promise<CodeContext[]> {
    return ((await (await this.ask('GET', '/contexts', undefined, options.signal)).json()) as Record<string, unknown>[]).map(contextOf)
  }

  async removeContext(context: CodeContext | string, options: RequestOptions = {}): Promise<void> {
    await (await this.ask('DELETE', `/contexts/${idOf(context)}`, undefined, options.signal)).arrayBuffer()
  }

  async restartContext(context: CodeContext | string, options: RequestOptions = {}): Promise<void> {
    await (await this.ask('POST', `/contexts/${idOf(context)}/restart`, {}, options.signal)).arrayBuffer()
  }
}

const idOf = (context: CodeContext | string): string => encodeURIComponent(typeof context === 'string' ? context : context.id)

async function send(client: Cove, method: string, path: string, headers: Record<string, string>, json: unknown, signal?: AbortSignal): Promise<Response> {
  let response: Response
  try {
    response = await fetch(client.url + path, {
      method,
      headers: { ...headers, ...(json === undefined ? {} : { 'Content-Type': 'application/json' }) },
      body: json === undefined ? undefined : JSON.stringify(json),
      signal,
      redirect: 'manual',
    })
  } catch (cause) {
    if (signal?.aborted) throw signal.reason
    throw new ConnectionFailedError(`${new URL(client.url).host} cannot be reached, or the connection broke`, { cause })
  }
  if (response.ok) return response
  const text = await response.text().catch(() => '')
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    body = { message: text.slice(0, 200) }
  }
  throw apiError(response.status, body)
}
