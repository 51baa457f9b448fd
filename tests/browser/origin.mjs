// What web pages can do to a server on loopback that asks its own machine for no key, tried with a real browser:
// `node origin.mjs API BROWSER`. API is http://localhost:PORT. Prints ok lines.
import http from 'node:http'
import fs from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import puppeteer from 'puppeteer-core'

const [api, program] = process.argv.slice(2)
const port = new URL(api).port
let failed = 0
const brief = (v) => String(typeof v === 'string' ? v : JSON.stringify(v)).slice(0, 300).replace(/\s+/g, ' ')
const is = (sentence, want, got) => {
  if (isDeepStrictEqual(want, got)) console.log(`ok - ${sentence}`)
  else { failed++; console.log(`not ok - ${sentence}: got ${brief(got)}, not ${brief(want)}`) }
}
async function ask(method, path, body) {
  const answer = await fetch(api + path, { method, body: typeof body === 'object' ? JSON.stringify(body) : body })
  return answer.status === 204 ? null : answer.headers.get('content-type')?.includes('json') ? answer.json() : answer.text()
}

// What a page says that it got, in its title. The first six are blind: what counts is what they left behind.
const ATTACK = `<!doctype html><meta charset=utf-8><title>waiting</title><body><script>
const [api, id] = decodeURIComponent(location.hash.slice(1)).split(' ')
const told = {}, say = (k, v) => { if (k in told) return; told[k] = v; if (Object.keys(told).length === 14) document.title = JSON.stringify(told) }
const get = (k, path, more) => fetch(api + path, more).then((a) => a.type === 'opaque' ? say(k, 'sent') : a.text().then((t) => say(k, a.status < 300 ? t : 'refused')), () => say(k, 'refused'))
const post = (k, type, body) => get(k, '/v1/sandboxes/' + id + '/exec', { method: 'POST', mode: 'no-cors', body: new Blob([body], { type }) })
const touch = (name) => JSON.stringify({ command: 'touch /tmp/' + name })
post('plain', 'text/plain', touch('plain'))
post('urlencoded', 'application/x-www-form-urlencoded', touch('urlencoded'))
get('untyped', '/v1/sandboxes/' + id + '/exec', { method: 'POST', mode: 'no-cors', body: new TextEncoder().encode(touch('untyped')) })
get('tools', '/bash', { method: 'POST', mode: 'no-cors', body: JSON.stringify({ sandbox_id: id, command: 'touch /tmp/tools' }) })
get('e2b', '/sandboxes', { method: 'POST', mode: 'no-cors', body: JSON.stringify({ templateID: 'base', metadata: { evil: 'yes' } }) })
const frame = document.createElement('iframe')
frame.name = 'f'
document.body.append(frame)
const form = document.createElement('form')
Object.assign(form, { method: 'POST', enctype: 'text/plain', target: 'f', action: api + '/v1/sandboxes/' + id + '/exec' })
const field = document.createElement('input')
field.name = '{"command":"touch /tmp/form #'
field.value = '"}'
form.append(field)
document.body.append(form)
frame.onload = () => say('form', 'sent')
form.submit()
get('json', '/v1/sandboxes/' + id + '/exec', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: touch('json') })
get('delete', '/v1/sandboxes/' + id, { method: 'DELETE' })
get('list', '/v1/sandboxes')
const tag = (k, name, path) => { const e = document.createElement(name); e.onload = () => say(k, 'loaded'); e.onerror = () => say(k, 'refused'); e.src = api + path; document.body.append(e) }
tag('picture', 'img', '/v1/sandboxes/' + id + '/files?path=/tmp/dot.gif')
tag('script', 'script', '/v1/sandboxes/' + id + '/files?path=/tmp/script.js')
const e = new EventSource(api + '/v1/sandboxes/' + id + '/files/watch?path=/tmp')
e.onopen = () => { say('events', 'opened'); e.close() }
e.onerror = () => { say('events', 'refused'); e.close() }
const w = new WebSocket(api.replace('http', 'ws') + '/v1/sandboxes/' + id + '/terminal')
w.onopen = () => say('terminal', 'opened')
w.onerror = () => say('terminal', 'refused')
const inner = document.createElement('iframe')
inner.onload = () => say('frame', 'loaded')
inner.src = api + '/v1/sandboxes'
document.body.append(inner)
</script>`
const READ = ['json', 'delete', 'list', 'picture', 'script', 'events', 'terminal']
const BLIND = ['plain', 'urlencoded', 'untyped', 'tools', 'form', 'json']

// A page in the API's own origin would be the API's own page; one that comes out of a sandbox must not be.
const INNER = `<!doctype html><meta charset=utf-8><title>waiting</title><script>
fetch('/v1/sandboxes').then((a) => { document.title = JSON.stringify({ list: a.status < 300 ? 'read' : 'refused' }) }, () => { document.title = JSON.stringify({ list: 'refused' }) })
</script>`

