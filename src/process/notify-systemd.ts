/**
 * Reports the state of the process to systemd (`Type=notify`) if `NOTIFY_SOCKET` is set. Node has no Unix
 * datagram sockets, so `systemd-notify` sends the messages in sequence.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Logger } from '../observe/log.js'
import { isMissing } from '../base/file-access.js'

const run = promisify(execFile)

/** The service manager; every method does nothing if there is none. */
export interface ServiceManager {
  /** `READY=1`: the gateway serves requests, also after a reload. */
  ready(status: string): void
  /** `RELOADING=1`, to be followed by `ready`. */
  reloading(): void
  /** `STOPPING=1`; also ends the watchdog's messages. */
  stopping(): void
}

const NO_SERVICE_MANAGER: ServiceManager = { ready: noop, reloading: noop, stopping: noop }
/** Longer than the time for which `systemd-notify` waits for systemd. */
const SEND_MS = 6000
const USEC_PER_MS = 1000

/**
 * The service manager that started this process. Sends `WATCHDOG=1` at half of `WATCHDOG_USEC` if that is set
 * and `WATCHDOG_PID` is not another process.
 */
export function serviceManager(
  env: Readonly<Record<string, string | undefined>>,
  log: Logger,
): ServiceManager {
  if ((env['NOTIFY_SOCKET'] ?? '') === '') return NO_SERVICE_MANAGER
  const messages = new Messages(log)
  const watchdog = startWatchdog(env, messages)
  return {
    ready: (status) => {
      messages.send('READY=1', `MAINPID=${String(process.pid)}`, `STATUS=${status}`)
    },
    // On Linux both are CLOCK_MONOTONIC.
    reloading: () => {
      const nowUsec = process.hrtime.bigint() / 1000n
      messages.send('RELOADING=1', `MONOTONIC_USEC=${String(nowUsec)}`, 'STATUS=Reloading')
    },
    stopping: () => {
      clearInterval(watchdog)
      messages.send('STOPPING=1', 'STATUS=Draining')
    },
  }
}

function startWatchdog(
  env: Readonly<Record<string, string | undefined>>,
  messages: Messages,
): NodeJS.Timeout | undefined {
  const usec = Number(env['WATCHDOG_USEC'] ?? '0')
  const pid = env['WATCHDOG_PID'] ?? ''
  if (!(usec > 0) || (pid !== '' && pid !== String(process.pid))) return undefined
  const beat = (): void => {
    if (messages.isIdle) messages.send('WATCHDOG=1')
  }
  return setInterval(beat, usec / USEC_PER_MS / 2).unref()
}

/**
 * Sends messages in order. Logs the first of consecutive failures; without `systemd-notify` sends no more.
 */
class Messages {
  private readonly log: Logger
  private waiting = 0
  private sending: Promise<void> = Promise.resolve()
  private isMissing = false
  private isFailing = false

  constructor(log: Logger) {
    this.log = log
  }

  get isIdle(): boolean {
    return this.waiting === 0
  }

  send(...assignments: readonly string[]): void {
    this.waiting += 1
    this.sending = this.sending.then(() => this.sendNow(assignments))
  }

  private async sendNow(assignments: readonly string[]): Promise<void> {
    try {
      if (this.isMissing) return
      await run('systemd-notify', assignments, { timeout: SEND_MS })
      this.isFailing = false
    } catch (error) {
      this.isMissing = isMissing(error)
      if (!this.isFailing) this.log.error('systemd cannot be notified', error)
      this.isFailing = true
    } finally {
      this.waiting -= 1
    }
  }
}

function noop(): void {
  // There is no systemd to notify.
}
