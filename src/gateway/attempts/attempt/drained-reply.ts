/** A reply that is read after its client has left, for the token counts at its end, within a time limit. */
import { NO_OUTPUT } from '../../../chat/reply/output-size.js'
import type { Usage } from '../../../chat/usage.js'
import { outputTokens } from '../../../ledger/estimate-tokens.js'
import type { DrainedReplySlots } from '../../in-flight/drained-reply-slots.js'
import type { Generation } from '../../generation/generation.js'
import type { ReplyResult } from '../../streams/translated-stream.js'
import type { AttemptResult } from '../attempt-result.js'
import type { Phase } from './attempt-and-total-timeouts.js'

/** Whether the rest of a reply can be read in this phase after the client has left. */
export function isDrainable(phase: Phase): boolean {
  return phase === 'waiting' || phase === 'whole' || phase === 'stream'
}

/** The rest of one reply. The exchange waits for `ended` before its ledger entry is written. */
export class DrainedReply {
  readonly ended: Promise<void>
  private readonly drainedReplySlots: DrainedReplySlots
  private readonly untilUsage: boolean
  private readonly lateMs: number
  /** The counts that had been reported when the client left. */
  private readonly usage: Usage | null
  private resolve: () => void = () => undefined

  /** Null if the configuration cancels the upstream, or the maximum number of drained replies is reached. */
  static of(
    result: AttemptResult,
    generation: Generation,
    drainedReplySlots: DrainedReplySlots,
  ): DrainedReply | null {
    const { onDisconnect } = result.candidate.target.upstream.config
    const { maxStreams } = generation.snapshot.config.afterDisconnect
    if (onDisconnect === 'cancel' || !drainedReplySlots.enter(maxStreams)) return null
    return new DrainedReply(result, generation, drainedReplySlots)
  }

  private constructor(
    result: AttemptResult,
    generation: Generation,
    drainedReplySlots: DrainedReplySlots,
  ) {
    const { replyResult, candidate } = result
    this.drainedReplySlots = drainedReplySlots
    this.untilUsage = candidate.target.upstream.config.onDisconnect === 'drain_until_usage'
    this.lateMs = performance.now() + generation.snapshot.config.afterDisconnect.maxMs
    this.usage = replyResult?.usage ?? null
    const { family } = generation.facts(candidate.model)
    result.outputWhenLeft = outputTokens(replyResult?.outputSize ?? NO_OUTPUT, family)
    this.ended = new Promise((resolve) => {
      this.resolve = resolve
    })
  }

  /** Whether the time limit has passed. */
  isLate(nowMs: number): boolean {
    return nowMs > this.lateMs
  }

  /** Whether the counts have arrived since the client left, with `drain_until_usage`. */
  isCounted({ usage, outputSize }: ReplyResult): boolean {
    if (!this.untilUsage || usage === this.usage || outputSize.bytes + outputSize.calls === 0)
      return false
    return usage.input !== undefined && usage.output !== undefined
  }

  /** The attempt has ended. Frees the slot. */
  end(): void {
    this.drainedReplySlots.leave()
    this.resolve()
  }
}