async function told(page) {
  await page.waitForFunction(() => document.title !== 'waiting', { timeout: 20000 }).catch(() => {})
  const title = await page.title()
  try { return JSON.parse(title) } catch { return { title } }
}
async function box() {
  const { id } = await ask('POST', '/v1/sandboxes', { timeout: 300 })
  await ask('PUT', `/v1/sandboxes/${id}/files?path=/tmp/dot.gif`, Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64'))
  await ask('PUT', `/v1/sandboxes/${id}/files?path=/tmp/script.js`, 'window.x = 1')
  await ask('PUT', `/v1/sandboxes/${id}/files?path=/home/user/page.html`, INNER)
  return id
}
const listed = async (id, where) => JSON.stringify(await ask('GET', `/v1/sandboxes/${id}/files/list?path=${where}`))

const evil = http.createServer((request, response) => { response.setHeader('Content-Type', 'text/html'); response.end(ATTACK) })
await new Promise((done) => evil.listen(0, '127.0.0.1', done))
const near = evil.address().port
fs.writeFileSync('attack.html', ATTACK)
const browser = await puppeteer.launch({ executablePath: program, headless: 'shell',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-proxy-server', '--host-resolver-rules=MAP *.example 127.0.0.1'] })
try {
  for (const [name, where] of [
    ['of another port of localhost', `http://localhost:${near}/`],
    ['of another port of 127.0.0.1', `http://127.0.0.1:${near}/`],
    ['below localhost', `http://app.localhost:${near}/`],
    ['of another site', `http://evil.example:${near}/`],
    ['from a file', `file://${process.cwd()}/attack.html`]]) {
    const id = await box()
    const page = await (await browser.createBrowserContext()).newPage()
    await page.goto(`${where}#${encodeURIComponent(`${api} ${id}`)}`)
    const got = await told(page)
    is(`a page ${name} comes to its end`, 14, Object.keys(got).length)
    for (const k of READ) is(`a page ${name} gets nothing: ${k}`, 'refused', got[k])
    const files = await listed(id, '/tmp')
    is(`a page ${name} runs no command`, [], BLIND.filter((k) => files.includes(`"/tmp/${k}"`) || files.includes(`"name":"${k}"`)))
    is(`a page ${name} makes no sandbox through E2B's dialect`, false, JSON.stringify(await ask('GET', '/v1/sandboxes')).includes('"evil"'))
    const framed = page.frames().find((f) => f.url() === `${api}/v1/sandboxes`)
    is(`a page ${name} shows nothing of the API in a frame`, false, framed ? (await framed.content()).includes(id) : false)
    await page.close()
    await ask('DELETE', `/v1/sandboxes/${id}`)
  }

  const id = await box(), page = await browser.newPage()
  let answer = await page.goto(`http://rebound.example:${port}/v1/sandboxes`)
  is('a name of somebody else\'s that leads to loopback is refused', 403, answer.status())
  answer = await page.goto(`${api}/v1/sandboxes`)
  is('a person who types the address is served', 200, answer.status())
  is('the API\'s own page can run a command', 200, await page.evaluate(async (at) =>
    (await fetch(at, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"command":"true"}' })).status, `/v1/sandboxes/${id}/exec`))
  is('though not as a form would', 415, await page.evaluate(async (at) => (await fetch(at, { method: 'POST', body: '{"command":"true"}' })).status, `/v1/sandboxes/${id}/exec`))
  await page.goto(`${api}/v1/sandboxes/${id}/files?path=/home/user/page.html`)
  is('a file of a sandbox that is opened as a page runs no script', { title: 'waiting' }, { title: await page.title() })
  await ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'cd /home/user && exec python3 -m http.server 3000' })
  for (let i = 0; i < 400 && !String(await ask('GET', `/v1/sandboxes/${id}/ports/3000/page.html`)).includes('waiting'); i++) await new Promise((done) => setTimeout(done, 25))
  await page.goto(`${api}/v1/sandboxes/${id}/ports/3000/page.html`)
  is('a page that a sandbox serves, by path, cannot read the API', { list: 'refused' }, await told(page))
  await page.goto(`http://3000-${id}.localhost:${port}/page.html`)
  is('a page that a sandbox serves by its host cannot read the API: /v1 there is the sandbox\'s own', { list: 'refused' }, await told(page))
  await ask('DELETE', `/v1/sandboxes/${id}`)
} catch (err) {
  failed++
  console.log(`not ok - comes to its end: ${brief(err.stack ?? err)}`)
} finally {
  await browser.close()
  evil.close()
}
process.exit(failed ? 1 : 0)
