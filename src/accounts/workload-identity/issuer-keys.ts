/**
 * The public keys of one issuer (JWKS), from an address, by discovery, or from a file. They are fetched again
 * in the background when they become old, and at once for a token with an unknown key, at most once in
 * `cooldown_seconds`. While the issuer does not answer, known keys verify tokens for `stale_seconds`.
 */
import { readFile } from 'node:fs/promises'
import type { WorkloadIdentity } from '../../config/schema/identity-schema.js'
import { GatewayError } from '../../errors.js'
import { isObject, type JsonObject } from '../../base/json.js'
import { isSecureAddress } from '../../http/private-addresses.js'
import { invalid, type UnverifiedToken } from './read-token.js'
import { misfitOf, publicJwkOf, type PublicJwk } from './signature-algorithms.js'

/** Keys beyond this number are ignored. */
const MAX_KEYS = 200
/** The time after a failed fetch in which requests without keys are refused at once. */
const PAUSE_MS = 1_000
/** How long the address that discovery returned is used. */
const DISCOVERY_MS = 3_600_000
const DISCOVERY_PATH = '/.well-known/openid-configuration'
/** Members of a JWK that are the public key itself. */
const PUBLIC_MEMBERS = ['kty', 'n', 'e', 'crv', 'x', 'y'] as const

/** A key of the set. */
export interface IssuerKey {
  readonly jwk: PublicJwk
  /** The members of the public key, for `jose`. */
  readonly material: JsonObject
  /** False once the key has left the set. */
  isCurrent: boolean
}

/** The dependencies of the keys of all issuers. */
export interface IssuerKeysOptions {
  /** The body of a 200 reply. Rejects for any other reply, and after a time limit. */
  readonly get: (url: string) => Promise<string>
  /** Monotonic, in ms. */
  readonly now: () => number
  /** Called when keys cannot be fetched; `reason` contains no value of a reply. */
  readonly onFailure: (issuer: string, reason: string) => void
}

/** The source of the keys, and the times of `identity[].jwks`. */
type KeySource = Pick<WorkloadIdentity, 'issuer' | 'jwks_uri' | 'jwks_file' | 'jwks'>

/** The keys of one issuer, of all identities with the same source. */
export class IssuerKeys {
  private readonly source: KeySource
  private readonly options: IssuerKeysOptions
  private keys: readonly IssuerKey[] | null = null
  /** When the set was fetched last. */
  private fetchedAtMs = Number.NEGATIVE_INFINITY
  private failedAtMs = Number.NEGATIVE_INFINITY
  /** When a token with an unknown key caused the last fetch. */
  private searchedAtMs = Number.NEGATIVE_INFINITY
  private running: Promise<void> | null = null
  private discovered: { readonly address: string; readonly atMs: number } | null = null

  constructor(source: KeySource, options: IssuerKeysOptions) {
    this.source = source
    this.options = options
  }

  /** Whether the keys are known and not too old to verify a token. Refreshes them. */
  isUsable(nowMs: number): boolean {
    if (this.keys === null || nowMs - this.fetchedAtMs > this.source.jwks.stale_seconds * 1_000) return false
    this.refresh(nowMs)
    return true
  }

  /** Starts a fetch in the background if the keys are older than `max_age_seconds`. */
  refresh(nowMs: number): void {
    const isOld = nowMs - this.fetchedAtMs >= this.source.jwks.max_age_seconds * 1_000
    if (isOld && nowMs - this.failedAtMs >= PAUSE_MS) void this.fetch()
  }

  /** Fetches the keys now. */
  fetch(): Promise<void> {
    this.running ??= this.load().finally(() => (this.running = null))
    return this.running
  }

  /**
   * The key of a token. Rejects with `jwt_unknown_key`, with `jwt_invalid` if the key does not fit the token,
   * and with `identity_unavailable` if no keys are known or they are too old.
   */
  async find(token: UnverifiedToken): Promise<IssuerKey> {
    const { now } = this.options
    if (!this.isUsable(now())) {
      if (this.running !== null || now() - this.failedAtMs >= PAUSE_MS) await this.fetch()
      if (!this.isUsable(now())) throw unavailable()
    }
    const found = this.select(token) ?? (await this.search(token))
    if (found !== null) return found
    throw new GatewayError(
      'jwt_unknown_key',
      token.kid === null
        ? 'The token names no key ("kid"), and not exactly one key of its issuer fits it.'
        : 'The issuer of the token has no key with its "kid".',
    )
  }

