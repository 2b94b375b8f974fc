/**
 * Encodes a whole reply as a message.
 *
 * Source: Claude API reference, "Messages", read 2026-11-22.
 */
import type { Reply, ReplyBlock } from '../../../chat/reply/fold.js'
import type { JsonObject } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { stringifyExact } from '../../../wire/json/exact-numbers.js'
import { TextSizer, type SizedText } from '../../../wire/frames/sized-text.js'
import type { Choice, Seed } from '../../dialect.js'
import { PROVIDER } from '../shared/constants.js'
import { encodeCitation } from './reply/encode-citations.js'
import { encodeToolInput } from './reply/encode-tool-calls.js'
import { encodeSignature } from './reply/thinking-token.js'
import { messageUsage } from './reply/encode-usage.js'
import { stopMembers } from './reply/map-stop-reason.js'

/** The JSON body of a completed reply; `seed` has its id and model. */
export function encodeReply(reply: Reply, { hidesThoughts }: ChatRequest, seed: Seed): SizedText {
  const sizer = new TextSizer()
  let content = ''
  let refusal = ''
  const hides = hidesThoughts === true && seed.origin !== PROVIDER
  for (const block of reply.blocks) {
    if (block.type === 'refusal') refusal += block.text
    const shown = hides && block.type === 'thinking' ? { ...block, text: '' } : block
    const text = blockText(shown, seed.origin, sizer)
    if (text !== '') content += content === '' ? text : `,${text}`
  }
  const hasTool = reply.blocks.some(({ type }) => type === 'tool')
  const { usage, serviceTier, reason, raw, stopSequence } = reply
  const ending = { reason, raw, origin: seed.origin, hasTool, refusal }
  const stop = stopMembers(stopSequence === undefined ? ending : { ...ending, stopSequence })
  return sizer.whole(
    `{"id":${sizer.quoted(seed.id)},"type":"message","role":"assistant","model":${sizer.name(seed.model)},` +
      `"content":[${content}],${sizer.part(stop)},"usage":${messageUsage(usage, serviceTier)}}`,
  )
}

/** Encodes the first choice: the format has one reply per request. */
export function encodeChoices(
  choices: readonly Choice[],
  request: ChatRequest,
  seed: Seed,
): SizedText {
  const [first] = choices
  if (first === undefined) throw new Error('a request without a reply')
  return encodeReply(first.reply, request, seed)
}

/** The JSON text of a block; empty for an empty block and for one that the format cannot express. */
function blockText(block: ReplyBlock, origin: string | undefined, sizer: TextSizer): string {
  switch (block.type) {
    case 'text':
      return block.text === '' ? '' : textText(block, sizer)
    case 'thinking':
      return thinkingText(block, origin, sizer)
    case 'tool': {
      const input = sizer.part(encodeToolInput(block.json, block.custom === true))
      return `{"type":"tool_use","id":${sizer.quoted(block.id)},"name":${sizer.name(block.name)},"input":${input},"caller":{"type":"direct"}}`
    }
    case 'opaque':
      return block.provider === PROVIDER ? sizer.part(stringifyExact(block.block)) : ''
    case 'refusal':
    case 'image':
      return ''
    default:
      return block satisfies never
  }
}

function textText(
  { text, citations }: Extract<ReplyBlock, { type: 'text' }>,
  sizer: TextSizer,
): string {
  const encoded: JsonObject[] = []
  for (const citation of citations) {
    const out = encodeCitation(citation)
    if (out !== null) encoded.push(out)
  }
  const sources = encoded.length === 0 ? '' : `,"citations":${sizer.part(JSON.stringify(encoded))}`
  return `{"type":"text","text":${sizer.quoted(text)}${sources}}`
}

function thinkingText(
  { text, signature, redacted }: Extract<ReplyBlock, { type: 'thinking' }>,
  origin: string | undefined,
  sizer: TextSizer,
): string {
  if (redacted !== undefined && text === '') {
    return `{"type":"redacted_thinking","data":${sizer.quoted(encodeSignature(origin, redacted))}}`
  }
  if (text === '' && signature === undefined) return ''
  const sealed = sizer.quoted(encodeSignature(origin, signature ?? redacted))
  return `{"type":"thinking","thinking":${sizer.quoted(text)},"signature":${sealed}}`
}
