/**
 * Opens the upstreams of a generation with their connection pools, which generations share if the settings
 * did not change. Sends nothing.
 */
import type { Agent } from 'node:http'
import type { Dispatcher } from 'undici'
import type { UpstreamConfig } from '../../config/config.js'
import { Authorizer } from './identities/authorizer.js'
import { digestOf, CloudIdentities, type CloudIdentity } from './identities/cloud-identity.js'
import { openAgent, type Unreachable } from './native-agent.js'
import { openConnectionPool, settingsOf } from './connection-pool.js'
import { RequestQueue } from './request-queue.js'
import { upstreamAddressOf, type UpstreamAddress } from './upstream-address.js'

/** Sends requests to an upstream. */
export type UpstreamPool = Pick<RequestQueue, 'send' | 'get'>

/** One upstream of one generation. The pool may be shared with generations before and after. */
export interface Upstream {
  readonly config: UpstreamConfig
  readonly pool: UpstreamPool
  readonly address: UpstreamAddress
  /** The connections for native requests. */
  readonly agent: Agent | Unreachable
  /** Authorizes native requests; the pool authorizes the others. Null if the upstream has no identity. */
  readonly authorizer: Authorizer | null
}

/** All upstreams of a generation, and their pools. */
export class Upstreams {
  private readonly byName: ReadonlyMap<string, Upstream>
  private readonly pools: ReadonlyMap<string, RequestQueue>
  private readonly agents: ReadonlyMap<string, Agent | Unreachable>
  readonly identities: CloudIdentities

  /** Pools whose address and connection settings did not change are taken over from `previous`. */
  constructor(configs: Readonly<Record<string, UpstreamConfig>>, previous: Upstreams | null) {
    const byName = new Map<string, Upstream>()
    const pools = new Map<string, RequestQueue>()
    const agents = new Map<string, Agent | Unreachable>()
    this.identities = new CloudIdentities(Object.values(configs), previous?.identities ?? null)
    for (const config of Object.values(configs)) {
      const key = keyOf(config)
      const authorizer = authorizerOf(config, this.identities.of(config))
      const pool = pools.get(key) ?? previous?.pools.get(key) ?? openPool(config, authorizer)
      pools.set(key, pool)
      const agent = agents.get(key) ?? previous?.agents.get(key) ?? openAgent(config)
      agents.set(key, agent)
      byName.set(config.name, {
        config,
        pool,
        address: upstreamAddressOf(config),
        agent,
        authorizer,
      })
    }
    this.byName = byName
    this.pools = pools
    this.agents = agents
  }

  /** Undefined if the generation has no upstream with that name. */
  get(name: string): Upstream | undefined {
    return this.byName.get(name)
  }

  /** Closes the pools that `next` does not use, after their requests have ended. */
  async retire(next: Upstreams | null): Promise<void> {
    const keptPools = new Set(next === null ? [] : next.pools.values())
    const closing: Promise<void>[] = []
    for (const pool of this.pools.values()) if (!keptPools.has(pool)) closing.push(pool.close())
    const keptAgents = new Set(next === null ? [] : next.agents.values())
    for (const agent of this.agents.values()) if (!keptAgents.has(agent)) close(agent)
    this.identities.retire(next?.identities ?? null)
    await Promise.allSettled(closing)
  }

  /** Destroys every connection at once. */
  async destroy(): Promise<void> {
    this.identities.retire(null)
    for (const agent of this.agents.values()) close(agent)
    await Promise.allSettled([...this.pools.values()].map((pool) => pool.destroy()))
  }
}

function close(agent: Agent | Unreachable): void {
  if ('destroy' in agent) agent.destroy()
}

/** Upstreams with equal keys share connections, which authorize requests in the same way. */
function keyOf(config: UpstreamConfig): string {
  const { auth, platform } = config
  const key = settingsOf(config)
  return auth === null ? key : `${key} ${digestOf(auth)} ${platform?.region ?? ''}`
}

function authorizerOf(config: UpstreamConfig, identity: CloudIdentity | null): Authorizer | null {
  return identity === null ? null : new Authorizer(config, identity)
}

function openPool(config: UpstreamConfig, authorizer: Authorizer | null): RequestQueue {
  const { maxConnections } = config
  const { origin } = new URL(config.baseUrl)
  const openFresh = (): Dispatcher => openConnectionPool(config)
  return new RequestQueue({
    origin,
    dispatcher: openFresh(),
    maxConnections,
    openFresh,
    authorizer,
  })
}
