/**
 * The log: JSON lines by pino, with fields of two closed lists, one line per exchange. Texts that look like
 * keys are replaced in each finished line.
 */
import { pino } from 'pino'
import { GatewayError, rowOf } from '../errors.js'
import { hideSecrets } from '../secrets.js'
import {
  eventFields,
  exchangeFields,
  clip,
  type EventFields,
  type ExchangeLine,
} from './log-fields.js'
import { openSink, type LogDestination } from './log-sink.js'

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
  /**
   * Opens the log's file again after it was renamed, and logs that. False if the destination is not a file.
   * If the path cannot be opened, the former file stays in use, with a line about the failure.
   */
  reopen(): boolean
  /** Changes level and destination. Throws if the path cannot be opened; then nothing changes. */
  changeTo(options: Pick<LoggerOptions, 'level' | 'file'>): void
}

/** How to open a log. */
export interface LoggerOptions {
  readonly level: LogLevel
  /** The path of a file; null or absent: `destination`. */
  readonly file?: string | null
  /** Standard output by default. */
  readonly destination?: LogDestination
  /** Called with the number of lines that were dropped. */
  readonly onLost?: (lines: number) => void
}

/** Opens the log. Throws if a path cannot be opened. */
export function createLogger(options: LoggerOptions): Logger {
  const onLost = options.onLost ?? (() => undefined)
  const destinationOf = (file: string | null | undefined) => file ?? options.destination ?? 1
  let destination = destinationOf(options.file)
  let sink = openSink(destination, onLost)
  /** The fields of the line that is being written if it is one of an exchange. */
  let exchange = ''
  const out = pino(
    {
      level: options.level,
      base: { pid: process.pid },
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => hideSecrets(withFields(line, exchange), '***') },
    },
    { write: (line: string) => sink.write(line) },
  )
  const logger: Logger = {
    exchangeLine(fields) {
      const { cause, status } = fields
      const isSerious = cause === 'gateway' || cause === 'provider' || status >= 500
      const level = isSerious ? 'warn' : 'info'
      if (!out.isLevelEnabled(level)) return
      // Twice as fast as pino's loop over 50 fields, with the same text.
      exchange = JSON.stringify(exchangeFields(fields)).slice(1, -1)
      out[level]('exchange')
      exchange = ''
    },
    debug: (event, fields = {}) => out.debug(eventFields(fields), event),
    info: (event, fields = {}) => out.info(eventFields(fields), event),
    warn: (event, fields = {}) => out.warn(eventFields(fields), event),
    error(event, error, fields = {}) {
      out.error(
        { ...eventFields(fields), error: describeError(error, out.isLevelEnabled('debug')) },
        event,
      )
    },
    flush: (timeoutMs) => sink.flush(timeoutMs),
    reopen() {
      try {
        if (!sink.reopen()) return false
        logger.info('log file reopened')
      } catch (error) {
        logger.error('log file not reopened; writing to the former one', error)
      }
      return true
    },
    changeTo({ level, file }) {
      const wanted = destinationOf(file)
      if (wanted !== destination) {
        const former = sink
        sink = openSink(wanted, onLost)
        destination = wanted
        void former.flush()
      }
      out.level = level
    },
  }
  return logger
}

/** The end of pino's line of an exchange. */
const EXCHANGE_END = ',"msg":"exchange"}\n'

/** The line with the fields before its message. */
function withFields(line: string, fields: string): string {
  if (fields === '') return line
  return `${line.slice(0, -EXCHANGE_END.length)},${fields}${EXCHANGE_END}`
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

/** An error as it appears in the log. */
export interface ErrorDescription {
  kind: string
  message: string
  code?: string
  cause?: ErrorDescription
  stack?: string[]
}

/** Maximum depth of logged causes. */
const MAX_CAUSES = 3

/**
 * Describes an error without content from a client or an upstream.
 *
 * Describes errors for the log, without secrets and without content from clients or upstreams.
 * `formats/wire/upstream-errors.ts` is stricter and makes an upstream's message safe for clients.
 */
function describeError(error: unknown, withStack: boolean, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { kind: typeof error, message: 'not an Error' }
  const described: ErrorDescription = { kind: kindOf(error), message: messageOf(error) }
  if ('code' in error && typeof error.code === 'string') described.code = clip(error.code)
  if (error.cause !== undefined && depth < MAX_CAUSES) {
    described.cause = describeError(error.cause, withStack, depth + 1)
  }
  if (withStack && error.stack !== undefined) {
    const frames = error.stack.split('\n').filter((line) => /^\s+at /.test(line))
    described.stack = frames.map((line) => line.trim())
  }
  return described
}

function kindOf(error: Error): string {
  return error instanceof GatewayError ? error.kind : clip(error.name)
}

/**
 * Messages about content of a client or upstream may quote it, so only the gateway's own messages are logged.
 * V8 quotes the text that JSON.parse failed on, and Node the invalid argument.
 */
function messageOf(error: Error): string {
  if (error instanceof GatewayError && rowOf(error.kind).source !== 'gateway') {
    return `see the kind '${error.kind}'`
  }
  const message =
    error instanceof SyntaxError ? error.message.replace(/"[^]*"/, '"…"') : error.message
  return clip(hideSecrets(message.replace(/Received [^]*/, 'Received …'), '***'))
}
