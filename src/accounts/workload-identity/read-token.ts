/**
 * Reads a JWT in compact form and checks everything that needs no key: its size, encoding, duplicate members,
 * headers, algorithm and the types of its claims (RFC 8725). The signature is not checked here. Pure.
 */
import { GatewayError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'
import { ALGORITHMS, type KeyForm } from './signature-algorithms.js'

/** Longer tokens are refused. */
const MAX_CHARS = 16 * 1024
/** Members, items and their separators in the header or the claims. */
const MAX_TOKENS = 4_096
const MAX_DEPTH = 16
/** A JWS has three parts, a JWE five; the last part of an unsigned token is empty. */
const COMPACT = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){2}(?:(?:\.[A-Za-z0-9_-]*){2})?$/
const JWS_PARTS = 3

/** The parts of a token that need no key to be read. Nothing in it is proven. */
export interface UnverifiedToken {
  readonly alg: string
  readonly form: KeyForm
  /** Null if the header has none. */
  readonly kid: string | null
  readonly iss: string
  /** Empty if the token has none. */
  readonly aud: readonly string[]
  /** Null if the token has none. */
  readonly sub: string | null
  readonly jti: string | null
  /** Seconds since 1970. */
  readonly exp: number
  readonly nbf: number | null
  readonly claims: JsonObject
}

/** Whether a credential has the form of a compact JWT: a JWS, or a JWE, which is refused. */
export function isCompactToken(credential: string): boolean {
  return COMPACT.test(credential)
}

/** Throws `jwt_invalid`; the message contains no part of the token. */
export function readToken(token: string): UnverifiedToken {
  if (token.length > MAX_CHARS) throw invalid('it is longer than 16 KiB')
  const parts = token.split('.')
  const [head = '', body = '', signature = ''] = parts
  if (parts.length !== JWS_PARTS) throw invalid('it is encrypted: send a signed token (JWS)')
  const header = objectIn(head, 'header')
  for (const name of ['crit', 'b64', 'zip', 'enc']) {
    if (header[name] !== undefined) throw invalid(`its header has "${name}", which is not supported`)
  }
  const { alg, kid } = header
  const form = typeof alg === 'string' ? ALGORITHMS.get(alg) : undefined
  if (typeof alg !== 'string' || form === undefined) {
    throw invalid('its "alg" is not one of RS, PS, ES and EdDSA')
  }
  if (signature === '') throw invalid('it has no signature')
  bytesIn(signature, 'signature')
  if (kid !== undefined && typeof kid !== 'string') throw invalid('its "kid" is not a text')
  const claims = objectIn(body, 'claims')
  const exp = timeIn(claims, 'exp')
  if (exp === null) throw invalid('it has no "exp"')
  timeIn(claims, 'iat')
  return {
    alg,
    form,
    kid: kid ?? null,
    iss: textIn(claims, 'iss') ?? '',
    aud: audienceIn(claims),
    sub: textIn(claims, 'sub'),
    jti: textIn(claims, 'jti'),
    exp,
    nbf: timeIn(claims, 'nbf'),
    claims,
  }
}

/** The refusal of a token. */
export function invalid(why: string, cause?: unknown): GatewayError {
  return new GatewayError('jwt_invalid', `The token is not valid: ${why}.`, { cause })
}

function objectIn(part: string, what: string): JsonObject {
  const bytes = bytesIn(part, what)
  try {
    return parseObject(bytes, { maxDepth: MAX_DEPTH, maxTokens: MAX_TOKENS }).value
  } catch {
    // The error would quote the token.
    throw invalid(`its ${what} must be a JSON object with unique members`)
  }
}

/** Refuses text that another decoder could read as other bytes, such as unused bits at the end. */
function bytesIn(part: string, what: string): Buffer {
  const bytes = Buffer.from(part, 'base64url')
  if (bytes.toString('base64url') !== part) throw invalid(`its ${what} is not valid base64url`)
  return bytes
}

function textIn(claims: JsonObject, name: string): string | null {
  const value = claims[name]
  if (value === undefined) return null
  if (typeof value !== 'string') throw invalid(`its "${name}" is not a text`)
  return value
}

function timeIn(claims: JsonObject, name: string): number | null {
  const value = claims[name]
  if (value === undefined) return null
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw invalid(`its "${name}" is not a number`)
  }
  return value
}

function audienceIn({ aud }: JsonObject): string[] {
  if (aud === undefined) return []
  const list = Array.isArray(aud) ? aud : [aud]
  return list.map((each) => {
    if (typeof each !== 'string') throw invalid('its "aud" is not a text or a list of texts')
    return each
  })
}
