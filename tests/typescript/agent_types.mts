// What @cove/sdk/agent returns fits the types of the Agent SDK. The compiler is the test: typescript_claude_test.
import type { Options } from '@anthropic-ai/claude-agent-sdk'
import type { Sandbox } from '@cove/sdk'
import { claudeInside, sandboxCallback, sandboxTools, spawner, toolCallback, toolHooks } from '@cove/sdk/agent'

declare const sandbox: Sandbox
export const options: Options[] = [
  claudeInside(sandbox, { more: { permissionMode: 'bypassPermissions' as const } }),
  { spawnClaudeCodeProcess: spawner(sandbox) },
  sandboxTools(),
  sandboxTools({ sandbox, more: { maxTurns: 3 } }),
  sandboxCallback(sandbox),
  sandboxCallback(sandbox, { allowTools: ['mcp__clock__*'], more: { cwd: '/tmp', hooks: { PreToolUse: [{ hooks: [async () => ({})] }] } } }),
  { canUseTool: toolCallback(sandbox), hooks: toolHooks(), permissionMode: 'default' },
]
