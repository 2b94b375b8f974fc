/**
 * A guardrail on the way of a reply: the blocks that it holds back until they are judged, and the end of a
 * reply that it refuses.
 */
import type { WireError } from '../errors.js'
import type { ChatEvent } from '../formats/chat/event.js'
import type { Guardrail, JudgedRequest } from './guardrail.js'
import { GuardError } from './verdict.js'

/** The end of a reply that a guardrail refused, or could not judge. Nothing follows it. */
export interface Stop {
  readonly type: 'stop'
  readonly error: WireError
}

/** An event between two stages. */
export type StageEvent = ChatEvent | Stop

/** Takes events in order. Resolves when all that it does with them is done; null: it is done. */
export type Take = (events: readonly StageEvent[]) => Promise<void> | null

/** One guardrail on the way of a reply. */
export interface Stage {
  /** Takes events in order, and passes those that were judged to `next` without delay. */
  take(events: readonly StageEvent[], next: Take): Promise<void> | null
}

/** Larger arguments of a call are not judged. */
export const MAX_ARGUMENTS = 1_048_576

type Start = Extract<ChatEvent, { type: 'text-start' | 'refusal-start' | 'thinking-start' }>
/** A fragment of a text block. */
export type TextEvent = Extract<ChatEvent, { type: 'text-delta' | 'refusal-delta' | 'thinking-delta' }>
/** The end of a text block. */
export type TextEnd = Extract<ChatEvent, { type: 'text-end' | 'refusal-end' | 'thinking-end' }>
/** A source of a text. */
export type CitationEvent = Extract<ChatEvent, { type: 'citation' }>
type Attached = CitationEvent | Extract<ChatEvent, { type: 'logprobs' }>

/** The events of a call that is held back. */
export interface WithheldCall {
  readonly events: ChatEvent[]
  readonly start: Extract<ChatEvent, { type: 'tool-start' }>
  json: string
}

/** What a stage does with the blocks of a reply. A judgement that takes time is a `Later`. */
interface BlockJudge<Later> {
  textStart(event: Start): void
  text(event: TextEvent): Later | Stop | null
  textEnd(event: TextEnd): Later | Stop | null
  /** A call with its end. */
  call(call: WithheldCall): Later | Stop | null
  /** Judges a citation, and passes it to `attach`; absent: no guardrail of the stage can read it. */
  citation?(event: CitationEvent): Later | Stop | null
  /** The reply is complete: releases what is held back. */
  finish(): void
  /** Lets an event of a block pass. */
  push(event: ChatEvent): void
  /** Lets an event pass that belongs to no block. */
  pass(event: ChatEvent): void
}

/** The events of a reply by blocks: a call is held back until its end, citations until that of their text. */
export class Blocks<Later> {
  private readonly guardrail: Guardrail
  private readonly of: JudgedRequest
  private readonly judge: BlockJudge<Later>
  private isInText = false
  /** Citations and probabilities of the open text. */
  private attached: Attached[] = []
  private call: WithheldCall | null = null

  constructor(guardrail: Guardrail, of: JudgedRequest, judge: BlockJudge<Later>) {
    this.guardrail = guardrail
    this.of = of
    this.judge = judge
  }

