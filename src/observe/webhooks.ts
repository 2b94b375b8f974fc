/**
 * Sends each notification to every URL of `notify` that selects its group. The queues are in memory:
 * undelivered webhooks are lost if the process crashes; a drain makes one last attempt.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { NotifyConfig } from '../config/config.js'
import { retryAfterSeconds } from '../formats/wire/retry-after.js'
import type { Logger } from './log.js'
import type { Metrics } from './metrics/metrics.js'
import { groupOf, type Notification, type NotifyGroup } from './notification.js'
import { keyOf, signatureHeaders } from './sign-webhook.js'

interface PostRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Time limit for the whole exchange, including the connection. */
  readonly timeoutMs: number
}

/** The reply without its body, which is not read. */
interface PostReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** The connections to one URL. */
export interface Poster {
  /** Rejects if there is no reply within `timeoutMs`. Redirects are not followed. */
  post(request: PostRequest): Promise<PostReply>
  /** Closes the connections at once. */
  close(): Promise<void>
}

/** The dependencies of webhooks. */
export interface WebhookParts {
  readonly open: (config: NotifyConfig) => Poster
  readonly metrics: Pick<Metrics, 'webhook'>
  readonly log: Pick<Logger, 'warn'>
  /** For tests: delays before the second attempt, the third, …. */
  readonly backOffMs?: readonly number[]
}

/** Sends notifications. */
export class Webhooks {
  private readonly parts: WebhookParts
  private endpoints: readonly Endpoint[] = []

  constructor(parts: WebhookParts) {
    this.parts = parts
  }

  /** Applies a changed list. Endpoints with unchanged settings keep their queues. */
  adopt(configs: readonly NotifyConfig[]): void {
    const before = new Map(this.endpoints.map((each) => [JSON.stringify(each.config), each]))
    this.endpoints = configs.map((config) => {
      const key = JSON.stringify(config)
      const existing = before.get(key)
      before.delete(key)
      return existing ?? this.open(config)
    })
    for (const gone of before.values()) void gone.close()
  }

  send(notification: Notification): void {
    for (const endpoint of this.endpoints) endpoint.put(notification)
  }

  /** Resolves within about 3 seconds. */
  async close(): Promise<void> {
    await Promise.all(this.endpoints.map((endpoint) => endpoint.close()))
  }

  private open(config: NotifyConfig): Endpoint {
    const { open, metrics, log, backOffMs } = this.parts
    return new Endpoint(config, {
      poster: open(config),
      onResult: (group, result) => metrics.webhook(group, result),
      onLost: (host, reason) => log.warn('webhook not delivered', { host, reason }),
      ...(backOffMs === undefined ? {} : { backOffMs }),
    })
  }
}

/**
 * The result of an attempt or of a webhook. `dropped`: the queue was full, the URL was removed from the
 * configuration, or the process exited.
 */
export type WebhookResult = 'delivered' | 'retried' | 'failed' | 'dropped'

/** The dependencies and callbacks of an endpoint. */
export interface EndpointOptions {
  readonly poster: Poster
  /** Counts results of webhooks and of attempts. */
  readonly onResult: (group: NotifyGroup, result: WebhookResult) => void
  /** A webhook is not delivered; `reason` is a status or an error code. Called at most once per minute. */
  readonly onLost: (origin: string, reason: string) => void
  /** Delays before the second attempt, the third, …; jitter shortens them by up to a half. */
  readonly backOffMs?: readonly number[]
}

/** A webhook in the queue. */
interface Delivery {
  /** The same for every attempt, so that receivers detect duplicates. */
  readonly id: string
  readonly group: NotifyGroup
  readonly body: string
  tries: number
  /** Time of the next attempt, ms since 1970. */
  dueMs: number
}

const BACK_OFF_MS: readonly number[] = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]
const MAX_WAITING = 1_000
const MAX_CONCURRENT = 2
/** Timeout of an attempt, as the specification advises. */
const ATTEMPT_TIMEOUT_MS = 15_000
/** Timeout of the last attempts when the process exits. */
const CLOSE_TIMEOUT_MS = 3_000
const LOG_EVERY_MS = 60_000
const GONE = 410

/**
 * Delivers webhooks to one URL until it is closed: a bounded queue, retries with back-off, and a signature
 * per attempt. A failing webhook does not delay later ones, so they may arrive out of order.
 */
class Endpoint {
  readonly config: NotifyConfig
  private readonly options: EndpointOptions
  private readonly key: Buffer
  private readonly origin: string
  private readonly backOffMs: readonly number[]
  private waiting: Delivery[] = []
  private readonly running = new Set<Promise<void>>()
  private timer: NodeJS.Timeout | null = null
  /** The receiver has replied 410, or the process is exiting: new webhooks are dropped. */
  private isOver = false
  private loggedMs = Number.NEGATIVE_INFINITY

