/**
 * Guard servers and plugins on a reply. `WindowStage` judges text in windows whose ends are judged again with
 * what follows; `BufferStage` judges the whole reply in one call before any of it is released.
 */
import { fragmentOf, type ChatEvent } from '../formats/chat/event.js'
import type { Guardrail, JudgedRequest } from './guardrail.js'
import { GuardError, type Part } from './verdict.js'
import { checkMasked } from './judge-request.js'
import { argumentsIn, plainArguments } from './json-strings.js'
import {
  Blocks,
  deltaOf,
  maskedCall,
  MAX_ARGUMENTS,
  stopAfterError,
  stopAtUnseen,
  stopFor,
  withoutOffsets,
  type WithheldCall,
  type Stage,
  type StageEvent,
  type Stop,
  type Take,
  type TextEnd,
  type TextEvent,
} from './reply-stage.js'

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
interface WithheldText {
  readonly kind: string
  readonly index: number
  /** What is held back. */
  text: string
  /** The end of the last window, which is the beginning of the text: this part was judged. In code units. */
  judgedUnits: number
  /** The number of characters that were counted, and their code units. */
  chars: number
  units: number
  isMasked: boolean
}

/** Judges a stream in windows. */
export class WindowStage implements Stage {
  private readonly guard: ServerGuard
  private readonly blocks: Blocks<Promise<Stop | null>>
  private withheld: WithheldText = emptyText('', 0)
  private out: StageEvent[] = []
  private next: Take = () => null

  constructor(guardrail: Guardrail, of: JudgedRequest) {
    this.guard = new ServerGuard(guardrail, of)
    this.blocks = new Blocks(guardrail, of, {
      textStart: ({ type, index }) => {
        this.withheld = emptyText(type.slice(0, type.indexOf('-')), index)
      },
      text: (event) => this.text(event),
      textEnd: (event) => this.textEnd(event),
      call: (call) => this.call(call),
      finish: () => undefined,
      push: (event) => this.out.push(event),
      pass: (event) => this.out.push(event),
    })
  }

  take(events: readonly StageEvent[], next: Take): Promise<void> | null {
    this.next = next
    for (const [at, event] of events.entries()) {
      const judged = this.blocks.event(event)
      if (judged === null) continue
      if (judged instanceof Promise) return this.takeOn(judged, events.slice(at + 1))
      this.out.push(judged)
      break
    }
    return this.flush()
  }

  private async takeOn(judging: Promise<StageEvent | null>, events: readonly StageEvent[]): Promise<void> {
    let stop = await judging
    for (const event of events) {
      if (stop !== null) break
      stop = await this.blocks.event(event)
    }
    if (stop !== null) this.out.push(stop)
    await this.flush()
  }

  /** Passes on what was judged. */
  private flush(): Promise<void> | null {
    const { out } = this
    if (out.length === 0) return null
    this.out = []
    return this.next(out)
  }

  private text(event: TextEvent): Promise<Stop | null> | null {
    const { withheld } = this
    withheld.text += event.text
    return this.isFull(withheld) ? this.judgeWindows(withheld) : null
  }

  /** Whether the text has a whole window, up to `units`. */
  private isFull(withheld: WithheldText): boolean {
    const { windowChars } = this.guard.guardrail.config
    const { text } = withheld
    while (withheld.chars < windowChars) {
      const char = text.codePointAt(withheld.units)
      if (char === undefined) return false
      // The other half of a pair may follow in another event.
      if (withheld.units === text.length - 1 && char >= 0xd800 && char < 0xdc00) return false
      withheld.units += char > 0xffff ? 2 : 1
      withheld.chars += 1
    }
    return true
  }

  private async judgeWindows(withheld: WithheldText): Promise<Stop | null> {
    const { overlapChars } = this.guard.guardrail.config
    do {
      const end = withheld.units
      const judged = await this.guard.judge([partOf(withheld.kind, withheld.text.slice(0, end))])
      if (isStop(judged)) return judged
      const [window = ''] = judged
      withheld.isMasked ||= window !== withheld.text.slice(0, end)
      const chars = Array.from(window)
      const kept = chars.slice(Math.max(0, chars.length - overlapChars))
      const overlap = kept.join('')
      this.release(withheld, window.slice(0, window.length - overlap.length))
      withheld.text = overlap + withheld.text.slice(end)
      withheld.judgedUnits = overlap.length
      withheld.units = overlap.length
      withheld.chars = kept.length
      // The client gets it while the next window is judged.
      await this.flush()
    } while (this.isFull(withheld))
    return null
  }

  private textEnd(event: TextEnd): Promise<Stop | null> | null {
    const { withheld } = this
    if (withheld.text.length > withheld.judgedUnits) return this.judgeEnd(withheld, event)
    this.release(withheld, withheld.text)
    this.blocks.endText(event, withheld.isMasked)
    return null
  }

  private async judgeEnd(withheld: WithheldText, event: TextEnd): Promise<Stop | null> {
    const judged = await this.guard.judge([partOf(withheld.kind, withheld.text)])
    if (isStop(judged)) return judged
    const [text = ''] = judged
    withheld.isMasked ||= text !== withheld.text
    this.release(withheld, text)
    this.blocks.endText(event, withheld.isMasked)
    return null
  }

  private release({ kind, index }: WithheldText, text: string): void {
    if (text !== '') this.out.push(deltaOf(kind, index, text))
  }

  private async call(call: WithheldCall): Promise<Stop | null> {
    const part = argumentsPart(call)
    const judged = await this.guard.judge(part.text === '' ? [] : [part])
    if (isStop(judged)) return judged
    const [json = part.text] = judged
    for (const event of json === part.text ? call.events : maskedCall(call, call.start, json)) {
      this.out.push(event)
    }
    return null
  }
}

function emptyText(kind: string, index: number): WithheldText {
  return { kind, index, text: '', judgedUnits: 0, chars: 0, units: 0, isMasked: false }
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

function argumentsPart({ start, json }: WithheldCall): Part {
  const isJson = start.custom !== true && argumentsIn(json) !== undefined
  const text = isJson ? plainArguments(json) : json
  return { kind: 'arguments', role: 'assistant', text, isJson, tool: start.name }
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

  take(events: readonly StageEvent[], next: Take): Promise<void> | null {
    for (const event of events) {
      if (event.type === 'error' || event.type === 'stop') return next([event])
      this.events.push(event)
      this.hasFinished ||= event.type === 'finish'
    }
    return this.hasFinished ? this.finish().then((out) => next(out) ?? undefined) : null
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
        if (block !== undefined) block.text += fragmentOf(event) ?? ''
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
function replaced(events: readonly ChatEvent[], blocks: ReadonlyMap<number, WholeBlock>): StageEvent[] {
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