  /** Takes an event; returns the end of the reply if it is refused. */
  event(event: StageEvent): Later | StageEvent | null {
    const { judge } = this
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
      case 'thinking-start':
        this.isInText = true
        judge.textStart(event)
        judge.push(event)
        return null
      case 'text-delta':
      case 'refusal-delta':
      case 'thinking-delta':
        return this.isInText ? judge.text(event) : null
      case 'text-end':
      case 'refusal-end':
      case 'thinking-end':
        return this.isInText ? judge.textEnd(event) : null
      case 'citation': {
        if (judge.citation !== undefined) return judge.citation(event)
        const stop = stopAtUnseen(this.guardrail, this.of, event)
        if (stop === null) this.attach(event)
        return stop
      }
      case 'logprobs':
        this.attach(event)
        return null
      case 'tool-start':
        this.call = { events: [event], start: event, json: '' }
        return null
      case 'tool-delta':
        return this.callDelta(event)
      case 'tool-end':
        return this.callEnd(event)
      case 'finish':
        judge.finish()
        this.of.notes.note(this.guardrail.name, 'response', 'pass')
        judge.pass(event)
        return null
      case 'error':
      case 'stop':
        // What is held back is dropped: it may not be sent, or the reply failed.
        return event
      case 'image':
      case 'opaque': {
        const stop = stopAtUnseen(this.guardrail, this.of, event)
        if (stop === null) judge.push(event)
        return stop
      }
      case 'start':
      case 'usage':
        judge.pass(event)
        return null
      default:
        return event satisfies never
    }
  }

  /** Lets a citation or probabilities pass with the open text. */
  attach(event: Attached): void {
    if (this.isInText) this.attached.push(event)
    else this.judge.push(event)
  }

  /** The text has been judged: its citations and its end pass, as far as they fit a masked text. */
  endText(event: TextEnd, isMasked: boolean): void {
    const { judge, attached } = this
    this.isInText = false
    this.attached = []
    for (const each of attached) {
      if (!isMasked) judge.push(each)
      else if (each.type === 'citation') judge.push(withoutOffsets(each))
    }
    const { type, index } = event
    judge.push(isMasked && type === 'thinking-end' ? { type, index } : event)
  }

  private callDelta(event: Extract<ChatEvent, { type: 'tool-delta' }>): Stop | null {
    const { call, judge } = this
    if (call === null) {
      judge.push(event)
      return null
    }
    call.events.push(event)
    call.json += event.json
    if (call.json.length <= MAX_ARGUMENTS) return null
    const stop = stopAfterError(this.guardrail, this.of, new GuardError('arguments above 1 MiB'))
    if (stop !== null) return stop
    this.call = null
    for (const each of call.events) judge.push(each)
    return null
  }

  private callEnd(event: ChatEvent): Later | Stop | null {
    const { call, judge } = this
    this.call = null
    if (call === null) {
      judge.push(event)
      return null
    }
    call.events.push(event)
    return judge.call(call)
  }
}

/** A fragment of a text block, by the first word of its events. */
export function deltaOf(kind: string, index: number, text: string): TextEvent {
  if (kind === 'thinking') return { type: 'thinking-delta', index, text }
  return { type: kind === 'refusal' ? 'refusal-delta' : 'text-delta', index, text }
}

/** The call with other arguments. */
export function maskedCall(
  { events }: WithheldCall,
  start: WithheldCall['start'],
  json: string,
): readonly ChatEvent[] {
  const { index } = start
  return [start, { type: 'tool-delta', index, json }, ...events.slice(-1)]
}

/** The offsets of a citation do not fit a masked text. */
export function withoutOffsets(event: CitationEvent): ChatEvent {
  const citation = { ...event.citation }
  delete citation.start
  delete citation.end
  return { ...event, citation }
}

/** The end of a reply that a guardrail refuses, or could not judge. */
export function stopFor(
  guardrail: Guardrail,
  of: JudgedRequest,
  reason: string | null,
  rule: string | null = null,
): Stop {
  of.notes.note(guardrail.name, 'response', 'block')
  const { wire } = guardrail.blocked(reason)
  of.notes.refusal = { message: wire.message, place: 'reply', rule }
  return { type: 'stop', error: wire }
}

/** Notes a failure; the end of the reply with `on_error: closed`, else null. */
export function stopAfterError(guardrail: Guardrail, of: JudgedRequest, error: unknown): Stop | null {
  if (!(error instanceof GuardError)) throw error
  of.notes.note(guardrail.name, 'response', 'error')
  if (guardrail.config.onError === 'open') return null
  return { type: 'stop', error: guardrail.unavailable(error).wire }
}

/** Notes content of a reply that no guardrail can read; the end of the reply with `unseen: block`. */
export function stopAtUnseen(guardrail: Guardrail, of: JudgedRequest, { type }: StageEvent): Stop | null {
  if (type !== 'image' && type !== 'opaque' && type !== 'citation') return null
  const { config, name } = guardrail
  of.notes.note(name, 'response', 'unseen')
  if (config.unseen === 'report' || config.action === 'report') return null
  return stopFor(guardrail, of, 'The reply has content that it cannot read.')
}
