/**
 * The log: pino's JSON lines with fields from two closed lists, one line per exchange. A last pass over each
 * line replaces what looks like a key.
 */
import { pino } from 'pino'
import { eventFields, exchangeFields, type EventFields, type ExchangeLine } from './fields.js'
import { openSink, type LogDestination } from './sink.js'
import { describe, scrub } from './redact.js'

/** The least severe line that is written. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Writes lines; never throws, never waits. */
export interface Logger {
  /** The one line of an exchange: `warn` for a failure of the gateway or a provider, `info` otherwise. */
  exchangeLine(fields: ExchangeLine): void
  debug(event: string, fields?: EventFields): void
  info(event: string, fields?: EventFields): void
  warn(event: string, fields?: EventFields): void
  /** `error` as its kind, code and scrubbed message; its stack at level `debug` only. */
  error(event: string, error: unknown, fields?: EventFields): void
  /**
   * Resolves when everything written so far has left, or after `timeoutMs` (1000). A destination that took
   * nothing during one flush is not waited for again until it takes a line.
   */
  flush(timeoutMs?: number): Promise<void>
}

/** How to open a log. */
export interface LoggerOptions {
  readonly level: LogLevel
  /** Standard output where absent. */
  readonly destination?: LogDestination
  /** Called with the number of lines that the destination did not take in time. */
  readonly onLost?: (lines: number) => void
}

/** Opens the log. Throws when a path cannot be opened. */
export function createLogger(options: LoggerOptions): Logger {
  const sink = openSink(options.destination ?? 1, options.onLost ?? (() => undefined))
  const out = pino(
    {
      level: options.level,
      base: { pid: process.pid },
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: scrub },
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
      out.error({ ...eventFields(fields), error: describe(error, withStack) }, event)
    },
    flush: (timeoutMs) => sink.flush(timeoutMs),
  }
}

let lastMs = 0
let lastTime = ''

/** The member `time`, as pino's `isoTime` writes it, made once per millisecond: 0.6 µs of each line otherwise. */
function timestamp(): string {
  const nowMs = Date.now()
  if (nowMs !== lastMs) {
    lastMs = nowMs
    lastTime = `,"time":"${new Date(nowMs).toISOString()}"`
  }
  return lastTime
}
