/**
 * The log: JSON lines with named fields, one per exchange, written asynchronously.
 * Takes nothing by accident: fields come from two closed lists, and a last scrub hides what looks
 * like a key. Headers, bodies, prompts and query strings have no field to go into.
 */
import { pino } from 'pino'
import { type ErrorKind, GatewayError, rowOf } from './errors.js'

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

const EXCHANGE_FIELDS: Record<keyof ExchangeLine, true> = {
  request_id: true,
  client_request_id: true,
  method: true,
  path: true,
  status: true,
  outcome: true,
  key_id: true,
  account_id: true,
  route: true,
  upstream: true,
  dialect: true,
  model: true,
  upstream_model: true,
  stream: true,
  generation: true,
  attempts: true,
  upstream_status: true,
  upstream_code: true,
  upstream_request_id: true,
  end: true,
  finish_reason: true,
  param: true,
  lost: true,
  duration_ms: true,
  overhead_ms: true,
  auth_ms: true,
  receive_ms: true,
  first_byte_ms: true,
  first_token_ms: true,
  bytes_in: true,
  bytes_out: true,
  chunks: true,
  input_tokens: true,
  output_tokens: true,
  cache_read_tokens: true,
  cache_write_tokens: true,
  reasoning_tokens: true,
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
  version: true,
  key_id: true,
  account_id: true,
  reason: true,
}

/** The fields of an exchange in their order, each with the text before its value. */
const EXCHANGE_PARTS = Object.keys(EXCHANGE_FIELDS).map((name) => ({
  name,
  prefix: `,"${name}":`,
}))
const EVENT_NAMES = new Set(Object.keys(EVENT_FIELDS))

/** Lines waiting for the destination hold at most this; later ones are dropped and counted. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024
/** A write per 4 KiB or per 100 ms, whichever comes first. */
const BATCH_BYTES = 4096
const BATCH_MS = 100
/** One flush stops where less than a batch is left; after three nothing is. */
const FLUSH_ROUNDS = 3
/** Clients choose some of the strings (model, path, their id); none of them fills the log. */
const MAX_STRING = 256

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
      if (out.isLevelEnabled(level)) sink.stream.write(scrub(exchangeText(fields, level)))
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
 * The exchange's line, put together here: pino's way of walking an object takes 9 µs more for
 * one (30 fields: 13 µs against 4), and every request pays it.
 */
function exchangeText(fields: ExchangeLine, level: 'info' | 'warn'): string {
  let line = `{"level":"${level}","time":"${timestamp()}","pid":${process.pid}`
  const values: Readonly<Record<string, unknown>> = { ...fields }
  for (const { name, prefix } of EXCHANGE_PARTS) {
    const value = values[name]
    if (value === undefined) continue
    if (typeof value === 'number') line += prefix + numeral(value)
    else if (typeof value === 'string')
      line += prefix + quote(name === 'path' ? withoutQuery(value) : value)
    else if (typeof value === 'boolean') line += prefix + (value ? 'true' : 'false')
  }
  return `${line},"msg":"exchange"}\n`
}

let lastMs = 0
let lastIso = ''

/** Now in ISO 8601; formatted once per millisecond. */
function timestamp(): string {
  const now = Date.now()
  if (now !== lastMs) {
    lastMs = now
    lastIso = new Date(now).toISOString()
  }
  return lastIso
}

function numeral(value: number): string {
  if (Number.isInteger(value)) return String(value)
  return Number.isFinite(value) ? String(round(value)) : 'null'
}

/** A JSON string. Most values need no escape, and the test for that is half the price of one. */
function quote(value: string): string {
  const text = clip(value)
  return /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(text) ? `"${text}"` : JSON.stringify(text)
}

/** Keys and tokens by their looks: ours, OpenAI's and Anthropic's, Google's, and password hashes. */
const SECRETS =
  /sk[-_][A-Za-z0-9_-]{12,}|AIza[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{12,}|[Bb]earer\s+[^\s"\\]+|\$argon2[^\s"\\]+/g

/** Replaces what looks like a secret with `***`. */
export function scrub(text: string): string {
  return text.replace(SECRETS, '***')
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
    minLength: BATCH_BYTES,
    periodicFlush: BATCH_MS,
    maxLength: MAX_WAITING_BYTES,
  })
  let dropped = 0
  stream.on('drop', () => {
    dropped += 1
  })
  // A reader that has gone (EPIPE, a full disk) must not end the gateway; its lines are lost.
  stream.on('error', () => {
    dropped += 1
  })
  const flush = async (timeoutMs = 2000): Promise<void> => {
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
  }
  return { stream, dropped: () => dropped, flush }
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

function clip(value: string): string {
  return value.length <= MAX_STRING ? value : `${value.slice(0, MAX_STRING)}…`
}

function withoutQuery(path: string): string {
  const query = path.search(/[?#]/)
  return query === -1 ? path : path.slice(0, query)
}

interface Described {
  kind: string
  message: string
  code?: string
  cause?: Described
  stack?: string[]
}

/** How deep a chain of causes is followed. */
const MAX_CAUSES = 3

/** What an error is, without what a client or an upstream may have put into it. */
function describe(error: unknown, withStack: boolean, depth = 0): Described {
  if (!(error instanceof Error)) return { kind: typeof error, message: 'not an Error' }
  const described: Described = { kind: kindOf(error), message: messageOf(error) }
  if ('code' in error && typeof error.code === 'string') described.code = clip(error.code)
  if (error.cause !== undefined && depth < MAX_CAUSES) {
    described.cause = describe(error.cause, withStack, depth + 1)
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
 * Messages about a client's or an upstream's words may quote them, so only the gateway's own are
 * told. V8 quotes the text that JSON.parse failed on, and Node the argument it did not like.
 */
function messageOf(error: Error): string {
  if (error instanceof GatewayError && rowOf(error.kind).source !== 'gateway') {
    return `see the kind '${error.kind}'`
  }
  const message =
    error instanceof SyntaxError ? error.message.replace(/"[^]*"/, '"…"') : error.message
  return clip(scrub(message.replace(/Received [^]*/, 'Received …')))
}
