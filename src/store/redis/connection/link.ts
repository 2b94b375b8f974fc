/**
 * One connection to Redis (to each node, of a Cluster): time-outs, breaker, scripts.
 * Knows no key and no meaning of what is sent.
 *
 * Every purpose has its own, so that what is slow for one never stands before another's command.
 */
import { Cluster, Redis } from 'ioredis'
import type { GatewayError } from '../../../errors.js'
import { Breaker } from './breaker.js'
import { LostStore, notApplied, unavailable } from '../../errors.js'
import {
  withTimeout,
  isReadOnly,
  ReplyTimeout,
  messageOf,
  parsePrimaryValue,
  type PrimaryValue,
} from './replies.js'
import { clientOptions, clusterOptions, firstReady, retryDelayMs } from './options.js'
import { Queue } from './queue.js'
import { Replicas } from './replicas.js'
import { evaluate, loadScript, type Argument, type Script } from './script.js'
import type { RedisAddress } from './address.js'

/** What tells a store from any other: a key, and what is there. */
export interface ExpectedValue {
  readonly key: string
  readonly value: string
}

/** An open breaker asks the server itself; no request waits to find out. */
const PROBE_MS = 1_000
/** Names that the server looks at for one answer. */
const SCANNED_AT_ONCE = 1_000

/** Why a store that is not the one that was opened is not used. */
export const OTHER_STORE =
  'the store that was opened is gone (emptied, or another in its address); restore it, or restart the gateway to begin with what is there'

const READ_FROM_PRIMARY = loadScript('records/read-from-primary')

/** Fails fast, and only with `GatewayError(store_unavailable)`; comes back by itself. */
export class RedisLink {
  /** Called when a connection that was lost is there again, to the store that it was to. */
  onReconnect: () => void = () => undefined
  /** Called, with the reason, when one answer, late or of a replica, is why those that follow are not sent. */
  onUnavailable: (reason: Error) => void = () => undefined
  /** What the server must have to be asked again after a failure; null asks for an answer only. */
  expected: ExpectedValue | null = null
  private readonly client: Redis | Cluster
  private readonly breaker = new Breaker()
  private readonly timeoutMs: number
  private readonly queue = new Queue(() => this.closed || this.breaker.open)
  private readonly replicas: Replicas
  private opening: Promise<void> | null = null
  private probing: NodeJS.Timeout | null = null
  /** Connected once; from then on the client sees to it by itself. */
  private connected = false
  /** Lost and made again, and `onBack` not called yet. */
  private isReconnected = false
  /** It was a replica when it was last asked: another server may be the primary by now. */
  private isReplica = false
  private lastError: Error | null = null
  private closed = false

  /** Connects on first use; `timeoutMs` is for each command. */
  constructor(address: RedisAddress, name: string, timeoutMs: number) {
    this.timeoutMs = timeoutMs
    this.client =
      address.kind === 'cluster'
        ? new Cluster([...address.hosts], clusterOptions(address, name, timeoutMs))
        : new Redis(clientOptions(address, name, timeoutMs))
    this.replicas = new Replicas({
      client: this.client,
      replicas: address.waitReplicas,
      timeoutMs,
      awaitReply: (what, reply) => this.awaitReply(what, reply),
    })
    this.client.on('error', (error: Error) => (this.lastError = error))
    this.client.on('node error', (error: Error) => (this.lastError = error))
    this.client.on('end', () => this.reconnect())
    // What answers now may have forgotten everything meanwhile: it is asked before anybody is sent there.
    this.client.on('ready', () => {
      this.select(address.db)
      if (!this.connected) return
      this.isReconnected = true
      this.breaker.trip()
      this.probe()
    })
  }

  /** Resolves when connected; rejects where that fails or takes too long. */
  async opened(): Promise<void> {
    if (this.closed) throw unavailable('connecting failed', new Error('the store has been closed'))
    if (this.connected) return
    this.opening ??= this.connect()
    await this.opening
  }

  /** One command. A Promise that only ever rejects with `GatewayError(store_unavailable)`. */
  async send(what: string, command: string, args: readonly Argument[]): Promise<unknown> {
    await this.enterQueue(what)
    return this.awaitReply(what, this.client.call(command, [...args])).finally(() =>
      this.queue.leave(),
    )
  }

  /** One command whose answer may hold any bytes. */
  async sendForBytes(what: string, command: string, args: readonly Argument[]): Promise<unknown> {
    await this.enterQueue(what)
    return this.awaitReply(what, this.client.callBuffer(command, [...args])).finally(() =>
      this.queue.leave(),
    )
  }

