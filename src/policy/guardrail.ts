/**
 * One guardrail of a generation: own rules, a list of tools, a guard server or a plugin. Judges parts of
 * requests and replies; what follows from a verdict is decided in `judge-request.ts` and `reply-guard.ts`.
 */
import type { GuardrailConfig, GuardSide } from '../config/schema/guardrails-schema.js'
import { GatewayError } from '../errors.js'
import { hostedToolName } from '../formats/chat/hosted-tools.js'
import type { ChatRequest } from '../formats/chat/request.js'
import { atOnce, type Steps } from '../base/steps.js'
import type { GuardNotes } from './guard-notes.js'
import { ruleSetOf, type RuleSet } from './rules/rule-set.js'
import { ruleSearches } from './rule-searches.js'
import { boundedSteps, stepsWithin, verdictSteps } from './whole-texts.js'
import { GuardError, PASS, TextError, UnreachableError, type Part, type Verdict } from './verdict.js'

/** The request that parts belong to. */
export interface JudgedRequest {
  readonly requestId: string
  readonly accountId: string
  readonly keyId: string
  readonly labels: Readonly<Record<string, string>>
  readonly request: ChatRequest
  readonly notes: GuardNotes
  /** Runs long work in several turns of the event loop. */
  readonly inTurns: <T>(steps: Steps<T>) => Promise<T>
  /** Aborted when the client has left. */
  readonly signal: AbortSignal
  /** Writes a line of a plugin to the log. */
  readonly log: (message: string) => void
}

/** Judges parts elsewhere: a guard server, or a plugin. Rejects with `GuardError`. */
export interface Judge {
  judge(parts: readonly Part[], on: GuardSide, of: JudgedRequest): Promise<Verdict>
  close(): Promise<void>
}

/** Requests have no window: the longest one is used. */
const REQUEST_LIMIT = 8_192
/** A shorter text is scanned at once. */
const SHORT = 4_096
/** A search that has taken longer by then continues in turns; several guardrails may search in one turn. */
export const AT_ONCE_MS = 4
/** A search that is not at its end by then begins anew in a thread. */
const IN_TURNS_MS = 25
const MAX_REASON = 300

/** A guardrail at run time. */
export class Guardrail {
  readonly config: GuardrailConfig
  /** Null if it has no own rules. */
  readonly rules: RuleSet | null
  private readonly judgeElsewhere: Judge | null
  private readonly breaker: GuardBreaker

  /** `judge`: of a guard server or a plugin, else null. */
  constructor(config: GuardrailConfig, judge: Judge | null, breaker: GuardBreaker) {
    this.config = config
    this.rules = config.source.kind === 'rules' ? ruleSetOf(config.name, patternsOf(config)) : null
    this.judgeElsewhere = judge
    this.breaker = breaker
  }

  get name(): string {
    return this.config.name
  }

  judges(side: GuardSide): boolean {
    return this.config.on.includes(side)
  }

  /** Whether it reads texts; a list of tools does not. */
  get readsText(): boolean {
    return this.config.source.kind !== 'tools'
  }

  /** Whether it may replace a text. */
  get mayMask(): boolean {
    const { source, action } = this.config
    return source.kind === 'rules' ? action === 'mask' : this.readsText && action !== 'report'
  }

  /** Whether a reply may call the tool. */
  allowsTool(name: string): boolean {
    return !this.denies((denied) => denied === name, name)
  }

  /** Whether a reply may call a tool of the provider, of which requests may have other names. */
  allowsHosted(name: string): boolean {
    return !this.denies((denied) => denied === name || hostedToolName(denied) === name, name)
  }

  private denies(isNamed: (denied: string) => boolean, name: string): boolean {
    const { source } = this.config
    if (source.kind !== 'tools') return false
    return source.deny.some((denied) =>
      denied.endsWith('*') ? name.startsWith(denied.slice(0, -1)) : isNamed(denied),
    )
  }

  /** Judges parts. Rejects with `GuardError`. */
  async judge(parts: readonly Part[], on: GuardSide, of: JudgedRequest): Promise<Verdict> {
    const { rules, judgeElsewhere } = this
    if (parts.length === 0) return PASS
    const beganMs = performance.now()
    try {
      if (rules !== null) return await this.judgeByRules(rules, parts, { on, of })
      if (judgeElsewhere === null) return PASS
      return await this.call(judgeElsewhere, parts, { on, of })
    } finally {
      of.notes.took(this.name, performance.now() - beganMs)
    }
  }

  private async judgeByRules(
    rules: RuleSet,
    parts: readonly Part[],
    { on, of }: { readonly on: GuardSide; readonly of: JudgedRequest },
  ): Promise<Verdict> {
    const limit = on === 'request' ? REQUEST_LIMIT : this.config.windowChars
    const { name, action, timeoutMs } = this.config
    const steps = boundedSteps(
      verdictSteps(rules, parts, { action, limit }),
      { leftMs: timeoutMs },
      of.signal,
    )
    const size = parts.reduce((sum, { text }) => sum + text.length, 0)
    const short = size > SHORT ? null : atOnce(stepsWithin(steps, AT_ONCE_MS))
    const begun = short ?? (await of.inTurns(stepsWithin(steps, IN_TURNS_MS)))
    if (begun !== null) return begun.value
    return ruleSearches.run({ name, patterns: patternsOf(this.config), action, limit, timeoutMs, parts }, of)
  }

