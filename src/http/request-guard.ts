/**
 * Rejects requests that two programs could interpret in different ways, and requests with too many headers.
 * Node's parser tolerates some of them. Reads `rawHeaders`, in which repeated headers are neither merged nor
 * dropped.
 */
import type { ErrorKind, WireError } from '../errors.js'
import { headerOf, type HttpRequest } from './message.js'

/** Methods that a route may have. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

const ALLOWED: ReadonlySet<string> = new Set(METHODS)

/** Maximum header lines, and trailer lines, of one request, as in nginx, Apache and Envoy. */
const MAX_HEADERS = 100
/** Maximum size of the request line and headers; more if workloads may send tokens of up to 16 KiB. */
export const MAX_HEAD_BYTES = 16 * 1024
/** The same with workload identities. */
export const MAX_HEAD_BYTES_WITH_TOKEN = 32 * 1024
/** The longest host name in DNS. */
const MAX_HOST = 255
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/
const LENGTH = /^(?:0|[1-9]\d{0,10})$/
const TARGET = /^\/[!-~]*$/
/** In a path: escaped control characters, DEL, and the backslash that some servers treat as a slash. */
const UNSAFE = /%(?:[01][0-9a-f]|7f|5c)/

/** The headers that determine the end of the body and the requested host. */
interface Seen {
  /** `:authority` of HTTP/2. */
  readonly authority: string | null
  host: string | null
  length: string | null
  encoding: string | null
  expect: string | null
}

/**
 * Null if the request may be served, else the reason. The reply to a rejected request must close its
 * connection: the following bytes may not be a request.
 */
export function guardRequest(
  req: HttpRequest,
  isHttp2: boolean,
  maxHeadBytes = MAX_HEAD_BYTES,
): WireError | null {
  const { httpVersion, method = '', url = '' } = req
  if (!isHttp2 && httpVersion !== '1.1' && httpVersion !== '1.0') {
    return malformed(`HTTP/${httpVersion} is not supported on this port: use HTTP/1.1`)
  }
  if (!ALLOWED.has(method)) {
    return refusal('method_not_allowed', `the method ${method} is not supported`)
  }
  // `node:http` limits the size of the head; `node:http2` only advertises a limit.
  if (isHttp2 && bytesIn(req.rawHeaders) > maxHeadBytes) {
    return refusal('headers_too_large', `The headers exceed ${maxHeadBytes / 1024} KiB`)
  }
  const authority = isHttp2 ? (headerOf(req, ':authority') ?? null) : null
  const seen: Seen = { authority, host: null, length: null, encoding: null, expect: null }
  return (
    targetProblem(url) ?? headersProblem(req.rawHeaders, seen) ?? framingProblem(httpVersion, method, seen)
  )
}

/** Null if a request has few enough trailers; trailers are never used. */
export function guardTrailers(req: HttpRequest): WireError | null {
  return req.rawTrailers.length > 2 * MAX_HEADERS ? tooManyHeaders('trailers') : null
}

/** The path of a target in origin form: the part before the query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

function targetProblem(target: string): WireError | null {
  if (!TARGET.test(target)) {
    return malformed('the request target must be a path that starts with one slash')
  }
  if (target.includes('#') || target.includes('\\')) {
    return malformed('the request target must not contain # or \\')
  }
  const path = pathOf(target)
  if (path.includes('//') || path.includes('/.')) {
    const isDotted = path.split('/').some((part) => part === '.' || part === '..')
    if (isDotted || path.includes('//')) {
      return malformed('the path must not contain empty, . or .. segments')
    }
  }
  return target.includes('%') ? escapesProblem(target, path) : null
}

function escapesProblem(target: string, path: string): WireError | null {
  try {
    decodeURIComponent(target)
  } catch {
    return malformed('the request target has an invalid percent escape')
  }
  const lower = path.toLowerCase()
  if (target.includes('%00')) return malformed('the request target must not contain %00')
  if (NAME_OF_ADMIN_API.test(path)) return null
  if (UNSAFE.test(lower)) {
    return malformed('the path must not contain an escaped backslash or control character')
  }
  if (lower.includes('%2e')) return malformed('the path must not contain escaped dots')
  const slash = lower.indexOf('%2f')
  // Model ids may contain slashes; no other part of a path does.
  const model = lower.indexOf('/models/')
  const isInModel = model !== -1 && slash >= model + 8
  if (slash !== -1 && !isInModel && !isInBedrockModel(lower)) {
    return malformed('the path must not contain an escaped slash outside a model id')
  }
  return null
}

/** The name of a key or run may have any characters; the admin API decodes it after it has split the path. */
const NAME_OF_ADMIN_API = /^\/admin\/v1\/(?:accounts\/[a-z0-9-]+\/keys\/[^/]+(?:\/rotate)?|runs\/[^/]+)$/

