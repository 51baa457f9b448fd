// A WebSocket with headers, for Node, Bun and Deno: the global class cannot send a key. Where there is no node:http (browsers) the global class
// is used, which works where the server needs no key. Messages are texts and bytes; pings are answered; close is an event.
import { ConfigurationError, ConnectionFailedError, ProtocolError, apiError } from './errors.js'

export type Message = string | Uint8Array

export interface Socket {
  send(message: Message): void
  /** The next message, or undefined: the connection is closed. */
  receive(): Promise<Message | undefined>
  close(): void
}

/** A text of the server as the JSON object that it is. */
export function jsonOf(message: Message): Record<string, unknown> {
  try {
    const value: unknown = typeof message === 'string' ? JSON.parse(message) : undefined
    if (value && typeof value === 'object') return value as Record<string, unknown>
  } catch {
    // below
  }
  throw new ProtocolError('the server sent a message that is no JSON object')
}

/** The largest message that is taken. */
export const MESSAGE_MOST = 16 << 20

/** Messages that came and were not asked for yet. Where there are too many of them, no more is read: a sandbox that writes without an end
 *  does not fill the memory of a program that is slow. */
export class Inbox {
  private readonly waiting: Message[] = []
  private size = 0
  private readonly asked: { resolve: (m: Message | undefined) => void; reject: (e: unknown) => void }[] = []
  private over: { error?: unknown } | undefined

  constructor(private readonly source?: { pause(): unknown; resume(): unknown }) {}

  put(message: Message): void {
    const next = this.asked.shift()
    if (next) return next.resolve(message)
    this.waiting.push(message)
    this.size += message.length
    if (this.size > MESSAGE_MOST) this.source?.pause()
  }

  end(error?: unknown): void {
    if (this.over) return
    this.over = { error }
    for (const one of this.asked.splice(0)) error === undefined ? one.resolve(undefined) : one.reject(error)
  }

  get(): Promise<Message | undefined> {
    const message = this.waiting.shift()
    if (message !== undefined) {
      this.size -= message.length
      if (this.size <= MESSAGE_MOST) this.source?.resume()
      return Promise.resolve(message)
    }
    if (this.over) return this.over.error === undefined ? Promise.resolve(undefined) : Promise.reject(this.over.error)
    return new Promise((resolve, reject) => this.asked.push({ resolve, reject }))
  }
}

/** Frames of a server, put together to messages. Pure; throws a ConnectionFailedError for what the protocol forbids. */
export class FrameReader {
  private rest: Uint8Array = new Uint8Array(0)
  private parts: Uint8Array[] = []
  private size = 0
  private kind = 0

  take(data: Uint8Array): { op: number; data: Uint8Array }[] {
    const all = new Uint8Array(this.rest.length + data.length)
    all.set(this.rest)
    all.set(data, this.rest.length)
    const found: { op: number; data: Uint8Array }[] = []
    let at = 0
    for (;;) {
      const frame = frameAt(all, at)
      if (!frame) break
      at = frame.end
      const message = this.frame(frame.first, all.slice(frame.begin, frame.end))
      if (message) found.push(message)
    }
    this.rest = all.slice(at)
    return found
  }

  private frame(first: number, data: Uint8Array): { op: number; data: Uint8Array } | undefined {
    const op = first & 15
    if (op >= 8) {
      if (data.length > 125 || !(first & 0x80)) throw new ConnectionFailedError('the server sent an invalid control frame')
      return { op, data }
    }
    if (op ? this.kind : !this.kind) throw new ConnectionFailedError('the server sent frames out of order')
    if (op) this.kind = op
    if (data.length) this.parts.push(data)
    this.size += data.length
    if (this.size > MESSAGE_MOST) throw new ConnectionFailedError(`the server sent a message of more than ${MESSAGE_MOST} bytes`)
    if (!(first & 0x80)) return undefined
    const message = { op: this.kind, data: join(this.parts, this.size) }
    this.parts = []
    this.size = this.kind = 0
    return message
  }
}

function join(parts: Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** Where the payload of the frame at `at` begins and ends, once all of it is there. */
function frameAt(data: Uint8Array, at: number): { first: number; begin: number; end: number } | undefined {
  if (data.length - at < 2) return undefined
  const view = new DataView(data.buffer, data.byteOffset)
  const first = data[at] as number
  const second = data[at + 1] as number
  if (first & 0x70 || second & 0x80) throw new ConnectionFailedError('the server sent an invalid frame')
  let length = second & 127
  let begin = at + 2
  if (length >= 126) {
    const wide = length === 127
    begin += wide ? 8 : 2
    if (data.length < begin) return undefined
    length = wide ? Number(view.getBigUint64(at + 2)) : view.getUint16(at + 2)
  }
  if (length > MESSAGE_MOST) throw new ConnectionFailedError(`the server sent a message of more than ${MESSAGE_MOST} bytes`)
  return data.length < begin + length ? undefined : { first, begin, end: begin + length }
}

/** Not for secrets: Node 18 has no global crypto. */
export function randomBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(count)
  return globalThis.crypto?.getRandomValues ? globalThis.crypto.getRandomValues(bytes) : bytes.map(() => Math.floor(Math.random() * 256))
}

