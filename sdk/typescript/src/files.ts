// Files of a sandbox. Paths are absolute or relative to the user's home, and are resolved inside.
//
//   await sandbox.files.write('app.py', 'print(1)')
//   const text = await sandbox.files.read('app.py')
import { chunks, type Answer, type BinaryBody, type Cove, type RequestOptions } from './client.js'
import { NotFoundError, ProtocolError } from './errors.js'
import type { components } from './schema.js'

export type Entry = components['schemas']['Entry']
export type Change = components['schemas']['Change']

export interface FileOptions extends RequestOptions {
  /** Whose rights count. */
  user?: string
}

export interface WriteOptions extends FileOptions {
  /** Octal, such as '755'. */
  mode?: string
  append?: boolean
  /** Refuse what exists. */
  create?: boolean
  /** false: refuse missing directories. */
  parents?: boolean
  /** Told after every part of a stream that was handed to the connection. */
  onProgress?: (sent: number) => unknown
}

export interface ReadOptions extends FileOptions {
  onProgress?: (received: number, total: number | undefined) => unknown
}

export interface SearchOptions extends FileOptions {
  path?: string
  include?: string
  before?: number
  after?: number
  ignoreCase?: boolean
  fixedStrings?: boolean
  limit?: number
}

function counted(body: ReadableStream<Uint8Array>, tell: (bytes: number) => unknown): ReadableStream<Uint8Array> {
  let have = 0
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      async transform(part, controller) {
        have += part.byteLength
        controller.enqueue(part)
        await tell(have)
      },
    }),
  )
}

export class Files {
  constructor(
    private readonly client: Cove,
    private readonly sandbox: string,
  ) {}

  private get path() {
    return { id: this.sandbox }
  }

  /** A file as text. */
  async read(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder('utf-8').decode(await this.readBytes(path, options))
  }

  async readBytes(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    let size = 0
    for await (const part of chunks(await this.readStream(path, options))) {
      parts.push(part)
      size += part.byteLength
    }
    const all = new Uint8Array(size)
    let at = 0
    for (const part of parts) {
      all.set(part, at)
      at += part.byteLength
    }
    return all
  }

  /** A file of any size, as it comes. */
  async readStream(path: string, options: ReadOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { onProgress, user, ...rest } = options
    const response = await this.client.request('readFile', { path: this.path, query: { path, user }, ...rest })
    if (!response.body) throw new ProtocolError('the answer has no body')
    const length = Number.parseInt(response.headers.get('content-length') ?? '', 10)
    return onProgress ? counted(response.body, (have) => onProgress(have, Number.isNaN(length) ? undefined : length)) : response.body
  }

  /** Writes a file of any size. The old content stays until the new is whole. */
  async write(path: string, data: BinaryBody, options: WriteOptions = {}): Promise<Answer<'writeFile'>> {
    const { user, mode, append, create, parents, onProgress, ...rest } = options
    const body = onProgress && data instanceof ReadableStream ? counted(data, onProgress) : data
    // Appending twice is not the same as once.
    const repeatable = append || create ? false : undefined
    return this.client.call('writeFile', { path: this.path, query: { path, user, mode, append, create, parents }, body, repeatable, ...rest })
  }

  async writeFiles(files: readonly { path: string; data: BinaryBody; mode?: string }[], options: FileOptions = {}): Promise<void> {
    for (const { path, data, mode } of files) await this.write(path, data, { mode, ...options })
  }

  async list(path = '.', options: FileOptions & { depth?: number } = {}): Promise<Entry[]> {
    const { user, depth, ...rest } = options
    const answer = (await this.client.call('listFiles', { path: this.path, query: { path, user, depth }, ...rest })) as { entries?: Entry[] }
    return answer.entries ?? []
  }

  async getInfo(path: string, options: FileOptions = {}): Promise<Entry> {
    const { user, ...rest } = options
    return this.client.call('statFile', { path: this.path, query: { path, user }, ...rest })
  }

