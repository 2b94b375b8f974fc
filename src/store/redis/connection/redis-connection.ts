/**
 * One connection to Redis (in a Cluster, to each node), with timeouts, a circuit breaker, and scripts. Each
 * purpose has its own connection, so that slow commands of one do not delay another.
 */
import { Cluster, Redis } from 'ioredis'
import type { GatewayError } from '../../../errors.js'
import { LostStore, notApplied, unavailable, reasonOf, unconfirmed } from '../../store-errors.js'
import type { RedisAddress } from '../../store-address.js'
import { connectFailure, firstReady, newClient, retryDelayMs } from './open-client.js'
import {
  evaluate,
  loadScript,
  messageOf,
  type Argument,
  type Script,
  type ScriptParameters,
} from './script.js'

/** The value of a key of the primary; `writeError` is why it accepts no writes, or null. */
interface PrimaryValue {
  readonly value: unknown
  readonly writeError: string | null
}

/** Consecutive error replies that open the circuit breaker. A timeout opens it at once. */
const MAX_FAILURES = 5
/** Interval of probes while the breaker is open. */
const PROBE_MS = 1_000
/** Keys that the server scans for one reply. */
const SCANNED_AT_ONCE = 1_000

/** The reason for refusing a store that is not the one that was opened. */
export const OTHER_STORE =
  'the store was emptied or replaced since it was opened: restore it, or restart the gateway to use the current store'

const READ_FROM_PRIMARY = loadScript('records/read-from-primary')

/** Fails fast, and only with `GatewayError(store_unavailable)`; reconnects by itself. */
export class RedisConnection {
  /** Called when a lost connection is open again, to the same store. */
  onReconnect: () => void = () => undefined
  /** Called with the reason when a timeout or a reply of a replica opens the breaker. */
  onUnavailable: (reason: Error) => void = () => undefined
  /** A key and the value that closes an open breaker; null accepts any reply. */
  expected: { readonly key: string; readonly value: string } | null = null
  private readonly client: Redis | Cluster
  private readonly address: RedisAddress
  private readonly timeoutMs: number
  private readonly queue = new Queue(() => this.closed || this.isBreakerOpen)
  private readonly replicas: Replicas
  private opening: Promise<void> | null = null
  private probing: NodeJS.Timeout | null = null
  /** While the circuit breaker is open, commands fail at once, and a probe each second closes it. */
  private isBreakerOpen = false
  private failuresInARow = 0
  /** Connected once; from then on the client reconnects by itself. */
  private connected = false
  /** Reconnected, and `onReconnect` not called yet. */
  private isReconnected = false
  /** The last probe found a replica: another server may be the primary by now. */
  private isReplica = false
  private lastError: Error | null = null
  private closed = false

  /** Connects on first use; `timeoutMs` is for each command. */
  constructor(address: RedisAddress, name: string, timeoutMs: number) {
    this.address = address
    this.timeoutMs = timeoutMs
    this.client = newClient(address, name, timeoutMs)
    this.replicas = new Replicas({
      client: this.client,
      replicas: address.waitReplicas,
      timeoutMs,
      awaitReply: (what, reply) => this.awaitReply(what, reply),
    })
    this.client.on('error', (error: Error) => (this.lastError = error))
    this.client.on('node error', (error: Error) => (this.lastError = error))
    this.client.on('end', () => this.reconnect())
    // The server may have lost its data meanwhile: a probe precedes all commands.
    this.client.on('ready', () => {
      this.select(address.db)
      if (!this.connected) return
      this.isReconnected = true
      this.tripBreaker()
      this.probe()
    })
  }

  /** Resolves when connected; rejects if that fails or takes too long. */
  async opened(): Promise<void> {
    if (this.closed) throw unavailable('connecting failed', new Error('the store has been closed'))
    if (this.connected) return
    this.opening ??= this.connect()
    await this.opening
  }

  /** Sends one command. */
  send(what: string, command: string, args: readonly Argument[]): Promise<unknown> {
    return this.exchange(what, () => this.client.call(command, [...args]))
  }

  /** Sends one command with a binary reply. */
  sendForBytes(what: string, command: string, args: readonly Argument[]): Promise<unknown> {
    return this.exchange(what, () => this.client.callBuffer(command, [...args]))
  }

  /** Runs a script, or a command that changes keys, in one atomic step. */
  run(what: string, script: Script | string, parameters: ScriptParameters): Promise<unknown> {
    return this.exchange(what, () => evaluate(this.client, script, parameters))
  }

  /** Reads a key; rejects if the server is a replica. */
  readFromPrimary(what: string, key: string): Promise<PrimaryValue> {
    return this.exchange(what, () => this.primaryValue(key))
  }

