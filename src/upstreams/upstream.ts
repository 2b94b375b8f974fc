/**
 * Upstreams: an address, credentials and limits that speak a dialect, with their connections.
 * Knows nothing of requests; `gateway/forward.ts` sends them.
 */
import { isIP } from 'node:net'
import type { UpstreamConfig } from '../config/config.js'
import { isPrivateAddress, PrivateAddressError, publicLookup } from './address.js'
import type { Destination } from './connection.js'
import { Pool } from './pool.js'
import { placeOf, type Place } from './place.js'

/**
 * Idle sockets are dropped before common front ends drop theirs. A shorter idle time than the
 * peer's is what prevents the keep-alive race: 2.4 % of requests failed without.
 */
const KEEP_ALIVE_MS = 4000

/** One upstream of one generation. The pool may be shared with generations before and after. */
export interface Upstream {
  readonly config: UpstreamConfig
  readonly pool: Pool
  readonly place: Place
}

/** All upstreams of a generation, and the pools they run on. */
export class Upstreams {
  private readonly byName: ReadonlyMap<string, Upstream>
  private readonly pools: ReadonlyMap<string, Pool>

  /** Pools whose address and connection settings did not change are taken over from `previous`. */
  constructor(configs: Readonly<Record<string, UpstreamConfig>>, previous: Upstreams | null) {
    const byName = new Map<string, Upstream>()
    const pools = new Map<string, Pool>()
    for (const config of Object.values(configs)) {
      const url = new URL(config.baseUrl)
      const key = poolKey(config)
      const pool = pools.get(key) ?? previous?.pools.get(key) ?? openPool(config, url)
      pools.set(key, pool)
      byName.set(config.name, { config, pool, place: placeOf(config) })
    }
    this.byName = byName
    this.pools = pools
  }

  /** Undefined where the generation has no upstream of that name. */
  get(name: string): Upstream | undefined {
    return this.byName.get(name)
  }

  /** Lets pools that `next` does not use finish their requests and then close. */
  async retire(next: Upstreams | null): Promise<void> {
    const kept = new Set(next === null ? [] : next.pools.values())
    const closing: Promise<void>[] = []
    for (const pool of this.pools.values()) if (!kept.has(pool)) closing.push(pool.close())
    await Promise.allSettled(closing)
  }

  /** Destroys every connection at once. */
  async destroy(): Promise<void> {
    await Promise.allSettled([...this.pools.values()].map((pool) => pool.destroy()))
  }
}

/** Everything that a pool is made from; the credential is not part of it, it travels per request. */
function poolKey(config: UpstreamConfig): string {
  return JSON.stringify([
    config.name,
    new URL(config.baseUrl).origin,
    config.maxConnections,
    config.timeouts.connectMs,
    config.allowPrivateAddress,
  ])
}

function openPool(config: UpstreamConfig, url: URL): Pool {
  return new Pool({
    destination: destinationOf(config, url),
    connections: config.maxConnections,
    keepAliveMs: KEEP_ALIVE_MS,
  })
}

function destinationOf(config: UpstreamConfig, url: URL): Destination {
  const isTls = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  const { connectMs } = config.timeouts
  const place = { isTls, host, port, authority: url.host, connectMs }
  if (config.allowPrivateAddress) return place
  // An IP literal never reaches `lookup`, so one that may not be used is refused here.
  return isIP(host) !== 0 && isPrivateAddress(host)
    ? { ...place, refusal: new PrivateAddressError('base_url is a private address') }
    : { ...place, lookup: publicLookup }
}
