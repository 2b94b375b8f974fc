/**
 * Verifies the tokens (JWTs) of workloads, and caches verified ones by their whole text until they expire or
 * their key leaves the issuer's set. Loaded only if the configuration has `identity`.
 *
 * The checks run in the order of docs/reference/workload-identity.md, and each failure has a kind of its own.
 * The identity is chosen by `iss` and `aud` alone; a token that fails is never tried with another one.
 */
import type { JsonObject } from '../../base/json.js'
import { namedKeyId } from '../../base/named-key-id.js'
import { hash } from 'node:crypto'
import { compactVerify } from 'jose'
import type { WorkloadIdentity } from '../../config/schema/identity-schema.js'
import { GatewayError } from '../../errors.js'
import type { Store } from '../../store/store.js'
import type { Account, KeyLimits } from '../account.js'
import {
  accountPart,
  storeUnavailable,
  TOKEN_DIGEST,
  WrongSignature,
  type KeyResult,
} from '../authentication/authentication-result.js'
import { LABEL_VALUE, NO_LABELS, readLabel, type Labels } from '../labels.js'
import { isOwnName } from '../names.js'
import {
  claimAt,
  claimPathOf,
  evaluate,
  parseExpression,
  type ClaimExpression,
  type ClaimPath,
} from './claim-expressions.js'
import { IssuerKeys, type IssuerKey, type IssuerKeysOptions } from './issuer-keys.js'
import { invalid, readToken, type UnverifiedToken } from './read-token.js'

/** Tolerated difference between the clocks of an issuer and this machine. */
const TOLERANCE_SECONDS = 30
/** Maximum size of the cached tokens of a process, about 30,000 of Kubernetes. */
const MAX_CACHED_CHARS = 48 * 1024 * 1024
/** Memory of a cached token besides its text. */
const ENTRY_CHARS = 512
/**
 * Headers are found by the end of their signature, since hashing a token of a thousand characters takes 4 µs;
 * the whole text is compared then.
 */
const TAIL_CHARS = 43
const SWEEP_MS = 30_000

/** The dependencies of the tokens. */
export interface WorkloadTokensOptions extends IssuerKeysOptions {
  readonly store: Pick<Store, 'accountByName' | 'ancestorsOf' | 'denials'>
  /** Milliseconds since 1970. */
  readonly wallClock: () => number
}

/** A token whose signature, times, audience and claims are right. */
export interface VerifiedToken {
  /** Identifies its requests, as the digest of a key does. */
  readonly digest: string
  readonly identity: PreparedIdentity
  readonly key: IssuerKey
  readonly expiresAtMs: number
  readonly account: string
  readonly keyId: string
  readonly labels: Labels
  readonly claims: JsonObject
  readonly sub: string | null
  readonly jti: string | null
  /** For the size of the cache. */
  readonly chars: number
}

/** An entry of `identity` with its parsed expressions. */
interface PreparedIdentity {
  readonly settings: WorkloadIdentity
  readonly keys: IssuerKeys
  readonly account: ClaimExpression
  readonly accounts: ReadonlyMap<string, string> | null
  /** Whether a claim of the token is part of the account's name, and no table of the configuration has it. */
  readonly isNamedByClaim: boolean
  readonly keyName: ClaimExpression
  readonly labels: readonly (readonly [name: string, value: ClaimExpression])[]
  /** Those without a claim. */
  readonly countedLabels: Labels
  readonly required: readonly (readonly [path: ClaimPath, values: ReadonlySet<string>])[]
  readonly models: readonly string[] | null
  readonly limits: KeyLimits | null
}

