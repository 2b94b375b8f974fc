/**
 * The table of faults, and how to parse them from a program, over HTTP and from a prompt. `content-faults.ts`
 * and `delay-and-cut-faults.ts` apply them.
 */
import { malformed } from '../../errors.js'
import { isObject, stringOf } from '../../base/json.js'
import type { JsonValue } from '../../base/json.js'

/** A fault. `FAULTS` lists the fields of each kind. */
export interface Fault {
  readonly kind: FaultKind
  /** Milliseconds. */
  readonly ms?: number
  /** Bytes of the reply's body, before chunk framing. */
  readonly bytes?: number
  /** Index of the event before which the fault takes effect; the first is 0. */
  readonly event?: number
  /** The status of an error reply. */
  readonly code?: number
  readonly mode?: string
  /** The provider's own name for an error, such as `overloaded_error`. */
  readonly type?: string
  /** Value of the `retry-after` header. */
  readonly 'retry-after'?: string
  /** Value of the `retry-after-ms` header. */
  readonly 'retry-after-ms'?: string
  /** Gemini's RetryInfo.retryDelay, such as `34.4s`. */
  readonly 'retry-info'?: string
  /** Target of a redirect. */
  readonly to?: string
  /** In a prompt: how many requests with this prompt get the fault. */
  readonly times?: number
}

interface FaultRow {
  readonly fields: readonly (keyof Fault)[]
  /** Allowed values of `mode`; the first is the default. */
  readonly modes?: readonly string[]
  readonly meaning: string
}

/** Every kind of fault: its fields, its modes and its effect. */
export const FAULTS = {
  delay: row(['ms', 'mode'], 'waits `ms` before this part of the reply', ['headers', 'first', 'each']),
  drip: row(['ms', 'bytes'], 'sends `bytes` (1) bytes every `ms`'),
  chunks: row(['bytes'], 'sends chunks of `bytes` (1) bytes at once'),
  lump: row([], 'sends all events in one chunk'),
  cut: row(['bytes', 'event', 'mode'], 'ends the reply at a byte or an event', [
    'reset',
    'eof',
    'close',
    'chunk',
    'length',
  ]),
  stall: row(['event', 'bytes'], 'sends nothing after an event or byte and keeps the connection open'),
  hang: row([], 'accepts the request and never replies'),
  drop: row([], 'resets the connection without a reply'),
  open: row([], 'sends everything and never ends the reply'),
  status: row(
    ['code', 'mode', 'type', 'retry-after', 'retry-after-ms', 'retry-info'],
    'replies with an error status before any event',
    ['json', 'html', 'empty'],
  ),
  error: row(['event', 'type'], "sends the provider's own error event and ends"),
  garbage: row(['event', 'mode'], 'inserts a malformed event before the event', ['json', 'bytes']),
  unknown: row(['event'], 'inserts an event of an unknown type before the event'),
  unterminated: row([], 'omits the events that end the stream'),
  extra: row(['ms'], 'keeps sending events after the terminator, one per `ms` (10)'),
  usage: row(['mode'], 'alters the token counts', ['missing', 'null', 'twice', 'negative', 'huge']),
  silent: row(['mode'], 'a 200 stream without content', ['nothing', 'comments', 'pings']),
  giant: row(['bytes'], 'one text event of `bytes` bytes first'),
  html: row([], '200 with text/html'),
  whole: row([], 'a JSON body although a stream was requested'),
  gzip: row([], 'content-encoding: gzip although identity was requested'),
  empty: row([], '204 without a body'),
  redirect: row(['to', 'code'], '302 to another origin'),
  untyped: row([], 'no content-type'),
  'lose-result': row(
    [],
    'a batch without the result of its last line; in the prompt of a line, of that line',
  ),
  'late-results': row(['ms'], 'a batch that ends `ms` later'),
  expire: row(
    [],
    'a batch that expires with the second half of its lines; in the prompt of a line, that line',
  ),
  reorder: row([], 'a batch with its results in the reverse order'),
} as const satisfies Record<string, FaultRow>

/** The name of a kind of fault. */
type FaultKind = keyof typeof FAULTS

function row(fields: readonly (keyof Fault)[], meaning: string, modes?: readonly string[]): FaultRow {
  return modes === undefined ? { fields, meaning } : { fields, meaning, modes }
}

function isKind(name: unknown): name is FaultKind {
  return typeof name === 'string' && Object.hasOwn(FAULTS, name)
}

function rowOfFault(kind: FaultKind): FaultRow {
  return FAULTS[kind]
}

/** The mode of a fault, or the kind's default. */
export function modeOf(fault: Fault): string {
  return fault.mode ?? rowOfFault(fault.kind).modes?.[0] ?? ''
}

/**
 * A fault from parsed JSON. Throws `malformed_request`, naming the field, for an unknown kind, a
 * field that the kind does not take, or a value of the wrong type.
 */
export function faultOf(value: JsonValue | undefined): Fault {
  if (!isObject(value) || !isKind(value.kind)) {
    throw malformed(`fault.kind must be one of ${Object.keys(FAULTS).join(', ')}`)
  }
  const { fields, modes } = rowOfFault(value.kind)
  const fault: Record<string, string | number> & { kind: FaultKind } = { kind: value.kind }
  for (const [name, received] of Object.entries(value)) {
    if (name === 'kind') {
      continue
    }
    if (name !== 'times' && !fields.some((field) => field === name)) {
      throw malformed(`fault '${value.kind}' takes no '${name}'`)
    }
    fault[name] = fieldOf(name, received, modes)
  }
  return fault
}

const NUMBERS = new Set(['ms', 'bytes', 'event', 'code', 'times'])

function fieldOf(
  name: string,
  received: JsonValue | undefined,
  modes: readonly string[] | undefined,
): string | number {
  const text = stringOf(received) ?? (typeof received === 'number' ? String(received) : '')
  if (!NUMBERS.has(name)) {
    if (name === 'mode' && modes?.includes(text) !== true) {
      throw malformed(`fault mode must be one of ${modes?.join(', ') ?? 'none'}`)
    }
    return text
  }
  const number = Number(text)
  if (text === '' || !Number.isInteger(number) || number < 0 || number > 0x7fffffff) {
    throw malformed(`fault field '${name}' must be a whole number, not ${JSON.stringify(received)}`)
  }
  if (name === 'code' && (number < 200 || number > 599)) {
    throw malformed(`fault field 'code' must be a status from 200 to 599, not ${number}`)
  }
  return number
}
