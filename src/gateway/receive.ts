/**
 * The request's body: limited, collected, checked, from bytes to one `Call`.
 * Knows no upstream. The whole body is buffered before anything goes upstream: a framing error at the
 * end of it is then harmless, and a second attempt is possible.
 */
import type { JsonObject } from '../chat/json.js'
import type { ChatRequest } from '../chat/request.js'
import type { Addressed } from '../dialects/index.js'
import { gatewayError, GatewayError } from '../errors.js'
import { headerOf, type HttpRequest } from '../http/message.js'
import { guardTrailers } from '../http/request-guard.js'
import { parseObject, type ParsedObject } from '../wire/json.js'
import type { Edit } from '../wire/splice.js'
import type { Exchange } from './exchange.js'
import { UNFORESEEN } from './fault.js'
import { RequestTransform } from './streams/request-transform.js'

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
 * Reads, limits and checks the body. Rejects with `GatewayError`. What it took from the budget stands in
 * `facts.receivedBytes`, for the caller to give back.
 */
export function receive(x: Exchange, at: Addressed, budget: BodyBudget): Promise<Call> {
  const { req, facts, cancellation } = x
  const maxBytes = x.generation.snapshot.config.server.maxBodyBytes
  return new Promise((resolve, reject) => {
    checkHeaders(req, maxBytes)
    const transform = new RequestTransform({
      take(bytes) {
        if (facts.receivedBytes + bytes > maxBytes) throw tooLarge(maxBytes)
        budget.take(bytes)
        facts.receivedBytes += bytes
      },
      check(raw) {
        const refusal = guardTrailers(req)
        if (refusal !== null) throw gatewayError(refusal)
        return callOf(raw, at)
      },
    })
    const over = (): void => {
      cancellation.onCancel(null)
      req.unpipe(transform)
    }
    transform.once('data', (call: Call) => {
      over()
      resolve(call)
    })
    transform.once('error', (error) => {
      over()
      reject(error instanceof GatewayError ? error : gatewayError(UNFORESEEN, error))
    })
    cancellation.onCancel((reason) => transform.destroy(reason))
    req.pipe(transform)
  })
}

/** What can be refused before a byte of the body is read. */
function checkHeaders(req: HttpRequest, maxBytes: number): void {
  const type = headerOf(req, 'content-type')
  if (type === undefined || !isJson(type)) {
    throw new GatewayError(
      'unsupported_media_type',
      'The content-type header must be application/json.',
      { param: 'content-type' },
    )
  }
  const encoding = headerOf(req, 'content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    throw new GatewayError(
      'unsupported_media_type',
      'The body must not be compressed: leave the content-encoding header out.',
      { param: 'content-encoding' },
    )
  }
  const length = headerOf(req, 'content-length')
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

function callOf(raw: Buffer, at: Addressed): Call {
  const { value, members } = parseObject(raw)
  const request = at.ingress.decodeRequest(value, at.endpoint)
  const { dialect, ingress, endpoint } = at
  return { dialect, ingress, endpoint, raw, members, body: value, request }
}
