// An agent that builds a web application in a sandbox and returns a link to it. KEEP=1 leaves the sandbox running, to be looked at in a browser.
import { query } from '@anthropic-ai/claude-agent-sdk'
import { Sandbox } from '@cove/sdk'
import { sandboxTools } from '@cove/sdk/agent'

const sandbox = await Sandbox.create({ timeoutMs: 3_600_000 })
try {
  const more = { systemPrompt: 'Build web applications. Start the server in the background on port 3000, and check that it answers.', maxTurns: 30 }
  if (process.env.CLAUDE) more.pathToClaudeCodeExecutable = process.env.CLAUDE
  const prompt = process.argv[2] ?? 'A page that greets the visitor and shows the time.'
  for await (const message of query({ prompt, options: sandboxTools({ sandbox, more }) })) {
    if (message.type === 'result') console.log(message.result)
  }
  const page = await sandbox.ports.request(3000, '/')
  console.log('it answers:', page.status, (await page.text()).slice(0, 60))
  console.log('look at it:', (await sandbox.ports.link(3000, { expiresSeconds: 3600 })).url)
} finally {
  if (!process.env.KEEP) await sandbox.kill()
}