/** A masked frame, as clients send them. */
export function frameOf(op: number, data: Uint8Array): Uint8Array {
  const wide = data.length > 0xffff ? 8 : data.length > 125 ? 2 : 0
  const frame = new Uint8Array(2 + wide + 4 + data.length)
  const view = new DataView(frame.buffer)
  frame[0] = 0x80 | op
  frame[1] = 0x80 | (wide === 8 ? 127 : wide === 2 ? 126 : data.length)
  if (wide === 8) view.setBigUint64(2, BigInt(data.length))
  if (wide === 2) view.setUint16(2, data.length)
  const mask = randomBytes(4)
  frame.set(mask, 2 + wide)
  for (let i = 0; i < data.length; i++) frame[6 + wide + i] = (data[i] as number) ^ (mask[i & 3] as number)
  return frame
}

const bytesOf = (message: Message): Uint8Array => (typeof message === 'string' ? new TextEncoder().encode(message) : message)

type Http = typeof import('node:http')
type Stream = import('node:net').Socket

async function nodeHttp(secure: boolean): Promise<Http | undefined> {
  const process = (globalThis as { process?: { versions?: { node?: string } } }).process
  if (!process?.versions?.node) return undefined
  const name = secure ? 'node:https' : 'node:http'
  return (await import(/* webpackIgnore: true */ name)) as Http
}

/** Opens a WebSocket at an address of http or https. */
export async function openSocket(address: string, headers: Record<string, string>, signal?: AbortSignal): Promise<Socket> {
  if (signal?.aborted) throw signal.reason
  const url = new URL(address)
  const http = await nodeHttp(url.protocol === 'https:')
  return http ? openNode(http, url, headers, signal) : openGlobal(url, headers)
}

/** What a server answers that has understood this key (RFC 6455). */
export async function acceptOf(key: string): Promise<string> {
  const name = 'node:crypto'
  const { createHash } = (await import(/* webpackIgnore: true */ name)) as typeof import('node:crypto')
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}

async function openNode(http: Http, url: URL, headers: Record<string, string>, signal?: AbortSignal): Promise<Socket> {
  const key = btoa(String.fromCharCode(...randomBytes(16)))
  const accept = await acceptOf(key)
  const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': key }
  return new Promise((resolve, reject) => {
    const request = http.request(url, { headers: { ...headers, ...upgrade }, signal })
    request.on('error', (cause) => reject(signal?.aborted ? signal.reason : new ConnectionFailedError(`${url.host} cannot be reached: ${cause.message}`, { cause })))
    request.on('response', (response) => {
      const parts: Uint8Array[] = []
      response.on('data', (part: Uint8Array) => parts.length < 64 && parts.push(part))
      response.on('end', () => {
        let body: unknown
        try {
          body = JSON.parse(new TextDecoder().decode(join(parts, parts.reduce((n, p) => n + p.length, 0))))
        } catch {
          body = undefined
        }
        reject(apiError(response.statusCode ?? 0, body))
      })
    })
    request.on('upgrade', (response, stream, head) => {
      if (response.headers['sec-websocket-accept'] === accept) return resolve(nodeSocket(stream as Stream, head))
      stream.destroy()
      reject(new ProtocolError(`${url.host} did not accept the WebSocket: is this the address of a cove server?`))
    })
    request.end()
  })
}

function nodeSocket(stream: Stream, head: Uint8Array): Socket {
  const inbox = new Inbox(stream)
  const reader = new FrameReader()
  const take = (data: Uint8Array) => {
    try {
      for (const frame of reader.take(data)) {
        if (frame.op === 1) inbox.put(new TextDecoder().decode(frame.data))
        if (frame.op === 2) inbox.put(frame.data)
        if (frame.op === 9) stream.write(frameOf(10, frame.data))
        if (frame.op === 8) stream.end(frameOf(8, frame.data))
      }
    } catch (error) {
      inbox.end(error)
      stream.destroy()
    }
  }
  stream.setNoDelay(true)
  stream.on('data', take)
  stream.on('error', (cause) => inbox.end(new ConnectionFailedError(`the connection broke: ${cause.message}`, { cause })))
  stream.on('close', () => inbox.end())
  if (head.length) take(head)
  return {
    send: (message) => void stream.write(frameOf(typeof message === 'string' ? 1 : 2, bytesOf(message))),
    receive: () => inbox.get(),
    close: () => {
      if (!stream.destroyed) stream.end(frameOf(8, new Uint8Array([3, 232])))
      stream.destroySoon?.()
    },
  }
}

function openGlobal(url: URL, headers: Record<string, string>): Promise<Socket> {
  if (Object.keys(headers).some((name) => /^(x-api-key|authorization)$/i.test(name))) {
    return Promise.reject(new ConfigurationError('terminals and tunnels with a key need Node, Bun or Deno: a browser cannot send the key with a WebSocket'))
  }
  const inbox = new Inbox()
  const socket = new WebSocket(url.href.replace(/^http/, 'ws'))
  socket.binaryType = 'arraybuffer'
  socket.onmessage = ({ data }) => inbox.put(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer))
  return new Promise((resolve, reject) => {
    socket.onerror = () => reject(new ConnectionFailedError(`${url.host} cannot be reached`))
    socket.onclose = () => inbox.end()
    socket.onopen = () => resolve({ send: (m) => socket.send(m as string), receive: () => inbox.get(), close: () => socket.close() })
  })
}
