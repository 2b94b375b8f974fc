/** What guardrails did with one request: for the header, the ledger entry, the log line and the metrics. */
import type { GuardSide } from '../config/schema/guardrails-schema.js'

/** The result of a judgement, as metrics and the ledger name it. */
type GuardVerdict = 'pass' | 'mask' | 'block' | 'report' | 'error' | 'unseen'

/** One call of a guard, for the trace. Times are monotonic, in ms. */
export interface GuardCall {
  readonly guardrail: string
  readonly on: GuardSide
  readonly beganMs: number
  readonly endedMs: number
  readonly result: string
}

/** What a guardrail refused, without any of the text. */
interface Refusal {
  /** The message for the client. */
  readonly message: string
  /** The path of the part, or `reply`; null if it is not known. */
  readonly place: string | null
  /** The built-in rule that matched; null for any other guardrail. */
  readonly rule: string | null
}

/** Counts verdicts and durations. */
export interface GuardMetrics {
  verdict(guardrail: string, on: GuardSide, verdict: GuardVerdict): void
  duration(guardrail: string, seconds: number): void
  /** 0 closed, 1 half-open, 2 open. */
  breaker(guardrail: string, state: number): void
}

/** The notes of one request. */
export class GuardNotes {
  /** Time that judgements took, in ms. */
  tookMs = 0
  /** The part of it that the client waited for before the reply was requested. */
  requestMs = 0
  /** Calls of guard servers and plugins. */
  readonly calls: GuardCall[] = []
  /** The refusal of a guardrail; null if none has refused. */
  refusal: Refusal | null = null
  private readonly metrics: GuardMetrics
  private readonly items: string[] = []
  private readonly counted = new Set<string>()

  constructor(metrics: GuardMetrics) {
    this.metrics = metrics
  }

  /** Notes a verdict; each is listed and counted once for a guardrail and a side. */
  note(guardrail: string, on: GuardSide, verdict: GuardVerdict): void {
    const counted = `${guardrail} ${on}`
    if (verdict === 'pass') {
      if (this.counted.has(counted)) return
    } else {
      const item = `${guardrail}:${verdict}`
      if (!this.items.includes(item)) this.items.push(item)
      if (this.counted.has(`${counted} ${verdict}`)) return
      this.counted.add(`${counted} ${verdict}`)
    }
    this.counted.add(counted)
    this.metrics.verdict(guardrail, on, verdict)
  }

  /** A judgement ended. */
  took(guardrail: string, ms: number): void {
    this.tookMs += ms
    this.metrics.duration(guardrail, ms / 1000)
  }

  /** `pii:mask`, …; empty if all passed. */
  get list(): readonly string[] {
    return this.items
  }

  /** A guardrail failed while `on_error` was `open`, so that the reply was not judged by it. */
  get hasError(): boolean {
    return this.items.some((item) => item.endsWith(':error'))
  }
}
