/**
 * Finds the identity of a request by its API key.
 *
 * Two rules prevent outages that other gateways had. A failing store is 503 and never 401 (OpenRouter,
 * February 2026, reported timeouts as unknown users). And cache misses do not stampede: requests with the
 * same key share one lookup, at most 32 lookups run at once, and a key with a wrong checksum needs none.
 */
import type { AuthConfig } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import type { KnownKeys } from '../../store/known-keys.js'
import type { Store } from '../../store/store.js'
import { accessDigest, type Identity } from '../account.js'
import { isCompactToken } from '../workload-identity/read-token.js'
import type { WorkloadTokens } from '../workload-identity/verify-token.js'
import { digestOf, hasValidForm, isAccessToken, looksLikeSecret, mayBeImported } from '../key-secret.js'
import {
  AccountDisabled,
  resultOfLookup,
  storeUnavailable,
  type AuthResult,
  type KeyResult,
} from './authentication-result.js'
import { RunningRequestChecks, type KeysInUse } from './check-running-requests.js'
import { AuthCache, KnownHeaders, type CachedResult } from './key-cache.js'
import { KeyLookups, LookupQueueFull } from './key-lookups.js'
import { WrongKeyThrottle } from './wrong-key-throttle.js'

/** The dependencies of an `Authenticator`. */
interface AuthenticatorOptions {
  readonly store: Pick<Store, 'findKey' | 'subscribe'>
  /** Called for every request, so that a reload of the configuration takes effect at once. */
  readonly settings: () => AuthConfig
  /** Monotonic time in ms (`performance.now`). */
  readonly now: () => number
  /** Milliseconds since 1970, for keys that expire; default `Date.now`. */
  readonly wallClock?: () => number
  /** 0 to 1, spreads retries of many processes over time; default `Math.random`. */
  readonly random?: () => number
  /** Called once per `identify`. */
  readonly onResult?: (result: AuthResult) => void
  readonly cache?: AuthCache
  /** The keys that other processes of this gateway have looked up; without it none are shared. */
  readonly known?: KnownKeys | null
}

/** Maximum time to look keys of an earlier run up again before the first request. */
const VERIFY_MS = 2_000
/** Lookups at the same time. */
const VERIFIED_AT_ONCE = 16

/** A header of this length, or with a dot, may have a token; one with a key has about 60 characters. */
const TOKEN_HEADER_CHARS = 100

/** After this share of `freshSeconds`, a key in use is looked up again in the background. */
const REFRESH_AT = 2 / 3

// `Bearer sk_…` would be redacted as a key.
const NO_VALID_KEY = 'No valid API key was given: send it as `Authorization: Bearer <key>`.'

/** Authenticates requests. Holds a subscription to the store until `close`. */
export class Authenticator {
  private readonly settings: () => AuthConfig
  private readonly now: () => number
  private readonly wallClock: () => number
  private readonly onResult: (result: AuthResult) => void
  private readonly cache: AuthCache
  private readonly lookups: KeyLookups
  private readonly known: KnownKeys | null
  private readonly knownHeaders = new KnownHeaders()
  private readonly wrongKeyThrottle: WrongKeyThrottle
  private readonly unsubscribe: () => void
  private readonly outage: OutageFallback
  private runningRequests: RunningRequestChecks | null = null
  private inUse: KeysInUse | null = null
  private workloadTokens: WorkloadTokens | null = null

  /** Throws `GatewayError(store_unavailable)` if the subscription to the store fails. */
  constructor({ store, ...options }: AuthenticatorOptions) {
    this.settings = options.settings
    this.now = options.now
    this.wallClock = options.wallClock ?? Date.now
    this.outage = new OutageFallback(options.now, options.random ?? Math.random)
    this.onResult = options.onResult ?? (() => undefined)
    this.cache = options.cache ?? new AuthCache()
    this.known = options.known ?? null
    this.lookups = new KeyLookups(store, this.cache, options.now, this.known)
    this.wrongKeyThrottle = new WrongKeyThrottle(options.now)
    this.unsubscribe = store.subscribe(({ digest }) => this.changed(digest))
  }

  /**
   * The identity of the key: at once if it is cached or the store replies synchronously, else a promise.
   * Throws or rejects with `GatewayError`: `unauthenticated`, with the same message for every kind of wrong
   * key, except that of a disabled account; `auth_throttled` if too many wrong keys came from the client's
   * address (decision 0063); `store_unavailable`. An empty address is not throttled.
   *
   * A result is used for `freshSeconds`, and for `staleSeconds` while the store is failing.
   */
  identify(secret: string | null, address = ''): Identity | Promise<Identity> {
    return this.wrongKeyThrottle.counted(address, () => this.identifySecret(secret, address))
  }

