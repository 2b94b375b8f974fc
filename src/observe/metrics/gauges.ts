/**
 * Gauges of upstreams, certificates and budgets. They are read when the metrics are collected, and their
 * subjects change with the configuration.
 */
import type { LedgerMemory } from '../../store/ledger.js'
import type { Families } from './metric-families.js'

/** The state of an upstream. */
export interface UpstreamGauges {
  readonly name: string
  /** 0 closed, 1 half-open, 2 open. */
  readonly breaker: number
  /** When the breaker last opened or closed, ms since 1970; 0: closed since the start. */
  readonly breakerChangedAtMs: number
  /** Number of API keys in cool-down. */
  readonly resting: number
  /** Retries denied by the retry budget since the process started. */
  readonly retriesDenied: number
  /** Expiry of the client certificate for the upstream, Unix time in seconds; null if it has none. */
  readonly certificateExpiry: number | null
}

/** The credentials of an identity at a cloud. */
interface CredentialGauges {
  /** The first upstream that uses the identity. */
  readonly upstream: string
  /** Unix time; infinite if they do not expire, null without credentials. */
  readonly expiresAtMs: number | null
  /** Whether the last refresh failed. */
  readonly isFailing: boolean
}

/** The label value for the certificate of the data port. */
const DATA_PORT = 'none'

/** The state of the archive, as the gateway that moves entries reports it. */
interface ArchiveGauges {
  readonly problem: string | null
  readonly lagSeconds: number
  readonly rowsWaiting: number
  readonly bytesWaiting: Readonly<Record<'store' | 'disk', number>>
  readonly bytesMax: Readonly<Record<'store' | 'disk', number>>
  /** By result. */
  readonly counts: Readonly<Record<'written' | 'late' | 'dropped' | 'repeated', number>>
  /** Requests to the database, with their seconds. */
  readonly requests: readonly (readonly [operation: string, seconds: number])[]
}

/** Sets the gauges. Names are from the configuration. */
export class Gauges {
  private readonly families: Families
  private readonly upstreamNames = new Set<string>()
  private readonly retriesDenied = new Map<string, number>()
  private readonly identityNames = new Set<string>()
  private readonly certificateNames = new Set<string>()
  private readonly archiveRows = new Map<string, number>()
  private readonly budgets = new BudgetShares()

  constructor(families: Families) {
    this.families = families
  }

  /** Sets the gauges of all upstreams; omitted upstreams are set to 0. */
  upstreams(states: readonly UpstreamGauges[]): void {
    const { breakerState, breakerChanged, credentialsResting, retriesDenied } = this.families
    const gone = new Set(this.upstreamNames)
    for (const state of states) {
      const { name, breaker, resting, retriesDenied: denied } = state
      gone.delete(name)
      this.upstreamNames.add(name)
      breakerState.child(name).set(breaker)
      breakerChanged.child(name).set(state.breakerChangedAtMs / 1_000)
      credentialsResting.child(name).set(resting)
      retriesDenied.child(name).add(denied - (this.retriesDenied.get(name) ?? 0))
      this.retriesDenied.set(name, denied)
      this.certificate(name, state.certificateExpiry)
    }
    for (const name of gone) {
      this.upstreamNames.delete(name)
      this.retriesDenied.delete(name)
      breakerState.child(name).set(0)
      breakerChanged.child(name).set(0)
      credentialsResting.child(name).set(0)
      this.certificate(name, null)
    }
  }

  /** Sets the state of the credentials of identities at clouds; the expiry of removed ones to NaN. */
  credentials(identities: readonly CredentialGauges[]): void {
    const gone = new Set(this.identityNames)
    const { credentialExpiry, credentialFailing } = this.families
    for (const { upstream, expiresAtMs, isFailing } of identities) {
      gone.delete(upstream)
      this.identityNames.add(upstream)
      credentialExpiry.child(upstream).set((expiresAtMs ?? 0) / 1_000)
      credentialFailing.child(upstream).set(isFailing ? 1 : 0)
    }
    for (const name of gone) {
      this.identityNames.delete(name)
      credentialExpiry.child(name).set(Number.NaN)
      credentialFailing.child(name).set(0)
    }
  }

  /** Sets the expiry of the data port's certificate, Unix time in seconds. */
  listenerCertificate(expiry: number): void {
    this.certificate(DATA_PORT, expiry)
  }

