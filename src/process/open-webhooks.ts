/**
 * The webhooks and mails of this gateway, sent by the process that reads the configuration: a single process,
 * or the primary for its workers. The code of webhooks is loaded with the first configuration that has
 * `notify`.
 */
import type { Snapshot } from '../config/config.js'
import { formatProblem } from '../config/config-problem.js'
import type { ConfigSource } from '../config/generations/config-source.js'
import type { Logger } from '../observe/log.js'
import type { Mail } from '../observe/mails.js'
import type { Metrics } from '../observe/metrics/metrics.js'
import { NOTIFICATION_TYPES, REPORT_INTERVAL_MS, type Notification } from '../observe/notification.js'
import type { Webhooks } from '../observe/webhooks.js'
import { MailSender } from './mail-sender.js'

/** Sends notifications to the URLs and the mail server of the configuration in force. */
export class Notifier {
  private readonly log: Logger
  private readonly metrics: Metrics
  private webhooks: Promise<Webhooks> | null = null
  private readonly mails: MailSender
  /** When each refused credential was reported. */
  private readonly refusedAtMs = new Map<string, number>()

  constructor(source: ConfigSource, log: Logger, metrics: Metrics) {
    this.log = log
    this.metrics = metrics
    this.mails = new MailSender(log)
    this.adopt(source.current())
    source.subscribe((change) => {
      if (change.result === 'applied') {
        this.refusedAtMs.clear()
        this.adopt(change.snapshot)
        return
      }
      const [first] = change.errors
      const { generation } = source.current()
      const data = {
        generation_in_force: generation,
        problems: change.errors.length,
        first_problem: first === undefined ? null : formatProblem(first),
      }
      this.send({ type: 'config.refused', atMs: Date.now(), data })
    })
  }

  readonly send = (notification: Notification): void => {
    if (this.isRepeated(notification)) return
    void this.webhooks?.then((webhooks) => webhooks.send(notification))
    this.mails.notify(notification)
  }

  /** Queues a mail for the server in force. */
  readonly mail = (mail: Mail): void => this.mails.send(mail)

  /** Sends a worker's notification; false if the message is something else. */
  sendFromWorker(message: unknown): boolean {
    if (!isNotice(message)) return false
    this.send(message.notice)
    return true
  }

  /** Retries the waiting notifications once. */
  async close(): Promise<void> {
    const webhooks = await this.webhooks
    await Promise.all([webhooks?.close(), this.mails.close()])
  }

  /** Whether another worker has reported the same credential within the hour. */
  private isRepeated({ type, atMs, data }: Notification): boolean {
    if (type !== 'credential.refused') return false
    const name = JSON.stringify([data['upstream'], data['api_key']])
    const lastMs = this.refusedAtMs.get(name) ?? Number.NEGATIVE_INFINITY
    if (atMs - lastMs < REPORT_INTERVAL_MS) return true
    this.refusedAtMs.set(name, atMs)
    return false
  }

  private adopt({ config: { notify, smtp } }: Snapshot): void {
    this.mails.adopt(smtp)
    if (notify.length === 0 && this.webhooks === null) return
    this.webhooks ??= this.load()
    void this.webhooks.then((webhooks) => webhooks.adopt(notify))
  }

  private async load(): Promise<Webhooks> {
    const [{ Webhooks: Loaded }, { openPoster }] = await Promise.all([
      import('../observe/webhooks.js'),
      import('../gateway/upstreams/webhook-connection.js'),
    ])
    const { log, metrics } = this
    return new Loaded({ open: openPoster, log, metrics })
  }
}

const TYPES = new Set<unknown>(NOTIFICATION_TYPES)

/** A worker's message with a notification. */
export interface Notice {
  readonly notice: Notification
}

/** Whether a worker's message is a notification. */
function isNotice(value: unknown): value is Notice {
  if (typeof value !== 'object' || value === null || !('notice' in value)) return false
  const { notice } = value
  return typeof notice === 'object' && notice !== null && 'type' in notice && TYPES.has(notice.type)
}
