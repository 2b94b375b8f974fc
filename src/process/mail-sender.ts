/** The mail server of the configuration in force. The code is loaded with the first one that has `smtp`. */
import type { SmtpConfig } from '../config/config.js'
import type { Logger } from '../observe/log.js'
import type { Mail, Mails } from '../observe/mails.js'
import type { Notification } from '../observe/notification.js'

/** Sends mails by one server at a time until it is closed. */
export class MailSender {
  private readonly log: Logger
  /** Loaded in sequence. */
  private mails: Promise<Mails | null> = Promise.resolve(null)

  constructor(log: Logger) {
    this.log = log
  }

  /** Uses this server from now on; null: none. */
  adopt(smtp: SmtpConfig | null): void {
    this.mails = this.mails.then((mails) => this.mailsOf(mails, smtp))
  }

  /** Queues the mails of a notification; without a server they are dropped. */
  notify(notification: Notification): void {
    void this.mails.then((mails) => mails?.notify(notification))
  }

  /** Queues a mail; without a server it is dropped. */
  send(mail: Mail): void {
    void this.mails.then((mails) => mails?.send(mail))
  }

  /** Retries the waiting mails once. */
  async close(): Promise<void> {
    await (await this.mails)?.close()
  }

  private async mailsOf(former: Mails | null, smtp: SmtpConfig | null): Promise<Mails | null> {
    if (JSON.stringify(former?.config ?? null) === JSON.stringify(smtp)) return former
    void former?.close()
    if (smtp === null) return null
    const { Mails: Loaded } = await import('../observe/mails.js')
    return new Loaded(smtp, { log: this.log })
  }
}
