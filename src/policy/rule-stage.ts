/**
 * Own rules on a reply. Text is released as soon as it cannot be part of a match; a call is judged whole. A
 * rule that blocks holds the first window back, so that a refusal in it is still an error with a status.
 */
import { fragmentOf, type ChatEvent } from '../formats/chat/event.js'
import { atOnce, type Steps } from '../base/steps.js'
import { AT_ONCE_MS, type Guardrail, type JudgedRequest } from './guardrail.js'
import { boundedSteps, stepsWithin, WholeTexts, type CpuTime } from './whole-texts.js'
import type { RuleSet } from './rules/rule-set.js'
import { TextScan } from './rules/text-scan.js'
import {
  Blocks,
  type CitationEvent,
  deltaOf,
  maskedCall,
  stopAfterError,
  stopFor,
  type WithheldCall,
  type Stage,
  type StageEvent,
  type Stop,
  type Take,
  type TextEnd,
  type TextEvent,
} from './reply-stage.js'

/** More text in one batch of events is scanned in turns. */
const LARGE_UNITS = 4_096

/** The guardrail of the stage and its request. */
interface RuleStageParts {
  readonly guardrail: Guardrail
  readonly rules: RuleSet
  readonly of: JudgedRequest
  /** Nothing is released before the end. */
  readonly isBuffered: boolean
}

/** Judges a reply by own rules. */
export class RuleStage implements Stage {
  private readonly guardrail: Guardrail
  private readonly rules: RuleSet
  private readonly of: JudgedRequest
  private readonly blocks: Blocks<Steps<Stop | null>>
  private scan: TextScan
  /** Events that are held back until the end of the first window, or of the reply; null: none are. */
  private withheld: StageEvent[] | null
  private withheldChars = 0
  private readonly maxWithheldChars: number
  private out: StageEvent[] = []
  private tookMs = 0
  /** For all events together: many small ones must not take more than a whole text. */
  private readonly time: CpuTime

  constructor({ guardrail, rules, of, isBuffered }: RuleStageParts) {
    this.guardrail = guardrail
    this.rules = rules
    this.of = of
    const { action, windowChars, timeoutMs } = guardrail.config
    this.time = { leftMs: timeoutMs }
    this.withheld = isBuffered || action === 'block' ? [] : null
    this.maxWithheldChars = isBuffered ? Infinity : windowChars
    this.scan = this.newScan()
    this.blocks = new Blocks(guardrail, of, {
      textStart: () => (this.scan = this.newScan()),
      text: (event) => this.text(event),
      textEnd: (event) => this.textEnd(event),
      call: (call) => this.call(call),
      citation: (event) => this.citation(event),
      finish: () => {
        this.flush()
        this.end()
      },
      push: (event) => this.push(event),
      pass: (event) => this.out.push(event),
    })
  }

  take(events: readonly StageEvent[], next: Take): Promise<void> | null {
    const beganMs = performance.now()
    const isLarge = events.reduce((sum, event) => sum + unitsOf(event), 0) > LARGE_UNITS
    const steps = this.steps(events)
    const begun = isLarge ? null : atOnce(stepsWithin(steps, AT_ONCE_MS))
    if (begun === null) return this.of.inTurns(steps).then((out) => next(out) ?? undefined)
    this.tookMs += performance.now() - beganMs
    return next(begun.value)
  }

  private *steps(events: readonly StageEvent[]): Steps<readonly StageEvent[]> {
    for (const event of events) {
      const judged = this.blocks.event(event)
      const stop = judged === null || 'type' in judged ? judged : yield* judged
      if (stop === null) continue
      this.end()
      this.out.push(stop)
      break
    }
    const { out } = this
    this.out = []
    return out
  }

  /** The stop after rules that took too long; with `on_error: open` what is not judged passes unchanged. */
  private *inTime(judged: Steps<Stop | null>, unjudged: () => readonly ChatEvent[]): Steps<Stop | null> {
    const { guardrail, of } = this
    try {
      return yield* boundedSteps(judged, this.time, of.signal)
    } catch (error) {
      const stop = stopAfterError(guardrail, of, error)
      if (stop === null) for (const each of unjudged()) this.push(each)
      return stop
    }
  }

  private newScan(): TextScan {
    const { action, windowChars } = this.guardrail.config
    return new TextScan(this.rules, {
      mode: action === 'mask' ? 'mask' : 'find',
      limit: windowChars,
    })
  }

