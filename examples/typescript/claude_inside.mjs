// Claude Code as a whole in a sandbox. Before: cove template build claude; cove secret set ANTHROPIC_API_KEY api.anthropic.com < key.txt
import { query } from '@anthropic-ai/claude-agent-sdk'
import { Sandbox } from '@cove/sdk'
import { claudeInside } from '@cove/sdk/agent'

const sandbox = process.env.SANDBOX ? await Sandbox.connect(process.env.SANDBOX) : await Sandbox.create({
  template: 'claude',
  limits: { memory: '2g', disk: '2g', pids: 512 },
  network: { allow: ['api.anthropic.com:443'], secrets: ['ANTHROPIC_API_KEY'] }, // the model's host, and nothing else
})
try {
  const options = claudeInside(sandbox, {
    executable: process.env.CLAUDE ?? 'claude',
    forwardEnv: ['ANTHROPIC_BASE_URL'],
    more: { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true, maxTurns: 30, env: process.env },
  })
  const prompt = process.argv[2] ?? 'Write fizzbuzz.py with tests, and run them.'
  for await (const message of query({ prompt, options })) if (message.type === 'result') console.log(message.result)
  console.log('files:', (await sandbox.files.list('/home/user')).map((file) => file.path).join(' '))
} finally {
  if (!process.env.SANDBOX) await sandbox.kill()
}
