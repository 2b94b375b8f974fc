/**
 * Sends each notification to every URL of `notify` that selects its group. The queues are in memory:
 * undelivered webhooks are lost if the process crashes; a drain makes one last attempt.
 */
import type { NotifyConfig } from '../../config/config.js'
import type { Logger } from '../log/log.js'
import type { Metrics } from '../metrics/metrics.js'
import type { Poster } from '../../upstreams/webhook-connection.js'
import { Endpoint } from './deliver-webhooks.js'
import type { Notification } from './notification.js'

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