  /**
   * As `identify`, for a whole header; `keyIn` extracts the key. A header that contained a good key recently
   * is recognised by its text, so its key is not extracted, checked and hashed again
   * (docs/explanation/performance.md).
   */
  identifyBy(
    header: string | undefined,
    keyIn: (header: string) => string | null,
    address = '',
  ): Identity | Promise<Identity> {
    if (header === undefined) return this.identify(null)
    if (this.workloadTokens !== null && mayHaveToken(header)) {
      const known = this.workloadTokens.recall(header)
      if (known !== null) return this.decideToken(known.digest)
      const token = keyIn(header)
      if (token !== null && isCompactToken(token)) {
        return this.wrongKeyThrottle.counted(address, () => this.verify(token, header, address))
      }
    }
    const digest = this.knownHeaders.get(header)
    if (digest !== undefined) {
      const nowMs = this.now()
      const cached = this.cache.get(digest, nowMs)
      if (cached?.result.good === true) {
        return this.wrongKeyThrottle.counted(address, () => this.decide(digest, cached, nowMs))
      }
    }
    const identified = this.identify(keyIn(header), address)
    // The setting that accepts an imported key may change.
    if (!(identified instanceof Promise) && identified.digest !== null && identified.imported !== true) {
      this.knownHeaders.put(header, identified.digest)
    }
    return identified
  }

  /** The identity of the key of an earlier request, by its digest. Throws and rejects as `identify` does. */
  identifyProven(digest: string): Identity | Promise<Identity> {
    const found = this.decideToken(digest)
    return found instanceof Promise ? found.then((of) => this.stillAccepted(of)) : this.stillAccepted(found)
  }

  /** The setting that accepts an imported key may change after it was proven. */
  private stillAccepted(identity: Identity): Identity {
    if (identity.imported !== true || this.settings().acceptImportedKeys) return identity
    throw this.unauthenticated('unknown')
  }

  /** Whether tokens of workloads are accepted. */
  get takesTokens(): boolean {
    return this.workloadTokens !== null
  }

  /** Accepts tokens of workloads from now on; null: only keys. */
  acceptTokens(tokens: WorkloadTokens | null): void {
    this.workloadTokens = tokens
    if (tokens === null) return
    this.lookups.tokenLookup = (digest) => tokens.lookUp(digest)
    tokens.watch(() => this.inUse?.digests() ?? new Set())
  }

  /** Accepts access tokens of programs from now on, and looks known ones up again; null: none is accepted. */
  acceptLogins(lookUp: KeyLookups['loginLookup']): void {
    this.lookups.loginLookup = lookUp
    this.changed(null)
  }

  /** Ends running requests from now on when their key is revoked, disabled or expired. */
  watch(inUse: KeysInUse): void {
    this.inUse = inUse
    this.runningRequests = new RunningRequestChecks({
      inUse,
      cached: (digest) => this.cache.get(digest, this.now())?.result,
      current: (digest) => {
        const cached = this.cache.get(digest, this.now())
        return cached?.trusted === true ? cached.result : this.lookups.lookUp(digest)
      },
      // Programs renew their tokens while requests run: only the end of the sign-in ends those.
      hasExpired: (identity) => identity.user === undefined && this.hasExpired(identity),
      onStoreError: (error) => this.outage.storeFailed(error),
      onSweep: () => {
        this.knownHeaders.dropOld(this.now())
        this.workloadTokens?.sweep()
      },
    })
  }

