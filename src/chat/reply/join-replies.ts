/**
 * The parts of one answer as one answer: one start, blocks counted on, usage added up, one finish.
 * Knows no upstream; a part is over when its `finish` says with what the same upstream goes on. A part
 * that came to nothing before it said anything is asked for once more, and its tokens count as well.
 */
import type { ErrorKind } from '../../errors.js'
import type { ChatEvent, EventSink } from '../event.js'
import type { JsonObject } from '../json.js'
import { addUsage, mergeUsage, type Usage } from '../usage.js'

/** Anthropic's own examples and its SDKs go on five to eight times; an answer must end some day. */
const MAX_PARTS = 6

/** Passes the first part on as it is and the others as its continuation. */
export class JoinedReply implements EventSink {
  /** With what the upstream is to be asked for the next part; null while none is due. */
  resume: JsonObject | null = null
  /** Why the part before the next one came to nothing; null where it only paused. */
  failure: ErrorKind | null = null
  private readonly next: EventSink
  private readonly maxOutput: number
  private part = 1
  private hasRetried = false
  /** Blocks of the parts before this one, and of all of them so far. */
  private blocksBefore = 0
  private blocks = 0
  private usageBefore: Usage = {}
  private usage: Usage = {}
  private readonly callIds = new Set<string>()

  /** `maxOutput`: the most tokens that the client wants of all parts together. */
  constructor(next: EventSink, maxOutput = Infinity) {
    this.next = next
    this.maxOutput = maxOutput
  }

  /** The next part begins. */
  startNextPart(): void {
    this.resume = null
    this.failure = null
    this.part += 1
    this.blocksBefore = this.blocks
    this.usageBefore = addUsage(this.usageBefore, this.usage)
    this.usage = {}
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'start':
        if (this.part === 1) this.next.event(event)
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        this.next.event(
          this.part === 1
            ? event
            : { type: 'usage', usage: addUsage(this.usageBefore, this.usage) },
        )
        return
      case 'finish':
        this.finish(event)
        return
      case 'error':
        if (event.retrySame !== true || !this.retryOnce(event.error.kind)) this.next.event(event)
        return
      default:
        this.block(event)
    }
  }

  private finish(event: Extract<ChatEvent, { type: 'finish' }>): void {
    const { resume, ...last } = event
    if (event.retrySame === true && this.retryOnce('upstream_failed')) return
    if (resume === undefined) return this.next.event(event)
    const output = (this.usageBefore.output ?? 0) + (this.usage.output ?? 0)
    if (output >= this.maxOutput) this.next.event({ ...last, reason: 'length' })
    else if (this.part === MAX_PARTS) this.next.event(last)
    else this.resume = resume
  }

  /** False where the client has heard something already, or the second try failed too. */
  private retryOnce(failure: ErrorKind): boolean {
    if (this.hasRetried || this.blocks > 0) return false
    this.hasRetried = true
    this.failure = failure
    this.resume = {}
    return true
  }

  private block(event: Extract<ChatEvent, { index: number }>): void {
    this.blocks = Math.max(this.blocks, this.blocksBefore + event.index + 1)
    const named = event.type === 'tool-start' ? this.withNewId(event) : event
    if (this.blocksBefore === 0) this.next.event(named)
    else this.next.event({ ...named, index: this.blocksBefore + event.index })
  }

  /** Each part counts its calls from the start, so an id that is made of the count may come twice. */
  private withNewId(
    event: Extract<ChatEvent, { type: 'tool-start' }>,
  ): Extract<ChatEvent, { type: 'tool-start' }> {
    let { id } = event
    if (this.callIds.has(id)) id = `${id.slice(0, 36)}_p${this.part}`
    this.callIds.add(id)
    return id === event.id ? event : { ...event, id }
  }
}