/** The identities of a process, and its verified tokens. */
export class WorkloadTokens {
  private readonly options: WorkloadTokensOptions
  private adopted = ''
  private identities: readonly PreparedIdentity[] = []
  private readonly sources = new Map<string, IssuerKeys>()
  /** By digest, in the order of verification. */
  private readonly verified = new Map<string, VerifiedToken>()
  private cachedChars = 0
  private readonly verifying = new Map<string, Promise<VerifiedToken>>()
  /** By the end of an `Authorization` header, and of other headers. */
  private readonly headers = {
    bearer: new Map<string, KnownHeader>(),
    plain: new Map<string, KnownHeader>(),
  }
  /** Part of the digests: tokens are verified again with changed identities. */
  private epoch = 0
  private sweptAtMs = Number.NEGATIVE_INFINITY
  private inUse: () => ReadonlySet<string> = () => new Set()

  constructor(options: WorkloadTokensOptions) {
    this.options = options
  }

  /** The digests of running requests, whose tokens stay known. */
  watch(inUse: () => ReadonlySet<string>): void {
    this.inUse = inUse
  }

  /** Puts the identities in force, and starts to fetch keys that are not known yet. */
  adopt(identities: readonly WorkloadIdentity[]): void {
    const text = JSON.stringify(identities)
    if (text !== this.adopted) {
      this.adopted = text
      this.epoch += 1
      this.forgetHeaders()
      const former = new Map(this.sources)
      this.sources.clear()
      this.identities = identities.map((settings) => prepare(settings, this.keysOf(settings, former)))
    }
    // A changed file may be the reason for the new generation.
    for (const { settings, keys } of this.identities) {
      if (settings.jwks_file !== undefined || !keys.isUsable(this.options.now())) void keys.fetch()
    }
  }

  /** The token of a header that was verified before and is still valid. */
  recall(header: string): VerifiedToken | null {
    const known = this.headersLike(header).get(header.slice(-TAIL_CHARS))
    if (known?.header !== header || !this.isValid(known.token)) return null
    return known.token
  }

  /**
   * Verifies the token in a header. Rejects with the `jwt_…` kind of the first check that fails, or with
   * `identity_unavailable`.
   */
  async verify(token: string, header: string): Promise<VerifiedToken> {
    const digest = `${TOKEN_DIGEST}${this.epoch}:${hash('sha256', token, 'hex')}`
    const known = this.verified.get(digest)
    let verified: VerifiedToken
    if (known !== undefined && this.isValid(known)) verified = known
    else {
      this.forget(digest)
      const running = this.verifying.get(digest) ?? this.check(token, digest)
      this.verifying.set(digest, running)
      try {
        verified = await running
      } finally {
        this.verifying.delete(digest)
      }
    }
    this.headersLike(header).set(header.slice(-TAIL_CHARS), { header, token: verified })
    return verified
  }

  /**
   * The state of a verified token's account and denials, as the lookup of a key. Rejects with
   * `store_unavailable`.
   */
  async lookUp(digest: string): Promise<KeyResult> {
    const token = this.verified.get(digest)
    if (token === undefined) throw storeUnavailable(new Error('The token is not cached any more'))
    const { settings, models, limits } = token.identity
    const { store, wallClock } = this.options
    const { sub, jti } = token
    const [account, isDenied] = await Promise.all([
      store.accountByName(token.account),
      store.denials.isDenied({ identity: settings.name, sub, jti }, wallClock()),
    ])
    const ancestors = account === null ? [] : await store.ancestorsOf(account)
    if (account === null || [account, ...ancestors].some(({ disabled }) => disabled)) {
      return refused('jwt_claims', 'The account of the token does not exist or is disabled.')
    }
    // A visitor could otherwise make an account with the name of a workload's, and read its recordings.
    if (token.identity.isNamedByClaim && isOwnName(account.name) && !hasLabel(account, settings.label)) {
      return refused('jwt_claims', 'The account of the token was made by a user or a token of an account.')
    }
    if (isDenied) {
      return refused('jwt_revoked', 'The identity of the token is revoked.')
    }
    return {
      good: true,
      identity: {
        keyId: token.keyId,
        ...accountPart(account, ancestors),
        digest,
        expiresAtMs: null,
        models,
        allowTools: null,
        limits,
        labels: token.labels,
        workload: settings.name,
        claims: token.claims,
        countedLabels: token.identity.countedLabels,
      },
    }
  }