  /**
   * Looks the keys up that an earlier run of the gateway has used, so that an outage that begins now finds
   * them. Resolves after two seconds at the latest, and goes on in the background. Never rejects.
   */
  async verifyKnown(): Promise<void> {
    const digests = this.known?.unverified() ?? []
    const verify = async (): Promise<void> => {
      for (let digest = digests.shift(); digest !== undefined; digest = digests.shift()) {
        await this.lookups.lookUp(digest)
        // The embedded store answers at once: requests go first.
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const verifying = Promise.all(Array.from({ length: VERIFIED_AT_ONCE }, verify)).catch(
      // The store has failed: the rest stays unknown.
      () => void digests.splice(0),
    )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, VERIFY_MS)))
    await Promise.race([verifying, late]).finally(() => clearTimeout(timer))
  }

  /** Ends the subscription to the store and the checks of running requests. */
  close(): void {
    this.unsubscribe()
    this.known?.close()
    this.runningRequests?.close()
  }

  private identifySecret(secret: string | null, address: string): Identity | Promise<Identity> {
    const nowMs = this.now()
    const isThrottled = this.wrongKeyThrottle.isThrottled(address, nowMs)
    const isForeign = secret !== null && this.acceptsForeign(secret)
    if (secret !== null && this.lookups.loginLookup !== null && isAccessToken(secret)) {
      return this.identifyProgram(accessDigest(digestOf(secret)), { address, isThrottled, nowMs })
    }
    if (secret === null || !(looksLikeSecret(secret) || isForeign)) {
      if (isThrottled) return this.throttled()
      throw this.unauthenticated(secret === null || secret === '' ? 'missing' : 'malformed')
    }
    const digest = digestOf(secret)
    const cached = this.cache.get(digest, nowMs)
    // A key that is cached as good is served even if other clients of its address send wrong keys.
    if (isThrottled && cached?.result.good !== true) {
      const mayBeGood = cached === null && (isForeign || hasValidForm(secret))
      if (!mayBeGood || !this.wrongKeyThrottle.takeLookUp(address, nowMs)) return this.throttled()
    }
    // A cached key has passed the checksum before.
    if (cached === null && !isForeign && !hasValidForm(secret)) throw this.unauthenticated('malformed')
    return this.decide(digest, cached, nowMs, isForeign)
  }

  /** The identity of an access token, whose form has no checksum. */
  private identifyProgram(
    digest: string,
    { address, isThrottled, nowMs }: { address: string; isThrottled: boolean; nowMs: number },
  ): Identity | Promise<Identity> {
    const cached = this.cache.get(digest, nowMs)
    const isKnown = cached?.result.good === true
    if (isThrottled && !isKnown && !this.wrongKeyThrottle.takeLookUp(address, nowMs)) return this.throttled()
    return this.decide(digest, cached, nowMs)
  }

  /** Whether the credential is looked up although this gateway makes no keys of its form. */
  private acceptsForeign(secret: string): boolean {
    if (!this.settings().acceptImportedKeys || !mayBeImported(secret)) return false
    return this.workloadTokens === null || !isCompactToken(secret)
  }

  /** Verifies a token that is not cached. */
  private async verify(token: string, header: string, address: string): Promise<Identity> {
    const tokens = this.workloadTokens
    if (tokens === null) throw this.unauthenticated('malformed')
    const nowMs = this.now()
    const isThrottled = this.wrongKeyThrottle.isThrottled(address, nowMs)
    if (isThrottled && !this.wrongKeyThrottle.takeLookUp(address, nowMs)) return this.throttled()
    let digest: string
    try {
      ;({ digest } = await tokens.verify(token, header))
    } catch (error) {
      if (error instanceof GatewayError) this.onResult(resultOf(error))
      throw error
    }
    return this.decideToken(digest)
  }

  private decideToken(digest: string): Identity | Promise<Identity> {
    const nowMs = this.now()
    return this.decide(digest, this.cache.get(digest, nowMs), nowMs)
  }

  private throttled(): Promise<Identity> {
    this.onResult('throttled')
    return this.wrongKeyThrottle.refuse()
  }

  /** `isForeign`: only an imported key may have a secret of this form. */
  private decide(
    digest: string,
    cached: CachedResult | null,
    nowMs: number,
    isForeign = false,
  ): Identity | Promise<Identity> {
    const { freshSeconds, staleSeconds } = this.settings()
    if (cached?.trusted === true && !cached.result.good) return this.conclude(cached.result, isForeign)
    const ageMs = cached === null ? 0 : nowMs - cached.checkedAtMs
    if (cached?.trusted === true && ageMs < freshSeconds * 1000) {
      if (ageMs >= freshSeconds * 1000 * REFRESH_AT) this.refresh(digest, nowMs)
      return this.conclude(cached.result, isForeign)
    }
    const fallback = usableInOutage(cached, nowMs, staleSeconds)
    if (fallback !== null && this.outage.isBackingOff(nowMs)) {
      return this.conclude(fallback.result, isForeign)
    }
    return this.lookUp(digest, fallback, isForeign)
  }

  private lookUp(
    digest: string,
    fallback: CachedResult | null,
    isForeign: boolean,
  ): Identity | Promise<Identity> {
    let result: KeyResult | Promise<KeyResult>
    try {
      result = this.lookups.lookUp(digest)
    } catch (error) {
      return this.withoutStore(digest, fallback, error, isForeign)
    }
    if (!(result instanceof Promise)) return this.conclude(result, isForeign)
    return result.then(
      (keyResult) => this.conclude(keyResult, isForeign),
      (error: unknown) => this.withoutStore(digest, fallback, error, isForeign),
    )
  }

  /** Looks the key up while the cached result is still fresh, so that later requests do not wait for it. */
  private refresh(digest: string, nowMs: number): void {
    if (this.outage.isBackingOff(nowMs) || this.lookups.isRunning(digest)) return
    try {
      const result = this.lookups.lookUp(digest)
      if (result instanceof Promise) result.catch((error: unknown) => this.outage.storeFailed(error))
    } catch (error) {
      // No request waits for this lookup; if the store keeps failing, a later request reports it.
      this.outage.storeFailed(error)
    }
  }

  private withoutStore(
    digest: string,
    fallback: CachedResult | null,
    error: unknown,
    isForeign: boolean,
  ): Identity {
    this.outage.storeFailed(error)
    // The cache is read again: the key may have been revoked during the lookup.
    const cached = fallback === null ? null : this.cache.get(digest, this.now())
    if (cached?.result.good === true) return this.conclude(cached.result, isForeign)
    const shared = this.knownToOthers(digest)
    if (shared !== null) return this.conclude(shared, isForeign)
    this.onResult('store_unavailable')
    throw storeUnavailable(error)
  }

  /** The result of another process's lookup, if it may be used while the store fails. */
  private knownToOthers(digest: string): KeyResult | null {
    const found = this.known?.find(digest) ?? null
    if (found === null || found.ageMs > this.settings().staleSeconds * 1_000) return null
    return resultOfLookup(digest, found.lookup)
  }

  private changed(digest: string | null): void {
    this.cache.change(digest)
    if (digest !== null) this.known?.forget(digest)
    this.knownHeaders.clear()
    this.lookups.discard(digest)
    // Null may mean that the store is reachable again, and that a key was revoked in the meantime.
    if (digest === null) this.outage.reset()
    this.runningRequests?.changed(digest)
  }

  private hasExpired({ expiresAtMs }: Identity): boolean {
    return expiresAtMs !== null && this.wallClock() >= expiresAtMs
  }

  private conclude(result: KeyResult, isForeign: boolean): Identity {
    if (!result.good && result.reason === 'refused') {
      this.onResult(resultOf(result.error))
      throw result.error
    }
    if (!result.good) {
      if (result.reason !== 'disabled') throw this.unauthenticated(result.reason)
      this.onResult('disabled')
      throw new AccountDisabled()
    }
    const { identity } = result
    if (isForeign && identity.imported !== true) throw this.unauthenticated('unknown')
    if (this.hasExpired(identity)) throw this.unauthenticated('expired')
    this.onResult('ok')
    return identity
  }

  private unauthenticated(result: AuthResult): GatewayError {
    this.onResult(result)
    return new GatewayError('unauthenticated', NO_VALID_KEY)
  }
}

