/**
 * From a client's secret to the identity that its request runs as.
 * Knows no HTTP and no engine; where the secret stood in the request is the dialect's business.
 *
 * Two rules come from other gateways' outages. A store that fails is 503, never 401 (OpenRouter,
 * February 2026: time-outs were reported as unknown users). And misses do not stampede: one look-up
 * per digest, at most 32 at once, and a secret with a wrong checksum costs none.
 */
import type { Identity } from '../accounts/account.js'
import { digestOf, hasValidForm, looksLikeSecret } from '../accounts/key-secret.js'
import type { AuthConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { KeyLookup, Store } from '../store/store.js'
import { WrongKeys } from './wrong-key-throttle.js'
import { judge, storeUnavailable } from './authentication-result.js'
import { AuthCache, type Remembered, type Verdict } from './cache.js'
import { Shown } from './known-headers.js'

/** How an authentication ended: the label of `sluice_auth_total`. */
export type AuthResult =
  | 'ok'
  | 'missing'
  | 'malformed'
  | 'unknown'
  | 'revoked'
  | 'expired'
  | 'disabled'
  | 'throttled'
  | 'store_unavailable'

/** What authentication is given: where keys are, how long they are believed, and the time. */
export interface AuthenticatorOptions {
  readonly store: Pick<Store, 'findKey' | 'subscribe'>
  /** Read on every call, so that a reload of the configuration takes effect at once. */
  readonly settings: () => AuthConfig
  /** Milliseconds that never go back (`performance.now`). */
  readonly now: () => number
  /** Milliseconds since 1970, for keys that expire; the machine's where left out. */
  readonly wallClock?: () => number
  /** 0 to 1, for waits that all processes begin at the same time; `Math.random` where absent. */
  readonly random?: () => number
  /** Called once per `identify`. */
  readonly onResult?: (result: AuthResult) => void
  readonly cache?: AuthCache
}

/** Enough for 64,000 look-ups a second at 0.5 ms, few enough for a store that comes back to life. */
const MAX_LOOKUPS = 32
/** A store that takes 100 ms to time out keeps the last of these waiting 0.8 s. */
const MAX_WAITING = 256
/** After a failure, for this long, remembered verdicts are used without asking again. */
const BACK_OFF_MS = 1_000
/** And for up to this share longer, so that not all processes come back to the store at once. */
const JITTER = 0.25
/** Of what runs, looked up again at once when anything may have changed; the rest is for requests. */
const RECHECKS = 16
/** So often, what runs is looked through for keys that have expired; five seconds are promised. */
const SWEEP_MS = 2_000
/** From this share of the fresh time on, a key in use is looked up again behind the request. */
const REFRESH_AT = 2 / 3

const NO_VALID_KEY = 'No valid API key was given: send it as `Authorization: Bearer sk_…`.'
const DISABLED = 'The account that this API key belongs to is disabled.'

/** What runs at the moment, by the digest of its key. */
export interface KeysInUse {
  digests(): ReadonlySet<string>
  /** Ends all that runs with the key. */
  end(digest: string, why: GatewayError): void
}

/** The store was not asked, because so many are waiting for it: it has not failed. */
class Crowded extends Error {}

/** Holds a subscription to the store until `close`. */
export class Authenticator {
  private readonly store: AuthenticatorOptions['store']
  private readonly settings: () => AuthConfig
  private readonly now: () => number
  private readonly wallClock: () => number
  private readonly onResult: (result: AuthResult) => void
  private readonly cache: AuthCache
  private readonly shown = new Shown()
  private readonly wrongKeys: WrongKeys
  private readonly flights = new Map<string, Promise<Verdict>>()
  private readonly waiting: (() => void)[] = []
  private lookups = 0
  private askAgainAtMs = Number.NEGATIVE_INFINITY
  private readonly random: () => number
  private readonly unsubscribe: () => void
  private inUse: KeysInUse | null = null
  private sweep: NodeJS.Timeout | null = null
  /** Whether all that runs is being looked up again, and whether once more after that. */
  private rechecking: 'no' | 'once' | 'again' = 'no'

  /** Throws `GatewayError(store_unavailable)` where the store cannot be listened to. */
  constructor(options: AuthenticatorOptions) {
    this.store = options.store
    this.settings = options.settings
    this.now = options.now
    this.wallClock = options.wallClock ?? Date.now
    this.random = options.random ?? Math.random
    this.onResult = options.onResult ?? (() => undefined)
    this.cache = options.cache ?? new AuthCache()
    this.wrongKeys = new WrongKeys(options.now)
    this.unsubscribe = this.store.subscribe(({ digest }) => this.changed(digest))
  }

  /**
   * The identity of the key: at once where memory or the engine has it, else a promise. Throws or
   * rejects with `GatewayError`: `unauthenticated`, with one message whatever was wrong; `forbidden`
   * for a disabled account; `auth_throttled` if too many wrong keys came from the client's address
   * (docs/decisions/0063); `store_unavailable`. An empty address is not throttled.
   *
   * A verdict is used for `freshSeconds`, and for `staleSeconds` while the store is failing.
   */
  identify(secret: string | null, address = ''): Identity | Promise<Identity> {
    return this.wrongKeys.counted(address, () => this.identifySecret(secret, address))
  }

  /**
   * As `identify`, by what the header of the key says: `keyIn` finds the key in it. A header that came with
   * a good key lately is known by its text, and the key need not be found, checked and hashed again; all
   * else is as with any other (docs/decisions/0041).
   */
  identifyBy(
    header: string | undefined,
    keyIn: (header: string) => string | null,
    address = '',
  ): Identity | Promise<Identity> {
    if (header === undefined) return this.identify(null)
    const digest = this.shown.get(header)
    if (digest !== undefined) {
      const nowMs = this.now()
      const held = this.cache.get(digest, nowMs)
      if (held?.verdict.good === true) {
        return this.wrongKeys.counted(address, () => this.decide(digest, held, nowMs))
      }
    }
    const found = this.identify(keyIn(header), address)
    if (!(found instanceof Promise) && found.digest !== null) this.shown.put(header, found.digest)
    return found
  }

  private identifySecret(secret: string | null, address: string): Identity | Promise<Identity> {
    const nowMs = this.now()
    const isThrottled = this.wrongKeys.isThrottled(address, nowMs)
    if (secret === null || !looksLikeSecret(secret)) {
      if (isThrottled) return this.throttled()
      throw this.unauthenticated(secret === null || secret === '' ? 'missing' : 'malformed')
    }
    const digest = digestOf(secret)
    const held = this.cache.get(digest, nowMs)
    // A key that is known to be good is never refused for what others send from its address.
    if (isThrottled && held?.verdict.good !== true) {
      const mayBeGood = held === null && hasValidForm(secret)
      if (!mayBeGood || !this.wrongKeys.takeLookUp(address, nowMs)) return this.throttled()
    }
    // What has been looked up had a right checksum.
    if (held === null && !hasValidForm(secret)) throw this.unauthenticated('malformed')
    return this.decide(digest, held, nowMs)
  }

  private throttled(): Promise<Identity> {
    this.onResult('throttled')
    return this.wrongKeys.refuse()
  }

  private decide(
    digest: string,
    held: Remembered | null,
    nowMs: number,
  ): Identity | Promise<Identity> {
    const { freshSeconds, staleSeconds } = this.settings()
    if (held?.trusted === true && !held.verdict.good) return this.conclude(held.verdict)
    const ageMs = held === null ? 0 : nowMs - held.checkedAtMs
    if (held?.trusted === true && ageMs < freshSeconds * 1000) {
      if (ageMs >= freshSeconds * 1000 * REFRESH_AT) this.refresh(digest, nowMs)
      return this.conclude(held.verdict)
    }
    const fallback = held !== null && ageMs <= staleSeconds * 1000 ? held : null
    if (fallback !== null && this.isBackingOff(nowMs)) return this.conclude(fallback.verdict)
    return this.ask(digest, fallback)
  }

  /** From now on, a key that stops being good ends what runs with it: the store tells, or its time comes. */
  watch(inUse: KeysInUse): void {
    this.inUse = inUse
    this.sweep = setInterval(() => {
      this.endExpired(inUse)
      this.shown.age(this.now())
    }, SWEEP_MS).unref()
  }

  /** Stops listening to the store, and watching. */
  close(): void {
    this.unsubscribe()
    if (this.sweep !== null) clearInterval(this.sweep)
  }

  private ask(digest: string, fallback: Remembered | null): Identity | Promise<Identity> {
    let verdict: Verdict | Promise<Verdict>
    try {
      verdict = this.lookUp(digest)
    } catch (error) {
      return this.withoutStore(digest, fallback, error)
    }
    if (!(verdict instanceof Promise)) return this.conclude(verdict)
    return verdict.then(
      (found) => this.conclude(found),
      (error: unknown) => this.withoutStore(digest, fallback, error),
    )
  }

  /** Asks again while the old verdict is still good; who comes next finds the answer. */
  private refresh(digest: string, nowMs: number): void {
    if (this.isBackingOff(nowMs) || this.flights.has(digest)) return
    try {
      const verdict = this.lookUp(digest)
      if (verdict instanceof Promise) verdict.catch((error: unknown) => this.failed(error))
    } catch (error) {
      // Nobody waits for this answer; a failure that lasts meets the request that does.
      this.failed(error)
    }
  }

  private lookUp(digest: string): Verdict | Promise<Verdict> {
    const flying = this.flights.get(digest)
    if (flying !== undefined) return flying
    const found = this.find(digest)
    if (!(found instanceof Promise)) {
      const verdict = judge(digest, found)
      this.cache.put(digest, verdict, this.now())
      return verdict
    }
    const startedMs = this.now()
    const flight = found
      .then((lookup) => {
        const verdict = judge(digest, lookup)
        // A change that came while we asked took the flight away: the answer may be older than it.
        if (this.flights.get(digest) === flight) this.cache.put(digest, verdict, startedMs)
        return verdict
      })
      .finally(() => {
        if (this.flights.get(digest) === flight) this.flights.delete(digest)
      })
    this.flights.set(digest, flight)
    return flight
  }

  private find(digest: string): KeyLookup | null | Promise<KeyLookup | null> {
    if (this.lookups >= MAX_LOOKUPS) return this.findLater(digest)
    const found = this.store.findKey(digest)
    if (!(found instanceof Promise)) return found
    this.lookups += 1
    return found.finally(() => this.freeSlot())
  }

  private async findLater(digest: string): Promise<KeyLookup | null> {
    if (this.waiting.length >= MAX_WAITING) {
      throw storeUnavailable(new Crowded(`${MAX_LOOKUPS} look-ups run and ${MAX_WAITING} wait`))
    }
    // The slot is handed over by who leaves it, so nobody slips in between.
    await new Promise<void>((resolve) => this.waiting.push(resolve))
    try {
      return await this.store.findKey(digest)
    } finally {
      this.freeSlot()
    }
  }

  private freeSlot(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.lookups -= 1
    else next()
  }

  private withoutStore(digest: string, fallback: Remembered | null, error: unknown): Identity {
    this.failed(error)
    // Asked again, because it may have been revoked while we waited for the store.
    const held = fallback === null ? null : this.cache.get(digest, this.now())
    if (held?.verdict.good === true) return this.conclude(held.verdict)
    this.onResult('store_unavailable')
    throw storeUnavailable(error)
  }

  private failed(error: unknown): void {
    if (error instanceof GatewayError && error.cause instanceof Crowded) return
    this.askAgainAtMs = this.now() + BACK_OFF_MS * (1 + this.random() * JITTER)
  }

  private isBackingOff(nowMs: number): boolean {
    return nowMs < this.askAgainAtMs
  }

  private changed(digest: string | null): void {
    this.cache.change(digest)
    this.shown.clear()
    if (digest === null) {
      this.flights.clear()
      // It may be that the store is back, and that there was a revocation meanwhile.
      this.askAgainAtMs = Number.NEGATIVE_INFINITY
    } else {
      this.flights.delete(digest)
    }
    if (this.inUse === null) return
    if (digest === null) void this.recheckAll(this.inUse)
    else if (this.inUse.digests().has(digest)) void this.recheck(digest, this.inUse)
  }

  private async recheckAll(inUse: KeysInUse): Promise<void> {
    const running = this.rechecking !== 'no'
    this.rechecking = running ? 'again' : 'once'
    if (running) return
    do {
      this.rechecking = 'once'
      const digests = new Set(inUse.digests()).values()
      const one = async (): Promise<void> => {
        for (const digest of digests) await this.recheck(digest, inUse)
      }
      await Promise.all(Array.from({ length: RECHECKS }, one))
    } while (this.isToRepeat())
    this.rechecking = 'no'
  }

  private isToRepeat(): boolean {
    return this.rechecking === 'again'
  }

  /** A store that does not answer proves nothing: what runs goes on. */
  private async recheck(digest: string, inUse: KeysInUse): Promise<void> {
    try {
      const held = this.cache.get(digest, this.now())
      const verdict = held?.trusted === true ? held.verdict : await this.lookUp(digest)
      if (!verdict.good) {
        inUse.end(
          digest,
          verdict.why === 'disabled'
            ? new GatewayError('forbidden', DISABLED)
            : new GatewayError('unauthenticated', 'The API key was revoked while the request ran.'),
        )
      } else if (this.hasExpired(verdict.identity)) {
        const message = 'The API key expired while the request ran.'
        inUse.end(digest, new GatewayError('unauthenticated', message))
      }
    } catch (error) {
      this.failed(error)
    }
  }

  /** Of keys that are held, only those whose time has come are looked at closer. */
  private endExpired(inUse: KeysInUse): void {
    const nowMs = this.now()
    for (const digest of inUse.digests()) {
      const verdict = this.cache.get(digest, nowMs)?.verdict
      if (verdict?.good === true && !this.hasExpired(verdict.identity)) continue
      void this.recheck(digest, inUse)
    }
  }

  private hasExpired({ expiresAtMs }: Identity): boolean {
    return expiresAtMs !== null && this.wallClock() >= expiresAtMs
  }

  private conclude(verdict: Verdict): Identity {
    if (!verdict.good) {
      if (verdict.why !== 'disabled') throw this.unauthenticated(verdict.why)
      this.onResult('disabled')
      throw new GatewayError('forbidden', DISABLED)
    }
    const { identity } = verdict
    if (this.hasExpired(identity)) {
      throw this.unauthenticated('expired')
    }
    this.onResult('ok')
    return identity
  }

  private unauthenticated(result: AuthResult): GatewayError {
    this.onResult(result)
    return new GatewayError('unauthenticated', NO_VALID_KEY)
  }
}
