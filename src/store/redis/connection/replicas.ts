/**
 * Waits until replicas have a change (`WAIT`). `WAIT` blocks its connection, so one wait serves all changes
 * that were sent before it.
 */
import { Redis, type Cluster } from 'ioredis'
import { reasonOf, unavailable, unconfirmed } from '../../errors.js'

const LEAST_WAIT_MS = 100

/** The connection of the waits. */
export interface ReplicaOptions {
  readonly client: Redis | Cluster
  /** Replicas that must have a change; 0 waits for none. */
  readonly replicas: number
  /** Time limit of a command; a wait takes at most half of it. */
  readonly timeoutMs: number
  /** Limits the time of a reply. Rejects with `GatewayError(store_unavailable)`. */
  readonly awaitReply: <T>(what: string, reply: Promise<T>) => Promise<T>
}

/** The waits of one connection. */
export class Replicas {
  private readonly options: ReplicaOptions
  private readonly waitMs: number
  private readonly waits = new Map<Redis, Promise<unknown>>()

  constructor(options: ReplicaOptions) {
    this.options = options
    this.waitMs = Math.max(LEAST_WAIT_MS, Math.floor(options.timeoutMs / 2))
  }

  /** Resolves when no wait blocks the connection. */
  async idle(): Promise<void> {
    while (this.waits.size > 0) await Promise.allSettled(this.waits.values())
  }

  /**
   * Resolves when enough replicas have the last change of `key`. Rejects with
   * `GatewayError(store_unconfirmed)`. `WAIT` counts for the connection that wrote; in a Cluster, that of the
   * key's node.
   */
  async confirm(what: string, key: string): Promise<void> {
    const { replicas } = this.options
    if (replicas === 0) return
    let count: unknown
    try {
      const node = await this.nodeOf(what, key)
      count = await (this.waits.get(node) ?? this.waitAt(what, node))
    } catch (error) {
      throw unconfirmed(what, reasonOf(error))
    }
    if (typeof count === 'number' && count >= replicas) return
    throw unconfirmed(what, `${String(count)} of ${replicas} replicas have it (wait_replicas)`)
  }

  private waitAt(what: string, node: Redis): Promise<unknown> {
    const { awaitReply, replicas } = this.options
    const reply = node.call('wait', [replicas, this.waitMs])
    const wait = awaitReply(what, reply).finally(() => this.waits.delete(node))
    this.waits.set(node, wait)
    return wait
  }

  private async nodeOf(what: string, key: string): Promise<Redis> {
    const { client, awaitReply } = this.options
    if (client instanceof Redis) return client
    const slot = await awaitReply(what, client.call('cluster', ['keyslot', key]))
    const name = typeof slot === 'number' ? client.slots[slot]?.[0] : undefined
    const node = client
      .nodes('master')
      .find(({ options }) => `${options.host ?? ''}:${options.port ?? 0}` === name)
    if (node === undefined) throw unavailable(`${what} failed`, new Error('its node is not known'))
    return node
  }
}
