/** Sends the requests of a rehearsal through the gateway in one client format, below the cost ceiling. */
import type { LimitingConfig } from '../../config/config.js'
import type { Reply } from '../../formats/chat/fold.js'
import { isObject, type JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { promptSizeOf, maxInputTokens } from '../../ledger/estimate-tokens.js'
import { costNanoUsd, flatPrice, isComplete, maxCostNanoUsd, type Price } from '../../ledger/price.js'
import type { ClientError, Format, Reading } from './client-format.js'
import type { RehearsalGateway } from './rehearsal-gateway.js'

/** The outcome of a request. Exactly one of `reply` and `failure` is set. */
interface ReceivedReply {
  readonly status: number
  readonly reply: Reply | null
  /** Why there is no complete reply. */
  readonly failure: string | null
  /** The error before the reply; null if there was none. */
  readonly error: ClientError | null
  readonly entry: LedgerEntry | null
}

/** A failed expectation of a check. */
export class Mismatch extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Mismatch'
  }
}

/**
 * The gateway refuses the request for this upstream as untranslatable: a loss, not a failure of the upstream.
 */
export class Untranslatable extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Untranslatable'
  }
}

interface RehearsalClientOptions {
  readonly gateway: RehearsalGateway
  readonly format: Format
  readonly ceiling: CostCeiling
  readonly facts: ModelFacts
  readonly timeoutMs: number
}

/** One check in one format: sends requests, and records their lost fields and costs. */
export class RehearsalClient {
  readonly format: Format
  readonly facts: ModelFacts
  /** Fields that could not be translated, of all requests so far. */
  readonly lost = new Set<string>()
  /** Cost of the requests so far, in nano-dollars. */
  nanoUsd = 0
  private readonly parts: RehearsalClientOptions

  constructor(parts: RehearsalClientOptions) {
    this.parts = parts
    this.format = parts.format
    this.facts = parts.facts
  }

  get hasKey(): boolean {
    return this.parts.gateway.hasKey
  }

  /** The reply. Throws `Mismatch` if there is none, `Untranslatable`, `CeilingReached`. */
  async request(request: ChatRequest): Promise<Reply & { readonly entry: LedgerEntry | null }> {
    const { reply, failure, error, status, entry } = await this.send(request)
    if (error?.kind === 'untranslatable') throw new Untranslatable(error.message)
    if (error !== null) {
      throw new Mismatch(`${status} ${error.kind || 'without an error of the format'}: ${error.message}`)
    }
    if (reply === null) throw new Mismatch(failure ?? 'no reply')
    return { ...reply, entry }
  }

  /**
   * Sends one request and reads the reply to its end. Throws `CeilingReached`, `Mismatch` after the time
   * limit.
   */
  async send(request: ChatRequest): Promise<ReceivedReply> {
    return this.withinCeiling(request, async () => {
      const { timeoutMs } = this.parts
      const reply = await this.fetch(request, AbortSignal.timeout(timeoutMs))
      const requestId = reply.headers.get('x-request-id') ?? ''
      const { status } = reply
      const bytes = Buffer.from(await reply.arrayBuffer().catch(failConnection))
      if (status !== 200) {
        const error = this.format.errorIn(bytes.toString(), status)
        return { requestId, status, reply: null, failure: null, error }
      }
      const reading = this.read(bytes, request)
      const failure = reading.reply === null ? reading.failure : null
      return { requestId, status, reply: reading.reply, failure, error: null }
    })
  }

  /** Sends a streaming request and disconnects at its first content. */
  async disconnect(request: ChatRequest): Promise<ReceivedReply> {
    return this.withinCeiling(request, async () => {
      const aborter = new AbortController()
      const timer = setTimeout(() => aborter.abort(), this.parts.timeoutMs)
      try {
        const reply = await this.fetch(request, aborter.signal)
        const requestId = reply.headers.get('x-request-id') ?? ''
        const { status, body } = reply
        if (status !== 200 || body === null) {
          const error = this.format.errorIn(await reply.text(), status)
          return { requestId, status, reply: null, failure: null, error }
        }
        const stream = this.format.stream(request)
        const { reading } = stream
        for await (const chunk of body) {
          stream.write(Buffer.from(chunk as Uint8Array))
          if (reading.hasContent) break
        }
        if (!reading.hasContent) stream.end()
        const failure = reading.hasContent ? null : reading.failure
        return { requestId, status, reply: null, failure, error: null }
      } finally {
        clearTimeout(timer)
        aborter.abort()
      }
    })
  }

