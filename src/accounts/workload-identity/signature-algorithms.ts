/**
 * The algorithms with which tokens of workloads may be signed, and which public keys fit them (RFC 7518, RFC
 * 8725). Pure.
 */
import { isObject, type JsonObject } from '../../base/json.js'

/** How keys of an algorithm look: the type of the key, and its curves. */
export interface KeyForm {
  readonly kty: 'RSA' | 'EC' | 'OKP'
  /** Null for RSA. */
  readonly curve: string | null
}

const RSA: KeyForm = { kty: 'RSA', curve: null }
const ED25519: KeyForm = { kty: 'OKP', curve: 'Ed25519' }

/** The accepted algorithms; a symmetric one would make the issuer's public key a secret. */
export const ALGORITHMS: ReadonlyMap<string, KeyForm> = new Map([
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map((name) => [name, RSA] as const),
  ['ES256', { kty: 'EC', curve: 'P-256' }],
  ['ES384', { kty: 'EC', curve: 'P-384' }],
  ['ES512', { kty: 'EC', curve: 'P-521' }],
  ['EdDSA', ED25519],
  ['Ed25519', ED25519],
])

/** A key of an issuer as JSON, with the members that decide whether it fits a token. */
export interface PublicJwk {
  readonly kty: string
  readonly kid: string | null
  readonly alg: string | null
  readonly use: string | null
  readonly curve: string | null
  readonly mayVerify: boolean
  readonly json: JsonObject
}

/** Null for what is not a public key that this gateway can use. */
export function publicJwkOf(value: unknown): PublicJwk | null {
  if (!isObject(value)) return null
  const text = (name: string): string | null => {
    const member = value[name]
    return typeof member === 'string' ? member : null
  }
  const kty = text('kty')
  if (kty === null) return null
  const uses = value['key_ops']
  const mayVerify = uses === undefined || (Array.isArray(uses) && uses.includes('verify'))
  return {
    ...{ kty, kid: text('kid'), alg: text('alg'), use: text('use'), curve: text('crv') },
    mayVerify,
    json: value,
  }
}

/**
 * Why the key does not fit the algorithm of a token, as the rest of a sentence; null if it fits. A symmetric
 * key (`oct`) never does.
 */
export function misfitOf(
  jwk: PublicJwk,
  { alg, form }: { readonly alg: string; readonly form: KeyForm },
): string | null {
  if (jwk.kty !== form.kty || (form.curve !== null && jwk.curve !== form.curve)) {
    return 'its "alg" is not that of the key'
  }
  const isSame = jwk.alg === null || nameOf(jwk.alg) === nameOf(alg)
  if (!isSame) return 'its "alg" is not that of the key'
  if ((jwk.use !== null && jwk.use !== 'sig') || !jwk.mayVerify) {
    return 'its key is not for signatures'
  }
  return null
}

/** Both names of one algorithm. */
function nameOf(alg: string): string {
  return alg === 'Ed25519' ? 'EdDSA' : alg
}