  async exists(path: string, options: FileOptions = {}): Promise<boolean> {
    try {
      await this.getInfo(path, options)
      return true
    } catch (error) {
      // A missing sandbox is no missing file.
      if (error instanceof NotFoundError && error.code !== 'sandbox_not_found') return false
      throw error
    }
  }

  async makeDir(path: string, options: FileOptions & { mode?: string } = {}): Promise<void> {
    const { user, mode, ...rest } = options
    await this.client.call('makeDirectory', { path: this.path, json: { path, mode, user }, ...rest })
  }

  /** Removes a file, or a directory with all that is in it. */
  async remove(path: string, options: FileOptions & { recursive?: boolean } = {}): Promise<void> {
    const { user, recursive = true, ...rest } = options
    await (await this.client.request('removeFile', { path: this.path, query: { path, recursive, user }, ...rest })).arrayBuffer()
  }

  async rename(path: string, to: string, options: FileOptions = {}): Promise<void> {
    const { user, ...rest } = options
    await this.client.call('moveFile', { path: this.path, json: { path, to, user }, ...rest })
  }

  async chmod(path: string, mode: string, options: FileOptions = {}): Promise<void> {
    const { user, ...rest } = options
    await this.client.call('chmodFile', { path: this.path, json: { path, mode, user }, ...rest })
  }

  /** Paths below `path` whose names match, such as `**` + `/*.py`. */
  async glob(pattern: string, options: FileOptions & { path?: string } = {}): Promise<Answer<'globFiles'>> {
    const { user, path = '.', ...rest } = options
    return this.client.call('globFiles', { path: this.path, query: { path, pattern, user }, ...rest })
  }

  /** Lines below a directory that match a pattern. */
  async search(pattern: string, options: SearchOptions = {}): Promise<Answer<'searchFiles'>> {
    const { user, path = '.', include, before, after, ignoreCase, fixedStrings, limit, signal, requestTimeoutMs } = options
    const query = { path, pattern, include, before, after, ignore_case: ignoreCase, fixed: fixedStrings, limit, user }
    return this.client.call('searchFiles', { path: this.path, query, signal, requestTimeoutMs })
  }

  /** Changes below a directory, as they happen, until the loop ends or `signal` is aborted. */
  async *watchDir(path = '.', options: FileOptions & { recursive?: boolean } = {}): AsyncGenerator<Change> {
    const { user, recursive, ...rest } = options
    for await (const event of this.client.stream('watchFiles', { path: this.path, query: { path, recursive, user }, ...rest })) {
      if (event.type !== 'start') yield event as Change
    }
  }

  /** A URL that reads or writes one file without a key, until it expires. */
  async signUrl(path: string, options: FileOptions & { operation?: 'read' | 'write'; expiresInMs?: number } = {}): Promise<Answer<'signFile'>> {
    const { user, operation = 'read', expiresInMs, ...rest } = options
    const json = { path, operation, user, ...(expiresInMs === undefined ? {} : { expires_in: expiresInMs / 1000 }) }
    return this.client.call('signFile', { path: this.path, json, ...rest })
  }

  /** A directory, or one file, as a tar archive. */
  async readTar(path: string, options: FileOptions & { gzip?: boolean; skipUnreadable?: boolean } = {}): Promise<ReadableStream<Uint8Array>> {
    const { user, gzip, skipUnreadable, ...rest } = options
    const response = await this.client.request('readTar', { path: this.path, query: { path, gzip, skip_unreadable: skipUnreadable, user }, ...rest })
    if (!response.body) throw new ProtocolError('the answer has no body')
    return response.body
  }

  /** Unpacks a tar archive into a directory; nothing outside is touched. */
  async writeTar(path: string, archive: BinaryBody, options: FileOptions & { gzip?: boolean } = {}): Promise<Answer<'writeTar'>> {
    const { user, gzip, ...rest } = options
    const headers: Record<string, string> = gzip ? { 'Content-Encoding': 'gzip' } : {}
    return this.client.call('writeTar', { path: this.path, query: { path, user }, body: archive, headers, ...rest })
  }
}
