/**
 * The credentials of one identity of the gateway at a cloud. They are refreshed in the background before they
 * expire. There is one request for a token at a time, for all requests that wait.
 */
import { createHash } from 'node:crypto'
import type { IdentityConfig, UpstreamConfig } from '../../../config/config.js'
import { hideSecretParts } from '../../../hide-secrets.js'
import { sourceOf, type Credentials, type CredentialSource, type Issued } from './credential-sources.js'

/** The time and the randomness of an identity. */
export interface IdentityClock {
  /** Unix time in ms. */
  now(): number
  random(): number
  /** Runs `due` after a time, unless the returned function is called before. */
  after(ms: number, due: () => void): () => void
}

/** Receives the results of refreshes. `reason` contains no secret. */
export interface IdentityWatch {
  refreshed(identity: CloudIdentity): void
  failed(identity: CloudIdentity, reason: string): void
}

/** No credentials are valid. The message is for the client. */
export class CredentialError extends Error {
  readonly code = 'NO_CREDENTIAL'
  readonly retryAfterSeconds: number

  constructor(retryAfterSeconds: number) {
    super('The gateway has no valid credentials for the upstream.')
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** A token endpoint has this time to reply. */
const FLIGHT_MS = 10_000
/** Credentials are refreshed this long before they expire, or with this share of their lifetime left. */
const REFRESH_BEFORE_MS = 300_000
const REFRESH_SHARE = 0.2
/** They are not used in this last share of their lifetime, because a request needs time to arrive. */
const UNUSED_SHARE = 0.05
const UNUSED_MS = 10_000
const FIRST_BACK_OFF_MS = 1_000
const MAX_BACK_OFF_MS = 30_000
/** Credentials that the platform refuses are replaced at most once in this time. */
const RENEW_INTERVAL_MS = 60_000
/** Timers of Node have 31 bits. */
const MAX_TIMER_MS = 2_000_000_000
const SYSTEM_CLOCK: IdentityClock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after: (ms, due) => {
    const timer = setTimeout(due, ms)
    // A refresh does not keep the process running.
    timer.unref()
    return () => clearTimeout(timer)
  },
}

interface Received {
  readonly credentials: Credentials
  readonly receivedAtMs: number
  readonly expiresAtMs: number
  readonly usableUntilMs: number
  readonly dueAtMs: number
}

/** One identity, until `close`. */
export class CloudIdentity {
  /** The cloud, and the first upstream that names the identity. */
  readonly cloud: IdentityConfig['cloud']
  readonly upstream: string
  private readonly source: CredentialSource
  private readonly clock: IdentityClock
  private watch: IdentityWatch | null = null
  private current: Received | null = null
  private flight: Promise<Received> | null = null
  private cancelTimer: (() => void) | null = null
  private failures = 0
  private retryAtMs = 0
  private renewedAtMs = Number.NEGATIVE_INFINITY
  private isClosed = false

  constructor(
    { cloud, upstream }: Pick<CloudIdentity, 'cloud' | 'upstream'>,
    source: CredentialSource,
    clock: IdentityClock = SYSTEM_CLOCK,
  ) {
    this.cloud = cloud
    this.upstream = upstream
    this.source = source
    this.clock = clock
  }

  /** Loads the library of the cloud and requests the first credentials. */
  start(watch: IdentityWatch): void {
    this.watch = watch
    if (this.current === null && this.flight === null) this.refreshInBackground()
  }

  /**
   * Valid credentials; a promise if they must be requested first. It rejects with `CredentialError` after
   * `waitMs`, or if the request for them fails.
   */
  get(waitMs: number): Credentials | Promise<Credentials> {
    const { current } = this
    const nowMs = this.clock.now()
    if (current !== null && nowMs < current.usableUntilMs) {
      // The timer may be late, after the machine slept.
      if (nowMs >= current.dueAtMs && nowMs >= this.retryAtMs && this.flight === null) {
        this.refreshInBackground()
      }
      return current.credentials
    }
    return this.wait(waitMs)
  }

