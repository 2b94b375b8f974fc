/**
 * The client's deadline (`x-request-timeout-ms`) and `idempotency-key`. A request with a key may be sent
 * again after an attempt whose outcome is unknown.
 */
import { headerOf, type HttpRequest } from '../../http/message.js'
import type { SendOptions } from '../attempts/send-options.js'

const KEY_CHARS = 256

/** The settings that the client sends in headers. */
export interface ClientTerms extends Pick<SendOptions, 'timeoutMs'> {
  /** The value of `idempotency-key`; null if the client sent none. */
  readonly idempotencyKey: string | null
}

/** Reads the client's settings from the headers of the request. */
export function termsOf(req: HttpRequest): ClientTerms {
  const key = headerOf(req, 'idempotency-key')?.slice(0, KEY_CHARS) ?? ''
  const timeoutMs = timeoutOf(headerOf(req, 'x-request-timeout-ms'))
  return { timeoutMs, idempotencyKey: key === '' ? null : key }
}

/** The client's deadline in ms; infinite if the header is absent or not a positive integer. */
function timeoutOf(header: string | undefined): number {
  const ms = header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : 0
  return ms > 0 ? ms : Number.POSITIVE_INFINITY
}
