/** The interface between an attempt and the candidate loop that starts it. */
import type { GatewayError } from '../../errors.js'
import type { JsonObject } from '../../formats/chat/json.js'
import type { HeldMemory } from '../body-memory.js'
import type { RequestContext } from '../client-exchange.js'
import type { Deadlines } from '../deadlines.js'
import type { DrainedReplySlots } from '../in-flight-list.js'
import type { Call } from '../phases/receive.js'
import type { ReplyOwner, ReplyTransform } from '../streams/reply-transform.js'
import type { WholeReply } from '../streams/whole-reply.js'
import type { AttemptResult } from './attempt-result.js'
import type { Outgoing } from './render-for-upstream.js'

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

/** A reply that has begun: a whole body, or a stream with its first content. */
export type StartedReply =
  | {
      readonly kind: 'whole'
      readonly body: string | Buffer
      /** Size of the body, in UTF-8 if it is text. */
      readonly bytes: number
      /** It is all of a stream. */
      readonly stream: boolean
    }
  | { readonly kind: 'stream'; readonly stream: ReplyTransform }

/** The earlier parts of a reply that the upstream paused; the next attempt continues it. */
export interface EarlierParts {
  readonly stream: ReplyTransform | null
  readonly whole: WholeReply | null
  /** The client has the beginning of it. */
  readonly committed: boolean
}

/** An attempt that continues nothing. */
export const NO_PARTS: EarlierParts = { stream: null, whole: null, committed: false }
