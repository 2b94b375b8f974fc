/**
 * Writes a whole reply as a response object.
 * Knows no upstream: it sees only the folded answer.
 */
import type { Reply, ReplyBlock } from '../../../chat/reply/fold.js'
import type { ChatRequest } from '../../../chat/request.js'
import { writeReasoningToken } from '../../../wire/reasoning-token.js'
import { sizedText, type SizedText } from '../../../wire/frames/sized-text.js'
import type { Seed } from '../../dialect.js'
import { ORIGIN } from '../shared/reasoning-state.js'
import {
  annotationOf,
  callItem,
  imageItem,
  itemId,
  logprobsOut,
  messageItem,
  namedCall,
  reasoningItem,
  refusalPart,
  textPart,
  type ItemPrefix,
} from './reply/encode-content.js'
import { ResponseObject, statusOf } from './reply/response-object.js'

/** The body of a finished answer; `seed` gives its id, time and model. */
export function encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
  const { reason, usage, serviceTier } = reply
  const items = new Items(request, seed)
  for (const block of reply.blocks) items.add(block)
  items.endMessage(statusOf(reason))
  const ended = { reason, usage, serviceTier }
  return sizedText(new ResponseObject(request, seed).ended(items.texts, ended))
}

/** The items of one reply. Texts and refusals that stand side by side are one message. */
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
      const notes = block.citations.flatMap((each) => annotationOf(each) ?? [])
      const tokens = block.logprobs === undefined ? '[]' : logprobsOut(block.logprobs)
      this.parts.push(textPart(block.text, `[${notes.join(',')}]`, tokens))
      if (block.signature !== undefined) this.carry(block.signature, 'text')
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
        const json = custom ? block.json : argumentsOf(block.json)
        const call = namedCall(this.request, { callId: block.id, name: block.name, json, custom })
        this.texts.push(callItem(this.id(custom ? 'ctc' : 'fc'), call, 'completed'))
        if (block.signature !== undefined) this.carry(block.signature, { call: block.id })
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

  /** The state of a call or of a text is an item of its own. */
  private carry(signature: string, of: 'text' | { call: string }): void {
    const { origin } = this.seed
    if (this.request.includeReasoningState !== true || origin === undefined) return
    this.endMessage('completed')
    const token = writeReasoningToken({ origin, signature, of })
    this.texts.push(reasoningItem(this.id('rs'), '', token))
  }

  private id(prefix: ItemPrefix): string {
    return itemId(prefix, this.seed.id, this.texts.length)
  }
}

/** The state of a thought; undefined if it has none, or the client did not ask for it. */
export function stateToken(
  request: ChatRequest,
  origin: string | undefined,
  { signature, redacted }: { signature?: string | undefined; redacted?: string | undefined },
): string | undefined {
  if (request.includeReasoningState !== true || origin === undefined) return undefined
  if (signature === undefined && redacted === undefined) return undefined
  return writeReasoningToken({
    origin,
    ...(signature === undefined ? {} : { signature }),
    ...(redacted === undefined ? {} : { redacted }),
  })
}

/** A call without arguments is an empty object; clients parse the text. */
export function argumentsOf(json: string): string {
  return json.trim() === '' ? '{}' : json
}
