// What a tenant has beside sandboxes: snapshots, volumes, secrets, private networks, templates. And the server itself.
//
//   const cove = new Tenant()
//   await cove.volumes.create({ name: 'data', size: '2g' })
import { defaultClient, type Answer, type Body, type Cove, type RequestOptions } from './client.js'
import type { SnapshotInfo } from './sandbox.js'
import { Builds, Templates } from './templates.js'

export class Snapshots {
  constructor(private readonly client: Cove) {}

  async *list(options: RequestOptions & { sandbox?: string; name?: string } = {}): AsyncGenerator<SnapshotInfo> {
    const { sandbox, name, ...rest } = options
    let cursor: string | undefined
    do {
      const page = await this.client.call('listSnapshots', { query: { sandbox, name, limit: 100, cursor }, ...rest })
      yield* page.snapshots
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
  }

  get(snapshot: string, options: RequestOptions = {}): Promise<SnapshotInfo> {
    return this.client.call('getSnapshot', { path: { snapshot }, ...options })
  }

  delete(snapshot: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('deleteSnapshot', { path: { snapshot }, ...options })
  }
}

export class Volumes {
  constructor(private readonly client: Cove) {}

  create(volume: Body<'createVolume'>, options: RequestOptions = {}): Promise<Answer<'createVolume'>> {
    return this.client.call('createVolume', { json: volume, ...options })
  }

  async list(options: RequestOptions = {}): Promise<NonNullable<Answer<'listVolumes'>['volumes']>> {
    return (await this.client.call('listVolumes', options)).volumes ?? []
  }

  get(name: string, options: RequestOptions = {}): Promise<Answer<'getVolume'>> {
    return this.client.call('getVolume', { path: { name }, ...options })
  }

  remove(name: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('removeVolume', { path: { name }, ...options })
  }
}

export class Secrets {
  constructor(private readonly client: Cove) {}

  list(options: RequestOptions = {}): Promise<Answer<'listSecrets'>> {
    return this.client.call('listSecrets', options)
  }

  /** Keeps a value for these hosts. Sandboxes use it and never see it. */
  put(name: string, secret: Body<'putSecret'>, options: RequestOptions = {}): Promise<Answer<'putSecret'>> {
    return this.client.call('putSecret', { path: { name }, json: secret, ...options })
  }

  delete(name: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('deleteSecret', { path: { name }, ...options })
  }
}

export class PrivateNetworks {
  constructor(private readonly client: Cove) {}

  list(options: RequestOptions = {}): Promise<Answer<'listPrivateNetworks'>> {
    return this.client.call('listPrivateNetworks', options)
  }

  create(network: Body<'createPrivateNetwork'>, options: RequestOptions = {}): Promise<Answer<'createPrivateNetwork'>> {
    return this.client.call('createPrivateNetwork', { json: network, ...options })
  }

  get(name: string, options: RequestOptions = {}): Promise<Answer<'getPrivateNetwork'>> {
    return this.client.call('getPrivateNetwork', { path: { name }, ...options })
  }

  delete(name: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('deletePrivateNetwork', { path: { name }, ...options })
  }

  join(name: string, sandbox: string, member: Body<'joinPrivateNetwork'> = {}, options: RequestOptions = {}): Promise<Answer<'joinPrivateNetwork'>> {
    return this.client.call('joinPrivateNetwork', { path: { name, sandbox }, json: member, ...options })
  }

  leave(name: string, sandbox: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('leavePrivateNetwork', { path: { name, sandbox }, ...options })
  }
}

/** Everything of one tenant that is not a sandbox. */
export class Tenant {
  readonly client: Cove
  readonly snapshots: Snapshots
  readonly volumes: Volumes
  readonly secrets: Secrets
  readonly networks: PrivateNetworks
  readonly templates: Templates
  readonly builds: Builds

  constructor(client: Cove = defaultClient()) {
    this.client = client
    this.snapshots = new Snapshots(client)
    this.volumes = new Volumes(client)
    this.secrets = new Secrets(client)
    this.networks = new PrivateNetworks(client)
    this.templates = new Templates(client)
    this.builds = new Builds(client)
  }

  /** What policy says of a command, without running it. */
  analyze(question: Body<'analyzeCommand'>, options: RequestOptions = {}): Promise<Answer<'analyzeCommand'>> {
    return this.client.call('analyzeCommand', { json: question, ...options })
  }

  /** Figures of the tenant. */
  stats(options: RequestOptions = {}): Promise<Answer<'getStats'>> {
    return this.client.call('getStats', options)
  }

  /** Whether the server and the keeper answer. */
  health(options: RequestOptions = {}): Promise<Answer<'getHealth'>> {
    return this.client.call('getHealth', options)
  }
}
