/**
 * The script of faults and replays for coming requests. Entries are matched in order.
 */
import type { ServerResponse } from 'node:http'
import { GatewayError, malformed } from '../../errors.js'
import {
  arrayOf,
  isObject,
  numberOf,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../base/json.js'
import { bedrockPath } from '../bedrock-requests.js'
import type { ParsedRequest } from '../emulated-exchange.js'
import type { Ledger } from '../received-requests.js'
import { faultOf, FAULTS, type Fault } from './fault-table.js'
import type { Chunking } from './delay-and-cut-faults.js'

/** A recorded reply to send instead of an emulated one. */
export interface Recording {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

export interface ScriptEntry {
  /** Selects requests; all if absent. */
  readonly match?: ((request: ParsedRequest) => boolean) | undefined
  /** Number of requests; unlimited if absent. */
  readonly times?: number
  readonly fault?: Fault | readonly Fault[] | undefined
  readonly replay?: Recording
  readonly chunking?: Chunking
}

interface Entry extends ScriptEntry {
  left: number
}

/** The active entries. */
export class Script {
  #entries: Entry[] = []

  /** Returns a function that removes the entry. */
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

  /** The first entry that matches the request; its remaining count decreases. */
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
 * An entry from parsed JSON: `{fault, times?, match?}`, with `{provider?, method?, path?, model?, stream?,
 * contains?}` as `match`; `path` and `contains` are parts of the path and of the body.
 * Throws `malformed_request`, naming the field.
 */
function scriptEntryOf(value: JsonValue | undefined): ScriptEntry {
  if (!isObject(value)) {
    throw malformed('The body must be a JSON object with a fault')
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

const RULES = ['provider', 'method', 'path', 'model', 'stream', 'contains']

function matcherOf(rule: JsonObject): (request: ParsedRequest) => boolean {
  const unknown = Object.keys(rule).find((key) => !RULES.includes(key))
  if (unknown !== undefined) {
    throw new GatewayError('malformed_request', `match.${unknown} is not one of ${RULES.join(', ')}`)
  }
  return (request) =>
    (rule.provider === undefined || rule.provider === request.provider) &&
    (rule.method === undefined || rule.method === request.method) &&
    (rule.path === undefined || request.path.includes(stringOf(rule.path) ?? '')) &&
    (rule.model === undefined || rule.model === modelOf(request)) &&
    (rule.stream === undefined || rule.stream === isStream(request)) &&
    (rule.contains === undefined ||
      JSON.stringify(request.body ?? null).includes(stringOf(rule.contains) ?? ''))
}

/** The model of a request: a member of the body, or a part of Gemini's path. */
export function modelOf(request: ParsedRequest): string | undefined {
  const { body, path } = request
  const inPath = bedrockPath(path)?.model ?? /^\/models\/([^:]+)/.exec(path)?.[1]
  return stringOf(body?.model) ?? inPath
}

function isStream(request: ParsedRequest): boolean {
  const { body, path } = request
  return body?.stream === true || /:streamGenerateContent|-stream$/.test(path)
}

/** The text of the last user message in any format; it may contain directives. */
export function lastUserText(request: ParsedRequest): string {
  const body = request.body ?? {}
  if (typeof body.prompt === 'string') return body.prompt
  const texts = arrayOf(body.input).filter((each) => typeof each === 'string')
  if (texts.length > 0) return texts.at(-1) ?? ''
  const embedded = arrayOf(body.requests).at(-1) ?? body
  if (isObject(embedded) && isObject(embedded.content)) return wordsOf(embedded.content)
  const turns = arrayOf(body.messages ?? body.contents ?? body.input).filter(isObject)
  const lastTurn = turns.findLast((turn) => (turn.role ?? 'user') === 'user' && wordsOf(turn) !== '')
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

/** A request to a control endpoint. */
interface ControlRequest {
  readonly method: string
  readonly path: string
  /** Undefined if the body is not a JSON object. */
  readonly body: JsonObject | undefined
}

/** The state that the endpoints change. */
interface Controlled {
  readonly script: Script
  readonly ledger: Ledger
}

/** Serves `/_emulator/script`, `/_emulator/ledger` and `/_emulator/faults`. */
export function answerControl(
  { method, path, body }: ControlRequest,
  response: ServerResponse,
  { script, ledger }: Controlled,
): void {
  try {
    switch (`${method} ${path}`) {
      case 'POST /_emulator/script':
        script.add(scriptEntryOf(body))
        return send(response, 200, { scripted: script.size })
      case 'DELETE /_emulator/script':
        script.clear()
        return send(response, 200, { scripted: 0 })
      case 'GET /_emulator/ledger':
        return send(response, 200, { entries: ledger.entries })
      case 'DELETE /_emulator/ledger':
        ledger.clear()
        return send(response, 200, { entries: [] })
      case 'GET /_emulator/faults':
        return send(response, 200, { faults: FAULTS })
      default:
        return send(response, 404, {
          error: `no ${method} ${path}; there are POST and DELETE /_emulator/script, GET and DELETE /_emulator/ledger, GET /_emulator/faults`,
        })
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) {
      throw error
    }
    send(response, 400, { error: error.message })
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(`${JSON.stringify(body, undefined, 2)}\n`)
}
