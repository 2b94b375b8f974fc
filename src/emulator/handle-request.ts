/**
 * Handles one request: reads it, routes it to the provider, applies faults, sends the reply, and records it
 * in the ledger.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../errors.js'
import { isObject } from '../chat/json.js'
import { answerControl } from './faults/control-endpoints.js'
import { applyFaults } from './faults/content-faults.js'
import { directionsOf } from './faults/fault-table.js'
import { maskedHeaders } from './ledger.js'
import { needsTime, sendAtOnce, sendPaced } from './faults/timing-faults.js'
import { endpointOf, replyTo, framesOf } from './route-request.js'
import { hashOf } from './seeded-random.js'
import { lastUserText, modelOf } from './faults/fault-script.js'
import { errorReply, type ParsedRequest, type Reply } from './emulated-exchange.js'
import type { JsonObject } from '../chat/json.js'
import type { Fault } from './faults/fault-table.js'
import type { Ledger, LedgerEntry } from './ledger.js'
import type { Endpoint } from './route-request.js'
import type { ScriptEntry, Script } from './faults/fault-script.js'

/** Options of an emulator. */
export interface EmulatorOptions {
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default 0: any free port. */
  readonly port?: number
  /** Seed of random values. Default 1. */
  readonly seed?: number
  /** Milliseconds between the events of every stream. Default 0. */
  readonly paceMs?: number
  /** Maximum number of ledger entries. Default 10,000; 0 disables the ledger. */
  readonly ledger?: number
  /** `any` accepts every model id; `known` (default) only the provider's families. */
  readonly models?: 'known' | 'any'
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly clock?: () => number
}

/** A request with its whole body. */
interface ReceivedRequest {
  readonly url: URL
  readonly endpoint: Endpoint
  readonly raw: Buffer
}

const BODY_LIMIT = 64 * 1024 * 1024
/** Maximum number of prompts whose `times=` is counted. */
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

  /** Resets the counts of `times=` faults. */
  forget(): void {
    this.#counted.clear()
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://emulator')
    if (url.pathname.startsWith('/_emulator/')) {
      const body = parseJson(await bodyOf(request))
      const state = { script: this.#script, ledger: this.#ledger }
      answerControl({ method: request.method ?? 'GET', path: url.pathname, body }, response, state)
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
    const parsed = this.#parse(request, { url, endpoint, raw })
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
      headers: this.#ledger.isEnabled ? maskedHeaders(request.headers) : {},
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

  #parse(request: IncomingMessage, { url, endpoint, raw }: ReceivedRequest): ParsedRequest {
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
    const plan = applyFaults(reply, faults, {
      provider: parsed.provider,
      frames: framesOf(parsed),
    })
    entry.status = plan.status
    entry.counted = plan.status === 200 ? reply.counted : undefined
    entry.faults = faults.map(({ kind }) => kind)
    if (scripted?.replay === undefined && parsed.provider !== 'gemini') {
      // From the ledger's id, so that equal requests get equal bodies but different request ids.
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
      const directions = directionsOf(lastUserText(parsed))
      pace = directions.pace ?? pace
      faults.push(...directions.faults.filter((fault) => this.#due(fault, parsed)))
    } catch (error) {
      if (!(error instanceof GatewayError)) {
        throw error
      }
      const body = framesOf(parsed).errorBody(400, `emulator: ${error.message}`)
      return { reply: errorReply(400, framesOf(parsed).wholeHeaders, body), faults: [], pace: 0 }
    }
    return { reply: replyTo(parsed), faults, pace }
  }

  /** Whether a prompt's fault still applies, counting its `times`. */
  #due(fault: Fault, parsed: ParsedRequest): boolean {
    if (fault.times === undefined) {
      return true
    }
    const key = `${fault.kind}\n${lastUserText(parsed)}`
    const seen = this.#counted.get(key) ?? 0
    if (this.#counted.size >= COUNTED_LIMIT && seen === 0) {
      this.#counted.clear()
    }
    this.#counted.set(key, seen + 1)
    return seen < fault.times
  }
}

function replayed(recorded: NonNullable<ScriptEntry['replay']>): Reply {
  const { status, headers, body } = recorded
  // Split into events, so that faults at an event also apply to recordings.
  const units = typeof body === 'string' ? body.split(BETWEEN_EVENTS) : [body]
  return { status, headers, units, stream: false, terminators: 0 }
}

/** Shared, so that replies without faults need no new promise. */
const DONE = Promise.resolve()

/** The position after each blank line. */
const BETWEEN_EVENTS = /(?<=\r\n\r\n|\n\n)(?=[\s\S])/

function parseJson(raw: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(raw.toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The request's body, cut at the limit. */
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
