/** Encodes a whole reply as a response object. */
import type { Citation, Logprob, TokenLogprob } from '../../chat/event.js'
import type { Reply, ReplyBlock } from '../../chat/fold.js'
import type { JsonObject } from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import type { Seed } from '../../dialect.js'
import { sizedText, type SizedText } from '../../wire/frames/sized-text.js'
import { hasNoArguments } from '../../wire/json/no-arguments.js'
import { writeReasoningToken, type Thought } from '../../wire/reasoning-token.js'
import { ORIGIN } from '../reasoning-state.js'
import { clientCallItem } from './client-tools.js'
import {
  callItem,
  imageItem,
  itemId,
  messageItem,
  namedCall,
  reasoningItem,
  refusalPart,
  textPart,
  encodeStatus,
  ResponseObject,
  type ItemPrefix,
} from './response-object.js'

/** The body of a finished reply; `seed` has its id, time and model. */
export function encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
  const { reason, usage, serviceTier } = reply
  const items = new Items(request, seed)
  for (const block of reply.blocks) items.add(block)
  items.endMessage(encodeStatus(reason))
  const ending = { reason, usage, serviceTier }
  return sizedText(new ResponseObject(request, seed).ended(items.texts, ending))
}

/** The items of one reply. Adjacent texts and refusals are one message. */
class Items {
  readonly texts: string[] = []
  private parts: string[] = []
  private readonly request: ChatRequest
  private readonly seed: Seed

  constructor(request: ChatRequest, seed: Seed) {
    this.request = request
    this.seed = seed
  }

  add(block: ReplyBlock): void {
    if (block.type === 'text') {
      const annotations = block.citations.flatMap((each) => encodeCitation(each) ?? [])
      const tokens = block.logprobs === undefined ? '[]' : encodeLogprobs(block.logprobs)
      this.parts.push(textPart(block.text, `[${annotations.join(',')}]`, tokens))
      if (block.signature !== undefined) this.addState(block.signature, 'text')
      return
    }
    if (block.type === 'refusal') {
      this.parts.push(refusalPart(block.text))
      return
    }
    this.endMessage('completed')
    this.addItem(block)
  }

  endMessage(status: string): void {
    const { parts } = this
    if (parts.length === 0) return
    this.parts = []
    this.texts.push(messageItem(this.id('msg'), parts, status))
  }

  private addItem(block: Exclude<ReplyBlock, { type: 'text' | 'refusal' }>): void {
    const { origin } = this.seed
    switch (block.type) {
      case 'thinking': {
        const token = stateToken(this.request, origin, block)
        this.texts.push(reasoningItem(this.id('rs'), block.text, token))
        return
      }
      case 'tool': {
        const custom = block.custom === true
        const own = clientCallItem(this.request, { callId: block.id, name: block.name, json: block.json })
        if (own !== null) {
          this.texts.push(own.json(this.id(own.prefix), 'completed'))
          if (block.signature !== undefined) this.addState(block.signature, { call: block.id })
          return
        }
        const json = custom ? block.json : argumentsOf(block.json)
        const call = namedCall(this.request, { callId: block.id, name: block.name, json, custom })
        this.texts.push(callItem(this.id(custom ? 'ctc' : 'fc'), call, 'completed'))
        if (block.signature !== undefined) this.addState(block.signature, { call: block.id })
        return
      }
      case 'image': {
        const item = imageItem(this.id('ig'), block.url)
        if (item !== null) this.texts.push(item)
        return
      }
      case 'opaque':
        if (block.provider === ORIGIN) this.texts.push(JSON.stringify(block.block))
        return
      default:
        block satisfies never
    }
  }

  /** Adds the signature of a call or a text, if the client requests it, as a reasoning item of its own. */
  private addState(signature: string, of: 'text' | { call: string }): void {
    const { origin } = this.seed
    if (this.request.includeReasoningState !== true || origin === undefined) return
    this.endMessage('completed')
    const token = writeReasoningToken({ origin, thoughts: [{ signature }], of })
    this.texts.push(reasoningItem(this.id('rs'), '', token))
  }

  private id(prefix: ItemPrefix): string {
    return itemId(prefix, this.seed.id, this.texts.length)
  }
}

/** The state of a thinking block as a token; undefined if it has none or the client does not request it. */
export function stateToken(
  request: ChatRequest,
  origin: string | undefined,
  { signature, redacted }: Thought,
): string | undefined {
  if (request.includeReasoningState !== true || origin === undefined) return undefined
  if (signature === undefined && redacted === undefined) return undefined
  return writeReasoningToken({ origin, thoughts: [{ signature, redacted }] })
}

/** `{}` for a call without arguments, because clients parse the text. */
export function argumentsOf(json: string): string {
  return hasNoArguments(json) ? '{}' : json
}

/**
 * The JSON text of the annotation; null for a citation without a URL.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
export function encodeCitation({ url, title, start = 0, end }: Citation): string | null {
  if (url === undefined) return null
  const annotation: JsonObject = {
    type: 'url_citation',
    url,
    title: title ?? '',
    start_index: start,
    end_index: end ?? start,
  }
  return JSON.stringify(annotation)
}

/** The JSON text of the array. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): string {
  return JSON.stringify(
    tokens.map(({ top, ...token }) => ({
      ...encodeLogprob(token),
      top_logprobs: top.map(encodeLogprob),
    })),
  )
}

function encodeLogprob({ token, logprob, bytes }: Logprob): JsonObject {
  return { token, logprob, bytes: bytes === null ? [] : [...bytes] }
}
