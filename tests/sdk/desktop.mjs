// The template desktop: a screen that is looked at and used with noVNC in a browser, and by E2B's desktop SDK.
// `node desktop.mjs PROGRAM PART`, with the path of Chromium on this host; parts: cold, warm, sdk.
import { Sandbox } from '@e2b/desktop'
import puppeteer from 'puppeteer-core'
import { end, holds, is, like, part, until } from './say.mjs'

const [program, which] = process.argv.slice(2)
const api = `https://api.${process.env.E2B_DOMAIN}`
const limits = { memory: '1g', disk: '1g', pids: 1024 }
const READY = 'curl -fs -o /dev/null localhost:6080/vnc.html && wmctrl -m && pgrep -x xfdesktop && pgrep -x x11vnc'
// Green, with a title that says which key was pressed.
const PAGE = `<title>a page</title><body style="background:#008000" onkeydown="document.title = 'pressed ' + event.key">`
const GREEN = '0,128,0'

async function ask(method, path, body) {
  const answer = await fetch(api + path, { method, headers: { 'X-API-Key': process.env.E2B_API_KEY }, body: typeof body === 'object' ? JSON.stringify(body) : body })
  return answer.headers.get('content-type')?.includes('json') ? answer.json() : answer.text()
}
const run = (id, command) => ask('POST', `/v1/sandboxes/${id}/exec`, { command })

async function browse(id, url) {
  await ask('PUT', `/v1/sandboxes/${id}/files?path=/tmp/page.html`, PAGE)
  await ask('POST', `/v1/sandboxes/${id}/processes`, { command: `exec chromium --start-maximized ${url}` })
  const found = await until((r) => r.exit_code === 0, () => run(id, "xdotool search --onlyvisible --name 'a page'"), 60000)
  is('Chromium shows a window with the title of the page', 0, found.exit_code)
  const shot = await until((r) => r.stdout?.trim() === GREEN, () => run(id, `scrot -o /tmp/shot.png && convert /tmp/shot.png -crop 1x1+640+500 -format '%[fx:int(255*r)],%[fx:int(255*g)],%[fx:int(255*b)]' info:`))
  is('a screenshot has the colour of the page', GREEN, shot.stdout?.trim())
}

// In the middle of noVNC's picture, which is drawn to a canvas.
const middle = () => {
  const canvas = document.querySelector('#noVNC_container canvas')
  if (!canvas || canvas.width < 100) return ''
  const [r, g, b] = canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height * 0.6, 1, 1).data
  return `${r},${g},${b}`
}

async function look(id, href) {
  const browser = await puppeteer.launch({ executablePath: program, headless: 'shell', acceptInsecureCerts: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-proxy-server'] })
  try {
    const page = await browser.newPage()
    await page.goto(href)
    like('noVNC is at the port 6080', /noVNC/, await until((t) => /noVNC/.test(t), () => page.title().catch(() => '')))
    is('the canvas of noVNC shows the page', GREEN, await until((c) => c === GREEN, () => page.evaluate(middle).catch(() => ''), 60000))
    await page.mouse.click(400, 300)
    await page.keyboard.press('k')
    const title = await until((r) => r.exit_code === 0, () => run(id, "xdotool search --name 'pressed k'"))
    is('a key that is pressed in noVNC reaches the page in the sandbox', 0, title.exit_code)
  } finally {
    await browser.close()
  }
}

async function see(id) {
  const { url } = await ask('POST', `/v1/sandboxes/${id}/ports/6080/link`, { expires_seconds: 600 })
  await look(id, url)
}

const create = () => ask('POST', '/v1/sandboxes', { template: 'desktop', limits, timeout: 300 })
const kill = (id) => ask('DELETE', `/v1/sandboxes/${id}`)

if (which === 'cold')
  await part('a desktop that is started by hand', async () => {
    const { id } = await create()
    await ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'exec desktop' })
    const ready = await until((r) => r.exit_code === 0, () => run(id, READY), 60000)
    is('screen, XFCE and noVNC come up', 0, ready.exit_code)
    await browse(id, 'file:///tmp/page.html')
    await see(id)
    await kill(id)
  }, 300000)

if (which === 'warm')
  await part('a desktop of the template', async () => {
    const begun = Date.now()
    const { id } = await create()
    const made = Date.now() - begun
    const ready = await until((r) => r.exit_code === 0, () => run(id, READY), 60000)
    is('screen, XFCE and noVNC run in every sandbox', 0, ready.exit_code)
    console.log(`# create ${made} ms, ready after ${Date.now() - begun} ms`)
    await browse(id, 'file:///tmp/page.html')
    await see(id)
    await kill(id)
  }, 300000)

if (which === 'sdk')
  await part("E2B's desktop SDK", async () => {
    const desktop = await Sandbox.create({ resolution: [1280, 800], timeoutMs: 300_000 })
    try {
      is('the size of the screen is what was asked for', { width: 1280, height: 800 }, await desktop.getScreenSize())
      const png = await desktop.screenshot()
      is('a screenshot is a PNG', '\x89PNG', Buffer.from(png.slice(0, 4)).toString('latin1'))
      await desktop.moveMouse(321, 234)
      is('the mouse goes where it is moved', { x: 321, y: 234 }, await desktop.getCursorPosition())
      await desktop.files.write('/tmp/page.html', PAGE)
      await desktop.launch('chromium', '/tmp/page.html')
      const windows = await until((w) => w.length > 0, () => desktop.getApplicationWindows('chromium').catch(() => []), 60000)
      holds('launch starts Chromium', windows.length > 0)
      const titles = await until((t) => t.some((one) => one.startsWith('a page')), () => Promise.all(windows.map((w) => desktop.getWindowTitle(w).catch(() => ''))))
      holds('Chromium shows the page', titles.some((one) => one.startsWith('a page')), titles)
      await desktop.stream.start({ requireAuth: true })
      await look(desktop.sandboxId, desktop.stream.getUrl({ authKey: desktop.stream.getAuthKey() }))
      await desktop.stream.stop()
    } finally {
      await desktop.kill()
    }
  }, 300000)
end()
