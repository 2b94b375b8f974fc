/**
 * What a request's line and headers must be before anything else looks at them.
 * Knows no route, key or body; reads every field that the parser kept, so that none is judged twice.
 */
import type { ErrorKind, WireError } from '../errors.js'
import type { Request } from '../http/request.js'

/** The methods that any route may have; the rest end here. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

const ALLOWED: ReadonlySet<string> = new Set(METHODS)

/** Header lines, and trailer lines, of one request. Nginx allows 100 too, Apache and Envoy as well. */
const MAX_HEADERS = 100
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/
const LENGTH = /^(?:0|[1-9]\d{0,10})$/
const TARGET = /^\/[!-~]*$/
/** In a path: escaped control characters, DEL, and the backslash that some servers take for a slash. */
const UNSAFE = /%(?:[01][0-9a-f]|7f|5c)/

/** What the headers said, as far as framing and identity go. */
interface Seen {
  host: string | null
  length: string | null
  encoding: string | null
}

/**
 * Null where the request may go on, else why not; the answer must then close the connection, since
 * what follows on it cannot be trusted to be a request. Synchronous, about a microsecond.
 */
export function admit(req: Request): WireError | null {
  const { httpVersion, method } = req
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return malformed(`HTTP/${httpVersion} is not spoken on this port; use HTTP/1.1`)
  }
  if (!ALLOWED.has(method)) {
    return refusal('method_not_allowed', `the method ${method} is never allowed here`)
  }
  const seen: Seen = { host: null, length: null, encoding: null }
  return (
    targetProblem(req.url) ??
    headersProblem(req.headers, seen) ??
    framingProblem(httpVersion, method, seen)
  )
}

/** Null where the trailers of a request that has been read are few enough; they are never used. */
export function admitTrailers(req: Request): WireError | null {
  return req.trailers.length > 2 * MAX_HEADERS ? tooMany('trailers') : null
}

/** The path of a target in origin form: what is before the query. */
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
    return malformed('the request target has a broken percent escape')
  }
  const lower = path.toLowerCase()
  if (UNSAFE.test(lower)) {
    return malformed('the path must not hide a backslash or a control character')
  }
  if (target.includes('%00')) return malformed('the request target must not contain %00')
  if (lower.includes('%2e')) return malformed('the path must not contain escaped dots')
  const slash = lower.indexOf('%2f')
  // Model ids may contain slashes; nothing else in a path does.
  const model = lower.indexOf('/models/')
  if (slash !== -1 && (model === -1 || slash < model + 8)) {
    return malformed('the path must not contain an escaped slash outside a model id')
  }
  return null
}

/** Fills `seen`. By length first: most headers are dismissed without looking at their name. */
function headersProblem(raw: readonly string[], seen: Seen): WireError | null {
  if (raw.length > 2 * MAX_HEADERS) return tooMany('headers')
  let credentials = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    switch (name.length) {
      case 4:
      case 6:
      case 14:
      case 17: {
        const problem = frameHeader(name, raw[i + 1] ?? '', seen)
        if (problem !== null) return problem
      }
    }
    const bit = singleBit(name)
    if (bit === 0) continue
    if ((credentials & bit) !== 0) return malformed(`the header ${name} must come only once`)
    credentials |= bit
  }
  return null
}

function frameHeader(name: string, value: string, seen: Seen): WireError | null {
  if (name.length === 4) {
    if (name !== 'host') return null
    if (seen.host !== null) return malformed('the header host must come exactly once')
    seen.host = value
  } else if (name.length === 6) {
    if (name !== 'expect' || value.toLowerCase() === '100-continue') return null
    return malformed('the header expect may only be 100-continue')
  } else if (name.length === 14) {
    if (name !== 'content-length') return null
    if (seen.length !== null) return malformed('the header content-length must come only once')
    seen.length = value
  } else if (name.length === 17) {
    if (name !== 'transfer-encoding') return null
    if (seen.encoding !== null) return malformed('the header transfer-encoding must come only once')
    seen.encoding = value
  }
  return null
}

/**
 * A bit for each header that decides who asks or what is read, where a second one would let two
 * programs see two requests; 0 for any other.
 */
function singleBit(name: string): number {
  switch (name.length) {
    case 6:
      return name === 'cookie' ? 1 : 0
    case 9:
      return name === 'x-api-key' ? 2 : 0
    case 12:
      return name === 'content-type' ? 4 : 0
    case 13:
      return name === 'authorization' ? 8 : 0
    case 14:
      return name === 'x-goog-api-key' ? 16 : 0
    default:
      return 0
  }
}

function framingProblem(version: string, method: string, seen: Seen): WireError | null {
  const { host, length, encoding } = seen
  if (host === null) return malformed('the header host is missing')
  if (!HOST.test(host)) return malformed('the header host must be a host name and maybe a port')
  if (length !== null && !LENGTH.test(length)) {
    return malformed('the header content-length must be a plain decimal number')
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
  // Older programs read such a body up to the end of the connection.
  if (version === '1.0' && hasBody && length === null) {
    return malformed('an HTTP/1.0 request with a body needs a content-length')
  }
  return null
}

function tooMany(what: string): WireError {
  return refusal('headers_too_large', `the request has more than ${MAX_HEADERS} ${what}`)
}

function malformed(message: string): WireError {
  return refusal('malformed_request', message)
}

function refusal(kind: ErrorKind, message: string): WireError {
  return { kind, message }
}
