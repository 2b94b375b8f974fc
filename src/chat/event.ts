/**
 * Canonical events: what a model's answer is, in any dialect.
 * Knows no wire format; `grammar.ts` says in which order these may come.
 */
import type { WireError } from '../errors.js'
import type { JsonObject } from './json.js'
import type { TokenLogprob } from './reply/logprobs.js'
import type { Usage } from './usage.js'

/** Why the model stopped, in the canonical vocabulary. */
export type FinishReason = 'stop' | 'length' | 'tool-use' | 'filter' | 'pause' | 'other'

/** A source the model cites for a text block, which may be over. Offsets are UTF-16 units of that block. */
export interface Citation {
  url?: string
  title?: string
  citedText?: string
  start?: number
  end?: number
}

/**
 * One step of an answer. Blocks are numbered 0,1,2,… in order of start and never overlap.
 * `signature` is opaque provider state that must be replayed verbatim on the next turn; a call whose
 * signature is known at once carries it at its start as well.
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
    }
  | { type: 'tool-delta'; index: number; json: string }
  | { type: 'tool-end'; index: number; signature?: string }
  | { type: 'citation'; index: number; citation: Citation }
  /** The tokens of the text that comes next, or that came; only where they were asked for. */
  | { type: 'logprobs'; index: number; tokens: readonly TokenLogprob[] }
  /** A picture that the model made, whole: a `data:` URL, or an address. */
  | { type: 'image'; index: number; url: string }
  | { type: 'opaque'; index: number; provider: string; block: JsonObject }
  | { type: 'usage'; usage: Usage }
  | {
      type: 'finish'
      reason: FinishReason
      raw: string | null
      stopSequence?: string
      /** The tier that served the answer, as OpenAI names them. */
      serviceTier?: string
      /** The upstream only paused: with this it can be asked for the rest. It never leaves the gateway. */
      resume?: JsonObject
      /** Nothing was said, which the same request may well mend. It never leaves the gateway. */
      retrySame?: true
    }
  /** `again`: the model stumbled over itself, and the same request may well fare better. */
  | { type: 'error'; error: WireError; retrySame?: true }

/** Takes events one at a time, synchronously, and never throws. */
export interface EventSink {
  event(event: ChatEvent): void
}

/** True for an event after which a retry would repeat what the client has already read. */
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
