/** An issuer of tokens for tests: discovery, a set of keys, and tokens signed with them. */
import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose'
import type { Test } from 'tap'
import { listen } from './listen.js'

/** A key of the issuer. */
export interface SigningKey {
  readonly kid: string | undefined
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

export type Claims = Record<string, unknown>

/** A running issuer. */
export interface Issuer {
  readonly url: string
  /** The published keys; tests change it. */
  keys: JWK[]
  /** False: every request is answered 503. */
  isUp: boolean
  /** Requests for the set of keys. */
  fetches: number
  /** Delays the answers, in ms. */
  delayMs: number
  /** Claims of a valid token for `audience: [sluice]`, ten minutes long. */
  claims(more?: Claims): Claims
  sign(key: SigningKey, claims: Claims, header?: Record<string, unknown>): Promise<string>
}

/** Creates a key and does not publish it. */
export async function newSigningKey(
  alg = 'ES256',
  kid = `kid-${Math.random().toString(36).slice(2)}`,
  more: JWK = {},
): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, ...more } }
}

/** Starts an issuer on a free port; it ends with the test. */
export async function startIssuer(t: Test): Promise<Issuer> {
  const server = createServer((req, res) => {
    const isSet = req.url === '/keys'
    if (isSet) issuer.fetches += 1
    const body = isSet ? { keys: issuer.keys } : { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }
    const answer = (): void => {
      res.writeHead(issuer.isUp ? 200 : 503, { 'content-type': 'application/json' })
      res.end(JSON.stringify(body))
    }
    if (issuer.delayMs === 0) answer()
    else setTimeout(answer, issuer.delayMs)
  })
  const port = await listen(t, server)
  const url = `http://127.0.0.1:${port}`
  const issuer: Issuer = {
    ...{ url, keys: [], isUp: true, fetches: 0, delayMs: 0 },
    claims: (more = {}) => {
      const nowSeconds = Math.floor(Date.now() / 1_000)
      const exp = nowSeconds + 600
      return { iss: url, aud: 'sluice', sub: 'system:serviceaccount:research:batch', exp, ...more }
    },
    sign: ({ alg, kid, privateKey }, claims, header = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }), ...header })
        .sign(privateKey),
  }
  return issuer
}

/** A token of these parts, which may be invalid; a text is used unchanged. */
export function rawToken(header: unknown, claims: unknown, signature = 'c2ln'): string {
  const encoded = (part: unknown): string =>
    Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')
  return `${encoded(header)}.${encoded(claims)}.${signature}`
}
