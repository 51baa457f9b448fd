// The callback for Claude's Agent SDK: calls of Claude Code's own tools are answered by a sandbox (docs/claude.md).
//
//   query({ prompt, options: sandboxCallback(sandbox) })
//
// The SDK knows only "allow" and "deny": the sandbox's answer is the message of a denial, so that nothing runs on this machine.
import type { Body } from './client.js'
import { ApiError, ConfigurationError, CoveError, ProtocolError } from './errors.js'
import type { Sandbox } from './sandbox.js'

const TOOLS = ['Bash', 'BashOutput', 'KillProcess', 'Read', 'Write', 'Edit', 'MultiEdit', 'Glob', 'Grep', 'LS']
// Names and arguments that Claude Code has and the sandbox calls otherwise, and arguments that mean nothing in a sandbox.
const NAMES = new Map([['KillShell', 'KillProcess'], ['KillBash', 'KillProcess'], ['TaskOutput', 'BashOutput'], ['TaskStop', 'KillProcess']])
const ARGUMENTS = new Map([['bash_id', 'process_id'], ['shell_id', 'process_id'], ['task_id', 'process_id']])
const DROPPED = new Map([
  ['Bash', ['dangerouslyDisableSandbox', 'sandbox']],
  ['BashOutput', ['filter', 'block', 'timeout']],
  ['Read', ['pages', 'allow_large']],
  ['Grep', ['multiline', 'type', 'offset']],
])

/** What a permission callback answers with. */
export type Permission = { behavior: 'allow'; updatedInput: Record<string, unknown> } | { behavior: 'deny'; message: string }

export interface CallbackOptions {
  /** Tools that the sandbox does not have and that run as they would without the callback, such as 'mcp__clock__*'. Others are refused. */
  allowTools?: readonly string[]
}

interface ToolAnswer {
  success?: boolean
  output?: string
  error?: string | null
  exit_code?: number | null
  /** Of a command in the background. */
  running?: boolean
  process_id?: number
}

function sandboxCall(tool: string, input: Record<string, unknown>): { tool_name: string; arguments: Record<string, unknown> } {
  const given: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(input)) {
    if (DROPPED.get(tool)?.includes(name)) continue
    const known = ARGUMENTS.get(name) ?? name
    given[known] = known === 'process_id' && typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  }
  return { tool_name: tool, arguments: given }
}

async function execute(sandbox: Sandbox, tool: string, input: Record<string, unknown>, signal?: AbortSignal): Promise<ToolAnswer> {
  const json = { ...sandboxCall(tool, input), sandbox_id: sandbox.id } as Body<'executeTool'>
  if (tool !== 'Bash') return (await sandbox.client.call('executeTool', { json, signal })) as ToolAnswer
  // As events: fetch ends a connection on which nothing comes for minutes, and a command may be silent for longer.
  for await (const event of sandbox.client.stream('executeTool', { json, signal })) if (event.type === 'end') return event as ToolAnswer
  throw new ProtocolError('the stream ended before the command did')
}

/** For a model: the output, and what was wrong. */
function textOf(answer: ToolAnswer): string {
  const parts = answer.output ? [answer.output.replace(/\n+$/, '')] : []
  if (!answer.success) parts.push(answer.error ? `Error: ${answer.error}` : `Exit code: ${answer.exit_code}`)
  if (answer.running !== undefined) parts.push(`[process ${answer.process_id} ${answer.running ? 'is running' : 'has ended'}]`)
  return parts.join('\n') || '(no output)'
}

function failureOf(tool: string, error: unknown): string {
  if (error instanceof ApiError) return `Error: ${error.message}`
  if (error instanceof CoveError) return `Error: the sandbox could not run ${tool}: ${error.message}`
  return `Error: ${tool} failed: ${String(error)}`
}

const matches = (pattern: string, name: string): boolean =>
  new RegExp(`^${pattern.split('*').map((part) => part.replace(/[^\w]/g, '\\$&')).join('.*')}$`, 's').test(name)

/** A function for the option `canUseTool`: runs the tool in the sandbox, and denies with the result. It never throws.
 *
 *  The SDK does not ask it for every call: reads below the working directory, and commands that the SDK takes for harmless, run on this machine
 *  without a question. `toolHooks()` closes that; `sandboxCallback()` sets both. */
export function toolCallback(sandbox: Sandbox, options: CallbackOptions = {}) {
  return async (name: string, input: Record<string, unknown>, context: { signal?: AbortSignal } = {}): Promise<Permission> => {
    const tool = NAMES.get(name) ?? name
    if (!TOOLS.includes(tool)) {
      if (options.allowTools?.some((pattern) => matches(pattern, name))) return { behavior: 'allow', updatedInput: input }
      return { behavior: 'deny', message: `Error: the tool ${name} does not exist in the sandbox; there are: ${TOOLS.join(', ')}` }
    }
    try {
      return { behavior: 'deny', message: textOf(await execute(sandbox, tool, input, context.signal)) }
    } catch (error) {
      return { behavior: 'deny', message: failureOf(tool, error) } // whatever it is, the tool must not run here
    }
  }
}

/** For the option `hooks`: every call of every tool becomes a question to `canUseTool`. */
export function toolHooks() {
  const answer = {
    hookSpecificOutput: {
      hookEventName: 'PreToolUse' as const,
      permissionDecision: 'ask' as const,
      permissionDecisionReason: 'every tool runs in the sandbox',
    },
  }
  return { PreToolUse: [{ hooks: [async () => answer], onFailure: 'block' as const }] }
}

/** Options that sandboxCallback() sets itself, or that would answer calls before the callback is asked. */
const FIXED = ['canUseTool', 'permissionMode', 'allowedTools', 'allowDangerouslySkipPermissions', 'permissionPromptToolName', 'permissionPrompts', 'extraArgs']

/** Options of query() whose tool calls all go to the sandbox, by the callback and the hook that makes it complete. What is no tool call stays
 *  open: file mentions, settings and .mcp.json of the project. sandboxTools() closes those as well. */
export function sandboxCallback<T extends Record<string, unknown> = Record<string, unknown>>(
  sandbox: Sandbox,
  options: CallbackOptions & { more?: T } = {},
) {
  const { more, ...rest } = options
  for (const name of FIXED) {
    if (more && name in more) throw new ConfigurationError(`sandboxCallback() sets ${name} itself; build the options by hand to change it`, { field: name })
  }
  const { hooks, ...others } = (more ?? {}) as { hooks?: Record<string, unknown[]> }
  const ours = toolHooks()
  return {
    ...(others as Omit<T, 'hooks'>),
    canUseTool: toolCallback(sandbox, rest),
    hooks: { ...hooks, PreToolUse: [...ours.PreToolUse, ...((hooks?.PreToolUse ?? []) as typeof ours.PreToolUse)] },
    permissionMode: 'default' as const,
  }
}
