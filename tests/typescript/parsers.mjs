// The pure parts of the SDK, with whatever a server could send: whole, in pieces of every size, and wrong.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { end, holds, is, part, refuses } from './say.mjs'

const home = path.dirname(createRequire(import.meta.url).resolve('@cove/sdk/package.json'))
const from = (name) => import(pathToFileURL(path.join(home, 'dist/esm', name)).href)
const { jsonLines, OutputCollector } = await from('events.js')
const { FrameReader, frameOf, Inbox, MESSAGE_MOST, openSocket } = await from('websocket.js')
const { apiError, ConnectionFailedError, PolicyError, ProtocolError, QuotaError, SandboxNotFoundError } = await from('errors.js')
const { parseStatus } = await from('git.js')
const { CellCollector } = await from('interpreter.js')
const { Cove, ConfigurationError } = await import('@cove/sdk')

const bytes = (text) => new TextEncoder().encode(text)
async function* pieces(data, size) {
  for (let at = 0; at < data.length; at += size) yield data.slice(at, at + size)
}
async function all(lines) {
  const got = []
  for await (const one of lines) got.push(one)
  return got
}

// Deterministic, so that a failure can be seen again.
let seed = 20240229
const random = (n) => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0), (seed >>> 8) % n)

await part('lines of JSON', async () => {
  const text = '{"a":"é😀"}\n\n{"b":[1,2]}\r\n{"c":null}'
  for (const size of [1, 2, 3, 7, 1000]) {
    is(`pieces of ${size} bytes give the same objects`, [{ a: 'é😀' }, { b: [1, 2] }, { c: null }], await all(jsonLines(pieces(bytes(text), size))))
  }
  await refuses('a line that is no JSON is refused', ProtocolError, /no JSON/, () => all(jsonLines(pieces(bytes('{"a":1}\nnope\n'), 4))))
  await refuses('a line that is no object is refused', ProtocolError, /no JSON object/, () => all(jsonLines(pieces(bytes('[1]\n'), 4))))
  const endless = async function* () { for (;;) yield new Uint8Array(1 << 20).fill(97) }
  await refuses('a line without an end is refused', ProtocolError, /longer than/, () => all(jsonLines(endless())))
})

await part('output of commands', async () => {
  const output = new OutputCollector(4)
  const smile = bytes('😀')
  const shown = [smile.slice(0, 1), smile.slice(1)].map((data, i) =>
    output.take({ type: 'stdout', offset: i, data: Buffer.from(data).toString('base64'), data_encoding: 'base64' }).text)
  is('a character of two events is shown once, whole', ['', '😀'], shown)
  output.take({ type: 'stdout', offset: 4, data: 'more' })
  await refuses('a stream without an end is refused', ProtocolError, /before the command/, async () => output.result())
  output.take({ type: 'end', exit_code: 3, exit_reason: 'exit' })
  const result = output.result()
  is('the result has the first bytes, and says that there was more', [3, '😀', true, 8], [result.exitCode, result.stdout, result.stdoutTruncated, output.next('stdout')])
  await refuses('an event without data is refused', ProtocolError, /no data/, async () => output.take({ type: 'stderr' }))
  await refuses('base64 that is none is refused', ProtocolError, /base64/, async () => output.take({ type: 'stderr', data: '*', data_encoding: 'base64' }))
})

await part('frames', async () => {
  const frame = (op, data, fin = true) => {
    const masked = frameOf(op, data)
    const wide = data.length > 0xffff ? 8 : data.length > 125 ? 2 : 0
    const plain = new Uint8Array(masked.length - 4)
    plain.set(masked.slice(0, 2 + wide))
    plain.set(data, 2 + wide)
    plain[0] = (fin ? 0x80 : 0) | op
    plain[1] &= 0x7f
    return plain
  }
  for (const size of [0, 125, 126, 0xffff, 0x10000]) {
    const wire = frame(2, new Uint8Array(size).fill(7))
    for (const step of [wire.length, 1 + random(997)]) {
      const reader = new FrameReader()
      const got = []
      for await (const some of pieces(wire, step)) got.push(...reader.take(some))
      is(`a message of ${size} bytes arrives in pieces of ${step}`, [[2, size]], got.map((m) => [m.op, m.data.length]))
    }
  }
  const parts = new Uint8Array([...frame(1, bytes('he'), false), ...frame(9, bytes('!')), ...frame(0, bytes('y'))])
  is('a ping between the frames of a message is told at once', [[9, '!'], [1, 'hey']],
    new FrameReader().take(parts).map((m) => [m.op, new TextDecoder().decode(m.data)]))
  for (const [what, wire] of [['a masked frame', frameOf(1, bytes('x'))], ['reserved bits', new Uint8Array([0xc1, 0])], ['a continuation of nothing', frame(0, bytes('x'))],
    ['a message in a message', new Uint8Array([...frame(1, bytes('a'), false), ...frame(1, bytes('b'))])],
    ['a ping of 126 bytes', frame(9, new Uint8Array(126))], ['a ping in parts', frame(9, bytes('x'), false)],
    ['a length beyond the limit', new Uint8Array([0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0])]]) {
    await refuses(`${what} is refused`, ConnectionFailedError, /the server sent/, async () => new FrameReader().take(wire))
  }
  let survived = 0
  for (let i = 0; i < 20000; i++) {
    const reader = new FrameReader()
    try {
      for (let n = 1 + random(4); n > 0; n--) reader.take(Uint8Array.from({ length: random(40) }, () => random(256)))
      survived++
    } catch (error) {
      if (!(error instanceof ConnectionFailedError)) throw error
      survived++
    }
  }
  is('20,000 random inputs end in messages or in a refusal', 20000, survived)
})