  private text(event: TextEvent): Steps<Stop | null> {
    return this.inTime(this.scanned(event), () => {
      const { rest } = this.scan
      this.scan = this.newScan()
      return [{ ...event, text: this.guardrail.config.action === 'report' ? event.text : rest }]
    })
  }

  private *scanned(event: TextEvent): Steps<Stop | null> {
    return this.released(event, yield* this.scan.steps(event.text, false))
  }

  private released(event: TextEvent, text: string): Stop | null {
    const { scan } = this
    const { action } = this.guardrail.config
    if (scan.found !== null) {
      if (action === 'block') return stopFor(this.guardrail, this.of, null, scan.found)
      this.of.notes.note(this.guardrail.name, 'response', action)
    }
    // With `report`, nothing is held back.
    const shown = action === 'report' ? event.text : text
    if (shown !== '') this.push({ ...event, text: shown })
    return null
  }

  private textEnd(event: TextEnd): Steps<Stop | null> {
    return this.inTime(this.scannedEnd(event), () => {
      const { rest } = this.scan
      this.scan = this.newScan()
      if (rest !== '') this.push(endOf(event, rest))
      this.blocks.endText(event, false)
      return []
    })
  }

  private *scannedEnd(event: TextEnd): Steps<Stop | null> {
    const rest = yield* this.scan.steps('', true)
    const isReport = this.guardrail.config.action === 'report'
    const stop = this.released(endOf(event, isReport ? '' : rest), rest)
    if (stop !== null) return stop
    this.blocks.endText(event, this.scan.found !== null && !isReport)
    this.windowEnded()
    return null
  }

  private call(call: WithheldCall): Steps<Stop | null> {
    return this.inTime(this.judgedCall(call), () => call.events)
  }

  private *judgedCall(call: WithheldCall): Steps<Stop | null> {
    const { guardrail } = this
    const { action, windowChars } = guardrail.config
    const judge = new WholeTexts(this.rules, action, windowChars)
    const { start, json, events } = call
    const name = yield* judge.text(start.name)
    const judged = yield* judge.part({ text: json, isJson: start.custom !== true })
    const { found } = judge
    if (found) {
      if (action === 'block') return stopFor(guardrail, this.of, null, judge.rule)
      this.of.notes.note(guardrail.name, 'response', action)
    }
    const isMasked = found && action === 'mask'
    for (const each of isMasked ? maskedCall(call, { ...start, name }, judged) : events) {
      this.push(each)
    }
    this.windowEnded()
    return null
  }

  private citation(event: CitationEvent): Steps<Stop | null> {
    return this.inTime(this.judgedCitation(event), () => [event])
  }

  private *judgedCitation(event: CitationEvent): Steps<Stop | null> {
    const { guardrail, rules } = this
    const { action, windowChars } = guardrail.config
    const judge = new WholeTexts(rules, action, windowChars)
    const citation = { ...event.citation }
    for (const member of ['url', 'title', 'citedText'] as const) {
      const text = citation[member]
      if (text !== undefined) citation[member] = yield* judge.text(text)
    }
    if (judge.found && action === 'block') return stopFor(guardrail, this.of, null, judge.rule)
    if (judge.found) this.of.notes.note(guardrail.name, 'response', action)
    this.blocks.attach(judge.found && action === 'mask' ? { ...event, citation } : event)
    return null
  }

  private push(event: ChatEvent): void {
    if (this.withheld === null) {
      this.out.push(event)
      return
    }
    this.withheld.push(event)
    this.withheldChars += unitsOf(event)
    if (this.withheldChars >= this.maxWithheldChars) this.flush()
  }

  private windowEnded(): void {
    if (this.maxWithheldChars !== Infinity) this.flush()
  }

  private flush(): void {
    for (const each of this.withheld ?? []) this.out.push(each)
    this.withheld = null
  }

  private end(): void {
    this.of.notes.took(this.guardrail.name, this.tookMs)
    this.tookMs = 0
  }
}

/** The last fragment of a text block. */
function endOf({ type, index }: TextEnd, text: string): TextEvent {
  return deltaOf(type.slice(0, type.indexOf('-')), index, text)
}

function unitsOf(event: StageEvent): number {
  return event.type === 'stop' ? 0 : (fragmentOf(event)?.length ?? 0)
}
