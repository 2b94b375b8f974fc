/**
 * Guard servers and plugins on a reply. `WindowStage` judges text in windows whose ends are judged again with
 * what follows; `BufferStage` judges the whole reply in one call before any of it is released.
 */
import type { ChatEvent } from '../formats/chat/event.js'
import { GuardError, type Guardrail, type JudgedRequest, type Part } from './guardrail.js'
import { checkMasked } from './judge-request.js'
import { argumentsIn, plainArguments } from './json-strings.js'
import { deltaOf, withoutOffsets } from './rule-stage.js'
import {
  MAX_ARGUMENTS,
  stopAfterError,
  stopAtUnseen,
  stopFor,
  type HeldCall,
  type Stage,
  type StageEvent,
  type Stop,
} from './stage.js'

/** A guard that judges parts of replies elsewhere. */
class ServerGuard {
  readonly guardrail: Guardrail
  readonly of: JudgedRequest

  constructor(guardrail: Guardrail, of: JudgedRequest) {
    this.guardrail = guardrail
    this.of = of
  }

  /** The texts after the verdict, or the end of the reply. */
  async judge(parts: readonly Part[]): Promise<readonly string[] | Stop> {
    const { guardrail, of } = this
    const { name, config } = guardrail
    const texts = parts.map(({ text }) => text)
    // The client has left: the reply is not used.
    const hasLeft = (): boolean => of.signal.aborted
    if (parts.length === 0 || hasLeft()) return texts
    let verdict
    try {
      verdict = await guardrail.judge(parts, 'response', of)
      if (verdict.kind === 'mask') {
        checkMasked(
          parts.map((part) => ({ part })),
          verdict.texts,
        )
      }
    } catch (error) {
      return hasLeft() ? texts : (stopAfterError(guardrail, of, error) ?? texts)
    }
    if (verdict.kind === 'pass') return texts
    if (config.action === 'report' || verdict.kind === 'report') {
      of.notes.note(name, 'response', 'report')
      return texts
    }
    if (verdict.kind === 'block') return stopFor(guardrail, of, verdict.reason)
    of.notes.note(name, 'response', 'mask')
    return verdict.texts
  }
}

function isStop(judged: readonly string[] | Stop): judged is Stop {
  return 'type' in judged
}

/** The open text of a stream. */
interface HeldText {
  readonly kind: string
  readonly index: number
  /** What is held back. */
  text: string
  /** The number of its characters that were judged. */
  judgedChars: number
  isMasked: boolean
  /** Citations and probabilities. */
  readonly attached: ChatEvent[]
}

/** Judges a stream in windows. */
export class WindowStage implements Stage {
  private readonly guard: ServerGuard
  private text: HeldText | null = null
  private call: HeldCall | null = null
  private out: StageEvent[] = []

  constructor(guardrail: Guardrail, of: JudgedRequest) {
    this.guard = new ServerGuard(guardrail, of)
  }

  async take(events: readonly StageEvent[]): Promise<readonly StageEvent[]> {
    for (const event of events) {
      const stop = await this.event(event)
      if (stop === null) continue
      this.out.push(stop)
      break
    }
    const { out } = this
    this.out = []
    return out
  }

