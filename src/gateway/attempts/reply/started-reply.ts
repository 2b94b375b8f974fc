/** The results of an attempt: the reply that the client gets, or the part of one that the upstream paused. */
import type { ReplyTransform } from '../../streams/reply-transform.js'
import type { WholeReply } from '../../streams/whole-reply.js'

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
