/**
 * One request from its bytes to its end: read, find the provider, answer, distort, send, remember.
 * Knows no provider's format; `providers.ts` says who answers what.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../errors.js'
import { isObject } from '../chat/json.js'
import { answerControl } from './faults/control.js'
import { applyFaults } from './faults/apply-faults.js'
import { directionsOf } from './faults/fault.js'
import { maskedHeaders } from './ledger.js'
import { needsTime, sendAtOnce, sendPaced } from './faults/send-plan.js'
import { endpointOf, replyTo, framesOf } from './route-request.js'
import { hashOf } from './seeded-random.js'
import { lastWords, modelOf } from './faults/script.js'
import type { ParsedRequest, Reply } from './exchange.js'
import type { JsonObject } from '../chat/json.js'
import type { Fault } from './faults/fault.js'
import type { Ledger, LedgerEntry } from './ledger.js'
import type { Endpoint } from './route-request.js'
import type { ScriptEntry, Script } from './faults/script.js'

/** How an emulator is to be. */
export interface EmulatorOptions {
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default 0: any free port. */
  readonly port?: number
  /** Start of everything random-looking. Default 1. */
  readonly seed?: number
  /** Milliseconds between the events of every stream. Default 0. */
  readonly paceMs?: number
  /** Requests remembered. Default 10,000; 0 switches the ledger off. */
  readonly ledger?: number
  /** `any` takes every model id; `known` (default) only the provider's own families. */
  readonly models?: 'known' | 'any'
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly clock?: () => number
}

const BODY_LIMIT = 64 * 1024 * 1024
/** Prompts whose `times=` is being counted. */
const COUNTED_LIMIT = 1000

/** Serves requests for one emulator. */
export class Handler {
  open = 0
  #next = 1
  readonly #script: Script
  readonly #ledger: Ledger
  readonly #options: EmulatorOptions
  readonly #clock: () => number
  readonly #counted = new Map<string, number>()

  constructor(script: Script, ledger: Ledger, options: EmulatorOptions) {
    this.#script = script
    this.#ledger = ledger
    this.#options = options
    this.#clock = options.clock ?? Date.now
  }

  /** Forgets how often each prompt met its `times=` faults. */
  forget(): void {
    this.#counted.clear()
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://emulator')
    if (url.pathname.startsWith('/_emulator/')) {
      const body = parseJson(await bodyOf(request))
      answerControl(request.method ?? 'GET', url.pathname, body, response, {
        script: this.#script,
        ledger: this.#ledger,
      })
      return
    }
    const endpoint = endpointOf(url.pathname, request.headers)
    this.open += 1
    const entry = this.#entry(request, endpoint)
    response.once('close', () => {
      this.open -= 1
      entry.closedAt = this.#clock()
      if (entry.outcome === 'open') {
        entry.outcome = response.writableFinished ? 'done' : 'client_closed'
      }
    })
    const raw = await bodyOf(request)
    entry.bodyBytes = raw.length
    const parsed = this.#parse(request, url, endpoint, raw)
    entry.model = modelOf(parsed)
    this.#ledger.keepBody(entry, parsed.body)
    await this.#reply(parsed, response, entry)
  }

