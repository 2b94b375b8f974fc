/**
 * Joins the parts of a paused reply into one reply: one start, continuous block indexes, added usage, one
 * finish. A part whose `finish` has `resume` is followed by another one. A part that fails without content is
 * requested a second time, and the usage of both attempts is added.
 */
import type { ErrorKind } from '../../errors.js'
import type { ChatEvent, EventSink } from './event.js'
import type { JsonObject } from '../../base/json.js'
import { addUsage, mergeUsage, type Usage } from './usage.js'

/** How often one reply is continued. Anthropic's examples and SDKs continue five to eight times. */
const MAX_CONTINUATIONS = 5

/** Forwards the first part unchanged and the others as its continuation. */
export class JoinedReply implements EventSink {
  /** The data that the upstream needs for the next part; null if no part follows. */
  resume: JsonObject | null = null
  /** Why the last part failed; null if it paused. */
  failure: ErrorKind | null = null
  private readonly next: EventSink
  private readonly maxOutput: number
  /** Parts after the first. */
  private continuations = 0
  private hasRetried = false
  /** Number of blocks of the earlier parts, and of all parts so far. */
  private blocksBefore = 0
  private blocks = 0
  private usageBefore: Usage = {}
  private usage: Usage = {}
  private readonly callIds = new Set<string>()

  /** `maxOutput`: the client's limit for the output tokens of all parts together. */
  constructor(next: EventSink, maxOutput = Infinity) {
    this.next = next
    this.maxOutput = maxOutput
  }

  /** The next part begins. */
  startNextPart(): void {
    this.resume = null
    this.failure = null
    this.continuations += 1
    this.blocksBefore = this.blocks
    this.usageBefore = addUsage(this.usageBefore, this.usage)
    this.usage = {}
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'start':
        if (this.continuations === 0) this.next.event(event)
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        this.next.event(
          this.continuations === 0 ? event : { type: 'usage', usage: addUsage(this.usageBefore, this.usage) },
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
    else if (this.continuations === MAX_CONTINUATIONS) this.next.event(last)
    else this.resume = resume
  }

  /** False if content was forwarded already, or if this is the second failure. */
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

  /** Makes the id of a call unique: decoders may derive ids from a count that starts again with each part. */
  private withNewId(
    event: Extract<ChatEvent, { type: 'tool-start' }>,
  ): Extract<ChatEvent, { type: 'tool-start' }> {
    let { id } = event
    if (this.callIds.has(id)) id = `${id.slice(0, 36)}_p${this.continuations + 1}`
    this.callIds.add(id)
    return id === event.id ? event : { ...event, id }
  }
}
