// Claude on this machine, with its own tools: a sandbox answers their calls. For programs that have a canUseTool already; see docs/claude.md.
import { query } from '@anthropic-ai/claude-agent-sdk'
import { Sandbox } from '@cove/sdk'
import { sandboxCallback } from '@cove/sdk/agent'

const sandbox = await Sandbox.create({ timeoutMs: 600_000 })
try {
  const more = { settingSources: [], verbatimPrompts: true, maxTurns: 30 } // no hooks of a project, no file mentions
  if (process.env.CLAUDE) more.pathToClaudeCodeExecutable = process.env.CLAUDE
  const prompt = process.argv[2] ?? 'Write fizzbuzz.py with tests, and run them.'
  for await (const message of query({ prompt, options: sandboxCallback(sandbox, { more }) })) {
    if (message.type === 'result') console.log(message.result)
  }
  console.log('files:', (await sandbox.files.list('/home/user')).map((file) => file.path).join(' '))
} finally {
  await sandbox.kill()
}
