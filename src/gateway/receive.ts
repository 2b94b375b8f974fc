/**
 * The request's body: limited, collected, checked, from bytes to one `Call`.
 * Knows no upstream. The whole body is buffered before anything goes upstream: a framing error at the
 * end of it is then harmless, and a second attempt is possible.
 */
import type { JsonObject } from '../chat/json.js'
import type { ChatRequest } from '../chat/request.js'
import type { Addressed } from '../dialects/index.js'
import { gatewayError, GatewayError } from '../errors.js'
import type { BodyTaker, Request } from '../http/request.js'
import { parseObject, type ParsedObject } from '../wire/json.js'
import type { Edit } from '../wire/splice.js'
import { admitTrailers } from './admit.js'
import type { Holding } from './body-budget.js'
import type { Exchange } from './exchange.js'
import { UNFORESEEN } from './fault.js'
import { joined } from './pieces.js'

/** A request as it was asked for. */
export interface Call extends Addressed {
  /** The client's own bytes, for a route of the same dialect. */
  readonly raw: Buffer
  readonly members: ParsedObject['members']
  readonly body: JsonObject
  readonly request: ChatRequest
  /** What the gateway adds to the client's own bytes, for a route of the same dialect. */
  readonly added?: readonly Edit[]
}

/**
 * Reads, limits and checks the body: at once where it is here already. Throws, or rejects with,
 * `GatewayError`. What the body takes is counted in `held`, which the caller ends.
 */
export function receive(x: Exchange, at: Addressed, held: Holding): Call | Promise<Call> {
  const { maxBodyBytes } = x.generation.snapshot.config.server
  checkHeaders(x.req, maxBodyBytes, held)
  const intake = new Intake(x, at, held, maxBodyBytes)
  x.req.read(intake)
  return intake.call()
}

/** What can be refused before a byte of the body is read. */
function checkHeaders(req: Request, maxBytes: number, held: Holding): void {
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
  if (length === undefined) return
  if (Number(length) > maxBytes) throw tooLarge(maxBytes)
  held.check(Number(length))
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
  private readonly held: Holding
  private readonly maxBytes: number
  private chunks: Buffer[] = []
  private isWhole = false
  private error: GatewayError | null = null
  private resolve: ((call: Call) => void) | null = null
  private reject: ((error: unknown) => void) | null = null

  constructor(x: Exchange, at: Addressed, held: Holding, maxBytes: number) {
    this.x = x
    this.at = at
    this.held = held
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
    this.chunks = []
    this.error = error instanceof GatewayError ? error : gatewayError(UNFORESEEN, error)
    this.reject?.(this.error)
  }

  /** Throws `body_too_large` at the first byte over the cap, `overloaded` or `rate_limited` if too much is held. */
  private write(chunk: Buffer): void {
    const { facts } = this.x
    if (facts.receivedBytes + chunk.length > this.maxBytes) throw tooLarge(this.maxBytes)
    this.held.take(chunk.length)
    facts.receivedBytes += chunk.length
    this.chunks.push(chunk)
  }

  /** Throws `malformed_request` naming what is wrong, or as `write` if the parsed body cannot be held. */
  private checked(): Call {
    const refusal = admitTrailers(this.x.req)
    if (refusal !== null) throw gatewayError(refusal)
    const raw = joined(this.chunks)
    this.chunks = []
    this.held.beginParsing(raw)
    return callOf(raw, this.at)
  }
}

function callOf(raw: Buffer, at: Addressed): Call {
  const { value, members } = parseObject(raw)
  const request = at.ingress.decodeRequest(value, at.endpoint)
  const { dialect, ingress, endpoint } = at
  return { dialect, ingress, endpoint, raw, members, body: value, request }
}