await part('a program that does not read', async () => {
  const calls = []
  const inbox = new Inbox({ pause: () => calls.push('pause'), resume: () => calls.push('resume') })
  const piece = new Uint8Array(MESSAGE_MOST / 16)
  for (let i = 0; i < 16; i++) inbox.put(piece)
  is('as much as the largest message is kept', [], calls)
  inbox.put(piece)
  is('beyond the largest message the connection is not read any more', ['pause'], calls)
  await inbox.get()
  is('the connection is read again when the program has read', ['pause', 'resume'], calls)

  const total = 3 * MESSAGE_MOST
  const server = createServer().on('upgrade', (request, stream) => {
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    stream.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
    const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]) // 65,536 bytes
    for (let sent = 0; sent < total; sent += 0x10000) stream.write(Buffer.concat([head, Buffer.alloc(0x10000, sent / 0x10000)]))
    stream.end(Buffer.from([0x88, 0]))
  })
  await new Promise((go) => server.listen(0, '127.0.0.1', go))
  const socket = await openSocket(`http://127.0.0.1:${server.address().port}/`, {})
  let got = 0
  let ordered = true
  for (let message; (message = await socket.receive()); got += message.length) {
    ordered &&= message[0] === (got / 0x10000) % 256
    if (got % (8 << 20) === 0) await new Promise((go) => setImmediate(go))
  }
  is('everything arrives, in order, also behind a pause', [total, true], [got, ordered])
  server.close()
})

await part('errors', async () => {
  const kinds = [[403, { error: { code: 'denied', layer: 'policy', rule: 'r', message: 'm' } }, PolicyError], [429, { error: { layer: 'quota' } }, QuotaError],
    [404, { error: { code: 'sandbox_not_found' } }, SandboxNotFoundError]]
  for (const [status, body, kind] of kinds) is(`${status} of ${JSON.stringify(body)}`, kind, apiError(status, body).constructor)
  for (const body of [undefined, null, 7, 'text', [], { error: 5 }, { error: { message: 7 } }, { message: 'of a dialect' }]) {
    const error = apiError(500, body)
    holds(`a body ${JSON.stringify(body)} makes an error with a sentence`, error.message.length > 0 && error.status === 500, error.message)
  }
})

await part('addresses and keys', async () => {
  for (const url of ['', 'cove', 'ftp://x', 'http://', 'http://a b']) {
    await refuses(`the address '${url}' is refused`, ConfigurationError, /invalid address/, async () => new Cove({ url }))
  }
  await refuses('a key with a line break is refused', ConfigurationError, /invalid key/, async () => new Cove({ apiKey: 'a\nb' }))
  const cove = new Cove({ url: 'http://h:1/base/' })
  is('values of a path are escaped', 'http://h:1/base/v1/sandboxes/a%2F..%3Fb', cove.address('getSandbox', { id: 'a/..?b' }))
  for (const id of ['.', '..']) {
    await refuses(`the id '${id}' is refused: it leads to another address`, ConfigurationError, /'id' has an invalid value/, async () => cove.address('killSandbox', { id }))
  }
  for (const path of ['..', '../..', 'a/../../..', '%2e%2E/x', '.\t./x', '..\\..\\x', '..?x', '..#x']) {
    await refuses(`the path ${JSON.stringify(path)} below a port is refused`, ConfigurationError, /'path' has an invalid value/, async () => cove.address('relayDelete', { id: 'i', port: 80, path }))
  }
  is('a path below a port continues as it is', 'http://h:1/base/v1/sandboxes/i/ports/80/a/..b/c?d=/../e', cove.address('relayGet', { id: 'i', port: 80, path: '/a/..b/c?d=/../e' }))
  await refuses('a missing value of a path is refused', ConfigurationError, /'id' is missing/, async () => cove.address('getSandbox', {}))
})

await part('git status', async () => {
  const status = parseStatus('## main...origin/main [ahead 2, behind 1]\0 M a b\0R  new\0old\0?? x\0')
  is('a status is read', ['main', 'origin/main', 2, 1, false, ['a b', 'new', 'x'], 'old'],
    [status.branch, status.upstream, status.ahead, status.behind, status.clean, status.files.map((f) => f.path), status.files[1].from])
  is('a repository without a commit', ['main', true], [parseStatus('## No commits yet on main\0').branch, parseStatus('').clean])
})

await part('cells', async () => {
  const cell = new CellCollector()
  cell.take({ type: 'stdout', text: 'a' })
  await refuses('a cell without an end is refused', ProtocolError, /before the cell/, async () => cell.result())
  cell.take({ type: 'result', text: '2', is_main_result: true })
  cell.take({ type: 'unknown' })
  cell.take({ type: 'end_of_execution' })
  is('the main result is the text', '2', cell.result().text)
})

end()
