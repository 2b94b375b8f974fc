/** Judges whole texts by own rules, in steps whose time is bounded. */
import type { GuardrailConfig } from '../config/schema/guardrails-schema.js'
import type { Steps } from '../base/steps.js'
import { judgedArguments } from './json-strings.js'
import { GuardError, PASS, TextTooLarge, type Part, type Verdict } from './verdict.js'
import type { RuleSet } from './rules/rule-set.js'
import { ScanLists, TextScan } from './rules/text-scan.js'

/** The CPU time that the rules may still take for a request, or for a whole reply. */
export interface CpuTime {
  leftMs: number
}

/** A shorter step did not wait for a core. */
const SHORT_MS = 0.2

/**
 * The steps until they have taken the time that is left, without the time between them, or until the client
 * has left: then throws `GuardError`.
 */
export function* boundedSteps<T>(steps: Steps<T>, time: CpuTime, signal: AbortSignal): Steps<T> {
  for (;;) {
    if (time.leftMs < 0) throw new GuardError('its rules took too long')
    const beganMs = performance.now()
    const cpuBefore = process.cpuUsage()
    const { done, value } = steps.next()
    const tookMs = performance.now() - beganMs
    time.leftMs -= tookMs < SHORT_MS ? tookMs : Math.min(tookMs, cpuMsSince(cpuBefore))
    if (done === true) return value
    if (signal.aborted) throw new GuardError('the client has left')
    yield
  }
}

/** A step that waited for a core took less than its time; other threads may have added to the CPU. */
function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** The result of the steps; null if they have taken longer and are not at their end. */
export function* stepsWithin<T>(steps: Steps<T>, ms: number): Steps<{ readonly value: T } | null> {
  for (let tookMs = 0; tookMs < ms;) {
    const beganMs = performance.now()
    const { done, value } = steps.next()
    if (done === true) return { value }
    tookMs += performance.now() - beganMs
    yield
  }
  return null
}

/** How rules judge whole texts. */
export interface RuleUse {
  readonly action: GuardrailConfig['action']
  /** Maximum number of characters that are held back. */
  readonly limit: number
}

/** The verdict of the rules on parts. */
export function* verdictSteps(
  rules: RuleSet,
  parts: readonly Pick<Part, 'text' | 'isJson'>[],
  { action, limit }: RuleUse,
): Steps<Verdict> {
  const texts: string[] = []
  const judge = new WholeTexts(rules, action, limit)
  for (const [index, part] of parts.entries()) {
    texts.push(yield* judge.part(part))
    if (judge.found && action === 'block') {
      return { kind: 'block', reason: null, index, rule: judge.rule }
    }
    if (judge.found && action === 'report') return { kind: 'report' }
  }
  return judge.found ? { kind: 'mask', texts } : PASS
}

/** Work for each text besides that for its code units, as code units. */
const TEXT_UNITS = 16
/** Masked texts are longer than all texts so far by at most their length and this. */
const MAX_GROWTH_UNITS = 262_144

/** Scans whole texts by own rules. */
export class WholeTexts {
  /** The rule of the first match; null if there is none. */
  rule: string | null = null
  private readonly rules: RuleSet
  private readonly mode: 'mask' | 'find'
  private readonly limit: number
  private lists: ScanLists | null = null
  /** Since the last step: many short texts take as long as a large one. */
  private units = 0
  private textUnits = 0
  /** By how much masked texts are longer. */
  private grownUnits = 0

  constructor(rules: RuleSet, action: GuardrailConfig['action'], limit: number) {
    this.rules = rules
    this.mode = action === 'mask' ? 'mask' : 'find'
    this.limit = limit
  }

  /** The text of a part with what the rules mask. */
  part({ text, isJson }: Pick<Part, 'text' | 'isJson'>): Steps<string> {
    return isJson ? judgedArguments(text, (each) => this.text(each)) : this.text(text)
  }

  *text(text: string): Steps<string> {
    const { rules, mode, limit } = this
    this.units += text.length + TEXT_UNITS
    if (this.units >= rules.stepUnits) {
      this.units = 0
      yield
    }
    const candidates = rules.candidatesIn(text)
    if (candidates === null || (this.found && mode === 'find')) return text
    this.lists ??= new ScanLists(rules)
    const scan = new TextScan(rules, { mode, limit, candidates, lists: this.lists })
    const masked = yield* this.bounded(scan, text)
    this.rule ??= scan.found
    this.grownUnits += Math.max(0, masked.length - text.length)
    return masked
  }

  /** What replaces short matches may be many times as long. */
  private *bounded(scan: TextScan, text: string): Steps<string> {
    this.textUnits += text.length
    const mostUnits = text.length + MAX_GROWTH_UNITS + this.textUnits - this.grownUnits
    const steps = scan.steps(text, true)
    for (;;) {
      const { done, value } = steps.next()
      if ((done === true ? value.length : scan.readyUnits) > mostUnits) throw new TextTooLarge(null)
      if (done === true) return value
      yield
    }
  }

  get found(): boolean {
    return this.rule !== null
  }
}
