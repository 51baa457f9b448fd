// What the programs beside this one share: sandboxes that are gone afterwards, and what say.mjs has. They run against a real server, with the
// published packages, unmodified.
import { Sandbox } from 'e2b'
import { end, slow } from './say.mjs'

export * from './say.mjs'
export const template = 'host'
const made = []

export async function sandbox(opts = {}, Class = Sandbox) {
  const box = await Class.create(template, { timeoutMs: 900_000 * slow, ...opts })
  made.push(box)
  return box
}

export async function finish() {
  await Promise.allSettled(made.map((box) => box.kill()))
  end()
}
