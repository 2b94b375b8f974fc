/**
 * The emulator: an HTTP server for the formats of all providers, with scripted faults. It shares no
 * codec with the gateway, so that each format has two independent implementations.
 */
import type { Cassettes } from './cassettes.js'
import { createServer as createTlsServer } from 'node:https'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { GatewayError } from '../errors.js'
import { isObject, type JsonObject } from '../base/json.js'
import { AWS_EVENT_STREAM, messagesIn } from './aws-event-stream.js'
import { cloudCallOf, cloudDenial, vendorBody, vendorHeaders, type CloudCall } from './cloud-platforms.js'
import { CloudTokens, type TokenState } from './cloud-credentials.js'
import {
  errorReply,
  replyOrRefusal,
  type ParsedRequest,
  type Provider,
  type Reply,
} from './emulated-exchange.js'
import { applyFaults } from './faults/content-faults.js'
import {
  Script,
  answerControl,
  lastUserText,
  modelOf,
  type Recording,
  type ScriptEntry,
} from './faults/fault-script.js'
import type { Fault } from './faults/fault-table.js'
import { directionsOf } from './prompt-directives.js'
import { needsTime, sendAtOnce, sendPaced, type Chunking } from './faults/delay-and-cut-faults.js'
import { formFields } from './media.js'
import { EmulatedBatches } from './objects/emulated-batches.js'
import { EmulatedFiles } from './objects/emulated-files.js'
import { Ledger, maskedHeaders, type LedgerEntry } from './received-requests.js'
import { endpointOf, replyTo, framesOf, type Endpoint } from './route-request.js'
import { hashOf } from './seeded-random.js'

interface ReplayOptions {
  readonly match?: ScriptEntry['match']
  /** Number of requests; default 1. */
  readonly times?: number
  /** Default `whole`. */
  readonly chunking?: Chunking
  readonly fault?: ScriptEntry['fault']
}

/** A recorded reply in the form of the fixtures. */
interface RecordedReply {
  readonly status: number
  readonly stream?: boolean
  readonly response_headers: Readonly<Record<string, string>>
  readonly response_body: string
  /** `base64`: the body is binary. */
  readonly response_body_form?: string
}

/** A running emulator. */
export interface Emulator {
  readonly port: number
  readonly origin: string
  readonly baseUrls: {
    readonly openai: string
    readonly anthropic: string
    readonly gemini: string
    readonly bedrock: string
  }
  /** The token endpoints of the clouds: what they issue, and how they fail. */
  readonly tokens: TokenState
  /** The recorded requests, oldest first. */
  readonly ledger: readonly LedgerEntry[]
  /** Requests in flight. */
  open(): number
  /** Scripts a fault; returns a function that removes it. Without `times` it applies to all requests. */
  script(entry: Pick<ScriptEntry, 'match' | 'times' | 'fault'>): () => void
  /** Replies to the next request with exactly these bytes. */
  replay(recording: Recording | RecordedReply, options?: ReplayOptions): () => void
  /** Clears the script and the ledger. */
  reset(): void
  /** Closes all connections. Resolves when the port is free. */
  close(): Promise<void>
}

/** Starts an emulator. Rejects if the port is not available. */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const ledger = new Ledger(options.ledger ?? 10_000)
  const script = new Script()
  const handler = new Handler(script, ledger, options)
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    serve(handler, request, response)
  }
  const sockets = { keepAlive: true, noDelay: true }
  const server =
    options.tls === undefined
      ? createServer(sockets, listener)
      : createTlsServer({ ...sockets, ...options.tls }, listener)
  server.keepAliveTimeout = 60_000
  server.requestTimeout = 0
  const host = options.host ?? '127.0.0.1'
  const port = await listen(server, options.port ?? 0, host)
  const origin = `http${options.tls === undefined ? '' : 's'}://${host.includes(':') ? `[${host}]` : host}:${port}`
  return {
    port,
    origin,
    baseUrls: {
      openai: `${origin}/openai/v1`,
      anthropic: `${origin}/anthropic/v1`,
      gemini: `${origin}/gemini/v1beta`,
      bedrock: `${origin}/bedrock`,
    },
    tokens: handler.tokens.state,
    get ledger() {
      return ledger.entries
    },
    open: () => handler.open,
    script: (entry) => script.add(entry),
    replay: (recording, replay = {}) =>
      script.add({
        ...replay,
        times: replay.times ?? 1,
        chunking: replay.chunking ?? 'whole',
        replay: recordedOf(recording),
      }),
    reset: () => {
      script.clear()
      ledger.clear()
      handler.forget()
    },
    close: () => close(server),
  }
}

