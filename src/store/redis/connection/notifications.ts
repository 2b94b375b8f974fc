/**
 * News of changes from Redis: one connection that listens, asks whether it still hears, and comes back.
 * Knows nothing of what a change means. What is published while nobody listens is lost; so whoever
 * hears is told that anything may have changed: when the link is lost, each second while it is (what
 * is remembered is then good for a second), and when it is back.
 */
import { Redis } from 'ioredis'
import { clientOptions, retryDelayMs } from './options.js'
import type { RedisAddress } from './address.js'
import type { KeyChange } from '../../store.js'

/** What is published in address of a digest where anything may have changed. */
export const EVERY_KEY = '*'

const DIGEST = /^[0-9a-f]{64}$/
const PING_MS = 5_000
/** With the time between two pings: a link that is dead is given up after 10 s. */
const PONG_MS = 5_000
const DEAF_MS = 1_000

/** Listens from `opened` to `close`. */
export class RedisNotifications {
  private readonly address: RedisAddress
  private readonly channel: string
  private readonly tell: (change: KeyChange) => void
  private readonly warn: (message: string) => void
  private readonly pinging: NodeJS.Timeout
  private client: Redis | null = null
  private attempts = 0
  private retry: NodeJS.Timeout | null = null
  private deaf: NodeJS.Timeout | null = null
  private closed = false

  /** `tell` is called with each change, in order; `warn` when the link is lost. */
  constructor(
    address: RedisAddress,
    channel: string,
    tell: (change: KeyChange) => void,
    warn: (message: string) => void,
  ) {
    this.address = address
    this.channel = channel
    this.tell = tell
    this.warn = warn
    this.pinging = setInterval(() => this.ping(), PING_MS).unref()
  }

  /** Resolves when it hears; rejects where it cannot. */
  async opened(): Promise<void> {
    await this.listen()
  }

  close(): void {
    this.closed = true
    clearInterval(this.pinging)
    if (this.retry !== null) clearTimeout(this.retry)
    if (this.deaf !== null) clearInterval(this.deaf)
    this.client?.disconnect()
  }

  private async listen(): Promise<void> {
    const client = new Redis({
      ...clientOptions(this.placeNow(), 'news', PONG_MS),
      // A new client for each try: a Cluster's next node, a Sentinel's new primary.
      retryStrategy: () => null,
      autoResubscribe: false,
    })
    this.client = client
    client.on('error', () => undefined)
    client.on('message', (_channel: string, text: string) => this.heard(text))
    client.once('end', () => this.lost(client))
    await client.connect()
    await client.subscribe(this.channel)
    this.attempts = 0
    if (this.deaf === null) return
    clearInterval(this.deaf)
    this.deaf = null
    this.tell({ digest: null })
  }

  /** Any node of a Cluster has the news; the next one, where the last was no good. */
  private placeNow(): RedisAddress {
    const { address, attempts } = this
    if (address.kind !== 'cluster') return address
    const host = address.hosts[attempts % address.hosts.length]
    return { ...address, kind: 'single', hosts: host === undefined ? [] : [host] }
  }

  private lost(client: Redis): void {
    if (this.closed || this.client !== client) return
    if (this.deaf === null) {
      this.deaf = setInterval(() => this.tell({ digest: null }), DEAF_MS).unref()
      this.warn('no news of changes from Redis; keys are looked up again after a second')
      this.tell({ digest: null })
    }
    this.attempts += 1
    this.retry = setTimeout(() => {
      this.listen().catch(() => this.client?.disconnect())
    }, retryDelayMs(this.attempts)).unref()
  }

  private ping(): void {
    const { client } = this
    if (client?.status === 'ready') client.ping().catch(() => client.disconnect())
  }

  /** Who can publish here can write keys, too; still, only what we would have said counts. */
  private heard(text: string): void {
    if (text === EVERY_KEY) this.tell({ digest: null })
    else if (DIGEST.test(text)) this.tell({ digest: text })
  }
}