  /**
   * The keys that match a pattern, of every node, in batches; a key that moves between nodes may occur twice.
   */
  async *scan(what: string, pattern: string): AsyncGenerator<string[]> {
    await this.opened()
    const nodes = this.client instanceof Redis ? [this.client] : this.client.nodes('master')
    for (const node of nodes) {
      for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
        const args = [cursor, 'MATCH', pattern, 'COUNT', SCANNED_AT_ONCE]
        const answer = await this.exchange(what, () => node.call('scan', args))
        const [next, names] = Array.isArray(answer) ? (answer as unknown[]) : []
        cursor = String(next)
        if (Array.isArray(names) && names.length > 0) yield names.map(String)
      }
    }
  }

  /** A section of `INFO` of each primary. */
  async infoOfPrimaries(what: string, section: string): Promise<unknown[]> {
    await this.opened()
    const nodes = this.client instanceof Redis ? [this.client] : this.client.nodes('master')
    return Promise.all(nodes.map((node) => this.exchange(what, () => node.call('info', [section]))))
  }

  /**
   * Runs a script and waits until the replicas have its effect. Rejects with `store_unconfirmed` if it took
   * effect and too few replicas have it.
   */
  async runDurably(...args: Parameters<RedisConnection['run']>): Promise<unknown> {
    const [what, , { keys }] = args
    await this.replicas.idle()
    const answer = await this.run(...args)
    await this.replicas.confirm(what, keys[0] ?? '')
    return answer
  }

  /** The same for a step that prepares a change: if it rejects, the change was not made. */
  async prepareDurably(...args: Parameters<RedisConnection['run']>): Promise<unknown> {
    try {
      return await this.runDurably(...args)
    } catch (error) {
      throw notApplied(error)
    }
  }

  /** Opens the breaker and probes at once: another connection to the same server had a timeout. */
  markUnavailable(reason: Error): void {
    if (!this.tripBreaker()) return
    this.lastError = reason
    this.probe()
  }

  /** Closes the connection; commands without a reply fail. */
  close(): void {
    this.closed = true
    if (this.probing !== null) clearTimeout(this.probing)
    this.client.disconnect()
  }

  /** Sends a command when it is its turn, and waits for the reply. */
  private async exchange<T>(what: string, send: () => Promise<T>): Promise<T> {
    if (!this.connected) await this.opened()
    await this.queue.enter(what)
    try {
      if (this.closed) throw unavailable(`${what} failed`, new Error('the store has been closed'))
      if (this.isBreakerOpen) throw this.refusal(what)
      return await this.awaitReply(what, send())
    } finally {
      this.queue.leave()
    }
  }

  private refusal(what: string): GatewayError {
    const { lastError } = this
    if (lastError instanceof LostStore) return unavailable(`${what} failed`, lastError)
    const reason = lastError?.message ?? 'it failed several times'
    return unavailable(`${what} failed`, new Error(`Redis failed a moment ago: ${reason}`))
  }

  /** Rejects if the first connection fails; the client keeps reconnecting. */
  private async connect(): Promise<void> {
    try {
      await firstReady(this.client)
    } catch (error) {
      const reason = this.lastError?.message ?? messageOf(error)
      throw unavailable('connecting to Redis failed', connectFailure(reason, this.address))
    } finally {
      this.connected = true
    }
  }

  /** ioredis stops reconnecting if a failover happens while it looks up the primary at the sentinels. */
  private reconnect(): void {
    setTimeout(() => {
      if (!this.closed) this.client.connect().catch(() => undefined)
    }, retryDelayMs(1)).unref()
  }

  private async awaitReply<T>(what: string, reply: Promise<T>): Promise<T> {
    try {
      const value = await withTimeout(reply, this.timeoutMs)
      this.failuresInARow = 0
      return value
    } catch (error) {
      // A new error: ioredis's own contains the arguments of the command, perhaps a password.
      const reason = new Error(messageOf(error))
      this.lastError = reason
      this.failuresInARow += 1
      if (error instanceof ReplyTimeout || isReadOnly(reason.message)) {
        // The next command would fail in the same way: only one request waits.
        if (this.tripBreaker()) {
          this.probe()
          this.onUnavailable(reason)
        }
      } else if (this.failuresInARow >= MAX_FAILURES && this.tripBreaker()) {
        this.probeLater()
      }
      throw unavailable(`${what} failed`, reason)
    }
  }

  /** Opens the breaker; true if it was closed. */
  private tripBreaker(): boolean {
    const wasClosed = !this.isBreakerOpen
    this.isBreakerOpen = true
    return wasClosed
  }

  /** ioredis continues in database 0 if its own `SELECT` fails; this one reconnects instead. */
  private select(db: number): void {
    if (this.client instanceof Cluster || db === 0) return
    const { client } = this
    client.select(db).catch(() => {
      if (!this.closed) client.disconnect(true)
    })
  }

  private probeLater(): void {
    if (this.probing !== null || this.closed) return
    this.probing = setTimeout(() => {
      this.probing = null
      // The new connection is to the current primary, and probes it when it is open.
      if (this.isReplica && this.client instanceof Redis) this.client.disconnect(true)
      else this.probe()
    }, PROBE_MS).unref()
  }

  private probe(): void {
    if (!this.isBreakerOpen || this.closed) return
    this.checkServer().then(
      () => {
        this.isBreakerOpen = false
        this.failuresInARow = 0
        if (this.isReconnected) this.onReconnect()
        this.isReconnected = false
      },
      (error: unknown) => {
        this.lastError = error instanceof LostStore ? error : new Error(messageOf(error))
        this.isReplica = isReadOnly(this.lastError.message)
        this.probeLater()
      },
    )
  }

  /** Probes the server, with the time limit of commands. */
  private async checkServer(): Promise<void> {
    const { expected, client, timeoutMs } = this
    if (expected === null) {
      await withTimeout(client.call('ping'), timeoutMs)
      return
    }
    const { value } = await withTimeout(this.primaryValue(expected.key), timeoutMs)
    if (value !== expected.value) throw new LostStore(OTHER_STORE)
  }

  /** Rejects if the server is a replica. */
  private async primaryValue(key: string): Promise<PrimaryValue> {
    const reply = await evaluate(this.client, READ_FROM_PRIMARY, { keys: [key], args: [] })
    const [value, refusal] = Array.isArray(reply) ? (reply as unknown[]) : []
    const why = typeof refusal === 'string' ? refusal : ''
    if (isReadOnly(why)) throw new Error(why)
    return { value, writeError: why === '' ? null : why }
  }
}

