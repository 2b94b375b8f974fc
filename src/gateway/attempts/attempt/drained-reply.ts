/** A reply that is read after its client has left, for the token counts at its end, within a time limit. */
import { NO_OUTPUT } from '../../../chat/reply/output-size.js'
import { outputTokens } from '../../../ledger/estimate-tokens.js'
import type { DrainedReplySlots } from '../../in-flight/drained-reply-slots.js'
import { hasFinalCounts, type AttemptResult } from '../attempt-result.js'
import type { Phase } from './attempt-and-total-timeouts.js'
import type { AttemptOwner } from './attempt-owner.js'

/** Whether the rest of a reply can be read in this phase after the client has left. */
export function isDrainable(phase: Phase): boolean {
  return phase === 'waiting' || phase === 'whole' || phase === 'stream'
}

/** The rest of one reply. The exchange waits for `ended` before its ledger entry is written. */
export class DrainedReply {
  readonly ended: Promise<void>
  private readonly result: AttemptResult
  private readonly slots: DrainedReplySlots
  private readonly key: string
  private readonly untilUsage: boolean
  private readonly lateMs: number
  private resolve: () => void = () => undefined

  /**
   * Null if the configuration cancels the upstream, or if the maximum number of drained replies is reached.
   */
  static of(
    result: AttemptResult,
    owner: Pick<AttemptOwner, 'exchange' | 'payer' | 'drainedReplySlots'>,
  ): DrainedReply | null {
    const { payer, drainedReplySlots, exchange } = owner
    const { onDisconnect } = result.candidate.target.upstream.config
    const effect = onDisconnect ?? (payer.hasBudget ? 'drain_until_usage' : 'cancel')
    if (effect === 'cancel') return null
    const key = `${payer.accountId} ${payer.keyId}`
    const { afterDisconnect } = exchange.generation.snapshot.config
    if (!drainedReplySlots.enter(key, afterDisconnect)) return null
    return new DrainedReply(result, owner, { key, untilUsage: effect === 'drain_until_usage' })
  }

  private constructor(
    result: AttemptResult,
    {
      exchange: { generation },
      drainedReplySlots,
    }: Pick<AttemptOwner, 'exchange' | 'drainedReplySlots'>,
    { key, untilUsage }: { readonly key: string; readonly untilUsage: boolean },
  ) {
    this.result = result
    this.slots = drainedReplySlots
    this.key = key
    this.untilUsage = untilUsage
    this.lateMs = performance.now() + generation.snapshot.config.afterDisconnect.maxMs
    const { family } = generation.facts(result.candidate.model)
    result.outputWhenLeft = outputTokens(result.replyResult?.outputSize ?? NO_OUTPUT, family)
    this.ended = new Promise((resolve) => {
      this.resolve = resolve
    })
  }

  /** Whether the time limit has passed. */
  isLate(nowMs: number): boolean {
    return nowMs > this.lateMs
  }

  /** Whether the final counts have arrived, with `drain_until_usage`. */
  isCounted(): boolean {
    return this.untilUsage && hasFinalCounts(this.result)
  }

  /** The attempt has ended. Frees the slot. */
  end(): void {
    this.slots.leave(this.key)
    this.resolve()
  }
}
