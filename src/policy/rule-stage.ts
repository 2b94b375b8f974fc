/**
 * Own rules on a reply. Text is released as soon as it cannot be part of a match; a call is judged whole. A
 * rule that blocks holds the first window back, so that a refusal in it is still an error with a status.
 */
import type { ChatEvent } from '../formats/chat/event.js'
import { atOnce, type Steps } from '../formats/wire/steps.js'
import { GuardError, WholeTexts, type Guardrail, type JudgedRequest } from './guardrail.js'
import type { RuleSet } from './rules/rule-set.js'
import { TextScan } from './rules/text-scan.js'
import {
  MAX_ARGUMENTS,
  stopAfterError,
  stopAtUnseen,
  stopFor,
  type HeldCall,
  type Stage,
  type StageEvent,
} from './stage.js'

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

type TextEvent = Extract<ChatEvent, { type: 'text-delta' | 'refusal-delta' | 'thinking-delta' }>
type TextEnd = Extract<ChatEvent, { type: 'text-end' | 'refusal-end' | 'thinking-end' }>
type Attached = Extract<ChatEvent, { type: 'citation' | 'logprobs' }>

/** Judges a reply by own rules. */
export class RuleStage implements Stage {
  private readonly guardrail: Guardrail
  private readonly rules: RuleSet
  private readonly of: JudgedRequest
  private scan: TextScan | null = null
  /** Citations and probabilities of the open text. */
  private attached: Attached[] = []
  private call: HeldCall | null = null
  /** Events that are held back until the end of the first window, or of the reply; null: none are. */
  private held: StageEvent[] | null
  private heldChars = 0
  private readonly maxHeld: number
  private out: StageEvent[] = []
  private tookMs = 0

  constructor({ guardrail, rules, of, isBuffered }: RuleStageParts) {
    this.guardrail = guardrail
    this.rules = rules
    this.of = of
    const { action, windowChars } = guardrail.config
    this.held = isBuffered || action === 'block' ? [] : null
    this.maxHeld = isBuffered ? Infinity : windowChars
  }

  take(events: readonly StageEvent[]): readonly StageEvent[] | Promise<readonly StageEvent[]> {
    const beganMs = performance.now()
    const isLarge = events.reduce((sum, event) => sum + sizeOf(event), 0) > LARGE_UNITS
    const steps = this.steps(events)
    if (isLarge) return this.of.inTurns(steps)
    const out = atOnce(steps)
    this.tookMs += performance.now() - beganMs
    return out
  }

  private *steps(events: readonly StageEvent[]): Steps<readonly StageEvent[]> {
    for (const event of events) {
      const stop = yield* this.event(event)
      if (stop === null) continue
      this.end()
      this.out.push(stop)
      break
    }
    const { out } = this
    this.out = []
    return out
  }

