// A server that answers E2B's SDK at once, with answers that never change: what is left is the SDK's own time.
// Prints its port; ends with its parent.
import http from 'node:http'

const sandbox = { sandboxID: 'istub0000000000000000', templateID: 'stub', clientID: 'stub', envdVersion: '0.6.13', envdAccessToken: '0'.repeat(64) }
const small = Buffer.alloc(1024, 'x')
const large = Buffer.alloc(10 * 1024 * 1024, 'x')

function envelope(flags, message) {
  const body = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head[0] = flags
  head.writeUInt32BE(body.length, 1)
  return Buffer.concat([head, body])
}

const started = Buffer.concat([
  envelope(0, { event: { start: { pid: 42 } } }),
  envelope(0, { event: { end: { exitCode: 0, exited: true, status: 'exit status 0' } } }),
  envelope(2, {}),
])
const executed = [
  { type: 'number_of_executions', execution_count: 1 },
  { type: 'result', text: '2', is_main_result: true },
  { type: 'end_of_execution' },
].map((line) => JSON.stringify(line) + '\n').join('')

const json = (value) => [{ 'content-type': 'application/json' }, Buffer.from(JSON.stringify(value))]
const answers = {
  'POST /v2/sandboxes': () => [201, ...json(sandbox)],
  'POST /process.Process/Start': () => [200, { 'content-type': 'application/connect+json' }, started],
  'POST /files': () => [200, ...json([{ name: 'f', type: 'file', path: '/home/user/f' }])],
  'GET /files': (url) => [200, { 'content-type': 'application/octet-stream' }, url.includes('large') ? large : small],
  'POST /execute': () => [200, { 'content-type': 'application/json' }, Buffer.from(executed)],
  'DELETE /sandboxes/istub0000000000000000': () => [204, {}, undefined],
}

const server = http.createServer((request, response) => {
  request.resume().on('end', () => {
    const answer = answers[`${request.method} ${request.url.split('?')[0]}`]
    const [status, headers, body] = answer ? answer(request.url) : [404, ...json({ code: 404, message: 'the stub does not know this' })]
    if (body) headers['content-length'] = body.length
    response.writeHead(status, headers).end(body)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit(0)).resume()
