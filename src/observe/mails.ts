/**
 * Sends mails: notifications about budgets to the owners of the account, and links to those who set a
 * password with them. The queue is in memory: mails that wait are lost if the process crashes; a drain makes
 * one last attempt.
 */
import { createTransport } from 'nodemailer'
import type { SmtpConfig } from '../config/config.js'
import { isLoopback } from '../http/private-addresses.js'
import type { Logger } from './log.js'
import type { Notification } from './notification.js'

/** The dependencies of mails. */
export interface MailParts {
  readonly log: Pick<Logger, 'warn'>
  /** For tests: delays before the second attempt, the third, …. */
  readonly backOffMs?: readonly number[]
}

/** A mail to one person. */
export interface Mail {
  readonly to: string
  readonly subject: string
  readonly text: string
}

interface Waiting {
  readonly mail: Mail
  tries: number
  timer: NodeJS.Timeout | null
}

const BACK_OFF_MS: readonly number[] = [5_000, 60_000, 600_000, 3_600_000]
const MAX_WAITING = 1_000
/** Time limit of each step of an attempt. */
const TIMEOUT_MS = 15_000
const CLOSE_TIMEOUT_MS = 3_000
const LOG_EVERY_MS = 60_000

/** Sends mails by one server until it is closed. */
export class Mails {
  readonly config: SmtpConfig
  private readonly parts: MailParts
  private readonly transport: ReturnType<typeof transportOf>
  private readonly waiting = new Set<Waiting>()
  private readonly running = new Set<Promise<void>>()
  private isClosed = false
  private loggedMs = Number.NEGATIVE_INFINITY

  constructor(config: SmtpConfig, parts: MailParts) {
    this.config = config
    this.parts = parts
    this.transport = transportOf(config)
  }

  /** Queues a mail to each owner of the budget's account; other notifications have none. */
  notify(notification: Notification): void {
    for (const mail of mailsOf(notification)) this.send(mail)
  }

  /** Queues a mail. */
  send(mail: Mail): void {
    if (this.waiting.size >= MAX_WAITING) return this.lost('too many mails wait')
    const item: Waiting = { mail, tries: 0, timer: null }
    this.waiting.add(item)
    this.attempt(item)
  }

  /** Makes a last attempt for mails that wait, within 3 seconds, and closes the connections. */
  async close(): Promise<void> {
    this.isClosed = true
    for (const item of this.waiting) {
      if (item.timer !== null) {
        clearTimeout(item.timer)
        this.attempt(item)
      }
    }
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_TIMEOUT_MS)))
    await Promise.race([Promise.all(this.running), late])
    clearTimeout(timer)
    this.transport.close()
  }

  private attempt(item: Waiting): void {
    item.timer = null
    item.tries += 1
    const run = this.transport
      .sendMail({ from: this.config.from, ...item.mail })
      .then(
        () => void this.waiting.delete(item),
        (error: unknown) => this.failed(item, error),
      )
      .finally(() => this.running.delete(run))
    this.running.add(run)
  }

  private failed(item: Waiting, error: unknown): void {
    const waitMs = (this.parts.backOffMs ?? BACK_OFF_MS)[item.tries - 1]
    if (this.isClosed || waitMs === undefined) {
      this.waiting.delete(item)
      this.lost(reasonOf(error))
      return
    }
    item.timer = setTimeout(() => this.attempt(item), waitMs).unref()
  }

  private lost(reason: string): void {
    const nowMs = Date.now()
    if (nowMs - this.loggedMs < LOG_EVERY_MS) return
    this.loggedMs = nowMs
    this.parts.log.warn('mail not delivered', { host: new URL(this.config.url).hostname, reason })
  }
}

/** Credentials are sent over TLS only, except to this machine. */
function transportOf({ url }: SmtpConfig) {
  const { protocol, hostname, port, username, password } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const secure = protocol === 'smtps:'
  const auth = { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
  return createTransport({
    ...{ host, secure },
    port: port === '' ? (secure ? 465 : 587) : Number(port),
    requireTLS: !secure && username !== '' && !isLoopback(hostname),
    ...(username === '' ? {} : { auth }),
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // A text of ours never names a file or URL to read.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/** The mails of a notification: one for each owner, so that a wrong address does not delay the others. */
export function mailsOf({ type, data }: Notification): Mail[] {
  const { account, owners, threshold_percent: percent, reason } = data
  if (type !== 'budget.threshold' || !Array.isArray(owners)) return []
  const isRefused = reason === 'refused'
  const isTotal = data['period'] === 'total'
  const what = `${String(percent)} % of a budget of the account ${String(account)}`
  const text = [
    `${what} ${isRefused ? 'are used: requests are refused until it is reset.' : 'are used.'}`,
    '',
    `Budget:    ${String(data['budget'])}, ${isTotal ? 'in all' : `per ${String(data['period'])}`}`,
    `Used:      $${String(data['used_usd'])} of $${String(data['limit_usd'])}`,
    `Reset at:  ${isTotal ? 'never' : String(data['resets_at'])}`,
    '',
  ].join('\n')
  return owners.map((to) => ({ to: String(to), subject: `${what} are used`, text }))
}

/** A code or the server's status, since a message may contain the address or the password. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const status = 'responseCode' in error ? ` ${String(error.responseCode)}` : ''
  return `${'code' in error ? String(error.code) : error.name}${status}`
}
