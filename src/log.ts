/**
 * The log: JSON lines with named fields, one per exchange, written asynchronously.
 * Takes nothing by accident: fields come from two closed lists, and a last scrub hides what looks
 * like a key. Headers, bodies, prompts and query strings have no field to go into.
 */
import { pino } from 'pino'
import { type ExchangeLine, Lines } from './log-lines.js'
import { clip, describe, scrub } from './log-text.js'

/** The least severe line that is written. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Everything that may be said about an event that is not an exchange. */
export interface EventFields {
  request_id?: string | undefined
  generation?: number | undefined
  upstream?: string | undefined
  variable?: string | undefined
  file?: string | undefined
  host?: string | undefined
  port?: number | undefined
  ops_port?: number | undefined
  store?: string | undefined
  op?: string | undefined
  worker?: number | undefined
  workers?: number | undefined
  worker_pid?: number | undefined
  signal?: string | undefined
  exit_code?: number | undefined
  delay_ms?: number | undefined
  elapsed_ms?: number | undefined
  inflight?: number | undefined
  dropped?: number | undefined
  rows?: number | undefined
  version?: string | undefined
  key_id?: string | undefined
  account_id?: string | undefined
  reason?: string | undefined
}

/** Where lines go: a file descriptor, a file's path, or something that takes whole lines. */
export type LogDestination = number | string | { write(line: string): void }

/** Writes lines; never throws, never waits. */
export interface Logger {
  /** The one line of an exchange: `warn` for a 5xx, `info` otherwise. */
  exchangeLine(fields: ExchangeLine): void
  debug(event: string, fields?: EventFields): void
  info(event: string, fields?: EventFields): void
  warn(event: string, fields?: EventFields): void
  /** `error` as its kind, code and scrubbed message; its stack at level `debug` only. */
  error(event: string, error: unknown, fields?: EventFields): void
  /** Lines that were lost because the destination did not take them in time. */
  dropped(): number
  /** Resolves when everything written so far has left, or after `timeoutMs`. */
  flush(timeoutMs?: number): Promise<void>
}

const EVENT_FIELDS: Record<keyof EventFields, true> = {
  request_id: true,
  generation: true,
  upstream: true,
  variable: true,
  file: true,
  host: true,
  port: true,
  ops_port: true,
  store: true,
  op: true,
  worker: true,
  workers: true,
  worker_pid: true,
  signal: true,
  exit_code: true,
  delay_ms: true,
  elapsed_ms: true,
  inflight: true,
  dropped: true,
  rows: true,
  version: true,
  key_id: true,
  account_id: true,
  reason: true,
}

const EVENT_NAMES = new Set(Object.keys(EVENT_FIELDS))

/** Lines waiting for the destination hold at most this; later ones are dropped and counted. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024
/** A write per 64 KiB or per 100 ms, whichever comes first: each wakes a thread, 60 µs of two cores. */
const BATCH_BYTES = 65_536
const BATCH_MS = 100
/** A turn that writes more than this does not wait for its end. */
const TURN_BYTES = 16_384
/** One flush stops where less than a batch is left; after three nothing is. */
const FLUSH_ROUNDS = 3

/** Opens the log. Throws where a path cannot be opened. */
export function createLogger(options: { level: LogLevel; destination?: LogDestination }): Logger {
  const sink = openSink(options.destination ?? 1)
  const out = pino(
    {
      level: options.level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: scrub },
    },
    { write: sink.add },
  )
  const withStack = out.isLevelEnabled('debug')
  return {
    exchangeLine(fields) {
      const level = fields.status >= 500 ? 'warn' : 'info'
      if (out.isLevelEnabled(level)) sink.exchange(fields, level)
    },
    debug: (event, fields = {}) => out.debug(pick(fields, EVENT_NAMES), event),
    info: (event, fields = {}) => out.info(pick(fields, EVENT_NAMES), event),
    warn: (event, fields = {}) => out.warn(pick(fields, EVENT_NAMES), event),
    error(event, error, fields = {}) {
      out.error({ ...pick(fields, EVENT_NAMES), error: describe(error, withStack) }, event)
    },
    dropped: sink.dropped,
    flush: sink.flush,
  }
}