  private async call(
    judge: Judge,
    parts: readonly Part[],
    { on, of }: { readonly on: GuardSide; readonly of: JudgedRequest },
  ): Promise<Verdict> {
    const { breaker, name } = this
    if (!breaker.begin(of.accountId)) throw new GuardError('its breaker is open')
    const beganMs = performance.now()
    let result = 'error'
    try {
      const verdict = await judge.judge(parts, on, of)
      breaker.succeeded()
      result = verdict.kind
      return verdict
    } catch (error) {
      // A call that the client has ended does not count, and no client may open the breaker by its texts.
      if (of.signal.aborted || error instanceof TextError) breaker.abandoned(of.accountId)
      else breaker.failed(of.accountId, error instanceof UnreachableError)
      throw error
    } finally {
      of.notes.calls.push({ guardrail: name, on, beganMs, endedMs: performance.now(), result })
    }
  }

  /** The error of a request or reply that it blocks. */
  blocked(reason: string | null, param?: string): GatewayError {
    const own = reason === null || reason === '' ? '' : ` ${Array.from(reason).slice(0, MAX_REASON).join('')}`
    const message = `Blocked by the guardrail '${this.name}'.${own}`
    return new GatewayError('guardrail_blocked', message, {
      retryable: false,
      guardrail: this.name,
      ...(param === undefined ? {} : { param }),
    })
  }

  /** The error of a request whose texts are larger than it can judge. */
  tooLarge(param: string | undefined, cause: unknown): GatewayError {
    const message = `The text is larger than the guardrail '${this.name}' can judge: send less.`
    const at = param === undefined ? {} : { param }
    return new GatewayError('body_too_large', message, { ...at, guardrail: this.name, cause })
  }

  /** The error of a request or reply that it could not judge, with `on_error: closed`. */
  unavailable(cause: unknown): GatewayError {
    return new GatewayError(
      'guardrail_unavailable',
      `The guardrail '${this.name}' could not judge the request; please try again.`,
      {
        guardrail: this.name,
        native: { dialect: 'anthropic', type: 'api_error' },
        cause,
      },
    )
  }

  async close(): Promise<void> {
    await this.judgeElsewhere?.close()
  }
}

function patternsOf({ source }: GuardrailConfig): readonly string[] {
  return source.kind === 'rules' ? [...source.patterns, ...source.detect] : []
}

/** Consecutive failures. */
interface Failures {
  count: number
  openUntilMs: number
  isTesting: boolean
}

/**
 * Opens after consecutive failures; then one call tests the guard. A text may be why a guard fails, so that
 * failures for accounts open it for these accounts alone: while as many happen for others, by the first one
 * of an account. Those of a server that cannot be connected to open it for all.
 */
export class GuardBreaker {
  private readonly all = closed()
  private readonly accounts = new Map<string, Failures>()
  private readonly settings: GuardrailConfig['breaker']
  private readonly report: (state: number) => void

  /** `report` is called with the state: 0 closed, 1 half-open, 2 open, also if it is for one account. */
  constructor(settings: GuardrailConfig['breaker'], report: (state: number) => void) {
    this.settings = settings
    this.report = report
    report(0)
  }

  /** Whether a call may be made for the account. */
  begin(accountId: string): boolean {
    const open = this.of(accountId).filter((failures) => this.isOpen(failures))
    const nowMs = performance.now()
    if (open.some(({ isTesting, openUntilMs }) => isTesting || nowMs < openUntilMs)) return false
    for (const failures of open) failures.isTesting = true
    if (open.length > 0) this.report(1)
    return true
  }

  succeeded(): void {
    if ([this.all, ...this.accounts.values()].some((failures) => this.isOpen(failures))) this.report(0)
    this.accounts.clear()
    Object.assign(this.all, closed())
  }

  /** `isUnreachable`: no connection was made. */
  failed(accountId: string, isUnreachable: boolean): void {
    const own = this.accounts.get(accountId) ?? closed()
    this.accounts.set(accountId, own)
    const counts = [...this.accounts.values()].map(({ count }) => count)
    const ofOthers = counts.reduce((sum, count) => sum + count, 0) - own.count
    own.count = ofOthers < this.settings.failures ? own.count + 1 : this.settings.failures
    if (isUnreachable) this.all.count += 1
    for (const failures of [this.all, own]) {
      failures.isTesting = false
      if (!this.isOpen(failures)) continue
      failures.openUntilMs = performance.now() + this.settings.openMs
      this.report(2)
    }
    if (this.isOpen(this.all)) this.accounts.clear()
  }

  /** The call for the account ended without a result. */
  abandoned(accountId: string): void {
    for (const failures of this.of(accountId)) failures.isTesting = false
  }

  private isOpen({ count }: Failures): boolean {
    return count >= this.settings.failures
  }

  private of(accountId: string): Failures[] {
    const own = this.accounts.get(accountId)
    return own === undefined ? [this.all] : [this.all, own]
  }
}

function closed(): Failures {
  return { count: 0, openUntilMs: 0, isTesting: false }
}