  /** Waits for the fetch in progress, then fetches again unless a token has just caused that. */
  private async search(token: UnverifiedToken): Promise<IssuerKey | null> {
    if (this.running !== null) {
      await this.running
      const found = this.select(token)
      if (found !== null) return found
    }
    if (this.running === null) {
      const nowMs = this.options.now()
      if (nowMs - this.searchedAtMs < this.source.jwks.cooldown_seconds * 1_000) return null
      this.searchedAtMs = nowMs
    }
    await this.fetch()
    return this.select(token)
  }

  private select(token: UnverifiedToken): IssuerKey | null {
    const keys = this.keys ?? []
    const { kid } = token
    if (kid === null) {
      const fitting = keys.filter(({ jwk }) => misfitOf(jwk, token) === null)
      const [only = null] = fitting
      return fitting.length === 1 ? only : null
    }
    let misfit: string | null = null
    for (const key of keys) {
      if (key.jwk.kid !== kid) continue
      const why = misfitOf(key.jwk, token)
      if (why === null) return key
      misfit ??= why
    }
    if (misfit !== null) throw invalid(misfit)
    return null
  }

  /** Never rejects: the keys that are known stay. */
  private async load(): Promise<void> {
    try {
      const content = await this.read()
      const set: unknown = JSON.parse(content)
      if (!isObject(set) || !Array.isArray(set['keys'])) throw new Error('is not a set of keys')
      this.replace(set['keys'].slice(0, MAX_KEYS))
      this.fetchedAtMs = this.options.now()
      this.failedAtMs = Number.NEGATIVE_INFINITY
    } catch (error) {
      this.failedAtMs = this.options.now()
      this.discovered = null
      const code = error instanceof Error && 'code' in error ? String(error.code) : null
      const isSyntax = error instanceof SyntaxError
      const reason = isSyntax ? 'is not JSON' : error instanceof Error ? error.message : 'failed'
      this.options.onFailure(this.source.issuer, code ?? reason)
    }
  }

  /** Keeps the object of a key that is unchanged, so that tokens verified with it stay cached. */
  private replace(list: readonly unknown[]): void {
    const former = new Map((this.keys ?? []).map((key) => [JSON.stringify(key.jwk.json), key]))
    const next: IssuerKey[] = []
    for (const value of list) {
      const jwk = publicJwkOf(value)
      if (jwk === null) continue
      const text = JSON.stringify(jwk.json)
      const known = former.get(text)
      former.delete(text)
      next.push(known ?? { jwk, material: materialOf(jwk), isCurrent: true })
    }
    for (const gone of former.values()) gone.isCurrent = false
    this.keys = next
  }

  private async read(): Promise<string> {
    const { jwks_file: file, jwks_uri: address } = this.source
    if (file !== undefined) return readFile(file, 'utf8')
    return this.options.get(address ?? (await this.discover()))
  }

  /** The `jwks_uri` of the issuer's metadata (OpenID Connect Discovery 1.0). */
  private async discover(): Promise<string> {
    const { discovered } = this
    const nowMs = this.options.now()
    if (discovered !== null && nowMs - discovered.atMs < DISCOVERY_MS) return discovered.address
    const { issuer } = this.source
    const metadata: unknown = JSON.parse(await this.options.get(issuer.replace(/\/$/, '') + DISCOVERY_PATH))
    if (!isObject(metadata)) throw new Error('has no metadata')
    if (metadata['issuer'] !== issuer) throw new Error('has metadata of another issuer')
    const address = metadata['jwks_uri']
    if (typeof address !== 'string' || !isSecureAddress(address)) {
      throw new Error('has no jwks_uri with https')
    }
    this.discovered = { address, atMs: nowMs }
    return address
  }
}

function materialOf({ json }: PublicJwk): JsonObject {
  const members = PUBLIC_MEMBERS.filter((name) => json[name] !== undefined)
  return Object.fromEntries(members.map((name) => [name, json[name]]))
}

function unavailable(): GatewayError {
  const message = 'The keys of the issuer of the token cannot be fetched; try again.'
  return new GatewayError('identity_unavailable', message, { retryAfterSeconds: 1 })
}
