/**
 * How a process ends: drained on the first signal, at once on the second, logged on a crash. The caller
 * passes the drain.
 */
import type { Logger } from '../observe/log.js'

/** The handlers of signals, and the signals that start a drain. */
interface SignalOptions {
  log: Logger
  /** Ends the work; the process exits with 0 when it resolves and with 1 when it rejects. */
  drain: () => Promise<void>
  /** Runs before an exit that does not wait. */
  abandon?: () => void
  /** Runs on `SIGUSR2`; without it the signal is ignored, with a line in the log. */
  restart?: () => void
  /** Runs on `SIGUSR1`, after the log of this process has been reopened. */
  reopened?: () => void
  /** `SIGTERM` and `SIGINT` by default. */
  signals?: readonly ('SIGTERM' | 'SIGINT')[]
}

/**
 * Handles the signals that end or restart a process, and SIGUSR1, which reopens the log: Node's default would
 * open its inspector, a debugger port on a process that holds keys. Node ignores SIGPIPE; SIGQUIT ends the
 * process at once.
 *
 * An uncaught exception ends the process, too, and is logged without its stack: Node's own report on stderr
 * would quote the error's message, which may contain a client's text.
 */
export function onSignals(options: SignalOptions): void {
  const { log } = options
  let endingSinceMs: number | null = null
  const end = (code: number): Promise<never> => log.flush().then(() => process.exit(code))
  const finish = (signal: string): void => {
    if (endingSinceMs !== null) {
      options.abandon?.()
      process.exit(1)
    }
    const sinceMs = performance.now()
    endingSinceMs = sinceMs
    log.info('draining; a second signal exits at once', { signal })
    options.drain().then(
      () => {
        log.info('drained', { elapsed_ms: performance.now() - sinceMs })
        return end(0)
      },
      (error: unknown) => {
        log.error('drain failed', error)
        return end(1)
      },
    )
  }
  for (const signal of options.signals ?? (['SIGTERM', 'SIGINT'] as const)) {
    process.on(signal, finish)
  }
  process.on('uncaughtException', (error) => {
    log.error('uncaught exception; exiting', error)
    void end(1)
  })
  const ignore = (signal: string): void => log.warn('signal ignored', { signal })
  process.on('SIGUSR1', (signal) => {
    if (log.reopen()) options.reopened?.()
    else ignore(signal)
  })
  process.on('SIGUSR2', options.restart ?? ignore)
}