  /** Takes an event; returns the end of the reply if it is refused. */
  private *event(event: StageEvent): Steps<StageEvent | null> {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
      case 'thinking-start':
        this.scan = this.newScan()
        this.push(event)
        return null
      case 'text-delta':
      case 'refusal-delta':
      case 'thinking-delta':
        return yield* this.text(event)
      case 'text-end':
      case 'refusal-end':
      case 'thinking-end':
        return this.textEnd(event)
      case 'citation':
      case 'logprobs':
        if (this.scan === null) this.push(event)
        else this.attached.push(event)
        return null
      case 'tool-start':
        this.call = { events: [event], start: event, json: '' }
        return null
      case 'tool-delta':
        return this.callDelta(event)
      case 'tool-end':
        return yield* this.callEnd(event)
      case 'finish':
        this.flush()
        this.end()
        this.of.notes.note(this.guardrail.name, 'response', 'pass')
        this.out.push(event)
        return null
      case 'error':
      case 'stop':
        // What is held back is dropped: it may not be sent, or the reply failed.
        return event
      case 'image':
      case 'opaque': {
        const stop = stopAtUnseen(this.guardrail, this.of, event)
        if (stop === null) this.push(event)
        return stop
      }
      case 'start':
      case 'usage':
        this.out.push(event)
        return null
      default:
        return event satisfies never
    }
  }

  private newScan(): TextScan {
    const { action, windowChars } = this.guardrail.config
    return new TextScan(this.rules, {
      mode: action === 'mask' ? 'mask' : 'find',
      limit: windowChars,
    })
  }

  private *text(event: TextEvent): Steps<StageEvent | null> {
    const { scan } = this
    if (scan === null) return null
    const released = yield* scan.steps(event.text, false)
    return this.released(scan, event, released)
  }

  private released(scan: TextScan, event: TextEvent, text: string): StageEvent | null {
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

  private textEnd(event: TextEnd): StageEvent | null {
    const { scan } = this
    if (scan === null) return null
    const { type, index } = event
    const rest = scan.end()
    const kind = type.slice(0, type.indexOf('-'))
    const isReport = this.guardrail.config.action === 'report'
    const stop = this.released(scan, deltaOf(kind, index, isReport ? '' : rest), rest)
    this.scan = null
    if (stop !== null) return stop
    const isMasked = scan.found !== null && !isReport
    for (const each of this.attached) {
      if (!isMasked) this.push(each)
      else if (each.type === 'citation') this.push(withoutOffsets(each))
    }
    this.attached = []
    this.push(isMasked && type === 'thinking-end' ? { type, index } : event)
    this.windowEnded()
    return null
  }

  private callDelta(event: Extract<ChatEvent, { type: 'tool-delta' }>): StageEvent | null {
    const { call } = this
    if (call === null) {
      this.push(event)
      return null
    }
    call.events.push(event)
    call.json += event.json
    if (call.json.length <= MAX_ARGUMENTS) return null
    const stop = stopAfterError(this.guardrail, this.of, new GuardError('arguments above 1 MiB'))
    if (stop === null) this.pushCall(call.events)
    return stop
  }

  private *callEnd(event: Extract<ChatEvent, { type: 'tool-end' }>): Steps<StageEvent | null> {
    const { call, guardrail } = this
    if (call === null) {
      this.push(event)
      return null
    }
    call.events.push(event)
    const { action, windowChars } = guardrail.config
    const judge = new WholeTexts(this.rules, action, windowChars)
    const { start, json } = call
    const name = yield* judge.text(start.name)
    const judged = yield* judge.part({ text: json, isJson: start.custom !== true })
    const { found } = judge
    if (found) {
      if (action === 'block') return stopFor(guardrail, this.of, null, judge.rule)
      this.of.notes.note(guardrail.name, 'response', action)
    }
    const { index } = start
    const isMasked = found && action === 'mask'
    this.pushCall(
      isMasked
        ? [{ ...start, name }, { type: 'tool-delta', index, json: judged }, event]
        : call.events,
    )
    this.windowEnded()
    return null
  }

  private pushCall(events: readonly StageEvent[]): void {
    this.call = null
    for (const each of events) this.push(each)
  }

  private push(event: StageEvent): void {
    if (this.held === null) {
      this.out.push(event)
      return
    }
    this.held.push(event)
    this.heldChars += sizeOf(event)
    if (this.heldChars >= this.maxHeld) this.flush()
  }

  private windowEnded(): void {
    if (this.maxHeld !== Infinity) this.flush()
  }

  private flush(): void {
    if (this.held !== null) this.out.push(...this.held)
    this.held = null
  }

  private end(): void {
    this.of.notes.took(this.guardrail.name, this.tookMs)
    this.tookMs = 0
  }
}

function sizeOf(event: StageEvent): number {
  switch (event.type) {
    case 'text-delta':
    case 'refusal-delta':
    case 'thinking-delta':
      return event.text.length
    case 'tool-delta':
      return event.json.length
    default:
      return 0
  }
}

/** A fragment of a text block, by the first word of its events. */
export function deltaOf(kind: string, index: number, text: string): TextEvent {
  if (kind === 'thinking') return { type: 'thinking-delta', index, text }
  return { type: kind === 'refusal' ? 'refusal-delta' : 'text-delta', index, text }
}

/** The offsets of a citation do not fit a masked text. */
export function withoutOffsets(event: Extract<ChatEvent, { type: 'citation' }>): ChatEvent {
  const citation = { ...event.citation }
  delete citation.start
  delete citation.end
  return { ...event, citation }
}