  constructor(config: NotifyConfig, options: EndpointOptions) {
    this.config = config
    this.options = options
    this.key = keyOf(config.secret)
    this.origin = new URL(config.url).origin
    this.backOffMs = options.backOffMs ?? BACK_OFF_MS
  }

  /** Queues the notification if the configuration selects its group. A full queue drops its oldest. */
  put({ type, atMs, data }: Notification): void {
    const group = groupOf(type)
    if (!this.config.events.includes(group)) return
    if (this.isOver) return this.options.onResult(group, 'dropped')
    const body = JSON.stringify({ type, timestamp: new Date(atMs).toISOString(), data })
    this.waiting.push({ id: `msg_${randomUUID()}`, group, body, tries: 0, dueMs: Date.now() })
    if (this.waiting.length > MAX_WAITING) {
      const oldest = this.waiting.shift()
      if (oldest !== undefined) this.lost(oldest, 'dropped', 'too many webhooks wait')
    }
    this.pump()
  }

  /** Makes a last attempt for queued webhooks, within 3 seconds, and closes the connections. */
  async close(): Promise<void> {
    this.isOver = true
    if (this.timer !== null) clearTimeout(this.timer)
    const last = this.waiting.splice(0).map((delivery) => this.attempt(delivery, CLOSE_TIMEOUT_MS))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_TIMEOUT_MS)))
    await Promise.race([Promise.all([...this.running, ...last]), late])
    clearTimeout(timer)
    await this.options.poster.close()
  }

  /** Starts all due attempts, and schedules the next run. */
  private pump(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    if (this.isOver) return
    const nowMs = Date.now()
    let nextMs = Number.POSITIVE_INFINITY
    const later: Delivery[] = []
    for (const delivery of this.waiting) {
      if (delivery.dueMs <= nowMs && this.running.size < MAX_CONCURRENT) {
        const run = this.attempt(delivery, ATTEMPT_TIMEOUT_MS).finally(() => {
          this.running.delete(run)
          this.pump()
        })
        this.running.add(run)
      } else {
        later.push(delivery)
        nextMs = Math.min(nextMs, delivery.dueMs)
      }
    }
    this.waiting = later
    // If all connections are busy, the end of an attempt calls pump again.
    if (this.running.size >= MAX_CONCURRENT || later.length === 0) return
    this.timer = setTimeout(() => this.pump(), Math.max(0, nextMs - nowMs)).unref()
  }

  /** Never rejects. */
  private async attempt(delivery: Delivery, timeoutMs: number): Promise<void> {
    const { id, body } = delivery
    delivery.tries += 1
    const atSeconds = Math.floor(Date.now() / 1000)
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'sluice',
      ...signatureHeaders(this.key, { id, atSeconds, body }),
    }
    try {
      this.answered(delivery, await this.options.poster.post({ headers, body, timeoutMs }))
    } catch (error) {
      this.failed(delivery, reasonOf(error), 0)
    }
  }

  private answered(delivery: Delivery, { status, headers }: PostReply): void {
    if (status >= 200 && status < 300) {
      this.options.onResult(delivery.group, 'delivered')
      return
    }
    if (status !== GONE) {
      const waitMs = (retryAfterSeconds(headers) ?? 0) * 1000
      this.failed(delivery, `status ${status}`, waitMs)
      return
    }
    // 410: the receiver has unsubscribed. A changed configuration creates a new endpoint.
    this.isOver = true
    for (const each of [delivery, ...this.waiting.splice(0)]) {
      this.lost(each, 'dropped', `status ${GONE}: the receiver is gone`)
    }
  }

  private failed(delivery: Delivery, reason: string, leastMs: number): void {
    const waitMs = this.backOffMs[delivery.tries - 1]
    if (this.isOver) return this.lost(delivery, 'dropped', reason)
    if (waitMs === undefined) return this.lost(delivery, 'failed', reason)
    this.options.onResult(delivery.group, 'retried')
    const jittered = waitMs * (0.5 + Math.random() / 2)
    delivery.dueMs = Date.now() + Math.max(leastMs, jittered)
    this.waiting.push(delivery)
  }

  private lost({ group }: Delivery, result: 'failed' | 'dropped', reason: string): void {
    this.options.onResult(group, result)
    const nowMs = Date.now()
    if (nowMs - this.loggedMs < LOG_EVERY_MS) return
    this.loggedMs = nowMs
    this.options.onLost(this.origin, reason)
  }
}

/** A code, since a message may contain the URL. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