  /** Takes an event; resolves with the end of the reply if it is refused. */
  private event(event: StageEvent): Promise<StageEvent | null> | StageEvent | null {
    const { guardrail, of } = this.guard
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
      case 'thinking-start': {
        const kind = event.type.slice(0, event.type.indexOf('-'))
        const { index } = event
        this.text = { kind, index, text: '', judgedChars: 0, isMasked: false, attached: [] }
        this.out.push(event)
        return null
      }
      case 'text-delta':
      case 'refusal-delta':
      case 'thinking-delta':
        return this.text === null ? null : this.textDelta(this.text, event.text)
      case 'text-end':
      case 'refusal-end':
      case 'thinking-end':
        return this.text === null ? null : this.textEnd(this.text, event)
      case 'citation':
      case 'logprobs':
        if (this.text === null) this.out.push(event)
        else this.text.attached.push(event)
        return null
      case 'tool-start':
        this.call = { events: [event], start: event, json: '' }
        return null
      case 'tool-delta':
        return this.callDelta(event)
      case 'tool-end':
        return this.callEnd(event)
      case 'finish':
        of.notes.note(guardrail.name, 'response', 'pass')
        this.out.push(event)
        return null
      case 'error':
      case 'stop':
        return event
      case 'image':
      case 'opaque': {
        const stop = stopAtUnseen(guardrail, of, event)
        if (stop === null) this.out.push(event)
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

  private async textDelta(held: HeldText, text: string): Promise<StageEvent | null> {
    const { windowChars, overlapChars } = this.guard.guardrail.config
    held.text += text
    for (;;) {
      const end = unitsOf(held.text, windowChars)
      if (end === null) return null
      const judged = await this.guard.judge([partOf(held.kind, held.text.slice(0, end))])
      if (isStop(judged)) return judged
      const [window = ''] = judged
      held.isMasked ||= window !== held.text.slice(0, end)
      const chars = Array.from(window)
      const kept = chars.slice(Math.max(0, chars.length - overlapChars)).join('')
      this.release(held, window.slice(0, window.length - kept.length))
      held.text = kept + held.text.slice(end)
      held.judgedChars = Math.min(chars.length, overlapChars)
    }
  }

  private async textEnd(held: HeldText, event: ChatEvent): Promise<StageEvent | null> {
    const isJudged = unitsOf(held.text, held.judgedChars + 1) === null
    if (isJudged) this.release(held, held.text)
    else {
      const judged = await this.guard.judge([partOf(held.kind, held.text)])
      if (isStop(judged)) return judged
      held.isMasked ||= judged[0] !== held.text
      this.release(held, judged[0] ?? '')
    }
    this.text = null
    for (const each of held.attached) {
      if (!held.isMasked) this.out.push(each)
      else if (each.type === 'citation') this.out.push(withoutOffsets(each))
    }
    const { index } = held
    const isUnsigned = held.isMasked && event.type === 'thinking-end'
    this.out.push(isUnsigned ? { type: 'thinking-end', index } : event)
    return null
  }

  private release({ kind, index }: HeldText, text: string): void {
    if (text !== '') this.out.push(deltaOf(kind, index, text))
  }

  private callDelta(event: Extract<ChatEvent, { type: 'tool-delta' }>): StageEvent | null {
    const { call } = this
    if (call === null) {
      this.out.push(event)
      return null
    }
    call.events.push(event)
    call.json += event.json
    if (call.json.length <= MAX_ARGUMENTS) return null
    const { guardrail, of } = this.guard
    const stop = stopAfterError(guardrail, of, new GuardError('arguments above 1 MiB'))
    if (stop !== null) return stop
    this.call = null
    this.out.push(...call.events)
    return null
  }

  private async callEnd(event: ChatEvent): Promise<StageEvent | null> {
    const { call } = this
    this.call = null
    if (call === null) {
      this.out.push(event)
      return null
    }
    call.events.push(event)
    const part = argumentsPart(call)
    const judged = await this.guard.judge(part.text === '' ? [] : [part])
    if (isStop(judged)) return judged
    const [json = part.text] = judged
    const { index } = call.start
    if (json === part.text) this.out.push(...call.events)
    else this.out.push(call.start, { type: 'tool-delta', index, json }, event)
    return null
  }
}

function partOf(kind: string, text: string): Part {
  const isReasoning = kind === 'thinking'
  return {
    kind: isReasoning ? 'reasoning' : 'text',
    role: 'assistant',
    text,
    isJson: false,
    tool: null,
  }
}

function argumentsPart({ start, json }: HeldCall): Part {
  const isJson = start.custom !== true && argumentsIn(json) !== undefined
  const text = isJson ? plainArguments(json) : json
  return { kind: 'arguments', role: 'assistant', text, isJson, tool: start.name }
}

/** The code units of the first `chars` characters; null if the text has fewer. */
function unitsOf(text: string, chars: number): number | null {
  let units = 0
  for (let left = chars; left > 0; left -= 1) {
    const char = text.codePointAt(units)
    if (char === undefined) return null
    units += char > 0xffff ? 2 : 1
  }
  return units
}

/** A block of a reply that is judged whole. */
interface WholeBlock {
  readonly part: Part
  /** The text after the verdict. */
  judged: string
}

/** Judges a whole reply in one call. */
export class BufferStage implements Stage {
  private readonly guard: ServerGuard
  private events: ChatEvent[] = []
  private hasFinished = false

  constructor(guardrail: Guardrail, of: JudgedRequest) {
    this.guard = new ServerGuard(guardrail, of)
  }

  take(events: readonly StageEvent[]): readonly StageEvent[] | Promise<readonly StageEvent[]> {
    for (const event of events) {
      if (event.type === 'error' || event.type === 'stop') return [event]
      this.events.push(event)
      this.hasFinished ||= event.type === 'finish'
    }
    return this.hasFinished ? this.finish() : []
  }

  private async finish(): Promise<readonly StageEvent[]> {
    const { guard, events } = this
    const { guardrail, of } = guard
    for (const event of events) {
      const stop = stopAtUnseen(guardrail, of, event)
      if (stop !== null) return [stop]
    }
    const blocks = blocksOf(events)
    const judgedBlocks = [...blocks.values()].filter(({ part }) => part.text !== '')
    const isTooLarge = judgedBlocks.some(
      ({ part }) => part.kind === 'arguments' && part.text.length > MAX_ARGUMENTS,
    )
    const judged = isTooLarge
      ? stopAfterError(guardrail, of, new GuardError('arguments above 1 MiB'))
      : await guard.judge(judgedBlocks.map(({ part }) => part))
    if (judged !== null && isStop(judged)) return [judged]
    judgedBlocks.forEach((block, at) => (block.judged = judged?.[at] ?? block.judged))
    of.notes.note(guardrail.name, 'response', 'pass')
    this.events = []
    return replaced(events, blocks)
  }
}

function blocksOf(events: readonly ChatEvent[]): Map<number, WholeBlock> {
  const texts = new Map<number, { start: ChatEvent; text: string }>()
  for (const event of events) {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
      case 'thinking-start':
      case 'tool-start':
        texts.set(event.index, { start: event, text: '' })
        break
      case 'text-delta':
      case 'refusal-delta':
      case 'thinking-delta':
      case 'tool-delta': {
        const block = texts.get(event.index)
        if (block !== undefined) block.text += event.type === 'tool-delta' ? event.json : event.text
        break
      }
      default:
    }
  }
  const blocks = new Map<number, WholeBlock>()
  for (const [index, { start, text }] of texts) {
    const part =
      start.type === 'tool-start'
        ? argumentsPart({ events: [], start, json: text })
        : partOf(start.type.slice(0, start.type.indexOf('-')), text)
    blocks.set(index, { part, judged: part.text })
  }
  return blocks
}

/** The events with the judged texts. */
function replaced(
  events: readonly ChatEvent[],
  blocks: ReadonlyMap<number, WholeBlock>,
): StageEvent[] {
  const masked = new Map([...blocks].filter(([, { part, judged }]) => judged !== part.text))
  if (masked.size === 0) return [...events]
  return events.flatMap((event): StageEvent[] => {
    const block = 'index' in event ? masked.get(event.index) : undefined
    if (block === undefined || !('index' in event)) return [event]
    const { index } = event
    switch (event.type) {
      case 'tool-start':
        return [event, { type: 'tool-delta', index, json: block.judged }]
      case 'text-start':
      case 'refusal-start':
      case 'thinking-start':
        return [event, deltaOf(event.type.slice(0, event.type.indexOf('-')), index, block.judged)]
      case 'thinking-end':
        return [{ type: 'thinking-end', index }]
      case 'citation':
        return [withoutOffsets(event)]
      case 'text-end':
      case 'refusal-end':
      case 'tool-end':
        return [event]
      default:
        return []
    }
  })
}