interface Sink {
  readonly add: (line: string) => void
  readonly exchange: (fields: ExchangeLine, level: 'info' | 'warn') => void
  readonly dropped: () => number
  readonly flush: (timeoutMs?: number) => Promise<void>
}

function openSink(destination: LogDestination): Sink {
  const lines = new Lines()
  if (typeof destination === 'object') {
    const pass = (): void => destination.write(lines.take().toString('utf8'))
    return { ...gathered(lines, pass), dropped: () => 0, flush: () => Promise.resolve() }
  }
  const stream = pino.destination({
    dest: destination,
    sync: false,
    // As text it would be measured, and made bytes of, more than once.
    contentMode: 'buffer',
    minLength: BATCH_BYTES,
    maxWrite: 2 * BATCH_BYTES,
    periodicFlush: BATCH_MS,
    maxLength: MAX_WAITING_BYTES,
  })
  let dropped = 0
  stream.on('drop', (lost: Buffer) => {
    dropped += linesIn(lost)
  })
  // A reader that has gone (EPIPE, a full disk) must not end the gateway; its lines are lost.
  let failing = false
  let closed = false
  stream.on('error', () => {
    dropped += 1
    failing = true
  })
  stream.on('write', () => {
    failing = false
  })
  // One write per turn of the event loop.
  let isDue = false
  const pass = (): void => {
    isDue = false
    if (lines.length === 0) return
    const bytes = lines.take()
    if (closed) dropped += linesIn(bytes)
    // In its mode it takes bytes, which its types do not say.
    else stream.write(bytes as Buffer & string)
  }
  const passInTurn = (): void => {
    if (lines.length > TURN_BYTES) pass()
    else if (!isDue) {
      isDue = true
      setImmediate(pass)
    }
  }
  const flush = async (timeoutMs = 2000): Promise<void> => {
    pass()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs)
    })
    const written = async (): Promise<void> => {
      for (let round = 0; round < FLUSH_ROUNDS; round += 1) {
        await new Promise<void>((resolve) => {
          stream.flush(() => resolve())
        })
      }
    }
    await Promise.race([written(), late]).finally(() => clearTimeout(timer))
    // The stream's own flush at exit would try for ever where the disk is full.
    if (failing && !closed) {
      closed = true
      stream.destroy()
    }
  }
  return { ...gathered(lines, passInTurn), dropped: () => dropped, flush }
}

/** Puts each line to those that wait, and tells that there is one more. */
function gathered(lines: Lines, onLine: () => void): Pick<Sink, 'add' | 'exchange'> {
  return {
    add(line) {
      lines.add(line)
      onLine()
    },
    exchange(fields, level) {
      lines.exchange(fields, level)
      onLine()
    },
  }
}

function linesIn(bytes: Buffer): number {
  return bytes.toString('latin1').split('\n').length - 1
}

type Plain = string | number | boolean | null

/** The fields whose names are allowed and whose values are plain; strings are clipped. */
function pick(fields: object, names: ReadonlySet<string>): Record<string, Plain> {
  const picked: Record<string, Plain> = {}
  for (const [name, value] of Object.entries(fields) as [string, unknown][]) {
    if (!names.has(name)) continue
    if (typeof value === 'string') picked[name] = clip(value)
    else if (typeof value === 'number') picked[name] = round(value)
    else if (typeof value === 'boolean' || value === null) picked[name] = value
  }
  return picked
}

/** Microseconds are enough, and digits are bytes. */
function round(value: number): number {
  return Number.isInteger(value) ? value : Math.round(value * 1000) / 1000
}
