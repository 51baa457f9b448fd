// Claude on this machine, its hands in a sandbox: the agent's only tools are those of the sandbox. The key is this program's ANTHROPIC_API_KEY.
import { query } from '@anthropic-ai/claude-agent-sdk'
import { Sandbox } from '@cove/sdk'
import { sandboxTools } from '@cove/sdk/agent'

const sandbox = await Sandbox.create({ timeoutMs: 600_000 })
try {
  const more = { systemPrompt: 'You are a coding agent. Work in /home/user.', maxTurns: 30 }
  if (process.env.CLAUDE) more.pathToClaudeCodeExecutable = process.env.CLAUDE
  const prompt = process.argv[2] ?? 'Write fizzbuzz.py with tests, and run them.'
  for await (const message of query({ prompt, options: sandboxTools({ sandbox, more }) })) {
    if (message.type === 'result') console.log(message.result)
  }
  console.log('files:', (await sandbox.files.list('/home/user')).map((file) => file.path).join(' '))
} finally {
  await sandbox.kill()
}