  /** A removed certificate becomes NaN: an expiry of 0 would raise an alert. */
  private certificate(name: string, expiry: number | null): void {
    if (expiry === null && !this.certificateNames.has(name)) return
    this.certificateNames.add(name)
    this.families.certificateExpiry.child(name).set(expiry ?? Number.NaN)
  }

  /** Records how much of a budget is spent or reserved (0 to 1); `scope` and `kind` are from closed sets. */
  budgetUsed(scope: string, kind: string, ratio: number): void {
    this.budgets.record({ scope, kind, ratio }, performance.now())
  }

  /** Records the memory of the ledger's entries in the store; NaN for what has no limit or does not fill. */
  ledgerMemory({ usedBytes, maxBytes, fullInMs }: LedgerMemory): void {
    this.families.ledgerMemory.child().set(usedBytes)
    this.families.ledgerMemoryMax.child().set(maxBytes ?? Number.NaN)
    this.families.ledgerMemoryFull.child().set(fullInMs === null ? Number.NaN : fullInMs / 1_000)
  }

  /** Records the state of the archive; null: there is none. */
  archive(state: ArchiveGauges | null): void {
    const { archiveUp, archiveLag, archiveWaiting, archiveBytes, archiveBytesMax } = this.families
    archiveUp.child().set(state !== null && state.problem === null ? 1 : 0)
    archiveLag.child().set(state?.lagSeconds ?? 0)
    archiveWaiting.child().set(state?.rowsWaiting ?? 0)
    for (const where of ['store', 'disk'] as const) {
      archiveBytes.child(where).set(state?.bytesWaiting[where] ?? 0)
      archiveBytesMax.child(where).set(state?.bytesMax[where] ?? 0)
    }
    if (state === null) return
    for (const [operation, seconds] of state.requests) {
      this.families.archiveRequest.child(operation).observe(seconds)
    }
    for (const [result, count] of Object.entries(state.counts)) {
      const before = this.archiveRows.get(result) ?? 0
      // A thread that starts again counts from 0.
      this.families.archiveRows.child(result).add(count < before ? count : count - before)
      this.archiveRows.set(result, count)
    }
  }

  /** Updates the gauges that depend on time. */
  refresh(): void {
    for (const { scope, kind, ratio } of this.budgets.highest(performance.now())) {
      this.families.budgetUsed.child(scope, kind).set(ratio)
    }
  }
}

const WINDOW_MS = 300_000

/** The highest share of one scope and period. */
interface BudgetShare {
  /** From a closed set, as `kind`. */
  readonly scope: string
  readonly kind: string
  /** 0 to 1. */
  readonly ratio: number
}

interface WindowMaxima {
  readonly scope: string
  readonly kind: string
  /** Maxima of the current and the previous window. */
  current: number
  previous: number
}

/**
 * The highest used share of a budget, by scope and period, over the last five to ten minutes: the maxima of
 * two windows, in monotonic milliseconds. A gauge set by each request would show the last budget, not the one
 * nearest to its end; one series per key would be too many.
 */
export class BudgetShares {
  private readonly maxima = new Map<string, WindowMaxima>()
  private beganMs = Number.NEGATIVE_INFINITY

  /** Records the used share of a budget of a request. */
  record({ scope, kind, ratio }: BudgetShare, nowMs: number): void {
    this.advance(nowMs)
    const name = `${scope} ${kind}`
    const share = this.maxima.get(name) ?? { scope, kind, current: 0, previous: 0 }
    share.current = Math.max(share.current, ratio)
    this.maxima.set(name, share)
  }

  /** Every scope and period seen so far; 0 if no request used one of its budgets for two windows. */
  highest(nowMs: number): BudgetShare[] {
    this.advance(nowMs)
    return [...this.maxima.values()].map(({ scope, kind, current, previous }) => {
      return { scope, kind, ratio: Math.max(current, previous) }
    })
  }

  private advance(nowMs: number): void {
    const elapsedMs = nowMs - this.beganMs
    if (elapsedMs < WINDOW_MS) return
    for (const share of this.maxima.values()) {
      share.previous = elapsedMs < 2 * WINDOW_MS ? share.current : 0
      share.current = 0
    }
    this.beganMs = nowMs
  }
}
