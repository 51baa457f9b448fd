// git in a sandbox. A name and a password go to git by its environment, for one command; they are written nowhere.
import type { RequestOptions } from './client.js'
import { CommandError, type Commands } from './commands.js'
import { ConfigurationError } from './errors.js'
import type { CommandResult } from './events.js'

export interface GitOptions extends RequestOptions {
  envs?: Record<string, string>
  timeoutMs?: number
}

export interface GitLogin extends GitOptions {
  username?: string
  password?: string
}

export interface GitFile {
  path: string
  /** Two letters of `git status --porcelain`: index and work tree. */
  state: string
  /** Of a rename. */
  from?: string
}

export interface GitStatus {
  branch?: string
  upstream?: string
  ahead: number
  behind: number
  files: GitFile[]
  clean: boolean
}

// git asks this helper instead of a person; name and password are only in the command's environment.
const HELPER = ['-c', 'credential.helper=', '-c', 'credential.helper=!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$COVE_GIT_NAME" "$COVE_GIT_PASSWORD"; }; f']

/** What `git status --porcelain=v1 -b -z` says. Pure. */
export function parseStatus(text: string): GitStatus {
  const parts = text.split('\0').filter((part) => part !== '')
  const status: GitStatus = { ahead: 0, behind: 0, files: [], clean: true }
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as string
    if (part.startsWith('## ')) {
      Object.assign(status, parseBranch(part.slice(3)))
      continue
    }
    const state = part.slice(0, 2)
    const file: GitFile = { path: part.slice(3), state }
    if (/[RC]/.test(state)) file.from = parts[++i]
    status.files.push(file)
  }
  status.clean = status.files.length === 0
  return status
}

function parseBranch(text: string): Partial<GitStatus> {
  const fresh = /^No commits yet on (.*)$/.exec(text)
  if (fresh) return { branch: fresh[1] }
  if (text.startsWith('HEAD (no branch)')) return {}
  const found = /^(.*?)(?:\.\.\.(\S+))?(?: \[(.*)\])?$/.exec(text)
  const count = (word: string) => Number(new RegExp(`${word} (\\d+)`).exec(found?.[3] ?? '')?.[1] ?? 0)
  return { branch: found?.[1], upstream: found?.[2], ahead: count('ahead'), behind: count('behind') }
}

export class Git {
  constructor(private readonly commands: Commands) {}

  /** Any git command; one that fails is a CommandError. It never asks for a password on a terminal. */
  run(args: readonly string[], path?: string, options: GitOptions = {}): Promise<CommandResult> {
    const { envs, ...rest } = options
    return this.commands.run(['git', ...args], { cwd: path, envs: { GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C.UTF-8', ...envs }, check: true, ...rest })
  }

  private withLogin(args: readonly string[], path: string | undefined, options: GitLogin): Promise<CommandResult> {
    const { username, password, envs, ...rest } = options
    if ((username === undefined) !== (password === undefined)) {
      throw new ConfigurationError('username and password belong together', { field: username === undefined ? 'username' : 'password' })
    }
    if (username === undefined || password === undefined) return this.run(args, path, { envs, ...rest })
    return this.run([...HELPER, ...args], path, { envs: { ...envs, COVE_GIT_NAME: username, COVE_GIT_PASSWORD: password }, ...rest })
  }

  clone(url: string, path?: string, options: GitLogin & { branch?: string; depth?: number } = {}): Promise<CommandResult> {
    const { branch, depth, ...rest } = options
    const args = ['clone', ...(branch ? ['--branch', branch] : []), ...(depth ? ['--depth', String(depth)] : []), '--', url, ...(path ? [path] : [])]
    return this.withLogin(args, undefined, rest)
  }

  init(path = '.', options: GitOptions & { initialBranch?: string } = {}): Promise<CommandResult> {
    const { initialBranch, ...rest } = options
    return this.run(['init', ...(initialBranch ? ['-b', initialBranch] : []), '--', path], undefined, rest)
  }

  async status(path = '.', options: GitOptions = {}): Promise<GitStatus> {
    return parseStatus((await this.run(['status', '--porcelain=v1', '-b', '-z'], path, options)).stdout)
  }

  async branches(path = '.', options: GitOptions = {}): Promise<string[]> {
    return (await this.run(['branch', '--format=%(refname:short)'], path, options)).stdout.split('\n').filter(Boolean)
  }

  createBranch(path: string, name: string, options: GitOptions = {}): Promise<CommandResult> {
    return this.run(['checkout', '-b', name, '--'], path, options)
  }

  checkoutBranch(path: string, name: string, options: GitOptions = {}): Promise<CommandResult> {
    return this.run(['checkout', name, '--'], path, options)
  }

  deleteBranch(path: string, name: string, options: GitOptions & { force?: boolean } = {}): Promise<CommandResult> {
    const { force, ...rest } = options
    return this.run(['branch', force ? '-D' : '-d', '--', name], path, rest)
  }

  add(path = '.', files: readonly string[] = [], options: GitOptions = {}): Promise<CommandResult> {
    return this.run(files.length ? ['add', '--', ...files] : ['add', '-A'], path, options)
  }

  commit(path: string, message: string, options: GitOptions & { authorName?: string; authorEmail?: string; allowEmpty?: boolean } = {}): Promise<CommandResult> {
    const { authorName: name, authorEmail: email, allowEmpty, envs, ...rest } = options
    const author = {
      ...(name ? { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name } : {}),
      ...(email ? { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email } : {}),
    }
    return this.run(['commit', '-m', message, ...(allowEmpty ? ['--allow-empty'] : [])], path, { envs: { ...envs, ...author }, ...rest })
  }

  async diff(path = '.', options: GitOptions & { staged?: boolean } = {}): Promise<string> {
    const { staged, ...rest } = options
    return (await this.run(['diff', ...(staged ? ['--cached'] : [])], path, rest)).stdout
  }

  async log(path = '.', options: GitOptions & { limit?: number } = {}): Promise<string[]> {
    const { limit = 20, ...rest } = options
    return (await this.run(['log', `-${Math.trunc(limit)}`, '--format=%h %s'], path, rest)).stdout.split('\n').filter(Boolean)
  }

  async remoteGet(path: string, name = 'origin', options: GitOptions = {}): Promise<string | undefined> {
    try {
      return (await this.run(['remote', 'get-url', '--', name], path, options)).stdout.trim()
    } catch (error) {
      if (error instanceof CommandError && error.result.exitCode === 2) return undefined
      throw error
    }
  }

  remoteAdd(path: string, name: string, url: string, options: GitOptions = {}): Promise<CommandResult> {
    return this.run(['remote', 'add', '--', name, url], path, options)
  }

  push(path = '.', options: GitLogin & { remote?: string; branch?: string; setUpstream?: boolean } = {}): Promise<CommandResult> {
    const { remote = 'origin', branch, setUpstream, ...rest } = options
    return this.withLogin(['push', ...(setUpstream ? ['-u'] : []), '--', remote, ...(branch ? [branch] : [])], path, rest)
  }

  pull(path = '.', options: GitLogin & { remote?: string; branch?: string } = {}): Promise<CommandResult> {
    const { remote, branch, ...rest } = options
    if (branch && !remote) throw new ConfigurationError('branch needs remote', { field: 'branch' })
    return this.withLogin(['pull', ...(remote ? ['--', remote] : []), ...(branch ? [branch] : [])], path, rest)
  }

  setConfig(key: string, value: string, path?: string, options: GitOptions = {}): Promise<CommandResult> {
    return this.run(['config', ...(path ? [] : ['--global']), key, value], path, options)
  }
}
