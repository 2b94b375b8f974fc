/**
 * The log: JSON lines by pino, with fields of two closed lists, one line per exchange. Texts that look like
 * keys are replaced in each finished line.
 */
import { pino } from 'pino'
import { hideSecrets } from '../../secrets/redact-secrets.js'
import { eventFields, exchangeFields, type EventFields, type ExchangeLine } from './log-fields.js'
import { openSink, type LogDestination } from './sink.js'
import { describeError } from './describe-error.js'

/** The minimum level. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Writes lines; never throws and never blocks. */
export interface Logger {
  /** The one line of an exchange: `warn` for a failure of the gateway or a provider, `info` otherwise. */
  exchangeLine(fields: ExchangeLine): void
  debug(event: string, fields?: EventFields): void
  info(event: string, fields?: EventFields): void
  warn(event: string, fields?: EventFields): void
  /** Logs the kind, code and message of `error`, without secrets; its stack at level `debug` only. */
  error(event: string, error: unknown, fields?: EventFields): void
  /**
   * Resolves when all lines are written, or after `timeoutMs` (1000). A destination that accepted nothing
   * during one flush is not waited for again until it accepts a line.
   */
  flush(timeoutMs?: number): Promise<void>
}

/** How to open a log. */
export interface LoggerOptions {
  readonly level: LogLevel
  /** Standard output by default. */
  readonly destination?: LogDestination
  /** Called with the number of lines that were dropped. */
  readonly onLost?: (lines: number) => void
}

/** Opens the log. Throws if a path cannot be opened. */
export function createLogger(options: LoggerOptions): Logger {
  const sink = openSink(options.destination ?? 1, options.onLost ?? (() => undefined))
  const out = pino(
    {
      level: options.level,
      base: { pid: process.pid },
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => hideSecrets(line, '***') },
    },
    sink,
  )
  const withStack = out.isLevelEnabled('debug')
  return {
    exchangeLine(fields) {
      const { cause, status } = fields
      const isSerious = cause === 'gateway' || cause === 'provider' || status >= 500
      const level = isSerious ? 'warn' : 'info'
      if (out.isLevelEnabled(level)) out[level](exchangeFields(fields), 'exchange')
    },
    debug: (event, fields = {}) => out.debug(eventFields(fields), event),
    info: (event, fields = {}) => out.info(eventFields(fields), event),
    warn: (event, fields = {}) => out.warn(eventFields(fields), event),
    error(event, error, fields = {}) {
      out.error({ ...eventFields(fields), error: describeError(error, withStack) }, event)
    },
    flush: (timeoutMs) => sink.flush(timeoutMs),
  }
}

let lastMs = 0
let lastTime = ''

/**
 * The member `time` in the format of pino's `isoTime`, cached per millisecond; uncached, it costs 0.6 µs per
 * line.
 */
function timestamp(): string {
  const nowMs = Date.now()
  if (nowMs !== lastMs) {
    lastMs = nowMs
    lastTime = `,"time":"${new Date(nowMs).toISOString()}"`
  }
  return lastTime
}