  /**
   * Replaces credentials that the platform refused although they have not expired, if they were received
   * before `sinceMs` (Unix time); false if there are no others.
   */
  async renew(sinceMs: number, waitMs: number): Promise<boolean> {
    const { current } = this
    if (current !== null && current.receivedAtMs > sinceMs) return true
    const nowMs = this.clock.now()
    if (this.flight === null && nowMs - this.renewedAtMs < RENEW_INTERVAL_MS) return false
    if (this.flight === null) this.renewedAtMs = nowMs
    try {
      await this.wait(waitMs)
      return true
    } catch {
      return false
    }
  }

  /** `ok`, or the problem with the time for which the last credentials are valid. */
  get state(): string {
    if (this.failures === 0) return this.current === null ? 'no credentials yet' : 'ok'
    const leftMs = (this.current?.usableUntilMs ?? 0) - this.clock.now()
    if (leftMs <= 0) return 'refresh fails, no valid credentials'
    return `refresh fails, valid for ${Math.round(leftMs / 1_000)} s`
  }

  /** Whether requests can be authorized now. */
  get isValid(): boolean {
    return this.current !== null && this.clock.now() < this.current.usableUntilMs
  }

  /** Whether the last refresh failed. */
  get isFailing(): boolean {
    return this.failures > 0
  }

  /** Unix time in ms; infinite for credentials that do not expire, null without credentials. */
  get expiresAtMs(): number | null {
    return this.current?.expiresAtMs ?? null
  }

  /** Ends the refreshes; waiting requests get their result. */
  close(): void {
    this.isClosed = true
    this.cancelTimer?.()
  }

  private async wait(waitMs: number): Promise<Credentials> {
    const nowMs = this.clock.now()
    if (this.flight === null && nowMs < this.retryAtMs) throw this.unavailable(nowMs)
    const flight = this.flight ?? this.refresh()
    try {
      const { credentials } = await this.within(waitMs, flight)
      return credentials
    } catch {
      throw this.unavailable(this.clock.now())
    }
  }

  private unavailable(nowMs: number): CredentialError {
    return new CredentialError(Math.max(1, Math.ceil((this.retryAtMs - nowMs) / 1_000)))
  }

  private refreshInBackground(): void {
    this.refresh().catch(() => undefined)
  }

  private refresh(): Promise<Received> {
    const flight = this.request().then(
      (received) => {
        this.flight = null
        this.adopt(received)
        return received
      },
      (error: unknown) => {
        this.flight = null
        this.failed(error)
        throw error
      },
    )
    this.flight = flight
    return flight
  }

  /** Rejects if there is no reply in time, no token in it, or the token has expired already. */
  private async request(): Promise<Received> {
    return this.receivedOf(await this.within(FLIGHT_MS, this.source()))
  }

  private async within<T>(ms: number, result: Promise<T>): Promise<T> {
    let cancel = (): void => undefined
    const late = new Promise<never>((_resolve, reject) => {
      const error = new Error(`no reply within ${ms / 1_000} s`)
      cancel = this.clock.after(ms, () => reject(error))
    })
    try {
      return await Promise.race([result, late])
    } finally {
      cancel()
    }
  }

  private receivedOf({ credentials, expiresAtMs }: Issued): Received {
    const nowMs = this.clock.now()
    const isEmpty = 'token' in credentials ? credentials.token === '' : credentials.keyId === ''
    if (isEmpty) throw new Error('the reply has no token')
    if (UNSENDABLE.test(sentOf(credentials)))
      throw new Error('the token has characters that a header cannot have')
    if (expiresAtMs === null) {
      const never = { expiresAtMs: Infinity, usableUntilMs: Infinity, dueAtMs: Infinity }
      return { credentials, receivedAtMs: nowMs, ...never }
    }
    if (!(expiresAtMs > nowMs)) throw new Error('the token has expired already')
    const lifeMs = expiresAtMs - nowMs
    const usableUntilMs = expiresAtMs - Math.min(UNUSED_MS, lifeMs * UNUSED_SHARE)
    const beforeMs = Math.min(REFRESH_BEFORE_MS, lifeMs * REFRESH_SHARE)
    // Not all processes refresh in the same second.
    const dueAtMs = expiresAtMs - beforeMs * (1 + 0.2 * this.clock.random())
    return { credentials, receivedAtMs: nowMs, expiresAtMs, usableUntilMs, dueAtMs }
  }

