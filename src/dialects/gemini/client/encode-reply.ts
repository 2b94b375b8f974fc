/**
 * Encodes a whole reply as a `GenerateContentResponse`.
 */
import type { Reply, ReplyBlock } from '../../../chat/reply/fold.js'
import type { TokenLogprob } from '../../../chat/reply/logprobs.js'
import type { ChatRequest } from '../../../chat/request.js'
import { quote } from '../../../wire/json/quote.js'
import { sizedText, type SizedText } from '../../../wire/frames/sized-text.js'
import type { Choice, Seed } from '../../dialect.js'
import { Sources } from './reply/encode-citations.js'
import { encodeLogprobs } from './reply/encode-logprobs.js'
import { encodeUsage } from './reply/encode-usage.js'
import { encodeBlockReason, encodeFinishReason } from './reply/map-stop-reason.js'
import { PartWriter } from './reply/encode-content.js'

/** The JSON body of a completed reply; `seed` has its id and model. */
export function encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
  return encodeChoices([{ index: 0, reply }], request, seed)
}

/** The JSON body of several replies to one request. */
export function encodeChoices(
  choices: readonly Choice[],
  request: ChatRequest,
  seed: Seed,
): SizedText {
  const { usage = {}, serviceTier } = choices[0]?.reply ?? {}
  const tail =
    `"usageMetadata":${encodeUsage(usage, serviceTier)},` +
    `"modelVersion":${quote(seed.model)},"responseId":${quote(seed.id)}`
  const [only] = choices
  const blocked =
    only === undefined || choices.length > 1
      ? null
      : encodeBlockReason(only.reply, seed.origin, only.reply.blocks.every(isRefusal))
  if (only !== undefined && blocked !== null) {
    const why = refusalIn(only.reply.blocks)
    const message = why === '' ? '' : `,"blockReasonMessage":${quote(why)}`
    return sizedText(`{"promptFeedback":{"blockReason":"${blocked}"${message}},${tail}}`)
  }
  const candidates = choices.map((choice) => candidate(choice, request, seed)).join(',')
  return sizedText(`{"candidates":[${candidates}],${tail}}`)
}

function candidate({ index, reply }: Choice, request: ChatRequest, seed: Seed): string {
  const writer = new PartWriter(seed.origin, request.hidesThoughts === true)
  const sources = new Sources()
  const tokens: TokenLogprob[] = []
  const isFiltered = reply.reason === 'filter'
  const { reason, raw } = reply
  const ending = { reason, raw, isRefusal: reply.blocks.some(isRefusal) }
  const parts: string[] = []
  const add = (part: string | null): void => {
    if (part !== null) parts.push(part)
  }
  for (const [at, block] of reply.blocks.entries()) {
    if (block.type === 'text') {
      sources.begin(at)
      sources.text(at, block.text)
      for (const citation of block.citations) sources.cite(at, citation)
      for (const token of block.logprobs ?? []) tokens.push(token)
    }
    // The message of a content filter is not part of the reply's content.
    if (block.type !== 'refusal' || !isFiltered) add(partOf(block, writer))
  }
  add(writer.rest())
  const content =
    parts.length === 0 ? [] : [`"content":{"parts":[${parts.join(',')}],"role":"model"}`]
  const members = [
    ...content,
    `"finishReason":"${encodeFinishReason(ending, seed.origin)}"`,
    `"index":${index}`,
  ]
  const refusal = isFiltered ? refusalIn(reply.blocks) : ''
  if (refusal !== '') members.push(`"finishMessage":${quote(refusal)}`)
  const metadata = sources.metadata()
  if (metadata !== null) members.push(`"groundingMetadata":${JSON.stringify(metadata)}`)
  if (tokens.length > 0) members.push(`"logprobsResult":${JSON.stringify(encodeLogprobs(tokens))}`)
  return `{${members.join(',')}}`
}

function partOf(block: ReplyBlock, writer: PartWriter): string | null {
  switch (block.type) {
    case 'text':
      return block.text === '' && block.signature === undefined
        ? null
        : writer.text(block.text, block.signature)
    case 'refusal':
      return block.text === '' ? null : writer.text(block.text)
    case 'thinking':
      return writer.thought(block)
    case 'tool':
      return writer.call(block)
    case 'image':
      return writer.image(block.url)
    case 'opaque':
      return writer.opaque(block.provider, block.block)
    default:
      return block satisfies never
  }
}

function isRefusal({ type }: ReplyBlock): boolean {
  return type === 'refusal'
}

function refusalIn(blocks: readonly ReplyBlock[]): string {
  return blocks.map((block) => (block.type === 'refusal' ? block.text : '')).join('')
}
