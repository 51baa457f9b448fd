// What the operator of a server does, with a key of scope `operator`: tenants and their keys (docs/tenants.md).
//
//   const operator = new Operator(new Cove({ url, apiKey }))
//   await operator.tenants.add({ name: 'team', quotas: { sandboxes: 10 } })
//   const { key } = await operator.keys.create({ tenant: 'team' })     // shown this once
import { defaultClient, type Answer, type Body, type Cove, type RequestOptions } from './client.js'

export class Tenants {
  constructor(private readonly client: Cove) {}

  async list(options: RequestOptions = {}): Promise<NonNullable<Answer<'listTenants'>['tenants']>> {
    return (await this.client.call('listTenants', options)).tenants ?? []
  }

  add(tenant: Body<'addTenant'>, options: RequestOptions = {}): Promise<Answer<'addTenant'>> {
    return this.client.call('addTenant', { json: tenant, ...options })
  }

  get(tenant: string, options: RequestOptions = {}): Promise<Answer<'getTenant'>> {
    return this.client.call('getTenant', { path: { tenant }, ...options })
  }

  /** What is not said stays as it is; `network: null` takes the default network away. */
  change(tenant: string, change: Body<'changeTenant'>, options: RequestOptions = {}): Promise<Answer<'changeTenant'>> {
    return this.client.call('changeTenant', { path: { tenant }, json: change, ...options })
  }

  /** Only one without sandboxes, snapshots and volumes; its keys go, too. */
  remove(tenant: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('removeTenant', { path: { tenant }, ...options })
  }
}

export class Keys {
  constructor(private readonly client: Cove) {}

  async list(options: RequestOptions & { tenant?: string } = {}): Promise<NonNullable<Answer<'listKeys'>['keys']>> {
    const { tenant, ...rest } = options
    return (await this.client.call('listKeys', { query: { tenant }, ...rest })).keys ?? []
  }

  /** `key` of the answer is shown this once. */
  create(key: Body<'createKey'>, options: RequestOptions = {}): Promise<Answer<'createKey'>> {
    return this.client.call('createKey', { json: key, ...options })
  }

  /** At once and for good. */
  revoke(key: string, options: RequestOptions = {}): Promise<boolean> {
    return this.client.remove('revokeKey', { path: { key }, ...options })
  }
}

/** The operator's part of the API. */
export class Operator {
  readonly client: Cove
  readonly tenants: Tenants
  readonly keys: Keys

  constructor(client: Cove = defaultClient()) {
    this.client = client
    this.tenants = new Tenants(client)
    this.keys = new Keys(client)
  }
}
