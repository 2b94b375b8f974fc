/**
 * Replies without a client: if the client has left and a budget or `on_disconnect` requires it, the gateway
 * reads the rest of the upstream's reply for its token counts. Their number and their time are limited.
 */
import { NO_OUTPUT } from '../formats/chat/output-size.js'
import { outputTokens } from '../ledger/estimate-tokens.js'
import { hasFinalCounts, type AttemptResult } from './attempts/attempt-result.js'
import type { ServedRequest } from './served-request.js'

/** The request of a reply that may be drained. */
export interface DrainedRequest {
  readonly x: ServedRequest
  readonly drainedReplySlots: DrainedReplySlots
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
  static of(result: AttemptResult, { x, drainedReplySlots: slots }: DrainedRequest): DrainedReply | null {
    const { accountId, keyId } = x.identity
    // Native requests have fixed prices: their tokens change no budget.
    const hasBudget = x.admitted?.kind === 'admitted' && x.admitted.reservation?.hasBudget === true
    const { onDisconnect } = result.candidate.target.upstream.config
    const effect = onDisconnect ?? (hasBudget ? 'drain_until_usage' : 'cancel')
    if (effect === 'cancel') return null
    const key = `${accountId} ${keyId}`
    const { afterDisconnect } = x.generation.snapshot.config
    if (!slots.enter(key, afterDisconnect)) return null
    return new DrainedReply(result, x, { slots, key, untilUsage: effect === 'drain_until_usage' })
  }

  private constructor(
    result: AttemptResult,
    { generation }: ServedRequest,
    {
      slots,
      key,
      untilUsage,
    }: { slots: DrainedReplySlots; readonly key: string; readonly untilUsage: boolean },
  ) {
    this.result = result
    this.slots = slots
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

/** The maximum numbers of replies without a client. */
interface DrainedReplyLimits {
  readonly maxStreams: number
  readonly maxStreamsPerKey: number
}

/** Slots for replies without a client. */
export class DrainedReplySlots {
  private taken = 0
  private readonly byKey = new Map<string, number>()

  /** Takes a slot; false if all slots, or all slots of the key, are taken. */
  enter(key: string, { maxStreams, maxStreamsPerKey }: DrainedReplyLimits): boolean {
    const ofKey = this.byKey.get(key) ?? 0
    if (this.taken >= maxStreams || ofKey >= maxStreamsPerKey) return false
    this.taken += 1
    this.byKey.set(key, ofKey + 1)
    return true
  }

  /** Frees a slot of the key. */
  leave(key: string): void {
    this.taken -= 1
    const ofKey = this.byKey.get(key) ?? 0
    if (ofKey > 1) this.byKey.set(key, ofKey - 1)
    else this.byKey.delete(key)
  }
}