  private async withinCeiling(
    request: ChatRequest,
    send: () => Promise<Omit<ReceivedReply, 'entry'> & { readonly requestId: string }>,
  ): Promise<ReceivedReply> {
    const { ceiling, gateway } = this.parts
    const reserved = ceiling.reserve(request)
    let entry: LedgerEntry | null = null
    try {
      const { requestId, ...received } = await send()
      entry = await gateway.entry(requestId)
      for (const path of entry?.losses ?? []) this.lost.add(path)
      return { ...received, entry }
    } catch (error) {
      throw error instanceof Error && error.name === 'TimeoutError'
        ? new Mismatch(`no complete reply within ${this.parts.timeoutMs} ms`)
        : error
    } finally {
      this.nanoUsd += ceiling.settle(reserved, entry)
    }
  }

  private async fetch(request: ChatRequest, signal: AbortSignal): Promise<Response> {
    const { gateway, format } = this.parts
    const { path, headers, body } = format.encode(request)
    const authorization = `Bearer ${gateway.secret}`
    return fetch(`${gateway.origin}${path}`, {
      method: 'POST',
      headers: { ...headers, authorization },
      body,
      signal,
    })
  }

  private read(bytes: Buffer, request: ChatRequest): Reading {
    if (request.stream) {
      const stream = this.format.stream(request)
      stream.write(bytes)
      stream.end()
      return stream.reading
    }
    return this.format.decode(objectIn(bytes), request)
  }
}

function failConnection(error: unknown): never {
  if (error instanceof Error && error.name === 'TimeoutError') throw error
  throw new Mismatch('the connection closed before the end of the reply')
}

function objectIn(bytes: Buffer): JsonObject {
  const value: unknown = JSON.parse(bytes.toString())
  if (!isObject(value)) throw new Mismatch('the reply is not a JSON object')
  return value
}

/** More tokens than any vendor counts for the small image of a rehearsal (OpenAI's mini models: 8,500). */
const IMAGE_TOKENS = 10_000
const NANO = 1e9

/** The next request might cost more than the remaining amount. */
export class CeilingReached extends Error {
  constructor() {
    super('the cost ceiling is reached')
    this.name = 'CeilingReached'
  }
}

/** Keeps a rehearsal below its maximum cost. */
export class CostCeiling {
  /** Whether the model's own price is known; otherwise `limiting.assumed_price` applies. */
  readonly isPriced: boolean
  private readonly maxNanoUsd: number
  private readonly price: Price
  private readonly facts: ModelFacts
  private spentNanoUsd = 0

  constructor(
    maxUsd: number,
    model: {
      readonly price: Price | null
      readonly facts: ModelFacts
      readonly limiting: LimitingConfig
    },
  ) {
    const { price, facts, limiting } = model
    this.maxNanoUsd = maxUsd * NANO
    this.isPriced = price !== null && isComplete(price)
    this.price = price !== null && isComplete(price) ? price : flatPrice(limiting.assumedPrice)
    this.facts = facts
  }

  get spentUsd(): number {
    return this.spentNanoUsd / NANO
  }

  /**
   * Reserves the maximum cost of the request, in nano-dollars, with as many tokens for each image. Throws
   * `CeilingReached` if it is too high.
   */
  reserve(request: ChatRequest, imageTokens = IMAGE_TOKENS): number {
    const bulk = promptSizeOf(request)
    const { images } = bulk
    const text = maxInputTokens({ ...bulk, images: 0 }, this.facts.family)
    const maxTokens = { input: text + images * imageTokens, output: request.maxOutputTokens ?? 0 }
    const nanoUsd = maxCostNanoUsd(this.price, maxTokens) ?? 0
    if (this.spentNanoUsd + nanoUsd > this.maxNanoUsd) throw new CeilingReached()
    this.spentNanoUsd += nanoUsd
    return nanoUsd
  }

  /**
   * Replaces the reservation with the actual cost; without an entry the reservation counts as spent. Returns
   * the cost.
   */
  settle(reservedNanoUsd: number, entry: LedgerEntry | null): number {
    if (entry === null) return reservedNanoUsd
    const known = this.isPriced ? entry.costNanoUsd : costNanoUsd(this.price, entry.usage)
    const cost = entry.source === 'none' ? 0 : (known ?? reservedNanoUsd)
    this.spentNanoUsd += cost - reservedNanoUsd
    return cost
  }
}
