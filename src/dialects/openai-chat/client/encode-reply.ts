/**
 * Writes a whole reply as a `chat.completion`.
 * Knows no upstream: it sees only the folded answer.
 *
 * Source: OpenAI API reference, "The chat completion object", read 2026-11-20.
 */
import type { Citation } from '../../../chat/event.js'
import type { Reply, ToolBlock } from '../../../chat/reply/fold.js'
import type { JsonObject, JsonValue } from '../../../chat/json.js'
import type { TokenLogprob } from '../../../chat/reply/logprobs.js'
import type { ChatRequest } from '../../../chat/request.js'
import { TextSizer, type SizedText } from '../../../wire/frames/sized-text.js'
import type { Choice, Seed } from '../../dialect.js'
import { Details, signatureOut } from '../shared/reasoning.js'
import { finishReasonOut, logprobsOut, usageText } from '../shared/names.js'

/** The body of a finished answer; `seed` gives its id, time and model. */
export function encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
  return encodeChoices([{ index: 0, reply }], request, seed)
}

/** The body of several answers to one request. */
export function encodeChoices(
  choices: readonly Choice[],
  request: ChatRequest,
  seed: Seed,
): SizedText {
  const sizer = new TextSizer()
  const { usage = {}, serviceTier } = choices[0]?.reply ?? {}
  let texts = ''
  for (const choice of choices) {
    const text = choiceOut(choice, request, seed, sizer)
    texts += texts === '' ? text : `,${text}`
  }
  const tier = serviceTier === undefined ? '' : `,"service_tier":${sizer.quoted(serviceTier)}`
  return sizer.whole(
    `{"id":"${seed.id}","object":"chat.completion","created":${seed.createdAtSeconds},"model":${sizer.name(seed.model)},"choices":[${texts}],"usage":${usageText(usage)}${tier}}`,
  )
}

/** Put together here: `JSON.stringify` takes twice as long. */
function choiceOut(
  { index, reply }: Choice,
  request: ChatRequest,
  seed: Seed,
  sizer: TextSizer,
): string {
  const legacy = request.legacyFunctions === true
  let tools = false
  const tokens: TokenLogprob[] = []
  for (const block of reply.blocks) {
    if (block.type === 'tool') tools = true
    if (block.type !== 'text' || block.logprobs === undefined) continue
    for (const token of block.logprobs) tokens.push(token)
  }
  const logprobs =
    tokens.length === 0
      ? NO_LOGPROBS
      : `},"logprobs":${sizer.part(JSON.stringify(logprobsOut(tokens)))},"finish_reason":"`
  const members = membersOf(reply, legacy, seed.origin, sizer)
  const reason = finishReasonOut(reply.reason, tools, legacy)
  const beginning = index === 0 ? FIRST : `{"index":${index}${MESSAGE}`
  return `${beginning}${members}${logprobs}${reason}"}`
}

// As much as can stand in one constant: each part of a text costs (docs/decisions/0037).
const MESSAGE = ',"message":{"role":"assistant","content":'
const FIRST = `{"index":0${MESSAGE}`
const NO_REFUSAL = ',"refusal":null'
const NO_LOGPROBS = '},"logprobs":null,"finish_reason":"'

/** The message from its content on, without the brace at its end. */
function membersOf(
  reply: Reply,
  legacy: boolean,
  origin: string | undefined,
  sizer: TextSizer,
): string {
  const details = Details.of(origin)
  const state: JsonObject[] = []
  const calls: ToolBlock[] = []
  const annotations: JsonObject[] = []
  const images: JsonObject[] = []
  let text: string | null = null
  let refusal: string | null = null
  let thinking = ''
  let signature: string | undefined
  for (const block of reply.blocks) {
    // The legacy form has no id that a call's state could name.
    if (details !== null && !(legacy && block.type === 'tool')) state.push(...details.take(block))
    switch (block.type) {
      case 'text': {
        const before: string = text ?? ''
        for (const it of block.citations) annotations.push(...annotation(it, before.length))
        text = before + block.text
        signature = block.signature ?? signature
        break
      }
      case 'refusal':
        refusal = (refusal ?? '') + block.text
        break
      case 'thinking':
        thinking += block.text
        break
      case 'tool':
        calls.push(block)
        break
      case 'image':
        images.push(imageOut(block.url, images.length))
        break
      case 'opaque':
        break
      default:
        block satisfies never
    }
  }
  const silent = calls.length > 0 || refusal !== null || reply.reason === 'filter'
  const empty = silent ? null : ''
  const content = text === null || text === '' ? empty : text
  const said = content === null ? 'null' : sizer.quoted(content)
  const refused = refusal === null ? NO_REFUSAL : `,"refusal":${sizer.quoted(refusal)}`
  let members = said + refused
  const add = (member: string, value: JsonValue): void => {
    members += `,"${member}":${sizer.part(JSON.stringify(value))}`
  }
  if (thinking !== '') add('reasoning_content', thinking)
  if (state.length > 0) add('reasoning_details', state)
  if (signature !== undefined) add('extra_content', signatureOut(signature))
  if (images.length > 0) add('images', images)
  if (annotations.length > 0) add('annotations', annotations)
  const [first] = calls
  if (first === undefined) return members
  if (legacy) add('function_call', { name: first.name, arguments: argumentsOf(first) })
  else add('tool_calls', calls.map(toolCall))
  return members
}

function toolCall(block: ToolBlock): JsonObject {
  const call: JsonObject =
    block.custom === true
      ? { id: block.id, type: 'custom', custom: { name: block.name, input: block.json } }
      : {
          id: block.id,
          type: 'function',
          function: { name: block.name, arguments: argumentsOf(block) },
        }
  if (block.signature !== undefined) call['extra_content'] = signatureOut(block.signature)
  return call
}

/** A call without arguments is an empty object; clients parse the text. */
function argumentsOf(block: ToolBlock): string {
  return block.json.trim() === '' ? '{}' : block.json
}

/** A picture of an answer, as OpenRouter has them beside the content; OpenAI's chat has none. */
export function imageOut(url: string, index: number): JsonObject {
  return { type: 'image_url', index, image_url: { url } }
}

/**
 * A citation as a `url_citation`, or nothing where it has no address.
 * `offset` is the length of the message's text before the cited block.
 */
export function annotation(citation: Citation, offset: number): JsonObject[] {
  if (citation.url === undefined) return []
  const inner: JsonObject = { url: citation.url, title: citation.title ?? '' }
  inner['start_index'] = offset + (citation.start ?? 0)
  inner['end_index'] = offset + (citation.end ?? citation.start ?? 0)
  return [{ type: 'url_citation', url_citation: inner }]
}
