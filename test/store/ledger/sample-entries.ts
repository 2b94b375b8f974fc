/** Entries, demands and admissions for the tests of ledgers, and a clock that the test sets. */
import type {
  Admission,
  BudgetDemand,
  Demand,
  Ledger,
  RateDemand,
  ConcurrencyDemand,
  LimitState,
  AdmissionResult,
} from '../../../src/store/ledger.js'
import { UNEXPLAINED, type LedgerEntry } from '../../../src/ledger/entry.js'

/** Friday noon, far from midnight and the end of the month. */
export const NOON = Date.UTC(2026, 10, 20, 12)
export const MINUTE = 60_000
export const HOUR = 3_600_000
export const DAY = 86_400_000

/** A ledger with the test's clock; closed at the test's end. */
export interface LedgerUnderTest {
  readonly url: string
  readonly ledger: Ledger
  readonly clock: TestClock
}

/** Process ids repeat; with the time of the start they are unique. */
const ORIGIN = `${process.pid}_${Math.floor(performance.timeOrigin).toString(36)}`
let made = 0

/** A name that no other test of this run uses. */
export function aName(prefix: string): string {
  made += 1
  return `${prefix}_${ORIGIN}_${made}`
}

export class TestClock {
  atMs = NOON
  /** How far the clock has jumped, unlike monotonic time. */
  jumpedMs = 0
  readonly now = (): number => this.atMs + this.jumpedMs
  readonly monotonic = (): number => this.atMs
}

export function aRow(over: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    requestId: aName('req'),
    atMs: NOON,
    durationMs: 1_234,
    accountId: 'acc_ada',
    keyId: 'key_one',
    modelAsked: 'gpt-5.4-mini',
    modelAnswered: 'gpt-5.4-mini-2026-03-01',
    model: 'gpt-5.4-mini',
    upstream: 'openai',
    dialect: 'openai-chat',
    attempts: 1,
    stream: true,
    status: 200,
    outcome: 'ok',
    finish: 'stop',
    usage: { input: 100, output: 20, cacheRead: 40, reasoning: 5 },
    source: 'reported',
    costNanoUsd: 1_000,
    tokensAfterDisconnect: 0,
    losses: [],
    generation: 3,
    ...UNEXPLAINED,
    hops: { authenticate: 0.05, admit: 0.2, firstContent: 420, overhead: 1.1 },
    ...over,
  }
}

export function requests(perMinute: number, over: Partial<RateDemand> = {}): RateDemand {
  return { kind: 'requests', subject: 'key:one', shared: false, perMinute, cost: 1, ...over }
}

export function tokens(perMinute: number, cost: number, subject = 'key:one'): RateDemand {
  return { kind: 'tokens', subject, shared: false, perMinute, cost }
}

export function places(limit: number, subject = 'key:one'): ConcurrencyDemand {
  return { kind: 'concurrent', subject, shared: false, limit }
}

/** The amounts of a budget, and the subject that it limits. */
export interface BudgetAmounts {
  readonly limitNanoUsd: number
  readonly costNanoUsd: number
  /** Default: `key:one`. */
  readonly subject?: string
}

export function budget(
  kind: BudgetDemand['kind'],
  { limitNanoUsd, costNanoUsd, subject = 'key:one' }: BudgetAmounts,
): BudgetDemand {
  return { kind, subject, shared: false, limitNanoUsd, costNanoUsd }
}

/** An admission with these demands; its `lost` entry costs what the budgets reserve. */
export function anAdmission(
  demands: readonly Demand[],
  over: Partial<Admission> & { row?: Partial<LedgerEntry> } = {},
): Admission {
  const requestId = over.requestId ?? aName('req')
  const accountId = over.accountId ?? 'acc_ada'
  const costs = demands.map((demand) => ('costNanoUsd' in demand ? demand.costNanoUsd : 0))
  const { row, ...rest } = over
  return {
    requestId,
    accountId,
    demands,
    leaseMs: MINUTE,
    unsettled: aRow({
      requestId,
      accountId,
      outcome: 'lost',
      status: 500,
      finish: null,
      source: 'assumed',
      usage: { input: 900, output: 100 },
      costNanoUsd: Math.max(0, ...costs),
      ...row,
    }),
    ...rest,
  }
}

/** The expected state of a limit; `retryAfterMs` is 0 by default. */
export function standing(state: Omit<LimitState, 'retryAfterMs'> & Partial<LimitState>): LimitState {
  return { retryAfterMs: 0, ...state }
}

export function yes(...limitStates: LimitState[]): AdmissionResult {
  return { admitted: true, limitStates }
}

export function no(...limitStates: LimitState[]): AdmissionResult {
  return { admitted: false, limitStates }
}