  #entry(request: IncomingMessage, endpoint: Endpoint): LedgerEntry {
    const entry: LedgerEntry = {
      id: this.#next,
      provider: endpoint.provider,
      method: request.method ?? 'GET',
      path: endpoint.path,
      model: undefined,
      receivedAt: this.#clock(),
      bodyBytes: 0,
      body: undefined,
      headers: this.#ledger.on ? maskedHeaders(request.headers) : {},
      status: 0,
      bytesSent: 0,
      faults: [],
      counted: undefined,
      closedAt: undefined,
      outcome: 'open',
    }
    this.#next += 1
    this.#ledger.add(entry)
    return entry
  }

  #parse(request: IncomingMessage, url: URL, endpoint: Endpoint, raw: Buffer): ParsedRequest {
    const text = raw.toString()
    return {
      provider: endpoint.provider,
      method: request.method ?? 'GET',
      path: endpoint.path,
      query: url.searchParams,
      headers: request.headers,
      body: parseJson(raw),
      seed: hashOf(text, this.#options.seed ?? 1),
      anyModel: this.#options.models === 'any',
      now: Math.floor(this.#clock() / 1000),
    }
  }

  #reply(parsed: ParsedRequest, response: ServerResponse, entry: LedgerEntry): Promise<void> {
    const scripted = this.#script.take(parsed)
    const { reply, faults, pace } = this.#decide(parsed, scripted)
    const plan = applyFaults(reply, faults, framesOf(parsed), parsed.provider)
    entry.status = plan.status
    entry.counted = plan.status === 200 ? reply.counted : undefined
    entry.faults = faults.map(({ kind }) => kind)
    if (scripted?.replay === undefined && parsed.provider !== 'gemini') {
      // The number is the ledger's, not the seed's: equal requests get equal bodies but own numbers.
      plan.headers[parsed.provider === 'openai' ? 'x-request-id' : 'request-id'] =
        `req_emulated${String(entry.id).padStart(12, '0')}`
    }
    const chunking = scripted?.chunking ?? 'events'
    if (needsTime(faults, pace, chunking) || plan.units.length > 1000) {
      return sendPaced(response, plan, { faults, pace, chunking, entry })
    }
    sendAtOnce(response, plan, entry)
    return DONE
  }

  #decide(
    parsed: ParsedRequest,
    scripted: ScriptEntry | undefined,
  ): { reply: Reply; faults: readonly Fault[]; pace: number } {
    const fault = scripted?.fault ?? []
    const faults: Fault[] = 'kind' in fault ? [fault] : [...fault]
    if (scripted?.replay !== undefined) {
      return { reply: replayed(scripted.replay), faults, pace: 0 }
    }
    let pace = this.#options.paceMs ?? 0
    try {
      const directions = directionsOf(lastWords(parsed))
      pace = directions.pace ?? pace
      faults.push(...directions.faults.filter((fault) => this.#due(fault, parsed)))
    } catch (error) {
      if (!(error instanceof GatewayError)) {
        throw error
      }
      const body = framesOf(parsed).errorBody(400, `emulator: ${error.message}`)
      return { reply: plain(400, framesOf(parsed).wholeHeaders, body), faults: [], pace: 0 }
    }
    return { reply: replyTo(parsed), faults, pace }
  }

  /** Whether a fault from a prompt still has times left. */
  #due(fault: Fault, parsed: ParsedRequest): boolean {
    if (fault.times === undefined) {
      return true
    }
    const key = `${fault.kind}\n${lastWords(parsed)}`
    const seen = this.#counted.get(key) ?? 0
    if (this.#counted.size >= COUNTED_LIMIT && seen === 0) {
      this.#counted.clear()
    }
    this.#counted.set(key, seen + 1)
    return seen < fault.times
  }
}

function plain(status: number, headers: Readonly<Record<string, string>>, body: string): Reply {
  return { status, headers, units: [body], stream: false, terminators: 0 }
}

function replayed(recorded: NonNullable<ScriptEntry['replay']>): Reply {
  const { status, headers, body } = recorded
  // Cut into events, so that faults at an event work on recordings too.
  const units = typeof body === 'string' ? body.split(BETWEEN_EVENTS) : [body]
  return { status, headers, units, stream: false, terminators: 0 }
}

/** Shared, so that a healthy reply costs no promise of its own. */
const DONE = Promise.resolve()

/** Behind each blank line. */
const BETWEEN_EVENTS = /(?<=\r\n\r\n|\n\n)(?=[\s\S])/

function parseJson(raw: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(raw.toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The request's body. A larger one than the limit is cut there: no provider reads further. */
function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_LIMIT) {
        chunks.push(chunk)
      }
    })
    request.once('end', () =>
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)),
    )
    request.once('close', () => resolve(Buffer.concat(chunks)))
  })
}
