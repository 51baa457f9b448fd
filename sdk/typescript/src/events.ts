// Streams of the server: lines of JSON, and what the events of a command add up to. Pure.
import { ProtocolError } from './errors.js'

/** The longest line that is taken. The server sends at most 64 KiB of output in one event. */
export const LINE_MOST = 4 << 20

/** Objects of a body of application/x-ndjson, as they come. A line that is no JSON object is a ProtocolError. */
export async function* jsonLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<Record<string, unknown>> {
  const decoder = new TextDecoder('utf-8')
  let rest = ''
  for await (const part of body) {
    rest += decoder.decode(part, { stream: true })
    let end: number
    let begin = 0
    while ((end = rest.indexOf('\n', begin)) >= 0) {
      const line = rest.slice(begin, end)
      begin = end + 1
      if (line.trim()) yield parseObject(line)
    }
    rest = rest.slice(begin)
    if (rest.length > LINE_MOST) throw new ProtocolError(`a line of the stream is longer than ${LINE_MOST} characters`)
  }
  rest += decoder.decode()
  if (rest.trim()) yield parseObject(rest)
}

function parseObject(line: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (cause) {
    throw new ProtocolError('a line of the stream is no JSON', { cause })
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new ProtocolError('a line of the stream is no JSON object')
  return value as Record<string, unknown>
}

/** Bytes of a text that the server sent with an encoding. */
export function decodeData(data: unknown, encoding: unknown): Uint8Array {
  if (typeof data !== 'string') throw new ProtocolError('an event of the stream has no data')
  if (encoding !== 'base64') return new TextEncoder().encode(data)
  try {
    return Uint8Array.from(atob(data), (c) => c.charCodeAt(0))
  } catch (cause) {
    throw new ProtocolError('an event of the stream has invalid base64', { cause })
  }
}

export type StreamName = 'stdout' | 'stderr'

export interface CommandResult {
  exitCode: number
  /** exit, signal, timeout, cpu_timeout, oom or lost. */
  exitReason: string
  stdout: string
  stderr: string
  stdoutBytes: Uint8Array
  stderrBytes: Uint8Array
  stdoutTruncated: boolean
  stderrTruncated: boolean
  wallMs: number
  cpuMs: number
  peakBytes: number
  proc?: number
}

/** Output of one stream: the first `limit` bytes, and the text to show. Characters that two events share are shown whole. */
class Kept {
  readonly parts: Uint8Array[] = []
  have = 0
  cut = false
  next = 0
  private readonly decoder = new TextDecoder('utf-8')

  constructor(private readonly limit: number) {}

  take(data: Uint8Array, offset: unknown, missed: unknown): string {
    if (missed) this.cut = true
    this.next = (typeof offset === 'number' ? offset : this.next) + data.length
    const room = Math.max(0, this.limit - this.have)
    if (data.length > room) this.cut = true
    const kept = data.subarray(0, room)
    if (kept.length) this.parts.push(kept)
    this.have += kept.length
    return this.decoder.decode(data, { stream: true })
  }

  bytes(): Uint8Array {
    const all = new Uint8Array(this.have)
    let at = 0
    for (const part of this.parts) {
      all.set(part, at)
      at += part.length
    }
    return all
  }
}

/** What the events of a command add up to. */
export class OutputCollector {
  private readonly streams: Record<StreamName, Kept>
  start: Record<string, unknown> = {}
  end?: Record<string, unknown>

  constructor(limit: number) {
    this.streams = { stdout: new Kept(limit), stderr: new Kept(limit) }
  }

  /** Offset behind the last byte that came, to attach again from there. */
  next(name: StreamName): number {
    return this.streams[name].next
  }

  from(name: StreamName, offset: number): void {
    this.streams[name].next = offset
  }

  take(event: Record<string, unknown>): { stream: StreamName; data: Uint8Array; text: string } | undefined {
    if (event.type === 'start') this.start = event
    if (event.type === 'end') this.end = event
    if (event.type !== 'stdout' && event.type !== 'stderr') return undefined
    const data = decodeData(event.data, event.data_encoding)
    return { stream: event.type, data, text: this.streams[event.type].take(data, event.offset, event.missed) }
  }

  /** A stream without an end was cut: a ProtocolError. */
  result(): CommandResult {
    const { end } = this
    if (!end) throw new ProtocolError('the stream ended before the command did')
    const out = this.streams.stdout.bytes()
    const err = this.streams.stderr.bytes()
    const text = (bytes: Uint8Array) => new TextDecoder('utf-8').decode(bytes)
    const number = (value: unknown, otherwise: number) => (typeof value === 'number' ? value : otherwise)
    return {
      exitCode: number(end.exit_code, -1),
      exitReason: typeof end.exit_reason === 'string' ? end.exit_reason : 'lost',
      stdout: text(out),
      stderr: text(err),
      stdoutBytes: out,
      stderrBytes: err,
      stdoutTruncated: this.streams.stdout.cut,
      stderrTruncated: this.streams.stderr.cut,
      wallMs: number(end.wall_ms, 0),
      cpuMs: number(end.cpu_ms, 0),
      peakBytes: number(end.peak_bytes, 0),
      proc: typeof this.start.proc === 'number' ? this.start.proc : undefined,
    }
  }
}
