// A connection to a TCP port of a sandbox.
//
//   const tunnel = await sandbox.ports.connect(5432)
//   tunnel.send(bytes)
//   for await (const data of tunnel) …
import { apiError, ConnectionFailedError, ProtocolError } from './errors.js'
import { jsonOf, type Socket } from './websocket.js'

export class Tunnel implements AsyncIterable<Uint8Array> {
  private over = false

  constructor(private readonly socket: Socket) {}

  send(data: string | Uint8Array): void {
    this.socket.send(typeof data === 'string' ? new TextEncoder().encode(data) : data)
  }

  /** No more bytes follow; the other direction continues. */
  sendEnd(): void {
    this.socket.send('{"type":"end"}')
  }

  /** The next bytes, or undefined: the server in the sandbox sends no more. */
  async receive(): Promise<Uint8Array | undefined> {
    while (!this.over) {
      const message = await this.socket.receive()
      if (message === undefined) throw new ConnectionFailedError('the tunnel was closed before the end of the connection')
      if (typeof message !== 'string') return message
      const event = jsonOf(message)
      if (event.type === 'error') throw apiError(0, event)
      if (event.type !== 'end') throw new ProtocolError('the server sent an unknown message')
      this.over = true
    }
    return undefined
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (let data = await this.receive(); data !== undefined; data = await this.receive()) yield data
  }

  /** Ends the connection, in both directions. */
  close(): void {
    this.socket.close()
  }
}
