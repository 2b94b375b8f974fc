/**
 * What has been scripted for requests to come: faults and replays, tried in the order given.
 * Knows no wire format.
 */
import { GatewayError } from '../../errors.js'
import { arrayOf, isObject, numberOf, objectOf, stringOf } from '../../chat/json.js'
import { faultOf } from './fault.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import type { ParsedRequest } from '../exchange.js'
import type { Fault } from './fault.js'
import type { Chunking } from './send-plan.js'

/** Bytes to answer with instead of an answer of the emulator's own. */
export interface Recording {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** One scripted entry. */
export interface ScriptEntry {
  /** Which requests it is for; all where absent. */
  readonly match?: ((request: ParsedRequest) => boolean) | undefined
  /** How many requests it answers; without end where absent. */
  readonly times?: number
  readonly fault?: Fault | readonly Fault[] | undefined
  readonly replay?: Recording
  readonly chunking?: Chunking
}

interface Entry extends ScriptEntry {
  left: number
}

/** The scripted entries that are still in force. */
export class Script {
  #entries: Entry[] = []

  /** Returns a function that takes the entry back. */
  add(scripted: ScriptEntry): () => void {
    const entry: Entry = { ...scripted, left: scripted.times ?? Infinity }
    this.#entries.push(entry)
    return () => {
      this.#entries = this.#entries.filter((other) => other !== entry)
    }
  }

  get size(): number {
    return this.#entries.length
  }

  clear(): void {
    this.#entries = []
  }

  /** The first entry for this request, used up by one. */
  take(request: ParsedRequest): ScriptEntry | undefined {
    const entry = this.#entries.find(({ match }) => match === undefined || match(request))
    if (entry !== undefined) {
      entry.left -= 1
      if (entry.left <= 0) {
        this.#entries = this.#entries.filter((other) => other !== entry)
      }
    }
    return entry
  }
}

/**
 * A scene from parsed JSON: `{fault, times?, match?: {provider?, model?, stream?, contains?}}`.
 * Throws `malformed_request`, naming the field.
 */
export function scriptEntryOf(value: JsonValue | undefined): ScriptEntry {
  if (!isObject(value)) {
    throw new GatewayError('malformed_request', 'the body must be a JSON object with a fault')
  }
  const faults = (Array.isArray(value.fault) ? value.fault : [value.fault]).map(faultOf)
  const times = numberOf(value.times)
  const rule = objectOf(value.match)
  return {
    fault: faults,
    ...(times !== undefined && { times }),
    ...(Object.keys(rule).length > 0 && { match: matcherOf(rule) }),
  }
}

const RULES = ['provider', 'model', 'stream', 'contains']

function matcherOf(rule: JsonObject): (request: ParsedRequest) => boolean {
  const unknown = Object.keys(rule).find((key) => !RULES.includes(key))
  if (unknown !== undefined) {
    throw new GatewayError(
      'malformed_request',
      `match.${unknown} is not one of ${RULES.join(', ')}`,
    )
  }
  return (request) =>
    (rule.provider === undefined || rule.provider === request.provider) &&
    (rule.model === undefined || rule.model === modelOf(request)) &&
    (rule.stream === undefined || rule.stream === isStream(request)) &&
    (rule.contains === undefined ||
      JSON.stringify(request.body ?? null).includes(stringOf(rule.contains) ?? ''))
}

/** The model that a request names, wherever its provider puts it. */
export function modelOf(request: ParsedRequest): string | undefined {
  return stringOf(request.body?.model) ?? /^\/models\/([^:]+)/.exec(request.path)?.[1]
}

/** Whether a request asks for a stream. */
function isStream(request: ParsedRequest): boolean {
  return request.body?.stream === true || request.path.includes(':streamGenerateContent')
}

/** The text of the last thing that the user said, wherever the provider puts it: for directives. */
export function lastWords(request: ParsedRequest): string {
  const body = request.body ?? {}
  if (typeof body.prompt === 'string') return body.prompt
  const texts = arrayOf(body.input).filter((each) => typeof each === 'string')
  if (texts.length > 0) return texts.at(-1) ?? ''
  const embedded = arrayOf(body.requests).at(-1) ?? body
  if (isObject(embedded) && isObject(embedded.content)) return wordsOf(embedded.content)
  const turns = arrayOf(body.messages ?? body.contents ?? body.input).filter(isObject)
  const lastTurn = turns.findLast(
    (turn) => (turn.role ?? 'user') === 'user' && wordsOf(turn) !== '',
  )
  return lastTurn === undefined ? (stringOf(body.input) ?? '') : wordsOf(lastTurn)
}

function wordsOf(turn: JsonObject): string {
  const content = turn.content ?? turn.parts
  return (
    stringOf(content) ??
    arrayOf(content)
      .map((part) => stringOf(objectOf(part).text) ?? '')
      .join('')
  )
}