/** `/native/{upstream}/model/{id}/{action}`: an id on Bedrock may be an ARN. */
const BEDROCK_MODEL = /^(\/native\/[^/%]+\/model\/)([^/]*)/

function isInBedrockModel(path: string): boolean {
  const found = BEDROCK_MODEL.exec(path)
  if (found === null) return false
  return !path.slice(found[0].length).includes('%2f')
}

/** Fills `seen`. The switch over lengths skips most headers without comparing their names. */
function headersProblem(raw: readonly string[], seen: Seen): WireError | null {
  if (raw.length > 2 * MAX_HEADERS) return tooManyHeaders('headers')
  let credentials = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    switch (name.length) {
      case 4:
      case 6:
      case 9:
      case 12:
      case 13:
      case 14:
      case 17: {
        const lower = name.toLowerCase()
        const problem = frameHeader(lower, raw[i + 1] ?? '', seen)
        if (problem !== null) return problem
        const bit = SINGLE_HEADERS.get(lower) ?? 0
        // RFC 9113, 8.2.3: HTTP/2 may split the cookie.
        if (bit === COOKIE && seen.authority !== null) continue
        if ((credentials & bit) !== 0) return malformed(`The header ${lower} must occur only once`)
        credentials |= bit
      }
    }
  }
  return null
}

const COOKIE = 1
/** A bit for each header that identifies the caller or the body: two programs could use different ones. */
const SINGLE_HEADERS: ReadonlyMap<string, number> = new Map([
  ['cookie', COOKIE],
  ['x-api-key', 2],
  ['content-type', 4],
  ['authorization', 8],
  ['x-goog-api-key', 16],
])

function frameHeader(name: string, value: string, seen: Seen): WireError | null {
  switch (name) {
    case 'host':
      // RFC 9113, 8.3.1: a `host` beside `:authority` must be the same.
      if (seen.host !== null || (seen.authority !== null && seen.authority !== value)) {
        return malformed('The header host must occur exactly once')
      }
      seen.host = value
      return null
    case 'expect':
      if (seen.expect !== null) return malformed('The header expect must occur only once')
      seen.expect = value
      if (value.toLowerCase() === '100-continue') return null
      return malformed('The header expect may only be 100-continue')
    case 'content-length':
      if (seen.length !== null) return malformed('The header content-length must occur only once')
      seen.length = value
      return null
    case 'transfer-encoding':
      if (seen.encoding !== null) {
        return malformed('The header transfer-encoding must occur only once')
      }
      seen.encoding = value
      return null
    default:
      return null
  }
}

function framingProblem(version: string, method: string, seen: Seen): WireError | null {
  const { length, encoding } = seen
  const host = seen.host ?? seen.authority
  if (host === null) return malformed('The header host is missing')
  if (host.length > MAX_HOST || !HOST.test(host))
    return malformed('The header host must be a host name and optionally a port')
  if (length !== null && !LENGTH.test(length)) {
    return malformed('The header content-length must be a plain decimal number')
  }
  if (encoding !== null) {
    if (version === '1.0') return malformed('HTTP/1.0 has no transfer-encoding')
    if (length !== null) {
      return malformed('a request has either a content-length or a transfer-encoding')
    }
    if (encoding !== 'chunked') return malformed('the only transfer-encoding is chunked')
    return null
  }
  const hasBody = method === 'POST' || method === 'PUT' || method === 'PATCH'
  // Older programs read such a body to the end of the connection.
  if (version === '1.0' && hasBody && length === null) {
    return malformed('an HTTP/1.0 request with a body needs a content-length')
  }
  return null
}

function bytesIn(raw: readonly string[]): number {
  let bytes = 0
  for (const text of raw) bytes += text.length
  return bytes
}

function tooManyHeaders(what: string): WireError {
  return refusal('headers_too_large', `the request has more than ${MAX_HEADERS} ${what}`)
}

function malformed(message: string): WireError {
  return refusal('malformed_request', message)
}

function refusal(kind: ErrorKind, message: string): WireError {
  return { kind, message }
}
