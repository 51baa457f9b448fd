// E2B's SDK in one process, against the real server and against one that answers at once (stub.mjs), in turns.
//
//   node measure.mjs [ROUNDS]      a table, as cove-bench prints it
//   node measure.mjs --check       a few rounds, judged by what must be right and never by time
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Sandbox } from '@e2b/code-interpreter'

const check = process.argv[2] === '--check'
const rounds = check ? 3 : Number(process.argv[2] ?? 100)
const template = 'host'
const small = 'x'.repeat(1024)
const large = new Blob([Buffer.alloc(10 * 1024 * 1024, 'x')])
let failed = 0

const stub = spawn(process.execPath, [new URL('stub.mjs', import.meta.url).pathname], { stdio: ['pipe', 'pipe', 'inherit'] })
const [port] = await once(stub.stdout, 'data')
const stubUrl = `http://127.0.0.1:${String(port).trim()}`

function wants(what, want, got) {
  if (want !== got) throw new Error(`${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(want)}`)
}

// What is measured; `after` is not part of the time.
const subjects = [
  { name: 'Sandbox.create()', run: ({ opts }) => Sandbox.create(template, { ...opts, timeoutMs: 60_000 }), after: (box) => box.kill() },
  { name: "commands.run('true')", run: async ({ box }) => wants('exit code', 0, (await box.commands.run('true')).exitCode) },
  { name: 'files.write, 1 kB', run: ({ box }) => box.files.write('small', small) },
  { name: 'files.read, 1 kB', run: async ({ box }) => wants('length', 1024, (await box.files.read('small')).length) },
  { name: 'files.write, 10 MB', run: ({ box }) => box.files.write('large', large), rare: true },
  { name: 'files.read, 10 MB', run: async ({ box }) => wants('length', 10485760, (await box.files.read('large', { format: 'bytes' })).length), rare: true },
  { name: "runCode('1+1')", run: async ({ box }) => wants('result', '2', (await box.runCode('1+1')).text) },
]

async function side(opts) {
  return { opts, box: await Sandbox.create(template, { ...opts, timeoutMs: 600_000 }), times: subjects.map(() => []) }
}

async function once_each(side, subject, i) {
  const begun = process.hrtime.bigint()
  const got = await subject.run(side)
  side.times[i].push(Number(process.hrtime.bigint() - begun) / 1e6)
  await subject.after?.(got)
}

const at = (list, percent) => [...list].sort((a, b) => a - b)[Math.max(0, Math.ceil((percent / 100) * list.length) - 1)]
const row = (label, list, base) =>
  console.log(`  ${label.padEnd(42)} ${String(list.length).padStart(6)} ` +
    [at(list, 0), at(list, 50), at(list, 99)].map((ms) => ms.toFixed(2).padStart(9)).join(' ') +
    (base ? ` ${(at(list, 50) / base).toFixed(2).padStart(7)}x` : `${'-'.padStart(9)}`))

const real = await side({})
const fast = await side({ apiUrl: stubUrl, sandboxUrl: stubUrl, apiKey: 'e2b_' + '0'.repeat(40) })
const missing = new Map()

for (let round = 0; round < rounds; round++) {
  for (const [i, subject] of subjects.entries()) {
    if ((subject.rare && round % 5 && !check) || missing.has(subject)) continue
    try {
      for (const one of round % 2 ? [fast, real] : [real, fast]) await once_each(one, subject, i)
    } catch (err) {
      missing.set(subject, err)
      failed++
    }
  }
}
await real.box.kill()
stub.stdin.end()

if (check)
  for (const [i, subject] of subjects.entries())
    console.log(missing.has(subject) ? `not ok - bench: ${subject.name}: ${String(missing.get(subject)).slice(0, 200)}`
      : `ok - bench: ${subject.name} answers ${real.times[i].length} times`)
else {
  console.log("\n7. E2B's SDK, one node process\n==============================\n")
  console.log("The SDK's own time: the same call against a server that answers at once; ratio: to that.\n")
  console.log(`${'one call at a time'.padEnd(44)} ${'n'.padStart(6)} ${['min ms', 'p50 ms', 'p99 ms'].map((h) => h.padStart(9)).join(' ')} ${'ratio'.padStart(8)}`)
  for (const [i, subject] of subjects.entries()) {
    if (missing.has(subject)) { console.log(`  ${subject.name.padEnd(42)}      -  ${String(missing.get(subject)).slice(0, 100)}`); continue }
    row(subject.name, real.times[i], at(fast.times[i], 50))
    row("  of it the SDK's own", fast.times[i])
  }
}
process.exit(failed ? 1 : 0)