  /**
   * Drops expired tokens and those of former keys and identities, unless a request runs with them; once in 30
   * seconds.
   */
  sweep(): void {
    const nowMs = this.options.now()
    if (nowMs - this.sweptAtMs < SWEEP_MS) return
    this.sweptAtMs = nowMs
    this.drop()
  }

  private drop(): void {
    const inUse = this.inUse()
    const prefix = `${TOKEN_DIGEST}${this.epoch}:`
    for (const [digest, token] of this.verified) {
      const isKept = digest.startsWith(prefix) && this.isValid(token)
      if (!isKept && !inUse.has(digest)) this.forget(digest)
    }
    for (const known of Object.values(this.headers)) {
      for (const [tail, { token }] of known) {
        if (this.verified.get(token.digest) !== token) known.delete(tail)
      }
    }
  }

  private isValid({ expiresAtMs, key, identity }: VerifiedToken): boolean {
    const { wallClock, now } = this.options
    identity.keys.refresh(now())
    return wallClock() <= expiresAtMs && key.isCurrent
  }

  private async check(token: string, digest: string): Promise<VerifiedToken> {
    const read = readToken(token)
    const identity = this.identityOf(read)
    const key = await identity.keys.find(read)
    try {
      await compactVerify(token, key.material, { algorithms: [read.alg] })
    } catch (error) {
      throw error instanceof TypeError
        ? invalid('its key cannot be used, such as an RSA key of less than 2,048 bits', error)
        : new WrongSignature(error)
    }
    const nowSeconds = this.options.wallClock() / 1_000
    checkTimes(read, nowSeconds)
    if (!isFor(identity, read)) {
      throw new GatewayError('jwt_audience', 'The token is for another audience ("aud").')
    }
    const verified: VerifiedToken = {
      ...{ digest, identity, key, sub: read.sub, jti: read.jti },
      ...fromClaims(identity, read),
      claims: read.claims,
      expiresAtMs: (read.exp + TOLERANCE_SECONDS) * 1_000,
      chars: token.length + ENTRY_CHARS,
    }
    this.keep(verified)
    return verified
  }

  /** The identity with the issuer and audience of the token; with the issuer alone if none has both. */
  private identityOf(token: UnverifiedToken): PreparedIdentity {
    const ofIssuer = this.identities.filter(({ settings }) => settings.issuer === token.iss)
    const identity = ofIssuer.find((each) => isFor(each, token)) ?? ofIssuer[0]
    if (identity !== undefined) return identity
    throw new GatewayError('jwt_issuer', 'The issuer of the token ("iss") is not configured.')
  }

  private keep(token: VerifiedToken): void {
    this.verified.set(token.digest, token)
    this.cachedChars += token.chars
    if (this.cachedChars <= MAX_CACHED_CHARS) return
    const inUse = this.inUse()
    for (const digest of this.verified.keys()) {
      if (this.cachedChars <= MAX_CACHED_CHARS * 0.9) break
      if (digest !== token.digest && !inUse.has(digest)) this.forget(digest)
    }
    this.drop()
  }

  private forget(digest: string): void {
    const token = this.verified.get(digest)
    if (token === undefined) return
    this.verified.delete(digest)
    this.cachedChars -= token.chars
  }

  private forgetHeaders(): void {
    this.headers.bearer.clear()
    this.headers.plain.clear()
  }

  private headersLike(header: string): Map<string, KnownHeader> {
    return header.charAt(6) === ' ' ? this.headers.bearer : this.headers.plain
  }

  /** The keys of an issuer, shared by identities with the same source. */
  private keysOf(
    { issuer, jwks_uri, jwks_file, jwks }: WorkloadIdentity,
    former: ReadonlyMap<string, IssuerKeys>,
  ): IssuerKeys {
    const source = { issuer, jwks_uri, jwks_file, jwks }
    const name = JSON.stringify(source)
    const keys = this.sources.get(name) ?? former.get(name) ?? new IssuerKeys(source, this.options)
    this.sources.set(name, keys)
    return keys
  }
}

