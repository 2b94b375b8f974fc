/**
 * The request's body: limited, collected, checked, from bytes to one `Call`.
 * Knows no upstream. The whole body is buffered before anything goes upstream: a framing error at the
 * end of it is then harmless, and a second attempt is possible.
 */
import type { IncomingMessage } from 'node:http'
import type { JsonObject } from '../chat/json.js'
import type { ChatRequest } from '../chat/request.js'
import type { Addressed } from '../dialects/index.js'
import { gatewayError, GatewayError } from '../errors.js'
import { parseObject, type ParsedObject } from '../wire/json.js'
import { admitTrailers } from './admit.js'
import type { Exchange } from './exchange.js'

/** A request as it was asked for. */
export interface Call extends Addressed {
  /** The client's own bytes, for a route of the same dialect. */
  readonly raw: Buffer
  readonly members: ParsedObject['members']
  readonly body: JsonObject
  readonly request: ChatRequest
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
 * Reads, limits and checks the body. Rejects with `GatewayError`. What it took from the budget stands
 * in `facts.receivedBytes`, for the caller to give back.
 */
export function receive(x: Exchange, at: Addressed, budget: BodyBudget): Promise<Call> {
  const { req } = x
  const { maxBodyBytes } = x.generation.snapshot.config.server
  checkHeaders(req, maxBodyBytes)
  return new Promise((resolve, reject) => {
    const intake = new Intake(x, at, budget, maxBodyBytes)
    // Once over, it takes no more: what a lingering connection still sends is not held or counted.
    const stop = (error: unknown): void => {
      req.off('data', take).off('end', finish).pause()
      x.cancellation.onCancel(null)
      reject(error instanceof Error ? error : new Error(String(error)))
    }
    const take = (chunk: Buffer): void => {
      try {
        intake.write(chunk)
      } catch (error) {
        stop(error)
      }
    }
    const finish = (): void => {
      try {
        x.cancellation.onCancel(null)
        const refusal = admitTrailers(req)
        if (refusal !== null) throw gatewayError(refusal)
        resolve(intake.end())
      } catch (error) {
        stop(error)
      }
    }
    x.cancellation.onCancel(stop)
    req.on('data', take)
    req.once('error', (cause) => stop(cutShort(x, cause)))
    req.once('end', finish)
  })
}

function cutShort(x: Exchange, cause: unknown): GatewayError {
  return (
    x.cancellation.reason ??
    new GatewayError('client_gone', 'The request body did not arrive whole.', { cause })
  )
}

/** What can be refused before a byte of the body is read. */
function checkHeaders(req: IncomingMessage, maxBytes: number): void {
  const type = req.headers['content-type']
  if (type === undefined || !isJson(type)) {
    throw new GatewayError(
      'unsupported_media_type',
      'The content-type header must be application/json.',
      { param: 'content-type' },
    )
  }
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new GatewayError(
      'unsupported_media_type',
      'The body must not be compressed: leave the content-encoding header out.',
      { param: 'content-encoding' },
    )
  }
  const length = req.headers['content-length']
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

/**
 * Collects within the limits; the end makes the checked call of it. Not a Transform: there is one output
 * at most, and a Transform with its pipe costs 70 µs per request here (docs/decisions/0003).
 */
class Intake {
  private readonly x: Exchange
  private readonly at: Addressed
  private readonly budget: BodyBudget
  private readonly maxBytes: number
  private readonly chunks: Buffer[] = []

  constructor(x: Exchange, at: Addressed, budget: BodyBudget, maxBytes: number) {
    this.x = x
    this.at = at
    this.budget = budget
    this.maxBytes = maxBytes
  }

  /** Throws `body_too_large` at the first byte over the cap, `overloaded` where the process is full. */
  write(chunk: Buffer): void {
    const { facts } = this.x
    if (facts.receivedBytes + chunk.length > this.maxBytes) throw tooLarge(this.maxBytes)
    this.budget.take(chunk.length)
    facts.receivedBytes += chunk.length
    this.chunks.push(chunk)
  }

  /** Throws `malformed_request` naming what is wrong. */
  end(): Call {
    const [only] = this.chunks
    const raw = this.chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.chunks)
    return callOf(raw, this.at)
  }
}

function callOf(raw: Buffer, at: Addressed): Call {
  const { value, members } = parseObject(raw)
  const request = at.ingress.decodeRequest(value, at.endpoint)
  const { dialect, ingress, endpoint } = at
  return { dialect, ingress, endpoint, raw, members, body: value, request }
}
