// Every public call of the packages is made by some program beside this one: what a later version adds is missed here.
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Sandbox, TemplateBase } from 'e2b'
import { Sandbox as Interpreter } from '@e2b/code-interpreter'
import { finish, is, part, sandbox } from './check.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const text = readdirSync(here).filter((name) => name.endsWith('.mjs') && name !== 'coverage.mjs').map((name) => readFileSync(join(here, name), 'utf8')).join('\n')

// Typed private or protected, or for the packages' own use: not in the published declarations of what may be called.
const inner = new Set(['constructor', 'resolveOpts', 'resolveApiOpts', 'fileUrl', 'createSandbox', 'forkSandbox', 'connectSandbox', 'start', 'runGit', 'runShell', 'getRemoteUrl',
  'resolveRemoteName', 'withRemoteCredentials', 'hasUpstream', 'flushDecoders', 'iterateEvents', 'handleEvents', 'getJupyterRequestUrl', 'handleRequestError', 'supportsStdinClose'])

const calls = (object) => Object.getOwnPropertyNames(object).filter((name) => {
  const { value } = Object.getOwnPropertyDescriptor(object, name)
  return typeof value === 'function' && !inner.has(name) && !/^[_A-Z]/.test(name)
})
const missing = (names) => names.filter((name) => !new RegExp(`[.]${name}\\(`).test(text))

await part('coverage', async () => {
  const box = await sandbox()
  const handle = await box.commands.run('true', { background: true })
  const watch = await box.files.watchDir('/tmp', () => {})
  await watch.stop()
  const subjects = {
    'Sandbox, static': calls(Sandbox).concat(calls(Object.getPrototypeOf(Sandbox))),
    Sandbox: calls(Sandbox.prototype),
    files: calls(Object.getPrototypeOf(box.files)),
    commands: calls(Object.getPrototypeOf(box.commands)),
    'a handle': calls(Object.getPrototypeOf(handle)),
    'a watch': calls(Object.getPrototypeOf(watch)),
    pty: calls(Object.getPrototypeOf(box.pty)),
    git: calls(Object.getPrototypeOf(box.git)),
    pages: calls(Object.getPrototypeOf(Sandbox.list())),
    interpreter: calls(Interpreter.prototype),
    'Template, static': calls(TemplateBase),
  }
  for (const [what, names] of Object.entries(subjects)) is(`every call of ${what} (${names.length}) is made`, [], missing(names))
})

await finish()
