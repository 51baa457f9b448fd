// Template: built from steps, in the background, with files, tags and names; errors go back to the line that made the step.
import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BuildError, Sandbox, Template, waitForProcess } from 'e2b'
import { finish, holds, is, like, part, refuses, until } from './check.mjs'

const context = mkdtempSync(join(tmpdir(), 'cove-sdk-'))
mkdirSync(join(context, 'folder/sub'), { recursive: true })
writeFileSync(join(context, 'folder/test.txt'), 'from the client\n')
writeFileSync(join(context, 'folder/sub/deep.txt'), 'deep\n')
symlinkSync('test.txt', join(context, 'folder/link'))
process.on('exit', () => rmSync(context, { recursive: true, force: true }))

const from = 'host'
const boxes = []
async function box(name) {
  const made = await Sandbox.create(name, { timeoutMs: 60_000 })
  boxes.push(made)
  return made
}
const said = async (name, command, opts) => (await (await box(name)).commands.run(command, opts)).stdout.trim()

await part('build', async () => {
  const logs = []
  const template = Template({ fileContextPath: context })
    .fromTemplate(from)
    .setUser('root')
    .setWorkdir('/srv/app')
    .setEnvs({ COLOUR: 'blue', WIDE: 'two words' })
    .copy('folder', 'data')
    .copy('folder/*', '/srv/all/', { mode: 0o755 })
    .runCmd(['cat data/test.txt', 'echo "$WIDE" > wide'])
    .makeDir('/srv/made', { mode: 0o700 })
    .makeSymlink('/srv/made', '/srv/linked')
    .rename('wide', 'renamed')
  const info = await Template.build(template, 'sdk-first', { onBuildLogs: (entry) => logs.push(entry), tags: ['v1'] })
  holds('a build has ids', info.templateId && info.buildId, info)
  holds('the log of a build comes', logs.some((l) => l.message.includes('from the client')), logs.map((l) => l.message))
  is('commands begin where it said, with its environment', '/srv/app blue two words', await said('sdk-first', 'echo $(pwd) $COLOUR $WIDE'))
  is('files of a template are there', 'from the client deep two words', await said('sdk-first:v1', 'echo $(cat data/link) $(cat /srv/all/sub/deep.txt) $(cat renamed)'))
  is('files of a template have their mode', '755 700', await said('sdk-first', 'echo $(stat -c %a /srv/all/test.txt) $(stat -c %a /srv/linked/)'))
  is('a template that was built exists', true, await Template.exists('sdk-first'))
  is('a template that was not built does not exist', false, await Template.exists('sdk-nothing'))
  is('base does', true, await Template.exists('base'))
  const again = []
  await Template.build(template, 'sdk-first', { onBuildLogs: (entry) => again.push(entry.message) })
  holds('steps that are known do not run again', again.some((m) => m.startsWith('CACHED')) && !again.some((m) => m === 'from the client'), again)
  await Template.build(template, 'sdk-first', { skipCache: true, onBuildLogs: (entry) => again.push(entry.message) })
  holds('steps run again without the cache', again.includes('from the client'), again)
})

