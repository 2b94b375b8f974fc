/**
 * The request's body: limited, collected, checked, from bytes to one `Call`.
 * Knows no upstream. The whole body is buffered before anything goes upstream: a framing error at the
 * end of it is then harmless, and a second attempt is possible.
 */
import { setImmediate as turn } from 'node:timers/promises'
import type { JsonObject } from '../chat/json.js'
import type { ChatRequest } from '../chat/request.js'
import { textUnits } from '../chat/text-size.js'
import type { Addressed } from '../dialects/index.js'
import { gatewayError, GatewayError } from '../errors.js'
import type { BodyTaker, Request } from '../http/request.js'
import { parseObject, textOf, type ParsedObject } from '../wire/json.js'
import type { Edit } from '../wire/splice.js'
import { admitTrailers } from './admit.js'
import type { Exchange } from './exchange.js'
import { UNFORESEEN } from './fault.js'
import { joined, LARGE_BYTES } from './pieces.js'

/** A request as it was asked for. */
export interface Call extends Addressed {
  /** The client's own bytes, for a route of the same dialect. */
  readonly raw: Buffer
  readonly members: ParsedObject['members']
  readonly body: JsonObject
  readonly request: ChatRequest
  /** What the gateway adds to the client's own bytes, for a route of the same dialect. */
  readonly added?: readonly Edit[]
  /** Bytes of the media that were fetched for it. */
  readonly fetchedBytes?: number
}

/** Bodies that are held at this moment, over all requests of the process. */
export class BodyBudget {
  private held = 0
  private readonly maxBytes: number

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** Throws `overloaded` where the process holds too much already. */
  take(bytes: number): void {
    if (this.held + bytes > this.maxBytes) {
      throw new GatewayError(
        'overloaded',
        'The gateway holds too many request bodies; try again.',
        {
          retryAfterSeconds: 1,
        },
      )
    }
    this.held += bytes
  }

  give(bytes: number): void {
    this.held -= bytes
  }
}

/**
 * Reads, limits and checks the body: at once where it is here already. Throws, or rejects with,
 * `GatewayError`. What it took from the budget stands in `facts.receivedBytes`, for the caller to give
 * back.
 */
export function receive(x: Exchange, at: Addressed, budget: BodyBudget): Call | Promise<Call> {
  const { maxBodyBytes } = x.generation.snapshot.config.server
  checkHeaders(x.req, maxBodyBytes)
  const intake = new Intake(x, at, budget, maxBodyBytes)
  x.req.read(intake)
  return intake.call()
}

/** What can be refused before a byte of the body is read. */
function checkHeaders(req: Request, maxBytes: number): void {
  const type = req.header('content-type')
  if (type === undefined || !isJson(type)) {
    throw new GatewayError(
      'unsupported_media_type',
      'The content-type header must be application/json.',
      { param: 'content-type' },
    )
  }
  const encoding = req.header('content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    throw new GatewayError(
      'unsupported_media_type',
      'The body must not be compressed: leave the content-encoding header out.',
      { param: 'content-encoding' },
    )
  }
  const length = req.header('content-length')
  if (length !== undefined && Number(length) > maxBytes) throw tooLarge(maxBytes)
}

function isJson(type: string): boolean {
  if (type === 'application/json') return true
  const [essence = '', ...parameters] = type.toLowerCase().split(';')
  if (essence.trim() !== 'application/json') return false
  return parameters.every((each) => {
    const [name = '', value = ''] = each.trim().split('=')
    return name !== 'charset' || /^"?utf-?8"?$/.test(value)
  })
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('body_too_large', `The body must not be larger than ${maxBytes} bytes.`)
}

/** Collects within the limits; the end makes the checked call of it. */
class Intake implements BodyTaker {
  private readonly x: Exchange
  private readonly at: Addressed
  private readonly budget: BodyBudget
  private readonly maxBytes: number
  private readonly chunks: Buffer[] = []
  private isWhole = false
  private error: GatewayError | null = null
  private resolve: ((call: Call | Promise<Call>) => void) | null = null
  private reject: ((error: unknown) => void) | null = null

  constructor(x: Exchange, at: Addressed, budget: BodyBudget, maxBytes: number) {
    this.x = x
    this.at = at
    this.budget = budget
    this.maxBytes = maxBytes
  }

  data(chunk: Buffer): void {
    try {
      this.write(chunk)
    } catch (error) {
      this.stop(error)
    }
  }

  end(): void {
    this.isWhole = true
    if (this.resolve === null) return
    this.x.cancellation.onCancel(null)
    try {
      this.resolve(this.checked())
    } catch (error) {
      this.stop(error)
    }
  }

  /** What came, now or once it is whole. */
  call(): Call | Promise<Call> {
    if (this.error !== null) throw this.error
    if (this.isWhole) return this.checked()
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
      this.x.cancellation.onCancel((reason) => this.stop(reason))
    })
  }

  /** Once over, it takes no more: what a lingering connection still sends is not held or counted. */
  private stop(error: unknown): void {
    this.x.req.discard()
    this.x.cancellation.onCancel(null)
    this.error = error instanceof GatewayError ? error : gatewayError(UNFORESEEN, error)
    this.reject?.(this.error)
  }

  /** Throws `body_too_large` at the first byte over the cap, `overloaded` where the process is full. */
  private write(chunk: Buffer): void {
    const { facts } = this.x
    if (facts.receivedBytes + chunk.length > this.maxBytes) throw tooLarge(this.maxBytes)
    this.budget.take(chunk.length)
    facts.receivedBytes += chunk.length
    this.chunks.push(chunk)
  }

  /** Throws `malformed_request` naming what is wrong. */
  private checked(): Call | Promise<Call> {
    const refusal = admitTrailers(this.x.req)
    if (refusal !== null) throw gatewayError(refusal)
    const raw = joined(this.chunks)
    // The pieces are not held beside the whole.
    this.chunks.length = 0
    return raw.length > LARGE_BYTES ? callInTurns(raw, this.at) : callOf(raw, this.at)
  }
}

/** The same call, made in several turns of the event loop: other requests are served between them. */
async function callInTurns(raw: Buffer, at: Addressed): Promise<Call> {
  await turn()
  const text = textOf(raw)
  await turn()
  const parsed = parseObject(raw, {}, text)
  await turn()
  const call = callFrom(raw, parsed, at)
  await turn()
  return call
}

function callOf(raw: Buffer, at: Addressed): Call {
  return callFrom(raw, parseObject(raw), at)
}

/** A body with more text is refused before it is read as JSON; this finds text that looked like inline data. */
const MAX_TEXT_UNITS = 8 * 1024 * 1024

/** The call of a body that has been parsed. Throws `malformed_request` naming what is wrong. */
export function callFrom(raw: Buffer, { value, members }: ParsedObject, at: Addressed): Call {
  const request = at.ingress.decodeRequest(value, at.endpoint)
  if (raw.length > MAX_TEXT_UNITS && textUnits(request) > MAX_TEXT_UNITS) {
    throw new GatewayError(
      'malformed_request',
      `The request has more than ${MAX_TEXT_UNITS} characters of text beside its images, files and audio.`,
      { param: 'messages' },
    )
  }
  const { dialect, ingress, endpoint } = at
  return { dialect, ingress, endpoint, raw, members, body: value, request }
}
