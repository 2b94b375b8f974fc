/**
 * Addresses for the bytes of Google's resumable uploads. Google's own need no key, so its clients (SDK
 * `google-genai` 3.6.1 for Python) send none with the bytes: the address has a ticket for the key that began
 * the upload, sealed for this upload and a day.
 */
import { isObject, numberOf, stringOf } from '../base/json.js'
import { DAY_MS } from '../base/time-units.js'
import { parseOrNull } from '../formats/wire/json/full-scan.js'
import { originOf } from '../http/message.js'
import { Seal } from '../store/seal.js'
import type { Exchange } from './client-exchange.js'
import { UPLOAD_TICKET } from './upstreams/upstream-address.js'

/**
 * The address below this gateway for the bytes of the upload that `query` names; null if the request names no
 * host. Without `escrow.key` it has no ticket.
 */
export function uploadAddress(
  { req, path, keyDigest, generation }: Pick<Exchange, 'req' | 'path' | 'keyDigest' | 'generation'>,
  query: URLSearchParams,
): string | null {
  const origin = originOf(req)
  if (origin === null) return null
  const { key } = generation.snapshot.config.escrow
  const kept = new URLSearchParams(query)
  if (key !== null && keyDigest !== null) {
    const ticket = JSON.stringify({ digest: keyDigest, untilMs: Date.now() + DAY_MS })
    kept.set(UPLOAD_TICKET, sealOf(key).seal(nameOf(kept), ticket).toString('base64url'))
  }
  return `${origin}${path}?${kept.toString()}`
}

/** The digest of the key that began the upload; null if the request has no ticket that holds. */
export function ticketIn({
  req,
  path,
  generation,
}: Pick<Exchange, 'req' | 'path' | 'generation'>): string | null {
  const { url = '' } = req
  const { key } = generation.snapshot.config.escrow
  if (key === null || url.length === path.length || !path.includes('/upload/')) return null
  const query = new URLSearchParams(url.slice(path.length + 1))
  const sealed = Buffer.from(query.get(UPLOAD_TICKET) ?? '', 'base64url')
  const text = sealed.length === 0 ? null : sealOf(key).open(nameOf(query), sealed)
  const ticket = text === null ? null : parseOrNull(text)
  if (!isObject(ticket) || (numberOf(ticket['untilMs']) ?? 0) <= Date.now()) return null
  return stringOf(ticket['digest']) ?? null
}

function nameOf(query: URLSearchParams): string {
  return `upload ${query.get('upload_id') ?? ''}`
}

function sealOf(secret: string): Seal {
  return new Seal(`${secret}\nuploads`)
}
