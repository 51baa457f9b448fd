// A preview, looked at with a real browser: `node preview.mjs API KEY BROWSER`. Prints ok lines.
import fs from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import puppeteer from 'puppeteer-core'

const [api, key, program] = process.argv.slice(2)
const secure = api.startsWith('https')
const how = secure ? 'over TLS' : 'in plain HTTP'
let failed = 0
const brief = (v) => String(typeof v === 'string' ? v : JSON.stringify(v)).slice(0, 300).replace(/\s+/g, ' ')
const holds = (sentence, good, why = '') => {
  if (good) console.log(`ok - ${how}: ${sentence}`)
  else { failed++; console.log(`not ok - ${how}: ${sentence}: ${brief(why)}`) }
}
const is = (sentence, want, got) => holds(sentence, isDeepStrictEqual(want, got), `got ${brief(got)}, not ${brief(want)}`)
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

async function ask(method, path, body, token = key) {
  const answer = await fetch(api + path, { method, headers: { 'X-API-Key': token }, body: typeof body === 'object' ? JSON.stringify(body) : body })
  return answer.status === 204 ? null : answer.headers.get('content-type')?.includes('json') ? answer.json() : answer.text()
}
async function box() {
  const { id } = await ask('POST', '/v1/sandboxes', { timeout: 300 })
  await ask('PUT', `/v1/sandboxes/${id}/files?path=site.py`, fs.readFileSync('site.py', 'utf8'))
  await ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'exec python3 site.py 3000' })
  for (let i = 0; i < 200 && !Array.isArray(await ask('GET', `/v1/sandboxes/${id}/ports/3000/seen`)); i++) await sleep(50)
  return id
}
const link = async (id, port = 3000, seconds = 600) => (await ask('POST', `/v1/sandboxes/${id}/ports/${port}/link`, { expires_seconds: seconds })).url
const seen = (id) => ask('GET', `/v1/sandboxes/${id}/ports/3000/seen`)

async function told(page) {
  await page.waitForFunction(() => document.title !== 'waiting', { timeout: 15000 }).catch(() => {})
  const title = await page.title()
  try { return JSON.parse(title) } catch { return { title } }
}

const browser = await puppeteer.launch({ executablePath: program, headless: 'shell', acceptInsecureCerts: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-proxy-server'] })
try {
  const [mine, second] = await Promise.all([box(), box()])
  const page = await browser.newPage()
  const url = new URL(await link(mine))

  let answer = await page.goto(url.origin + '/')
  is('without a link a page says that it is private', [403, 'This port is private'], [answer.status(), await page.$eval('h1', (h) => h.textContent)])
  answer = await page.goto(url.origin + '/#cove_token=' + url.searchParams.get('cove_token'))
  await page.reload()
  holds('a token behind # opens nothing', (await page.$eval('h1', (h) => h.textContent)) === 'This port is private')

  await page.goto(url.href + '&a=1')
  const got = await told(page)
  is('a link opens the page, and is gone from the address', url.origin + '/?a=1', got.address)
  is('sub-resources load', ['ran', 1], [got.script, got.picture])
  is('the page\'s style sheet loads', 'rgb(0, 128, 0)', await page.evaluate(() => getComputedStyle(document.body).color))
  is('a POST goes through', 200, got.post)
  is('a WebSocket connects', 'hello', got.socket)
  is('an EventSource connects', 'event', got.events)
  is('scripts do not see the cookie', '', got.cookies)
  const [cookie, ...more] = await page.cookies()
  is('the browser gets one cookie, for this host alone', [0, secure ? '__Host-cove-preview' : 'cove-preview', url.hostname, true, secure, 'Lax'],
    [more.length, cookie?.name, cookie?.domain, cookie?.httpOnly, cookie?.secure, cookie?.sameSite])
  await page.goto(url.origin + '/again')
  is('the cookie works for the next page', url.origin + '/again', (await told(page)).address)
  const requests = await seen(mine)
  holds('the site has seen the requests of the page', requests.length > 10, requests.length)
  is('the site sees nothing of the token or the cookie', [], requests.filter((r) => /cove[_-](token|preview)/i.test(r)))

  await page.goto(await link(second))
  await told(page)
  const evil = new URL(await link(second)).origin + '/evil#' + encodeURIComponent(`${url.origin} ${api}`)
  const before = (await seen(mine)).length
  await page.goto(evil)
  const tried = await told(page)
  for (const k of ['picture', 'script', 'read', 'socket', 'api']) is(`the page of another sandbox gets nothing: ${k}`, 'refused', tried[k])
  is('no request of the other page reached the site', before, (await seen(mine)).length)
  const all = JSON.stringify([await ask('GET', '/v1/sandboxes'), ...(process.env.LOCAL ? [await (await fetch(api + '/v1/sandboxes')).json()] : [])])
  holds('the page of another sandbox makes no sandbox', !all.includes('evil'), all)

  for (const [name, where, status, title] of [
    ['nothing listens', await link(mine, 3999), 502, 'Nothing listens there'],
    ['a link that was altered', url.href.replace(/.$/, (c) => (c === '0' ? '1' : '0')), 403, 'This port is private'],
    ['a sandbox that never was', url.href.replace(mine, 'i' + 'a'.repeat(20)), 502, 'No such sandbox'],
    ['a name that is none', url.href.replace(`3000-${mine}`, '80-short'), 400, 'No such address']]) {
    const fresh = await (await browser.createBrowserContext()).newPage()
    const a = await fresh.goto(where)
    is(`a page says so: ${name}`, [status, title], [a.status(), await fresh.$eval('h1', (h) => h.textContent)])
    await fresh.close()
  }
  const dark = await (await browser.createBrowserContext()).newPage()
  await dark.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
  await dark.goto(url.origin + '/')
  is('dark where that is wanted', 'rgb(22, 24, 29)', await dark.evaluate(() => getComputedStyle(document.body).backgroundColor))
  await ask('POST', `/v1/sandboxes/${mine}/pause`, {})
  await page.goto(await link(mine))
  is('a sandbox that is paused', 'The sandbox is paused', await page.$eval('h1', (h) => h.textContent))
  await ask('PUT', `/v1/sandboxes/${mine}/preview`, { auto_resume: true })
  await page.goto(url.origin + '/')
  is('a visit resumes a paused sandbox that has auto_resume', 'event', (await told(page)).events)
  await ask('POST', `/v1/sandboxes/${mine}/preview/roll`, {})
  await page.goto(url.origin + '/')
  is('a roll ends it for whoever is there', 'This port is private', await page.$eval('h1', (h) => h.textContent))
  await Promise.all([mine, second].map((id) => ask('DELETE', `/v1/sandboxes/${id}`)))
} catch (err) {
  failed++
  console.log(`not ok - ${how}: comes to its end: ${brief(err.stack ?? err)}`)
} finally {
  await browser.close()
}
process.exit(failed ? 1 : 0)
