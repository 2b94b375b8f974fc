/**
 * Judges a reply on canonical events, whole or as a stream: each guardrail is a stage that holds events back
 * until they are judged. What follows a refusal never reaches the client, and what was sent before is never
 * changed.
 */
import { GatewayError, type WireError } from '../errors.js'
import { isContent, type ChatEvent, type FinishReason } from '../formats/chat/event.js'
import { hostedCallNames } from '../formats/chat/hosted-tools.js'
import { OutputMeter, type OutputSize } from '../formats/chat/output-size.js'
import { mergeUsage, type Usage } from '../formats/chat/usage.js'
import type { EventGuard } from '../formats/translated-stream.js'
import type { Guardrail, JudgedRequest } from './guardrail.js'
import type { ObservedExchange } from './plugins.js'
import { RuleStage } from './rule-stage.js'
import { BufferStage, WindowStage } from './window-and-buffer-stages.js'
import { stopFor, type Stage, type StageEvent, type Take } from './reply-stage.js'

/** Judges the replies to one request. */
export interface ReplyJudge {
  /** The guard of one reply; `isWhole`: the client gets nothing before its end. */
  open(isWhole: boolean): EventGuard
}

/** The request of the replies, and its guardrails. */
export interface GuardedReply {
  readonly guardrails: readonly Guardrail[]
  readonly of: JudgedRequest
  /** Gets the events that the client gets; null if no plugin observes the request. */
  readonly observed: ObservedExchange | null
  /** What a reply of this size has used, for the client of a refused stream. */
  readonly estimate: (size: OutputSize, reported: Usage) => Usage
}

/** The judge of the replies to a request; null if none of its guardrails judges replies. */
export function replyJudge(reply: GuardedReply): ReplyJudge | null {
  const guardrails = reply.guardrails.filter((guardrail) => guardrail.judges('response'))
  const isObserved = reply.observed?.readsEvents === true
  if (guardrails.length === 0 && !isObserved) return null
  return { open: (isWhole) => new ReplyGuard({ ...reply, guardrails }, isWhole) }
}

class ReplyGuard implements EventGuard {
  blocked: EventGuard['blocked'] = undefined
  /** The first stage, which passes what it releases to the next one. */
  private readonly first: Take
  /** Takes what all stages have released. */
  private releaseTo: (events: readonly ChatEvent[]) => void = () => undefined
  private readonly reply: GuardedReply
  private readonly isWhole: boolean
  private readonly size = new OutputMeter()
  private usage: Usage = {}
  /** Why the upstream's reply ended; null before it has. */
  private reason: FinishReason | null = null
  private hasReleased = false
  /** The block that the client has the beginning of. */
  private open: { kind: 'text' | 'refusal' | 'thinking' | 'tool'; index: number } | null = null
  private hasStopped = false
  /** Aborted when the client has left, or when the reply was refused. */
  private readonly leaving = new AbortController()

  constructor(reply: GuardedReply, isWhole: boolean) {
    this.reply = reply
    this.isWhole = isWhole
    const { signal } = this.leaving
    const of = { ...reply.of, signal }
    this.first = reply.guardrails
      .map((guardrail) => stageOf(guardrail, of, isWhole))
      .reduceRight<Take>(
        (next, stage) => (events) => stage.take(events, next),
        (events) => this.release(events),
      )
    // A stream may be read on for others who share it: its owner stops the guard.
    if (isWhole) reply.of.signal.addEventListener('abort', () => this.stop(), { once: true })
  }

  stop(): void {
    this.leaving.abort()
  }

  private get isOff(): boolean {
    return this.leaving.signal.aborted
  }

  take(events: readonly ChatEvent[], release: (events: readonly ChatEvent[]) => void): Promise<void> | null {
    for (const event of events) this.measure(event)
    this.releaseTo = release
    return this.isOff ? this.release(events) : this.first(events)
  }

  private measure(event: ChatEvent): void {
    this.size.add(event)
    if (event.type === 'usage') this.usage = mergeUsage(this.usage, event.usage)
    if (event.type === 'finish') this.reason = event.reason
  }

  /** The events of a reply without a client: a stream is only counted, and a whole reply must not be used. */
  private unjudged(events: readonly StageEvent[]): readonly ChatEvent[] {
    const { reason } = this
    const left: ChatEvent = {
      type: 'error',
      error: LEFT,
      ...(reason === null ? {} : { reason }),
    }
    return this.isWhole ? [left] : events.map((event) => (event.type === 'stop' ? left : event))
  }

