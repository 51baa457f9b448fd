// Compiled, not run: what a program with types may rely on.
import { Sandbox, PolicyError, type CommandResult, type SandboxInfo } from '@cove/sdk'
import { claudeInside, sandboxTools } from '@cove/sdk/agent'

export async function main(): Promise<string> {
  const sandbox: Sandbox = await Sandbox.create({ template: 'host', limits: { memory: '256m' }, network: { mode: 'public' } })
  const result: CommandResult = await sandbox.commands.run(['uname'], { timeoutMs: 1000, signal: AbortSignal.timeout(5000) })
  const info: SandboxInfo = await sandbox.getInfo()
  const state: 'new' | 'starting' | 'running' | 'pausing' | 'paused' | 'stopping' | 'lost' = info.state
  for await (const change of sandbox.files.watchDir('.')) return change.type
  const inside = claudeInside(sandbox, { more: { model: 'x' } })
  const model: string = inside.model
  const tools = sandboxTools({ sandbox })
  const none: string[] = tools.tools
  return result.stdout + state + model + none.length + (new PolicyError('x').rule ?? '')
}
