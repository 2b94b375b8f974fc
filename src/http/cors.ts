/**
 * Cross-origin requests of browsers: the headers of replies, and the reply to a preflight request.
 *
 * Source: Fetch Standard, "HTTP-CORS protocol", read 2026-11-20.
 */
import { headerOf, type HttpRequest, type HttpResponse } from './message.js'
import { sendReply } from './respond.js'

/** Reply headers that a page may read, besides those that the standard always allows. */
const EXPOSED = [
  'allow',
  'request-id',
  'retry-after',
  'server-timing',
  'www-authenticate',
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
  'x-request-id',
  'x-should-retry',
  'x-sluice-attempts',
  'x-sluice-estimated',
  'x-sluice-generation',
  'x-sluice-guardrails',
  'x-sluice-lost',
  'x-sluice-model',
  'x-sluice-upstream',
].join(', ')

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
/** How long a browser may cache the reply to a preflight; this is Chromium's maximum. */
const MAX_AGE_SECONDS = '7200'
/** A browser's list of header names. */
const NAMES = /^[\w!#$%&'*+.^`|~-]+(?: *, *[\w!#$%&'*+.^`|~-]+)*$/

/**
 * Headers (name, value, …) of the reply to a request. `origins` are `server.cors.origins`; if empty, there
 * are no headers. For other origins only `vary`, so that caches do not mix replies up.
 */
export function corsHeaders(req: HttpRequest, origins: readonly string[]): string[] {
  if (origins.length === 0) return []
  const headers = ['vary', 'origin']
  const origin = headerOf(req, 'origin')
  if (origin === undefined || !isAllowed(origin, origins)) return headers
  headers.push('access-control-allow-origin', origins.includes('*') ? '*' : origin)
  headers.push('access-control-expose-headers', EXPOSED)
  return headers
}

/** Whether the request is a preflight request from an allowed origin. */
export function isPreflight(req: HttpRequest, origins: readonly string[]): boolean {
  if (req.method !== 'OPTIONS' || origins.length === 0) return false
  const origin = headerOf(req, 'origin')
  const method = headerOf(req, 'access-control-request-method')
  return origin !== undefined && method !== undefined && isAllowed(origin, origins)
}

/**
 * Replies to a preflight request: allows every method and the requested headers. `more` is name, value, ….
 */
export function answerPreflight(req: HttpRequest, res: HttpResponse, otherHeaders: readonly string[]): void {
  const headers = [...otherHeaders, 'access-control-allow-methods', METHODS]
  const requestedHeaders = headerOf(req, 'access-control-request-headers')
  if (requestedHeaders !== undefined && NAMES.test(requestedHeaders)) {
    headers.push('access-control-allow-headers', requestedHeaders)
  }
  headers.push('access-control-max-age', MAX_AGE_SECONDS)
  sendReply(res, { status: 204, headers, body: '' })
}

function isAllowed(origin: string, origins: readonly string[]): boolean {
  return origins.includes('*') || origins.includes(origin)
}
