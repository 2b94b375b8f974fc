/**
 * Lines of the log on their way out, as bytes: those of exchanges, put together field by field, and others
 * as they come. Takes nothing by accident: an exchange's fields are a closed list, and what a client or an
 * upstream chose is clipped, scrubbed and escaped. Knows no destination.
 *
 * What comes again with every line of a key, and with every line of a model, is kept as bytes: such a line costs
 * a third of one that is put together as text (docs/decisions/0037).
 */
import type { ErrorKind } from './errors.js'
import { clip, scrub } from './log-text.js'
import { decimal } from './wire/decimal.js'
import { MAX_BY_DIGIT, putDigits } from './wire/json-bytes.js'
import { quote } from './wire/quote.js'

/** Everything that may be said about one exchange. Add a field here or it does not get out. */
export interface ExchangeLine {
  request_id: string
  /** The client's own id, as it sent it. */
  client_request_id?: string | undefined
  /** Where the client is, behind trusted proxies too. */
  client_address?: string | undefined
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

/** No line of an exchange is longer: its texts are clipped, each to some 1,500 bytes at the most. */
const MAX_LINE_BYTES = 24_576
const FIRST_BYTES = 4 * MAX_LINE_BYTES
/** So many keys' and models' beginnings are kept; then they are gathered anew. */
const MAX_KEPT = 1_024
/** A text of a fragment that is longer is one of its kind. */
const MAX_FRAGMENT = 1_024
const ZERO = 48
const POINT = 46
const QUOTE = 34

/** What lines of one key have in common. */
interface Who {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly status: number
  readonly outcome: string
  readonly account_id: string | undefined
  readonly bytes: Buffer
}

/** What lines of one model have in common. */
interface Where {
  readonly route: string | undefined
  readonly upstream: string | undefined
  readonly dialect: string | undefined
  readonly upstream_model: string | undefined
  readonly stream: boolean | undefined
  readonly bytes: Buffer
}

/** Gathers lines until they are taken. */
export class Lines {
  private bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  private at = 0
  private readonly whos = new Map<string, Who>()
  private readonly wheres = new Map<string, Where>()
  private beginning: Buffer = Buffer.alloc(0)
  private beginningMs = 0
  private beginningLevel = ''

  /** How many bytes are waiting. */
  get length(): number {
    return this.at
  }

  /** All lines since the last call. */
  take(): Buffer {
    const taken = Buffer.from(this.bytes.subarray(0, this.at))
    this.at = 0
    return taken
  }

  /** A line as it is, its end included. */
  add(line: string): void {
    // No character takes more than three bytes.
    this.makeRoom(line.length * 3)
    this.at += this.bytes.write(line, this.at)
  }

  /** The line of an exchange. */
  exchange(x: ExchangeLine, level: 'info' | 'warn'): void {
    this.makeRoom(MAX_LINE_BYTES)
    this.copy(this.beginningOf(level))
    this.text(x.request_id)
    this.bytes[this.at] = QUOTE
    this.at += 1
    if (x.client_request_id !== undefined) {
      this.text(`,"client_request_id":${safe(x.client_request_id)}`)
    }
    this.who(x)
    this.where(x)
    this.more(x)
    this.numbers(x)
    this.copy(END)
  }

  private who(x: ExchangeLine): void {
    const { method, path, status, outcome, key_id, account_id } = x
    const known = key_id === undefined ? undefined : this.whos.get(key_id)
    if (
      known !== undefined &&
      known.method === method &&
      known.path === path &&
      known.status === status &&
      known.outcome === outcome &&
      known.account_id === account_id
    ) {
      return this.copy(known.bytes)
    }
    const text = whoOf(x)
    this.text(text)
    if (key_id === undefined || text.length > MAX_FRAGMENT) return
    if (this.whos.size === MAX_KEPT) this.whos.clear()
    this.whos.set(key_id, { method, path, status, outcome, account_id, bytes: Buffer.from(text) })
  }

  private where(x: ExchangeLine): void {
    const { route, upstream, dialect, model, upstream_model, stream } = x
    const known = model === undefined ? undefined : this.wheres.get(model)
    if (
      known !== undefined &&
      known.route === route &&
      known.upstream === upstream &&
      known.dialect === dialect &&
      known.upstream_model === upstream_model &&
      known.stream === stream
    ) {
      return this.copy(known.bytes)
    }
    const text = whereOf(x)
    this.text(text)
    if (model === undefined || text.length > MAX_FRAGMENT) return
    if (this.wheres.size === MAX_KEPT) this.wheres.clear()
    const bytes = Buffer.from(text)
    this.wheres.set(model, { route, upstream, dialect, upstream_model, stream, bytes })
  }

  /** What differs from one exchange to the next, and most do not have. */
  private more(x: ExchangeLine): void {
    if (x.client_address !== undefined) this.text(`,"client_address":${safe(x.client_address)}`)
    if (x.upstream_code !== undefined) this.text(`,"upstream_code":${safe(x.upstream_code)}`)
    if (x.upstream_request_id !== undefined) {
      this.text(`,"upstream_request_id":${safe(x.upstream_request_id)}`)
    }
    if (x.end !== undefined) this.text(`,"end":"${x.end}"`)
    if (x.finish_reason !== undefined) this.text(`,"finish_reason":"${x.finish_reason}"`)
    if (x.param !== undefined) this.text(`,"param":${safe(x.param)}`)
    if (x.lost !== undefined) this.text(`,"lost":${safe(x.lost)}`)
    if (x.lost_in_reply !== undefined) this.text(`,"lost_in_reply":${safe(x.lost_in_reply)}`)
  }

