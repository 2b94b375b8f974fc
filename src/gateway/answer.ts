/**
 * What an attempt makes: an answer, now or later, of its own or begun by the attempt before it.
 * Knows no upstream.
 */
import type { GatewayError } from '../errors.js'
import type { ReplyTransform } from './streams/reply-transform.js'
import type { WholeReply } from './whole.js'

/** The promise of an answer, which all attempts that it takes share. */
export interface Settlement {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: GatewayError) => void
}

/** What there is already of an answer that the upstream paused. */
export interface Begun {
  readonly stream: ReplyTransform | null
  readonly whole: WholeReply | null
  /** The client has the beginning of it. */
  readonly committed: boolean
}

/** What the client gets: a whole body, or a stream that has begun. */
export type Answer =
  | {
      readonly kind: 'whole'
      readonly body: string | Buffer
      /** How many the body has, in UTF-8 where it is a text. */
      readonly bytes: number
      /** It is all of a stream. */
      readonly stream: boolean
    }
  | { readonly kind: 'stream'; readonly stream: ReplyTransform }

/** The first attempt has nothing to go on from. */
export const NOT_BEGUN: Begun = { stream: null, whole: null, committed: false }