  private release(events: readonly StageEvent[]): null {
    if (this.hasStopped) return null
    if (this.isOff) {
      this.releaseTo(this.unjudged(events))
      return null
    }
    const released = this.released(events)
    const { observed } = this.reply
    if (observed !== null) for (const event of released) observed.event(event)
    this.releaseTo(released)
    return null
  }

  private released(events: readonly StageEvent[]): readonly ChatEvent[] {
    const released: ChatEvent[] = []
    for (const event of events) {
      if (event.type === 'stop') {
        this.hasStopped = true
        // Nothing else is judged.
        this.leaving.abort()
        released.push(...this.ending(event.error))
        return released
      }
      this.follow(event)
      released.push(event)
    }
    return released
  }

  private follow(event: ChatEvent): void {
    this.hasReleased ||= isContent(event)
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
      case 'thinking-start':
      case 'tool-start':
        this.open = { kind: kindOf(event), index: event.index }
        return
      case 'text-end':
      case 'refusal-end':
      case 'thinking-end':
      case 'tool-end':
        this.open = null
        return
      default:
    }
  }

  /** An error before the client has any content; else the regular end of a refused reply. */
  private ending(error: WireError): ChatEvent[] {
    const isBlocked = error.kind === 'guardrail_blocked'
    if (isBlocked) this.blocked = this.reason === null ? 'cut' : 'complete'
    if (this.isWhole || !this.hasReleased || !isBlocked) {
      return [{ type: 'error', error, ...(this.reason === null ? {} : { reason: this.reason }) }]
    }
    const { open, usage } = this
    const ends: ChatEvent[] = open === null ? [] : [{ type: `${open.kind}-end`, index: open.index }]
    const used = this.reply.estimate(this.size, usage)
    return [
      ...ends,
      { type: 'usage', usage: this.reason === null ? used : usage },
      { type: 'finish', reason: 'filter', raw: null, blocked: error.message },
    ]
  }
}

const LEFT = new GatewayError('client_gone', 'The client closed the connection.').wire

type Start = Extract<ChatEvent, { type: 'text-start' | 'refusal-start' | 'thinking-start' | 'tool-start' }>

function kindOf({ type }: Start): 'text' | 'refusal' | 'thinking' | 'tool' {
  switch (type) {
    case 'text-start':
      return 'text'
    case 'refusal-start':
      return 'refusal'
    case 'thinking-start':
      return 'thinking'
    case 'tool-start':
      return 'tool'
    default:
      return type satisfies never
  }
}

function stageOf(guardrail: Guardrail, of: JudgedRequest, isWhole: boolean): Stage {
  const { config, rules } = guardrail
  const isBuffered = isWhole || config.stream === 'buffer'
  if (rules !== null) return new RuleStage({ guardrail, rules, of, isBuffered })
  if (config.source.kind === 'tools') return new ToolStage(guardrail, of)
  return isBuffered ? new BufferStage(guardrail, of) : new WindowStage(guardrail, of)
}

/** Refuses calls of denied tools by their names. */
class ToolStage implements Stage {
  private readonly guardrail: Guardrail
  private readonly of: JudgedRequest

  constructor(guardrail: Guardrail, of: JudgedRequest) {
    this.guardrail = guardrail
    this.of = of
  }

  take(events: readonly StageEvent[], next: Take): Promise<void> | null {
    const { guardrail, of } = this
    const at = events.findIndex((event) => isDenied(event, guardrail))
    if (at >= 0) {
      if (guardrail.config.action === 'block') {
        return next([...events.slice(0, at), stopFor(guardrail, of, null)])
      }
      of.notes.note(guardrail.name, 'response', 'report')
    }
    if (events.some(({ type }) => type === 'finish')) {
      of.notes.note(guardrail.name, 'response', 'pass')
    }
    return next(events)
  }
}

/** Whether the event calls a tool, or reports calls of one, that the guardrail denies. */
function isDenied(event: StageEvent, guardrail: Guardrail): boolean {
  switch (event.type) {
    case 'tool-start':
      return !guardrail.allowsTool(event.name)
    case 'opaque':
      return hostedCallNames(event.block, event.provider).some((name) => !guardrail.allowsHosted(name))
    case 'usage':
      // Some replies have no other trace of a search.
      return Object.keys(event.usage.calls ?? {}).some((name) => !guardrail.allowsHosted(name))
    default:
      return false
  }
}