await part('more steps', async () => {
  const rights = Template({ fileContextPath: context }).fromTemplate(from).runCmd('chmod 777 /srv', { user: 'root' })
  await Template.build(rights, 'sdk-rights')
  const info = await Template.build(
    Template({ fileContextPath: context }).fromTemplate('sdk-rights')
      .setUser('root')
      .copyItems([
        { src: 'folder/test.txt', dest: '/srv/items/', user: 'user', mode: 0o640 },
        { src: 'folder', dest: '/srv/tree', forceUpload: true },
      ])
      .remove('/srv/tree/sub', { recursive: true })
      .skipCache()
      .runCmd('id -un > /srv/who', { user: 'user' })
      .setUser('builder')
      .setWorkdir('/srv/made/here')
      .setReadyCmd('test -e /srv/items/test.txt'),
    'sdk-more')
  holds('a build with a ready command and no start command is ready', info.buildId, info)
  is('copyItems gives owner and mode, and remove takes away', 'user 640 no', await said('sdk-more', 'echo $(stat -c "%U %a" /srv/items/test.txt) $(test -e /srv/tree/sub && echo yes || echo no)'))
  is('a command has its own user, and setUser makes the one that is missing', 'user builder /srv/made/here builder', await said('sdk-more', 'echo $(cat /srv/who) $(id -un) $(pwd) $(stat -c %U .)'))
  const dockerfile = Template({ fileContextPath: context }).fromDockerfile(
    `FROM ${from}\nENV GREETING=hello\nWORKDIR /srv/docker\nCOPY folder/test.txt ./copied.txt\nRUN echo $GREETING > said\n`)
  await Template.build(dockerfile, 'sdk-dockerfile')
  is('a Dockerfile of the SDK is built', 'hello from the client', await said('sdk-dockerfile', 'echo $(cat /srv/docker/said /srv/docker/copied.txt)'))
})

await part('background', async () => {
  const template = Template().fromTemplate(from).runCmd('echo background > /tmp/x')
  const info = await Template.buildInBackground(template, 'sdk-background')
  const status = await until((s) => s.status === 'ready' || s.status === 'error', () => Template.getBuildStatus(info, { logsOffset: 0 }))
  is('a build in the background comes to its end', 'ready', status.status)
})

await part('tags', async () => {
  const done = await Template.assignTags('sdk-first:v1', ['stable', 'v2'])
  holds('tags are given', done.tags.includes('stable'), done)
  const tags = await Template.getTags('sdk-first')
  is('tags are listed', ['default', 'stable', 'v1', 'v2'], tags.map((t) => t.tag).sort())
  await Template.removeTags('sdk-first', ['stable'])
  is('tags are removed', ['default', 'v1', 'v2'], (await Template.getTags('sdk-first')).map((t) => t.tag).sort())
  is('a sandbox can be made by a tag', 'blue', await said('sdk-first:v2', 'echo $COLOUR'))
  is('another tenant does not see the template', false, await Template.exists('sdk-first', { apiKey: process.env.OTHER_KEY }))
})

await part('errors', async () => {
  const failing = Template().fromTemplate(from)
    .runCmd('true')
    .runCmd('echo oops; exit 7') // the line of the error
  const err = await refuses('a step that fails is a BuildError', BuildError, /exit status 7/, () => Template.build(failing, 'sdk-bad'))
  const line = new Error().stack.match(/templates\.mjs:(\d+)/)[1] - 2
  like('the stack of a BuildError is the line of the step', new RegExp(`templates\\.mjs:${line}:`), err?.stack)
  await refuses('an unknown user is said in words', BuildError, /invalid username: 'root123'/, () =>
    Template.build(Template().fromTemplate(from).runCmd('whoami', { user: 'root123' }), 'sdk-bad'))
  await refuses('an image that is not installed says how it is', BuildError, /cove template pull/, () =>
    Template.build(Template().fromImage('python:3.12-slim').runCmd('true'), 'sdk-bad'))
  const missing = Template()
    .fromTemplate('sdk-no-such-template') // the line of the error
    .runCmd('true')
  const base = await refuses('a template that is missing is a BuildError', BuildError, /there is no template/, () => Template.build(missing, 'sdk-bad'))
  const fromLine = new Error().stack.match(/templates\.mjs:(\d+)/)[1] - 3
  like('the stack of a missing template is the line of the template', new RegExp(`templates\\.mjs:${fromLine}:`), base?.stack)
  holds('no template of a failed build is used', !(await Template.getTags('sdk-bad')).length)
})

await part('start command', async () => {
  const template = Template().fromTemplate(from).setStartCmd('exec sleep 7654', waitForProcess('sleep'))
  await Template.build(template, 'sdk-warm')
  is('runs in every sandbox', '1', await said('sdk-warm', 'pgrep -fc "sleep 765[4]"'))
})

await Promise.allSettled(boxes.map((b) => b.kill()))
await finish()