  private numbers(x: ExchangeLine): void {
    this.number(NAMES.generation, x.generation)
    this.number(NAMES.attempts, x.attempts)
    this.number(NAMES.upstream_status, x.upstream_status)
    this.number(NAMES.duration_ms, x.duration_ms)
    this.number(NAMES.overhead_ms, x.overhead_ms)
    this.number(NAMES.auth_ms, x.auth_ms)
    this.number(NAMES.receive_ms, x.receive_ms)
    this.number(NAMES.first_byte_ms, x.first_byte_ms)
    this.number(NAMES.first_token_ms, x.first_token_ms)
    this.number(NAMES.bytes_in, x.bytes_in)
    this.number(NAMES.bytes_out, x.bytes_out)
    this.number(NAMES.chunks, x.chunks)
    this.number(NAMES.input_tokens, x.input_tokens)
    this.number(NAMES.output_tokens, x.output_tokens)
    this.number(NAMES.cache_read_tokens, x.cache_read_tokens)
    this.number(NAMES.cache_write_tokens, x.cache_write_tokens)
    this.number(NAMES.reasoning_tokens, x.reasoning_tokens)
  }

  /** As `decimal` writes it. */
  private number(name: Uint8Array, value: number | undefined): void {
    if (value === undefined) return
    const { bytes } = this
    let { at } = this
    for (let i = 0; i < name.length; i += 1) bytes[at + i] = name[i] ?? 0
    at += name.length
    if (value >= 0 && value < MAX_BY_DIGIT) {
      const thousandths = Math.round(value * 1000)
      const whole = Math.floor(thousandths / 1000)
      at = putDigits(bytes, at, whole)
      this.at = fraction(bytes, at, thousandths - whole * 1000)
    } else {
      this.at = at
      this.text(decimal(value))
    }
  }

  private text(text: string): void {
    this.at += this.bytes.write(text, this.at)
  }

  private copy(from: Uint8Array): void {
    this.bytes.set(from, this.at)
    this.at += from.length
  }

  /** How the line begins, up to its id; made once per millisecond. */
  private beginningOf(level: 'info' | 'warn'): Buffer {
    const now = Date.now()
    if (now !== this.beginningMs || level !== this.beginningLevel) {
      this.beginningMs = now
      this.beginningLevel = level
      const time = new Date(now).toISOString()
      this.beginning = Buffer.from(
        `{"level":"${level}","time":"${time}","pid":${PID},"request_id":"`,
      )
    }
    return this.beginning
  }

  private makeRoom(bytes: number): void {
    if (this.bytes.length - this.at >= bytes) return
    const larger = Buffer.allocUnsafeSlow(2 * this.bytes.length + bytes)
    larger.set(this.bytes.subarray(0, this.at))
    this.bytes = larger
  }
}

const PID = process.pid
const END = Buffer.from(',"msg":"exchange"}\n')

const NAMES = {
  generation: named('generation'),
  attempts: named('attempts'),
  upstream_status: named('upstream_status'),
  duration_ms: named('duration_ms'),
  overhead_ms: named('overhead_ms'),
  auth_ms: named('auth_ms'),
  receive_ms: named('receive_ms'),
  first_byte_ms: named('first_byte_ms'),
  first_token_ms: named('first_token_ms'),
  bytes_in: named('bytes_in'),
  bytes_out: named('bytes_out'),
  chunks: named('chunks'),
  input_tokens: named('input_tokens'),
  output_tokens: named('output_tokens'),
  cache_read_tokens: named('cache_read_tokens'),
  cache_write_tokens: named('cache_write_tokens'),
  reasoning_tokens: named('reasoning_tokens'),
}

function named(name: keyof ExchangeLine): Buffer {
  return Buffer.from(`,"${name}":`)
}

/** Writes thousandths without zeros at the end, and nothing for none; answers where they end. */
function fraction(bytes: Buffer, at: number, thousandths: number): number {
  if (thousandths === 0) return at
  const tenths = (thousandths / 100) | 0
  const hundredths = ((thousandths / 10) | 0) - tenths * 10
  const last = thousandths - tenths * 100 - hundredths * 10
  bytes[at] = POINT
  bytes[at + 1] = ZERO + tenths
  bytes[at + 2] = ZERO + hundredths
  bytes[at + 3] = ZERO + last
  if (last !== 0) return at + 4
  return hundredths === 0 ? at + 2 : at + 3
}

/** What the client chose goes through `quote`; our own ids and names need no escape. */
function whoOf(x: ExchangeLine): string {
  let text = ''
  if (x.method !== undefined) text += `,"method":"${x.method}"`
  if (x.path !== undefined) text += `,"path":${safe(withoutQuery(x.path))}`
  text += `,"status":${x.status},"outcome":"${x.outcome}"`
  if (x.key_id !== undefined) text += `,"key_id":"${x.key_id}"`
  if (x.account_id !== undefined) text += `,"account_id":"${x.account_id}"`
  return text
}

function whereOf(x: ExchangeLine): string {
  let text = ''
  if (x.route !== undefined) text += `,"route":${word(x.route)}`
  if (x.upstream !== undefined) text += `,"upstream":${word(x.upstream)}`
  if (x.dialect !== undefined) text += `,"dialect":"${x.dialect}"`
  if (x.model !== undefined) text += `,"model":${word(x.model)}`
  if (x.upstream_model !== undefined) text += `,"upstream_model":${word(x.upstream_model)}`
  if (x.stream !== undefined) text += x.stream ? ',"stream":true' : ',"stream":false'
  return text
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

function withoutQuery(path: string): string {
  const query = path.search(/[?#]/)
  return query === -1 ? path : path.slice(0, query)
}
