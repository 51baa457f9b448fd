// The same calls by the TypeScript SDK and by curl, in turns, each on one kept connection.
//
//   node measure.mjs [ROUNDS]      a table, as cove-bench prints it
//   node measure.mjs --check       a few rounds, judged by what must be right and never by time
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sandbox } from '@cove/sdk'

const check = process.argv[2] === '--check'
const block = check ? 3 : 20 // rounds of one side before the other has its turn
const rounds = check ? 3 : Number(process.argv[2] ?? 300)
const folder = mkdtempSync(join(tmpdir(), 'cove-bench-'))

// Milliseconds of each request of one curl, which keeps its connection; the first one, which connects, is left out.
function curl(method, path, body) {
  const one = [`url = "${process.env.COVE_URL}${path}"`, `request = ${method}`, 'output = /dev/null', 'write-out = "%{time_total} %{num_connects} %{http_code}\\n"', 'silent']
  if (body) one.push(`data = ${JSON.stringify(JSON.stringify(body))}`, 'header = "Content-Type: application/json"')
  if (process.env.COVE_API_KEY) one.push(`header = "X-API-Key: ${process.env.COVE_API_KEY}"`)
  writeFileSync(join(folder, 'curl'), Array(block + 1).fill(one.join('\n')).join('\nnext\n'))
  const rows = execFileSync('curl', ['-K', join(folder, 'curl')], { encoding: 'utf8' }).trim().split('\n').map((line) => line.split(' ')).slice(1)
  if (!rows.every(([, connects, code]) => connects === '0' && code === '200')) throw new Error(`curl: ${rows[0]}`)
  return rows.map(([seconds]) => Number(seconds) * 1000)
}

async function timed(call) {
  const times = []
  for (let i = 0; i < block; i++) {
    const begun = process.hrtime.bigint()
    await call()
    times.push(Number(process.hrtime.bigint() - begun) / 1e6)
  }
  return times
}

function row(label, times, base) {
  times.sort((a, b) => a - b)
  const half = times[Math.floor(times.length / 2)]
  const figures = [times[0], half, times[Math.min(times.length - 1, Math.floor(times.length * 0.99))]].map((ms) => ms.toFixed(3).padStart(9)).join(' ')
  const more = base === undefined ? '-' : `${half >= base ? '+' : ''}${(half - base).toFixed(3)}`
  if (!check) console.log(`  ${label.padEnd(42)} ${String(times.length).padStart(6)} ${figures} ${more.padStart(9)}`)
  return half
}

const box = await Sandbox.create({ timeoutMs: 600_000 })
try {
  await box.files.write('small', 'x'.repeat(1024))
  const path = `/v1/sandboxes/${box.id}`
  const wants = (want, got) => { if (want !== got) throw new Error(`${got} instead of ${want}`) }
  const subjects = [
    ['GET a sandbox', () => curl('GET', path), async () => wants(box.id, (await box.getInfo()).id)],
    ['files.read, 1 kB', () => curl('GET', `${path}/files?path=small`), async () => wants(1024, (await box.files.read('small')).length)],
    ["commands.run(['true'])", () => curl('POST', `${path}/exec`, { args: ['true'], stream: 'ndjson' }), async () => wants(0, (await box.commands.run(['true'])).exitCode)],
  ]
  if (!check) {
    console.log('\nThe TypeScript SDK\n==================\n')
    console.log("One call at a time on one kept connection; more: the median's distance from curl's.\n")
    console.log(`${''.padEnd(44)} ${'n'.padStart(6)} ${['min ms', 'p50 ms', 'p99 ms', 'more ms'].map((head) => head.padStart(9)).join(' ')}`)
  }
  for (const [name, byCurl, call] of subjects) {
    const times = { curl: [], sdk: [] }
    for (let i = 0; i < Math.max(1, rounds / block); i++) {
      times.curl.push(...byCurl())
      times.sdk.push(...(await timed(call)))
    }
    const base = row(`${name}: curl`, times.curl)
    row('  Sandbox', times.sdk, base)
  }
  if (check) console.log('ok - the benchmark of the TypeScript SDK runs')
} finally {
  await box.kill()
  rmSync(folder, { recursive: true })
}
