/**
 * Ends running requests whose key is revoked, disabled or expired. Every key in use is checked again after a
 * change in the store, and keys that have expired every 2 seconds.
 */
import type { Identity } from '../account.js'
import { GatewayError } from '../../errors.js'
import { AccountDisabled, type KeyResult } from './authentication-result.js'

/** Maximum concurrent lookups for running requests; the other slots stay free for new requests. */
const MAX_CHECKS = 16
/** The documentation promises that an expired key ends its requests within 5 seconds. */
const SWEEP_MS = 2_000

/** The requests that run now, by the digest of their key. */
export interface KeysInUse {
  digests(): ReadonlySet<string>
  /** Ends all requests that run with the key. */
  end(digest: string, error: GatewayError): void
}

/** The callbacks that the checks use. */
interface RunningRequestChecksOptions {
  readonly inUse: KeysInUse
  /** The cached result, of any age. */
  readonly cached: (digest: string) => KeyResult | undefined
  /** The cached result if it is trusted, else a new lookup. */
  readonly current: (digest: string) => KeyResult | Promise<KeyResult>
  readonly hasExpired: (identity: Identity) => boolean
  readonly onStoreError: (error: unknown) => void
  /** Called every 2 seconds. */
  readonly onSweep: () => void
}

/** Checks the keys of running requests until `close`. */
export class RunningRequestChecks {
  private readonly options: RunningRequestChecksOptions
  private readonly sweep: NodeJS.Timeout
  /** State of `checkAll`; `again`: another change occurred while it ran. */
  private checking: 'no' | 'once' | 'again' = 'no'

  constructor(options: RunningRequestChecksOptions) {
    this.options = options
    this.sweep = setInterval(() => {
      this.endExpired()
      options.onSweep()
    }, SWEEP_MS).unref()
  }

  close(): void {
    clearInterval(this.sweep)
  }

  /** Checks requests after the key has changed; null: any key may have changed. */
  changed(digest: string | null): void {
    if (digest === null) void this.checkAll()
    else if (this.options.inUse.digests().has(digest)) void this.check(digest)
  }

  private async checkAll(): Promise<void> {
    const isRunning = this.checking !== 'no'
    this.checking = isRunning ? 'again' : 'once'
    if (isRunning) return
    do {
      this.checking = 'once'
      const digests = new Set(this.options.inUse.digests()).values()
      const checkNext = async (): Promise<void> => {
        for (const digest of digests) await this.check(digest)
      }
      await Promise.all(Array.from({ length: MAX_CHECKS }, checkNext))
    } while (this.mustRepeat())
    this.checking = 'no'
  }

  private mustRepeat(): boolean {
    return this.checking === 'again'
  }

  /** Requests continue if the store does not reply. */
  private async check(digest: string): Promise<void> {
    const { inUse, current, hasExpired, onStoreError } = this.options
    try {
      const result = await current(digest)
      if (!result.good && result.reason === 'refused') inUse.end(digest, result.error)
      else if (!result.good) {
        const revoked = 'The API key was revoked while the request ran.'
        const error = new GatewayError('unauthenticated', revoked)
        inUse.end(digest, result.reason === 'disabled' ? new AccountDisabled() : error)
      } else if (hasExpired(result.identity)) {
        const message = 'The API key expired while the request ran.'
        inUse.end(digest, new GatewayError('unauthenticated', message))
      }
    } catch (error) {
      onStoreError(error)
    }
  }

  /** Checks the keys that have expired or are not cached as good. */
  private endExpired(): void {
    const { inUse, cached, hasExpired } = this.options
    for (const digest of inUse.digests()) {
      const result = cached(digest)
      if (result?.good === true && !hasExpired(result.identity)) continue
      void this.check(digest)
    }
  }
}