/** Whether a replica refused a write; older servers begin the message with the line of the script. */
function isReadOnly(message: string): boolean {
  return message.includes('READONLY ')
}

/** No reply within the time limit. */
class ReplyTimeout extends Error {}

/** A timer that is later than this was delayed by the event loop. */
const LATE_MS = 10
/** How often a time limit begins again. */
const MAX_ROUNDS = 4

/**
 * Rejects with `ReplyTimeout` after the time limit. While this process is not scheduled, it cannot read the
 * reply: if the timer is late, the time limit begins again, at most `MAX_ROUNDS` times in all. A delayed
 * loop runs timers before it reads sockets, so the sockets are read again before the timeout counts.
 */
function withTimeout<T>(reply: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    let round = 0
    let timer: NodeJS.Timeout
    const late = (): void => reject(new ReplyTimeout(`no answer within ${timeoutMs} ms`))
    const begin = (): void => {
      round += 1
      const dueMs = performance.now() + timeoutMs
      timer = setTimeout(() => {
        const isDelayed = performance.now() - dueMs > LATE_MS
        if (isDelayed && round < MAX_ROUNDS) begin()
        else setImmediate(late)
      }, timeoutMs)
    }
    begin()
    const failed = (error: unknown): void => {
      if (messageOf(error) === 'Command timed out') late()
      else reject(error instanceof Error ? error : new Error(messageOf(error)))
    }
    reply.then(resolve, failed).finally(() => clearTimeout(timer))
  })
}

const MAX_UNDER_WAY = 16
const MAX_WAITING = 10_000

/**
 * The commands of one connection.
 *
 * Limits the concurrent commands of a connection. The others wait here without a timeout: a burst must not
 * look like a slow server.
 */
class Queue {
  private readonly isEnded: () => boolean
  private readonly waiting: (() => void)[] = []
  private underWay = 0

  /** While `isEnded` returns true, no command waits. */
  constructor(isEnded: () => boolean) {
    this.isEnded = isEnded
  }

  /**
   * Resolves when the command may be sent; call `leave` when it has its reply. Rejects with
   * `GatewayError(store_unavailable)` if too many wait.
   */
  async enter(what: string): Promise<void> {
    if (this.waiting.length >= MAX_WAITING) {
      throw unavailable(`${what} failed`, new Error(`${MAX_WAITING} commands wait already`))
    }
    while (this.underWay >= MAX_UNDER_WAY && !this.isEnded()) {
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
    this.underWay += 1
  }

  leave(): void {
    this.underWay -= 1
    const count = this.isEnded() ? this.waiting.length : 1
    for (const go of this.waiting.splice(0, count)) go()
  }
}

const LEAST_WAIT_MS = 100

/** The connection of the waits. */
interface ReplicaOptions {
  readonly client: Redis | Cluster
  /** Replicas that must have a change; 0 waits for none. */
  readonly replicas: number
  /** Time limit of a command; a wait takes at most half of it. */
  readonly timeoutMs: number
  /** Limits the time of a reply. Rejects with `GatewayError(store_unavailable)`. */
  readonly awaitReply: <T>(what: string, reply: Promise<T>) => Promise<T>
}

/**
 * The waits of one connection.
 *
 * Waits until replicas have a change (`WAIT`). `WAIT` blocks its connection, so one wait serves all changes
 * that were sent before it.
 */
class Replicas {
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
