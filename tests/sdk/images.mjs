// Templates from images of a registry that wants credentials: Template().fromImage(image, { username, password }).
import { BuildError, Sandbox, Template } from 'e2b'
import { finish, holds, is, like, part, refuses } from './check.mjs'

const image = process.env.IMAGE
const boxes = []
const said = async (name, command) => {
  const box = await Sandbox.create(name, { timeoutMs: 60_000 })
  boxes.push(box)
  return (await box.commands.run(command)).stdout.trim()
}

await part('from an image', async () => {
  const logs = []
  const template = Template().fromImage(image, { username: 'me', password: 'secret-9Kz' }).runCmd('echo step > /built', { user: 'root' })
  const info = await Template.build(template, 'sdk-image', { onBuildLogs: (entry) => logs.push(entry.message) })
  holds('a build from an image of a locked registry has ids', info.templateId && info.buildId, info)
  holds('the log of a build from an image says that the image is pulled', logs.some((m) => m.includes('pulling ' + image)), logs)
  holds('the log of a build from an image has no password', !logs.some((m) => m.includes('secret')), logs)
  is('sandboxes of a build from an image have the files of the image and of the steps', 'original step', await said('sdk-image', 'echo $(cat /app/data) $(cat /built)'))
  is('commands are those of the user, at home, whom the image did not have', 'user /home/user /home/user', await said('sdk-image', 'echo $(id -un) $(pwd) $HOME'))
})

await part('credentials', async () => {
  for (const [sentence, words, credentials] of [
    ['no credentials', /wants credentials/, undefined],
    ['a wrong password', /refuses/, { username: 'me', password: 'wrong' }],
  ]) {
    const template = Template()
      .fromImage(image, credentials) // the line of the error
      .runCmd('true')
    const err = await refuses(`${sentence}: a BuildError`, BuildError, words, () => Template.build(template, 'sdk-image-bad', { skipCache: true }))
    const line = new Error().stack.match(/images\.mjs:(\d+)/)[1] - 3
    like(`${sentence}: its stack is the line of the image`, new RegExp(`images\\.mjs:${line}:`), err?.stack)
  }
  const aws = Template().fromAWSRegistry(image, { accessKeyId: 'a', secretAccessKey: 'b', region: 'eu-west-1' })
  await refuses('credentials of a kind that is not known are refused', BuildError, /type 'aws' is not supported/, () => Template.build(aws, 'sdk-image-bad'))
})

await Promise.allSettled(boxes.map((b) => b.kill()))
await finish()