  /** One atomic step. `keys` are all of one slot. */
  async run(
    what: string,
    text: Script,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> {
    await this.enterQueue(what)
    const answer = evaluate(this.client, text, keys, args)
    return this.awaitReply(what, answer).finally(() => this.queue.leave())
  }

  /** What stands at the key of a primary; a replica is as good as away. */
  async readFromPrimary(what: string, key: string): Promise<PrimaryValue> {
    await this.enterQueue(what)
    const reply = evaluate(this.client, READ_FROM_PRIMARY, [key], []).then(parsePrimaryValue)
    return this.awaitReply(what, reply).finally(() => this.queue.leave())
  }

  /** The names that fit a pattern, of every node, some at a time; one that moves meanwhile may come twice. */
  async *scan(what: string, pattern: string): AsyncGenerator<string[]> {
    await this.opened()
    const nodes = this.client instanceof Redis ? [this.client] : this.client.nodes('master')
    for (const node of nodes) {
      for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
        const args = [cursor, 'MATCH', pattern, 'COUNT', SCANNED_AT_ONCE]
        await this.enterQueue(what)
        const answer = await this.awaitReply(what, node.call('scan', args)).finally(() =>
          this.queue.leave(),
        )
        const [next, names] = Array.isArray(answer) ? (answer as unknown[]) : []
        cursor = String(next)
        if (Array.isArray(names) && names.length > 0) yield names.map(String)
      }
    }
  }

  /**
   * A script whose effect must be on the replicas, too, before it is acknowledged. Rejects with
   * `store_unconfirmed` where it took effect and too few replicas have it.
   */
  async runDurably(
    what: string,
    text: Script,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> {
    await this.replicas.idle()
    const answer = await this.run(what, text, keys, args)
    await this.replicas.confirm(what, keys[0] ?? '')
    return answer
  }

  /** The same for a step that prepares a change, which is not made where this rejects. */
  async prepareDurably(
    what: string,
    text: Script,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> {
    try {
      return await this.runDurably(what, text, keys, args)
    } catch (error) {
      throw notApplied(error)
    }
  }

  /** Sends nothing until the server has answered a probe, which goes at once: somebody else waited in vain. */
  markUnavailable(reason: Error): void {
    if (!this.breaker.trip()) return
    this.lastError = reason
    this.probe()
  }

  /** Ends the connection; what is under way fails. */
  close(): void {
    this.closed = true
    if (this.probing !== null) clearTimeout(this.probing)
    this.client.disconnect()
  }

  /** Resolves when the command may be sent; who has been let in calls `queue.left` afterwards. */
  private async enterQueue(what: string): Promise<void> {
    if (!this.connected) await this.opened()
    if (this.queue.isFull) await this.queue.waitForRoom(what)
    if (this.closed) throw unavailable(`${what} failed`, new Error('the store has been closed'))
    if (this.breaker.open) throw this.refusal(what)
    this.queue.enter()
  }

  private refusal(what: string): GatewayError {
    const { lastError } = this
    if (lastError instanceof LostStore) return unavailable(`${what} failed`, lastError)
    const reason = lastError?.message ?? 'it failed several times'
    return unavailable(`${what} failed`, new Error(`Redis is not asked for a moment: ${reason}`))
  }

  /** The client goes on trying by itself; what a server says of our credentials it will say again. */
  private async connect(): Promise<void> {
    try {
      await firstReady(this.client)
    } catch (error) {
      const reason = this.lastError?.message ?? messageOf(error)
      throw unavailable('connecting to Redis failed', new Error(reason))
    } finally {
      this.connected = true
    }
  }

  /** The client gives up for good where it hears of a failover just while it asks the sentinels for the primary. */
  private reconnect(): void {
    setTimeout(() => {
      if (!this.closed) this.client.connect().catch(() => undefined)
    }, retryDelayMs(1)).unref()
  }

  private async awaitReply<T>(what: string, reply: Promise<T>): Promise<T> {
    try {
      const value = await withTimeout(reply, this.timeoutMs)
      this.breaker.succeeded(performance.now())
      return value
    } catch (error) {
      // A new error: the client's own holds the command with its arguments, a password among them.
      const reason = new Error(messageOf(error))
      this.lastError = reason
      const opened = this.breaker.failed(performance.now())
      // The next would wait as long, or be refused as well: one request pays, once, and no other does.
      const isAway = error instanceof ReplyTimeout || isReadOnly(reason.message)
      if (isAway && (this.breaker.trip() || opened)) {
        this.probe()
        this.onUnavailable(reason)
      } else if (opened) {
        this.probeLater()
      }
      throw unavailable(`${what} failed`, reason)
    }
  }

  /** The client goes on in database 0 where its own `SELECT` failed or was late; here, a failure reconnects. */
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
      // A new connection is made to whoever is primary then, and asked as soon as it is there.
      if (this.isReplica && this.client instanceof Redis) this.client.disconnect(true)
      else this.probe()
    }, PROBE_MS).unref()
  }

  private probe(): void {
    if (!this.breaker.open || this.closed) return
    this.checkServer().then(
      () => {
        this.breaker.close()
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

  /** As fast as any command must be, or there would be requests again that wait in vain. */
  private async checkServer(): Promise<void> {
    const { expected: proof, client } = this
    if (proof === null) {
      await withTimeout(client.call('ping'), this.timeoutMs)
      return
    }
    const reply = evaluate(client, READ_FROM_PRIMARY, [proof.key], []).then(parsePrimaryValue)
    if ((await withTimeout(reply, this.timeoutMs)).value !== proof.value)
      throw new LostStore(OTHER_STORE)
  }
}
