// Fifty sandboxes at once, used at once.
import { Sandbox } from 'e2b'
import { finish, holds, is, part, template } from './check.mjs'

const count = 50

await part('fifty sandboxes at once', async () => {
  const numbers = [...Array(count).keys()]
  const boxes = await Promise.all(numbers.map((i) => Sandbox.create(template, { timeoutMs: 120_000, metadata: { crowd: String(process.pid) }, envs: { N: `${i}` } })))
  is('each has an id of its own', count, new Set(boxes.map((box) => box.sandboxId)).size)
  is('each runs its own command', numbers.map((i) => `${i}\n`), (await Promise.all(boxes.map((box) => box.commands.run('echo $N')))).map((r) => r.stdout))
  await Promise.all(boxes.map((box, i) => box.files.write('own', `file ${i}`)))
  is('each has its own files', numbers.map((i) => `file ${i}`), await Promise.all(boxes.map((box) => box.files.read('own'))))
  const handles = await Promise.all(boxes.map((box) => box.commands.run('sleep 300', { background: true })))
  is('each runs something in the background', count, handles.filter((h) => h.pid > 0).length)
  const pages = Sandbox.list({ query: { metadata: { crowd: String(process.pid) } }, limit: 20 })
  let listed = 0
  while (pages.hasNext) listed += (await pages.nextItems()).length
  is('all are listed', count, listed)
  is('all are running', count, (await Promise.all(boxes.map((box) => box.isRunning()))).filter(Boolean).length)
  is('all are killed', count, (await Promise.all(boxes.map((box) => box.kill()))).filter(Boolean).length)
  is('killed sandboxes do not run', 0, (await Promise.all(boxes.map((box) => box.isRunning()))).filter(Boolean).length)
  holds('commands of killed sandboxes end', (await Promise.allSettled(handles.map((h) => h.wait()))).every((r) => r.status === 'rejected'))
}, 120_000)

await finish()
