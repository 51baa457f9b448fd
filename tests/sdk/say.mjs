// What programs that test a server share: sentences that hold or do not, and parts that fail alone.
import { isDeepStrictEqual } from 'node:util'

// SLOW=10: on a machine that is ten times slower. The SDK's own limit for a request, a minute, is as much longer there.
export const slow = Number(process.env.SLOW ?? 1)
const { timeout } = AbortSignal
if (slow > 1) AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms * slow)

let failed = 0
let partName = ''

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

const brief = (value) => {
  const text = typeof value === 'string' ? value : value instanceof Error ? `${value.name}: ${value.message}` : JSON.stringify(value)
  return String(text).slice(0, 300).replace(/\s+/g, ' ')
}

export function holds(sentence, good, why = '') {
  if (good) console.log(`ok - ${partName}: ${sentence}`)
  else {
    failed++
    console.log(`not ok - ${partName}: ${sentence}: ${brief(why)}`)
  }
  return good
}

export const is = (sentence, want, got) =>
  holds(sentence, isDeepStrictEqual(want, got), `got ${brief(got)}, not ${brief(want)}`)

export const like = (sentence, pattern, got) => holds(sentence, pattern.test(String(got)), `${brief(got)} is not like ${pattern}`)

// The call fails with exactly this class, and a message like this. Returns the error.
export async function refuses(sentence, kind, pattern, call) {
  try {
    const got = await call()
    holds(sentence, false, `nothing was refused: ${brief(got)}`)
  } catch (err) {
    holds(sentence, err?.constructor === kind && pattern.test(err.message), `${err?.constructor?.name}: ${brief(err)}`)
    return err
  }
}

// Asks again until the answer suits, for what another process does in its own time.
export async function until(suits, ask, ms = 40000 * slow) {
  const end = Date.now() + ms
  for (;;) {
    const got = await ask()
    if (suits(got) || Date.now() > end) return got
    await sleep(50)
  }
}

// Whether what follows holds for the isolation of this run. Where it does not, the line says so.
export function only(isolations, what, reason) {
  const mine = (process.env.COVE_TEST_ISOLATION || 'jail').replace('-emulated', '')
  if (isolations.split(' ').includes(mine)) return true
  console.log(`skip - ${what}: only ${isolations.replaceAll(' ', ' and ')}: ${reason}`)
  return false
}

// One subject. What it throws is its own failure, a hang too; the next part runs.
export async function part(name, body, limit = 180000) {
  const limitMs = limit * slow
  const only = process.env.ONLY
  if (only && !name.includes(only)) return
  partName = name
  let timer
  const begun = Date.now()
  try {
    await Promise.race([
      body(),
      new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`no end after ${limitMs} ms`)), limitMs) }),
    ])
  } catch (err) {
    holds('goes to its end', false, `${err?.cause ?? ''} ${err?.stack?.replace(/\s+at .*node_modules.*/g, '') ?? err}`)
  }
  clearTimeout(timer)
  if (process.env.TIMES) console.log(`# ${name}: ${Date.now() - begun} ms`)
}

export const end = () => process.exit(failed ? 1 : 0)
