/** The interface between an attempt and the candidate loop that starts it. */
import type { JsonObject } from '../../../chat/json.js'
import type { GatewayError } from '../../../errors.js'
import type { HeldMemory } from '../../bodies/body-memory.js'
import type { Deadlines } from '../../in-flight/timeout-timer.js'
import type { DrainedReplySlots } from '../../in-flight/drained-reply-slots.js'
import type { RequestContext } from '../../client-exchange.js'
import type { Call } from '../../phases/receive.js'
import type { Outgoing } from '../request/render-for-upstream.js'
import type { StartedReply, EarlierParts } from '../reply/started-reply.js'
import type { ReplyOwner } from '../../streams/reply-transform.js'
import type { AttemptResult } from '../attempt-result.js'

/** The request that an attempt is made for, and the callbacks that the attempt reports to. */
export interface AttemptOwner {
  readonly exchange: RequestContext
  readonly deadlines: Deadlines
  readonly held: HeldMemory
  readonly drainedReplySlots: DrainedReplySlots
  readonly payer: Payer
  /** The client's deadline for the whole reply, in ms from its request; infinite if it sent none. */
  readonly timeoutMs: number
  /** How long the head of a stream may be held for its first content, in ms. */
  readonly headHoldMs: number
  /** As `ReplyOwner`, for the reply of the attempt. */
  ending(attempt: StartedAttempt): Promise<void> | null
  threw(cause: unknown): void
  translated(ms: number): void
  /** The reply to the client can begin. Called at most once, and `failed` never after it. */
  begun(attempt: StartedAttempt, reply: StartedReply): void
  /** The attempt ended before the reply to the client could begin. Called at most once. */
  failed(attempt: StartedAttempt, error: GatewayError): void
  /** The upstream paused, or its reply was empty: another attempt requests the rest with `resume`. */
  paused(attempt: StartedAttempt, parts: EarlierParts, resume: JsonObject): void
  /** The client has left, and the rest of the reply is read until `ended` resolves. */
  draining(ended: Promise<void>): void
}

/** The key that a request is charged to. */
export interface Payer {
  readonly accountId: string
  readonly keyId: string
  /** A budget applies to the request. */
  readonly hasBudget: boolean
}

/** A started attempt, as its owner sees it. */
export interface StartedAttempt {
  readonly result: AttemptResult
  readonly prepared: PreparedRequest
}

/** A request in the form in which it is sent to one upstream. */
export interface PreparedRequest {
  readonly call: Call
  readonly outgoing: Outgoing
  /** It must be sent on a connection that served no other request. */
  readonly onFreshConnection?: boolean
}

/** Reports the translation of an attempt's reply to the owner of the attempt. */
export function replyOwnerOf(owner: AttemptOwner, attempt: StartedAttempt): ReplyOwner {
  return {
    ending: () => owner.ending(attempt),
    threw: (cause) => owner.threw(cause),
    translated: (ms) => owner.translated(ms),
  }
}
