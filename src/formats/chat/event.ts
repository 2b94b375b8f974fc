/** Canonical events of a reply, the same for all dialects. `grammar.ts` defines their order. */
import type { WireError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'
import type { Usage } from './usage.js'

/** Why the model stopped. */
export type FinishReason = 'stop' | 'length' | 'tool-use' | 'filter' | 'pause' | 'other'

/**
 * A source that the model cites for a text block, which may have ended. Offsets are UTF-16 units of that
 * block.
 */
export interface Citation {
  url?: string
  title?: string
  citedText?: string
  start?: number
  end?: number
}

/**
 * One step of a reply. Blocks are numbered 0,1,2,… in order of start and never overlap. `signature` is opaque
 * provider state that the client must send back unchanged on the next turn; a call has it at its start too if
 * it is known by then.
 */
export type ChatEvent =
  | { type: 'start'; id: string; model: string }
  | { type: 'text-start'; index: number }
  | { type: 'text-delta'; index: number; text: string }
  | { type: 'text-end'; index: number; signature?: string }
  | { type: 'refusal-start'; index: number }
  | { type: 'refusal-delta'; index: number; text: string }
  | { type: 'refusal-end'; index: number }
  | { type: 'thinking-start'; index: number; redacted?: string }
  | { type: 'thinking-delta'; index: number; text: string }
  | { type: 'thinking-end'; index: number; signature?: string }
  | {
      type: 'tool-start'
      index: number
      id: string
      name: string
      custom?: boolean
      signature?: string
      /** A program that the provider runs made the call: `caller` of the reply, which only its format has. */
      byProgram?: true
    }
  | { type: 'tool-delta'; index: number; json: string }
  | { type: 'tool-end'; index: number; signature?: string }
  | { type: 'citation'; index: number; citation: Citation }
  /** The tokens of the next or the preceding text, if the request needs them. */
  | { type: 'logprobs'; index: number; tokens: readonly TokenLogprob[] }
  /** A whole image: a `data:` URL or a web address. */
  | { type: 'image'; index: number; url: string }
  | { type: 'opaque'; index: number; provider: string; block: JsonObject }
  | { type: 'usage'; usage: Usage }
  | {
      type: 'finish'
      reason: FinishReason
      raw: string | null
      stopSequence?: string
      /** The tier that served the reply, in OpenAI's names. */
      serviceTier?: string
      /**
       * Set if the upstream paused: the data that it needs to continue the reply. Internal to the gateway.
       */
      resume?: JsonObject
      /** The reply is empty, and the same request may succeed. Internal to the gateway. */
      retrySame?: true
      /** The message of a guardrail that ended the reply. Internal to the gateway. */
      blocked?: string
    }
  /**
   * `retrySame`: the model made an error, and the same request may succeed. `reason`: the upstream had
   * completed the reply, which it bills.
   */
  | { type: 'error'; error: WireError; retrySame?: true; reason?: FinishReason }

/** Takes events one at a time, synchronously, and never throws. */
export interface EventSink {
  event(event: ChatEvent): void
}

/** Whether the event is content, after which a retry would repeat output that the client has read. */
export function isContent(event: ChatEvent): boolean {
  switch (event.type) {
    case 'text-delta':
    case 'refusal-delta':
    case 'thinking-delta':
      return event.text !== ''
    case 'tool-start':
    case 'tool-delta':
    case 'opaque':
    case 'image':
    case 'citation':
    case 'finish':
      return true
    default:
      return false
  }
}

/** The text that the event adds to its block; null if it adds none. */
export function fragmentOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'text-delta':
    case 'refusal-delta':
    case 'thinking-delta':
      return event.text
    case 'tool-delta':
      return event.json
    default:
      return null
  }
}

/** A token and the natural logarithm of its probability. */
export interface Logprob {
  readonly token: string
  readonly logprob: number
  /** The bytes of the token, which need not be whole UTF-8 characters; null if unknown. */
  readonly bytes: readonly number[] | null
}

/** A token of the reply. `top`: the most likely tokens at its position, if the request needs them. */
export interface TokenLogprob extends Logprob {
  readonly top: readonly Logprob[]
}

/** The token with the UTF-8 bytes of its text. */
export function logprobOf(token: string, logprob: number): Logprob {
  return { token, logprob, bytes: [...Buffer.from(token)] }
}
