/**
 * Subscribes to changes of keys over a connection of its own, which pings the server and reconnects. Redis
 * drops messages for a closed connection, so while it is closed the listener is called each second with the
 * change of every key, and again after reconnecting: cached keys are then valid for one second.
 */
import { Redis } from 'ioredis'
import { clientOptions, retryDelayMs, withLateErrors } from './open-client.js'
import type { RedisAddress } from '../../store-address.js'
import type { KeyChange } from '../../store.js'

/** The message for a change of every key, in place of a digest. */
const EVERY_KEY = '*'

/** Of a key, or of an access token. */
const DIGEST = /^(?:slt:)?[0-9a-f]{64}$/
const PING_MS = 5_000
/** Time limit of a ping: a broken connection is closed after 10 s. */
const PONG_MS = 5_000
/** Interval of calls while there is no connection. */
const DISCONNECTED_MS = 1_000

/** Options of `RedisNotifications`. */
interface NotificationsOptions {
  readonly address: RedisAddress
  readonly channel: string
  /** Called with each change, in order. */
  readonly notify: (change: KeyChange) => void
  /** Called with a message for the operator when the connection is lost. */
  readonly warn: (message: string) => void
}

/** Subscribed from `opened` to `close`. */
export class RedisNotifications {
  private readonly address: RedisAddress
  private readonly channel: string
  private readonly notify: (change: KeyChange) => void
  private readonly warn: (message: string) => void
  private readonly pinging: NodeJS.Timeout
  private client: Redis | null = null
  private attempts = 0
  private retry: NodeJS.Timeout | null = null
  private disconnected: NodeJS.Timeout | null = null
  private closed = false

  constructor({ address, channel, notify, warn }: NotificationsOptions) {
    this.address = address
    this.channel = channel
    this.notify = notify
    this.warn = warn
    this.pinging = setInterval(() => this.ping(), PING_MS).unref()
  }

  /** Resolves when it is subscribed. */
  async opened(): Promise<void> {
    await this.listen()
  }

  close(): void {
    this.closed = true
    clearInterval(this.pinging)
    if (this.retry !== null) clearTimeout(this.retry)
    if (this.disconnected !== null) clearInterval(this.disconnected)
    this.client?.disconnect()
  }

  private async listen(): Promise<void> {
    const client = withLateErrors(
      new Redis({
        ...clientOptions(this.nextAddress(), 'news', PONG_MS),
        // A new client for each try: a Cluster's next node, a Sentinel's new primary.
        retryStrategy: () => null,
        autoResubscribe: false,
      }),
    )
    this.client = client
    client.on('message', (_channel: string, text: string) => this.receive(text))
    client.once('end', () => this.lost(client))
    await client.connect()
    await client.subscribe(this.channel)
    this.attempts = 0
    if (this.disconnected === null) return
    clearInterval(this.disconnected)
    this.disconnected = null
    this.notify({ digest: null })
  }

  /** Any node of a Cluster sends the messages; after a failure, the next one. */
  private nextAddress(): RedisAddress {
    const { address, attempts } = this
    if (address.kind !== 'cluster') return address
    const host = address.hosts[attempts % address.hosts.length]
    return { ...address, kind: 'single', hosts: host === undefined ? [] : [host] }
  }

  private lost(client: Redis): void {
    if (this.closed || this.client !== client) return
    if (this.disconnected === null) {
      this.disconnected = setInterval(() => this.notify({ digest: null }), DISCONNECTED_MS).unref()
      this.warn('no notifications of changes from Redis; cached keys are valid for one second')
      this.notify({ digest: null })
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

  /** Ignores other messages. */
  private receive(text: string): void {
    if (text === EVERY_KEY) this.notify({ digest: null })
    else if (DIGEST.test(text)) this.notify({ digest: text })
  }
}