function mayHaveToken(header: string): boolean {
  return header.length > TOKEN_HEADER_CHARS || header.includes('.')
}

/** The result for the metric. */
function resultOf({ kind }: GatewayError): AuthResult {
  switch (kind) {
    case 'jwt_invalid':
    case 'jwt_issuer':
    case 'jwt_unknown_key':
    case 'jwt_expired':
    case 'jwt_audience':
    case 'jwt_claims':
    case 'jwt_revoked':
    case 'identity_unavailable':
      return kind
    default:
      return 'store_unavailable'
  }
}

/** How long cached results are used without a lookup after the store has failed. */
const BACK_OFF_MS = 1_000
/** Maximum random extension of the back-off, so that not all processes retry the store at once. */
const JITTER = 0.25

/**
 * The back-off from a failing store, for one process: decides which cached results authenticate without a
 * lookup, and when lookups start again. Times are monotonic, in ms.
 */
class OutageFallback {
  private readonly now: () => number
  private readonly random: () => number
  private backOffUntilMs = Number.NEGATIVE_INFINITY

  /** `random` returns 0 to 1. */
  constructor(now: () => number, random: () => number) {
    this.now = now
    this.random = random
  }

  /** Begins a back-off, unless the store did not fail but too many lookups wait. */
  storeFailed(error: unknown): void {
    if (error instanceof GatewayError && error.cause instanceof LookupQueueFull) return
    this.backOffUntilMs = this.now() + BACK_OFF_MS * (1 + this.random() * JITTER)
  }

  isBackingOff(nowMs: number): boolean {
    return nowMs < this.backOffUntilMs
  }

  /** Ends the back-off. */
  reset(): void {
    this.backOffUntilMs = Number.NEGATIVE_INFINITY
  }
}

/** The cached result if it may be used while the store fails: it is at most `staleSeconds` old; else null. */
function usableInOutage(
  cached: CachedResult | null,
  nowMs: number,
  staleSeconds: number,
): CachedResult | null {
  return cached !== null && nowMs - cached.checkedAtMs <= staleSeconds * 1000 ? cached : null
}
