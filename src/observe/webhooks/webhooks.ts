/**
 * The webhooks of one gateway: each notification goes to every URL of `notify` that asks for its group. The queues are
 * in memory: what is not delivered when the process dies is lost, and what waits at a drain is tried once more.
 */
import type { NotifyConfig } from '../../config/config.js'
import type { Logger } from '../log/log.js'
import type { Metrics } from '../metrics/metrics.js'
import type { Poster } from '../../upstreams/post.js'
import { Endpoint } from './endpoint.js'
import type { Notification } from './notification.js'

/** What webhooks are sent with. */
export interface WebhookParts {
  readonly open: (config: NotifyConfig) => Poster
  readonly metrics: Pick<Metrics, 'webhook'>
  readonly log: Pick<Logger, 'warn'>
  /** For tests: waits before the second try, the third, …. */
  readonly backOffMs?: readonly number[]
}

/** Sends notifications. */
export class Webhooks {
  private readonly parts: WebhookParts
  private endpoints: readonly Endpoint[] = []

  constructor(parts: WebhookParts) {
    this.parts = parts
  }

  /** Puts a changed list in force. Endpoints whose settings are the same keep their queues. */
  adopt(configs: readonly NotifyConfig[]): void {
    const before = new Map(this.endpoints.map((each) => [JSON.stringify(each.config), each]))
    this.endpoints = configs.map((config) => {
      const key = JSON.stringify(config)
      const kept = before.get(key)
      before.delete(key)
      return kept ?? this.open(config)
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