  private adopt(received: Received): void {
    const before = this.current
    this.failures = 0
    this.retryAtMs = 0
    this.current = received
    if (before !== null && received.expiresAtMs <= before.expiresAtMs && received.expiresAtMs < Infinity) {
      // A metadata server or a library returned its cached token: it has a new one a little later.
      const leftMs = received.expiresAtMs - received.receivedAtMs
      const dueAtMs = Math.max(received.receivedAtMs + 1_000, received.expiresAtMs - leftMs * 0.75)
      this.current = { ...received, dueAtMs }
    }
    this.schedule(this.current.dueAtMs)
    this.watch?.refreshed(this)
  }

  private failed(error: unknown): void {
    this.failures += 1
    const backOffMs = Math.min(MAX_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (this.failures - 1))
    this.retryAtMs = this.clock.now() + backOffMs
    this.schedule(this.retryAtMs)
    this.watch?.failed(this, reasonOf(error))
  }

  private schedule(atMs: number): void {
    this.cancelTimer?.()
    this.cancelTimer = null
    if (this.isClosed || this.watch === null || atMs === Infinity) return
    const waitMs = Math.min(MAX_TIMER_MS, Math.max(0, atMs - this.clock.now()))
    this.cancelTimer = this.clock.after(waitMs, () => {
      if (this.flight === null) this.refreshInBackground()
    })
  }
}

/** What headers have of the credentials. */
function sentOf(credentials: Credentials): string {
  if ('token' in credentials) return credentials.token + (credentials.quotaProject ?? '')
  return credentials.keyId + (credentials.sessionToken ?? '')
}

/** Characters that no header has: undici would mark the connection as busy until it ends. */
const UNSENDABLE = /[^\x20-\x7e]/

/** Tokens and access keys in messages of libraries. */
const TOKENS = /\beyJ[\w-]+\.[\w-]*\.?[\w-]*|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|[A-Za-z0-9+/_-]{64,}={0,2}/g
const MAX_REASON_CHARS = 200

/** The reason of a failed refresh, for the log. Of Microsoft's messages, which contain ids, only the code. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const entra = /AADSTS\d+/.exec(error.message)?.[0]
  if (entra !== undefined) return entra
  const [line = ''] = error.message.split('\n')
  const text = hideSecretParts(line.slice(0, 2_000)).replace(TOKENS, '[redacted]')
  return `${error.name}: ${text}`.slice(0, MAX_REASON_CHARS)
}

/** The identities of a generation. Upstreams with the same settings share one. */
export class CloudIdentities {
  private readonly byDigest = new Map<string, CloudIdentity>()

  /** Identities whose settings did not change are taken over from `previous`. Requests nothing. */
  constructor(configs: readonly UpstreamConfig[], previous: CloudIdentities | null) {
    for (const { name, auth, platform } of configs) {
      if (auth === null) continue
      const digest = digestOf(auth)
      if (this.byDigest.has(digest)) continue
      const known = previous?.byDigest.get(digest)
      const names = { cloud: auth.cloud, upstream: name }
      const region = platform?.region ?? null
      this.byDigest.set(digest, known ?? new CloudIdentity(names, sourceOf(auth, region)))
    }
  }

  /** The identity of an upstream; null if it has none. */
  of({ auth }: Pick<UpstreamConfig, 'auth'>): CloudIdentity | null {
    return auth === null ? null : (this.byDigest.get(digestOf(auth)) ?? null)
  }

  all(): CloudIdentity[] {
    return [...this.byDigest.values()]
  }

  /** Requests the first credentials of each new identity. */
  start(watch: IdentityWatch): void {
    for (const identity of this.byDigest.values()) identity.start(watch)
  }

  /** Closes the identities that `next` does not use. */
  retire(next: CloudIdentities | null): void {
    const kept = new Set(next?.byDigest.values())
    for (const identity of this.byDigest.values()) if (!kept.has(identity)) identity.close()
  }
}

/** A digest, so that secrets are not copied. */
export function digestOf(auth: IdentityConfig): string {
  return createHash('sha256').update(JSON.stringify(auth)).digest('hex')
}