function serve(handler: Handler, request: IncomingMessage, response: ServerResponse): void {
  handler.handle(request, response).catch(() => response.destroy())
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, 1024, () => {
      server.removeListener('error', reject)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

/** Hop-by-hop headers of a recording, which are not replayed. */
const HOP = new Set(['transfer-encoding', 'content-length', 'content-encoding', 'connection', 'date'])

function recordedOf(recording: Recording | RecordedReply): Recording {
  if ('body' in recording) {
    return recording
  }
  const { status, stream, response_headers, response_body, response_body_form } = recording
  const headers = Object.fromEntries(
    Object.entries(response_headers).filter(([name]) => !HOP.has(name.toLowerCase())),
  )
  headers['content-type'] ??= stream === true ? 'text/event-stream' : 'application/json'
  const isBinary = response_body_form === 'base64'
  return { status, headers, body: isBinary ? Buffer.from(response_body, 'base64') : response_body }
}

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
  /** Recorded replies, in place of emulated ones. */
  readonly cassettes?: Cassettes
  /** `any` accepts every model id; `known` (default) only the provider's families. */
  readonly models?: 'known' | 'any'
  /** Key and certificate, PEM, for https. Entra's library refuses http. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly clock?: () => number
}

/** A request with its whole body. */
interface ReceivedRequest {
  readonly url: URL
  readonly endpoint: Endpoint
  readonly raw: Buffer
  readonly cloud: CloudCall | null
}

const BODY_LIMIT = 64 * 1024 * 1024
/** Maximum number of prompts whose `times=` is counted. */
const COUNTED_LIMIT = 1000

/**
 * Handles the requests of one emulator: reads each, routes it to the provider, applies faults, sends the
 * reply, and records it in the ledger.
 */
class Handler {
  open = 0
  #next = 1
  readonly #script: Script
  readonly #ledger: Ledger
  readonly #options: EmulatorOptions
  readonly #clock: () => number
  readonly #counted = new Map<string, number>()
  readonly #files = new EmulatedFiles()
  readonly #batches: EmulatedBatches
  readonly tokens: CloudTokens

  constructor(script: Script, ledger: Ledger, options: EmulatorOptions) {
    this.#script = script
    this.#ledger = ledger
    this.#options = options
    this.#clock = options.clock ?? Date.now
    this.tokens = new CloudTokens(this.#clock)
    this.#batches = new EmulatedBatches({ files: this.#files, clock: this.#clock, replyTo, framesOf })
  }

  /** Resets the counts of `times=` faults, and removes all files and batches. */
  forget(): void {
    this.#counted.clear()
    this.#files.forget()
    this.#batches.forget()
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://emulator')
    if (url.pathname.startsWith('/_emulator/')) {
      const body = parseJson(await bodyOf(request))
      const state = { script: this.#script, ledger: this.#ledger }
      answerControl({ method: request.method ?? 'GET', path: url.pathname, body }, response, state)
      return
    }
    const { cassettes, paceMs = null } = this.#options
    if (cassettes !== undefined) {
      this.open += 1
      response.once('close', () => (this.open -= 1))
      await cassettes.answer(request, await bodyOf(request), { response, paceMs })
      return
    }
    const raw = CLOUD_PATH.test(url.pathname) ? await bodyOf(request) : null
    if (raw !== null && this.#answerToken(request, { url, raw }, response)) return
    const cloud = cloudCallOf(url.pathname)
    const endpoint = cloud ?? endpointOf(url.pathname, request.headers)
    this.open += 1
    const entry = this.#entry(request, endpoint)
    response.once('close', () => {
      this.open -= 1
      entry.closedAt = this.#clock()
      if (entry.outcome === 'open') {
        entry.outcome = response.writableFinished ? 'done' : 'client_closed'
      }
    })
    const body = raw ?? (await bodyOf(request))
    entry.bodyBytes = body.length
    const parsed = this.#parse(request, { url, endpoint, raw: body, cloud })
    entry.model = modelOf(parsed)
    this.#ledger.keepBody(entry, parsed.body)
    const { method = 'GET', url: target = '/', headers } = request
    const own = endpoint.provider === 'bedrock' ? 'bedrock' : 'vendor'
    const signed = { method, target, headers, body }
    const denial = cloudDenial(cloud?.platform ?? own, signed, this.tokens)
    await this.#reply(parsed, response, { entry, denial, raw: body })
  }

  /** Answers a request to a token endpoint; false for any other path. */
  #answerToken(
    request: IncomingMessage,
    { url, raw }: { readonly url: URL; readonly raw: Buffer },
    response: ServerResponse,
  ): boolean {
    const { method = 'GET', url: target = '/', headers } = request
    const text = raw.toString()
    const { pathname: path, searchParams: query } = url
    const reply = this.tokens.answer({ method, target, path, query, headers, text })
    if (reply === null) return false
    // The connection stays open without a reply.
    if (reply === 'hang') return true
    response.writeHead(reply.status, reply.headers).end(reply.body)
    return true
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

  #parse(request: IncomingMessage, { url, endpoint, raw, cloud }: ReceivedRequest): ParsedRequest {
    const text = raw.toString()
    const body = formFields(raw, request.headers['content-type']) ?? parseJson(raw)
    return {
      provider: endpoint.provider,
      method: request.method ?? 'GET',
      path: endpoint.path,
      query: url.searchParams,
      headers: cloud === null ? request.headers : vendorHeaders(cloud, request.headers, body),
      body: cloud === null ? body : vendorBody(cloud, body),
      seed: hashOf(text, this.#options.seed ?? 1),
      anyModel: this.#options.models === 'any',
      now: Math.floor(this.#clock() / 1000),
    }
  }

  #reply(
    parsed: ParsedRequest,
    response: ServerResponse,
    {
      entry,
      denial,
      raw,
    }: {
      readonly entry: LedgerEntry
      readonly denial: Reply | null
      readonly raw: Buffer
    },
  ): Promise<void> {
    const scripted = denial === null ? this.#script.take(parsed) : undefined
    const { reply, faults, pace } =
      denial === null ? this.#decide(parsed, { scripted, raw }) : { reply: denial, faults: [], pace: 0 }
    const plan = applyFaults(reply, faults, {
      provider: parsed.provider,
      frames: framesOf(parsed),
    })
    entry.status = plan.status
    entry.counted = plan.status === 200 ? reply.counted : undefined
    entry.faults = faults.map(({ kind }) => kind)
    if (scripted?.replay === undefined && parsed.provider !== 'gemini') {
      // From the ledger's id, so that equal requests get equal bodies but different request ids.
      plan.headers[ID_HEADERS[parsed.provider]] = `req_emulated${String(entry.id).padStart(12, '0')}`
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
    { scripted, raw }: { readonly scripted: ScriptEntry | undefined; readonly raw: Buffer },
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
    return { reply: this.#answer(parsed, faults, raw), faults, pace }
  }

  #answer(parsed: ParsedRequest, faults: readonly Fault[], raw: Buffer): Reply {
    return replyOrRefusal(() => {
      return this.#files.reply(parsed, raw) ?? this.#batches.reply(parsed, faults) ?? replyTo(parsed)
    })
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
  const isAws = headers['content-type'] === AWS_EVENT_STREAM && typeof body !== 'string'
  const units = typeof body === 'string' ? body.split(BETWEEN_EVENTS) : isAws ? messagesIn(body) : [body]
  return { status, headers, units, stream: false, terminators: 0 }
}

/** The header with the id of a request. */
const ID_HEADERS: Readonly<Record<Exclude<Provider, 'gemini'>, string>> = {
  openai: 'x-request-id',
  anthropic: 'request-id',
  bedrock: 'x-amzn-requestid',
}

/** Paths of token endpoints, whose requests have another form of body. */
const CLOUD_PATH =
  /^\/(?:latest|computeMetadata|sts|aws|google|azure|ibm|metadata)(?:\/|$)|\/v2\.0\/\.well-known\/openid-configuration$|\/oauth2\/v2\.0\/token$/

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