interface KnownHeader {
  readonly header: string
  readonly token: VerifiedToken
}

function prepare(settings: WorkloadIdentity, keys: IssuerKeys): PreparedIdentity {
  const { account, key_name: keyName, labels, require: required, models, limits } = settings
  return {
    settings,
    keys,
    account: parsed(typeof account === 'string' ? account : account.from),
    accounts: typeof account === 'string' ? null : new Map(Object.entries(account.map)),
    isNamedByClaim: typeof account === 'string' && parsed(account).some((part) => typeof part !== 'string'),
    keyName: parsed(keyName),
    countedLabels: Object.fromEntries(Object.entries(labels).filter(([, value]) => !value.includes('${'))),
    labels: Object.entries(labels)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, parsed(value)] as const),
    required: Object.entries(required).map(([path, values]) => {
      return [claimPathOf(path) ?? [], new Set([values].flat())] as const
    }),
    models: models ?? null,
    limits: Object.keys(limits).length === 0 ? null : limits,
  }
}

/** The configuration was checked. */
function parsed(text: string): ClaimExpression {
  const expression = parseExpression(text)
  return 'problem' in expression ? [] : expression
}

function isFor({ settings }: PreparedIdentity, { aud }: UnverifiedToken): boolean {
  return aud.some((audience) => settings.audience.includes(audience))
}

function checkTimes({ exp, nbf }: UnverifiedToken, nowSeconds: number): void {
  if (nowSeconds - exp > TOLERANCE_SECONDS) {
    throw new GatewayError('jwt_expired', 'The token has expired.')
  }
  if (nbf !== null && nbf - nowSeconds > TOLERANCE_SECONDS) {
    throw new GatewayError('jwt_expired', 'The token is not valid yet ("nbf").')
  }
}

/** The values of the expressions. Throws `jwt_claims`; the message names claims, never their values. */
function fromClaims(
  identity: PreparedIdentity,
  { claims }: UnverifiedToken,
): Pick<VerifiedToken, 'account' | 'keyId' | 'labels'> {
  for (const [path, values] of identity.required) {
    const value = claimAt(claims, path)
    if (value === null || !values.has(value)) {
      throw wrongClaims(`the claim "${path.join('/')}" is missing or has another value`)
    }
  }
  const from = evaluate(identity.account, claims) ?? missing('account')
  const account = identity.accounts === null ? from : identity.accounts.get(from)
  if (account === undefined) throw wrongClaims('the table of "account" does not have its value')
  const keyName = evaluate(identity.keyName, claims) ?? missing('key_name')
  if (account === '' || keyName === '') throw wrongClaims('its account or key name is empty')
  const labels = identity.labels.map(([name, expression]) => {
    const value = evaluate(expression, claims) ?? missing(`labels.${name}`)
    if (LABEL_VALUE.test(value)) return [name, value] as const
    throw wrongClaims(`the value of "labels.${name}" must be 1 to 64 printable ASCII characters`)
  })
  return {
    account,
    keyId: namedKeyId(identity.settings.name, keyName),
    labels: labels.length === 0 ? NO_LABELS : Object.fromEntries(labels),
  }
}

function missing(setting: string): never {
  throw wrongClaims(`a claim of "${setting}" is missing or is no text, number or boolean`)
}

function wrongClaims(why: string): GatewayError {
  return new GatewayError('jwt_claims', `The claims of the token are not accepted: ${why}.`)
}

function hasLabel({ labels = {} }: Account, label: string | undefined): boolean {
  if (label === undefined) return false
  const { name, value } = readLabel(label)
  return Object.hasOwn(labels, name) && labels[name] === value
}

function refused(kind: 'jwt_claims' | 'jwt_revoked', message: string): KeyResult {
  return { good: false, reason: 'refused', error: new GatewayError(kind, message) }
}
