/**
 * The log: JSON lines with named fields, one per exchange, written asynchronously.
 * Takes nothing by accident: fields come from two closed lists, and a last scrub hides what looks
 * like a key. Headers, bodies, prompts and query strings have no field to go into.
 */
import { pino } from 'pino'
import type { ErrorKind } from './errors.js'
import { clip, describe, scrub } from './log-text.js'
import { decimal } from './wire/decimal.js'
import { quote } from './wire/quote.js'

/** The least severe line that is written. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Everything that may be said about one exchange. Add a field here or it does not get out. */
export interface ExchangeLine {
  request_id: string
  /** The client's own id, as it sent it. */
  client_request_id?: string | undefined
  method?: string | undefined
  /** Without the query. */
  path?: string | undefined
  status: number
  outcome: 'ok' | ErrorKind
  key_id?: string | undefined
  account_id?: string | undefined
  route?: string | undefined
  upstream?: string | undefined
  dialect?: string | undefined
  model?: string | undefined
  upstream_model?: string | undefined
  stream?: boolean | undefined
  generation?: number | undefined
  attempts?: number | undefined
  upstream_status?: number | undefined
  /** The upstream's own word for an error: its type or code. */
  upstream_code?: string | undefined
  upstream_request_id?: string | undefined
  /** How a stream ended. */
  end?: string | undefined
  finish_reason?: string | undefined
  /** The field at fault, as a path. */
  param?: string | undefined
  /** Fields that a translation lost, joined with commas. */
  lost?: string | undefined
  /** What the upstream said and the client's format could not. */
  lost_in_reply?: string | undefined
  duration_ms: number
  overhead_ms?: number | undefined
  auth_ms?: number | undefined
  receive_ms?: number | undefined
  first_byte_ms?: number | undefined
  first_token_ms?: number | undefined
  bytes_in?: number | undefined
  bytes_out?: number | undefined
  chunks?: number | undefined
  input_tokens?: number | undefined
  output_tokens?: number | undefined
  cache_read_tokens?: number | undefined
  cache_write_tokens?: number | undefined
  reasoning_tokens?: number | undefined
}

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
    sink.stream,
  )
  const withStack = out.isLevelEnabled('debug')
  return {
    exchangeLine(fields) {
      const level = fields.status >= 500 ? 'warn' : 'info'
      if (out.isLevelEnabled(level)) sink.stream.write(exchangeText(fields, level))
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

/**
 * The exchange's line, put together here, field by field: pino's walk over an object takes 13 µs for
 * one of 30 fields and this 2, and every request pays it.
 */
function exchangeText(x: ExchangeLine, level: 'info' | 'warn'): string {
  return `{"level":"${level}"${stamp()}` + who(x) + where(x) + numbers(x) + ',"msg":"exchange"}\n'
}

/** What the client chose goes through `quote`; our own ids and names need no escape. */
function who(x: ExchangeLine): string {
  let text = `,"request_id":"${x.request_id}"`
  if (x.client_request_id !== undefined) text += `,"client_request_id":${safe(x.client_request_id)}`
  if (x.method !== undefined) text += `,"method":"${x.method}"`
  if (x.path !== undefined) text += `,"path":${safe(withoutQuery(x.path))}`
  text += `,"status":${x.status},"outcome":"${x.outcome}"`
  if (x.key_id !== undefined) text += `,"key_id":"${x.key_id}"`
  if (x.account_id !== undefined) text += `,"account_id":"${x.account_id}"`
  return text
}

function where(x: ExchangeLine): string {
  let text = ''
  if (x.route !== undefined) text += `,"route":${word(x.route)}`
  if (x.upstream !== undefined) text += `,"upstream":${word(x.upstream)}`
  if (x.dialect !== undefined) text += `,"dialect":"${x.dialect}"`
  if (x.model !== undefined) text += `,"model":${word(x.model)}`
  if (x.upstream_model !== undefined) text += `,"upstream_model":${word(x.upstream_model)}`
  if (x.stream !== undefined) text += x.stream ? ',"stream":true' : ',"stream":false'
  if (x.upstream_code !== undefined) text += `,"upstream_code":${safe(x.upstream_code)}`
  if (x.upstream_request_id !== undefined) {
    text += `,"upstream_request_id":${safe(x.upstream_request_id)}`
  }
  if (x.end !== undefined) text += `,"end":"${x.end}"`
  if (x.finish_reason !== undefined) text += `,"finish_reason":"${x.finish_reason}"`
  if (x.param !== undefined) text += `,"param":${safe(x.param)}`
  if (x.lost !== undefined) text += `,"lost":${safe(x.lost)}`
  if (x.lost_in_reply !== undefined) text += `,"lost_in_reply":${safe(x.lost_in_reply)}`
  return text
}

function numbers(x: ExchangeLine): string {
  return (
    number(',"generation":', x.generation) +
    number(',"attempts":', x.attempts) +
    number(',"upstream_status":', x.upstream_status) +
    number(',"duration_ms":', x.duration_ms) +
    number(',"overhead_ms":', x.overhead_ms) +
    number(',"auth_ms":', x.auth_ms) +
    number(',"receive_ms":', x.receive_ms) +
    number(',"first_byte_ms":', x.first_byte_ms) +
    number(',"first_token_ms":', x.first_token_ms) +
    number(',"bytes_in":', x.bytes_in) +
    number(',"bytes_out":', x.bytes_out) +
    number(',"chunks":', x.chunks) +
    number(',"input_tokens":', x.input_tokens) +
    number(',"output_tokens":', x.output_tokens) +
    number(',"cache_read_tokens":', x.cache_read_tokens) +
    number(',"cache_write_tokens":', x.cache_write_tokens) +
    number(',"reasoning_tokens":', x.reasoning_tokens)
  )
}

function number(prefix: string, value: number | undefined): string {
  return value === undefined ? '' : prefix + decimal(value)
}

const PID = process.pid
let stampMs = 0
let stampText = ''

/** When, in ISO 8601, and which process; put together once per millisecond. */
function stamp(): string {
  const now = Date.now()
  if (now !== stampMs) {
    stampMs = now
    stampText = `,"time":"${new Date(now).toISOString()}","pid":${PID}`
  }
  return stampText
}

/** So many, and none longer, so that no upstream fills the memory with names of its own. */
const MAX_WORDS = 256
const MAX_WORD = 128
const words = new Map<string, string>()

/** As `safe`, for names that come again with every line. */
function word(name: string): string {
  const known = words.get(name)
  if (known !== undefined) return known
  const made = safe(name)
  if (words.size < MAX_WORDS && name.length <= MAX_WORD) words.set(name, made)
  return made
}

/** A JSON string without what looks like a secret. */
function safe(value: string): string {
  return quote(scrub(clip(value)))
}

interface Sink {
  readonly stream: { write(line: string): void }
  readonly dropped: () => number
  readonly flush: (timeoutMs?: number) => Promise<void>
}

function openSink(destination: LogDestination): Sink {
  if (typeof destination === 'object') {
    return { stream: destination, dropped: () => 0, flush: () => Promise.resolve() }
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
  stream.on('drop', (lines: Buffer) => {
    dropped += lines.toString('latin1').split('\n').length - 1
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
  let waiting = ''
  const pass = (): void => {
    const lines = waiting
    waiting = ''
    if (closed) dropped += lines.split('\n').length - 1
    // In its mode it takes bytes, which its types do not say.
    else if (lines !== '') stream.write(Buffer.from(lines) as Buffer & string)
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
  const guarded = {
    write: (line: string): void => {
      if (waiting === '') setImmediate(pass)
      waiting += line
      if (waiting.length > TURN_BYTES) pass()
    },
  }
  return { stream: guarded, dropped: () => dropped, flush }
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

function withoutQuery(path: string): string {
  const query = path.search(/[?#]/)
  return query === -1 ? path : path.slice(0, query)
}
