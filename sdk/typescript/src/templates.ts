// Templates that tenants build (docs/templates.md).
//
//   const build = await new Tenant().builds.create({ name: 'my-env', from: 'base', steps: [{ type: 'RUN', args: ['pip install flask', 'user'] }] })
//   await build.wait({ onLog: (line) => console.log(line.text) })
import type { Answer, BinaryBody, Body, Cove, RequestOptions } from './client.js'
import { CoveError } from './errors.js'

export type BuildInfo = Answer<'getBuild'>
export type TemplateInfo = Answer<'getTemplate'>

/** A line of a build's log. */
export interface BuildLine {
  time?: string
  level?: string
  step?: string | null
  text: string
}

/** A build ended, and its template is not ready. `build` says where it failed. */
export class BuildError extends CoveError {
  constructor(readonly build: BuildInfo) {
    super(build.reason ?? `the build is ${build.state}`, { code: build.state })
  }
}

/** One build. `info` is what the server said last. */
export class Build {
  constructor(private readonly client: Cove, public info: BuildInfo) {}

  get id(): string {
    return this.info.id
  }

  /** The lines of the log, from the first: as they come until the build has ended, or with `follow: false` those that there are now. */
  async *logs(options: RequestOptions & { follow?: boolean } = {}): AsyncGenerator<BuildLine> {
    const { follow = true, ...rest } = options
    for await (const event of this.client.stream('getBuildLogs', { path: { build: this.id }, query: { follow }, ...rest })) {
      if (event.type === 'line') yield event as unknown as BuildLine
    }
  }

  async refresh(options: RequestOptions = {}): Promise<BuildInfo> {
    this.info = await this.client.call('getBuild', { path: { build: this.id }, ...options })
    return this.info
  }

  /** Follows the build to its end; a BuildError if the template is not ready then. */
  async wait(options: RequestOptions & { onLog?: (line: BuildLine) => unknown } = {}): Promise<BuildInfo> {
    const { onLog, ...rest } = options
    for await (const line of this.logs(rest)) await onLog?.(line)
    const info = await this.refresh(rest)
    if (info.state !== 'ready') throw new BuildError(info)
    return info
  }

  async cancel(options: RequestOptions = {}): Promise<void> {
    await this.client.call('cancelBuild', { path: { build: this.id }, ...options })
  }
}

export class Builds {
  constructor(private readonly client: Cove) {}

  /** Begins a build. */
  async create(build: Body<'createBuild'>, options: RequestOptions = {}): Promise<Build> {
    return new Build(this.client, await this.client.call('createBuild', { json: build, ...options }))
  }

  /** Uploads a tar archive, plain or in gzip. `hash`, 64 hex digits of your own choice, is what a COPY step says in `files`. */
  putFiles(hash: string, archive: BinaryBody, options: RequestOptions = {}): Promise<Answer<'putBuildFiles'>> {
    return this.client.call('putBuildFiles', { path: { hash }, body: archive, ...options })
  }

  /** The last 100, newest first. */
  async list(options: RequestOptions & { template?: string } = {}): Promise<BuildInfo[]> {
    const { template, ...rest } = options
    return (await this.client.call('listBuilds', { query: { template }, ...rest })).builds
  }

  async get(build: string, options: RequestOptions = {}): Promise<Build> {
    return new Build(this.client, await this.client.call('getBuild', { path: { build }, ...options }))
  }
}

export class Templates {
  constructor(private readonly client: Cove) {}

  async list(options: RequestOptions = {}): Promise<TemplateInfo[]> {
    return (await this.client.call('listTemplates', options)).templates
  }

  get(name: string, options: RequestOptions = {}): Promise<TemplateInfo> {
    return this.client.call('getTemplate', { path: { name }, ...options })
  }

  /** To every tenant, or not any more. For administrators of the tenant `local`. */
  publish(name: string, isPublic = true, options: RequestOptions = {}): Promise<TemplateInfo> {
    return this.client.call('publishTemplate', { path: { name }, json: { public: isPublic }, ...options })
  }

  /** More tags for the build that has the tag `from` (default). */
  tag(name: string, tags: string[], options: RequestOptions & { from?: string } = {}): Promise<TemplateInfo> {
    const { from, ...rest } = options
    return this.client.call('tagTemplate', { path: { name }, json: { from: from ?? 'default', tags }, ...rest })
  }

  untag(name: string, tag: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('untagTemplate', { path: { name, tag }, ...options })
  }

  /** With its builds. Sandboxes that were made of it keep running. */
  remove(name: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('deleteTemplate', { path: { name }, ...options })
  }
}
