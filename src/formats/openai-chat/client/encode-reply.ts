/**
 * Encodes a whole reply as a `chat.completion`.
 *
 * Source: OpenAI API reference, "The chat completion object", read 2026-11-20.
 */
import type { TokenLogprob, Citation, Logprob, FinishReason } from '../../chat/event.js'
import type { Reply, ToolBlock } from '../../chat/fold.js'
import type { JsonObject, JsonValue } from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import { totalTokens, type Usage } from '../../chat/usage.js'
import type { Choice, Seed } from '../../dialect.js'
import { TextSizer, type SizedText } from '../../wire/frames/sized-text.js'
import { hasNoArguments } from '../../wire/json/no-arguments.js'
import { Details, signatureOut } from '../reasoning-state.js'
import { stopWordOf } from '../../wire/stop-reasons.js'

/** The body of a finished reply; `seed` has its id, time and model. */
export function encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
  return encodeChoices([{ index: 0, reply }], request, seed)
}

/** The body of a reply with several choices. */
export function encodeChoices(choices: readonly Choice[], request: ChatRequest, seed: Seed): SizedText {
  const sizer = new TextSizer()
  const format = { legacy: request.legacyFunctions === true, origin: seed.origin, sizer }
  const { usage = {}, serviceTier } = choices[0]?.reply ?? {}
  let texts = ''
  for (const choice of choices) {
    const text = choiceOut(choice, format)
    texts += texts === '' ? text : `,${text}`
  }
  const tier = serviceTier === undefined ? '' : `,"service_tier":${sizer.quoted(serviceTier)}`
  return sizer.whole(
    `{"id":"${seed.id}","object":"chat.completion","created":${seed.createdAtSeconds},"model":${sizer.name(seed.model)},"choices":[${texts}],"usage":${encodeUsage(usage)}${tier}}`,
  )
}

/** What all choices of a reply share. */
interface ChoiceFormat {
  /** The client uses the legacy `functions`. */
  readonly legacy: boolean
  /** The dialect of the upstream; undefined if the state of the reasoning is not needed. */
  readonly origin: string | undefined
  readonly sizer: TextSizer
}

/** The text is concatenated without `JSON.stringify`, which takes twice as long. */
function choiceOut({ index, reply }: Choice, format: ChoiceFormat): string {
  const { legacy, sizer } = format
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
      : `},"logprobs":${sizer.part(JSON.stringify(encodeLogprobs(tokens)))},"finish_reason":"`
  const members = membersOf(reply, format)
  const reason = encodeFinishReason(reply.reason, tools, legacy)
  const beginning = index === 0 ? FIRST : `{"index":${index}${MESSAGE}`
  return `${beginning}${members}${logprobs}${reason}"}`
}

// Long constants, because each part of a concatenated text costs time (docs/explanation/performance.md).
const MESSAGE = ',"message":{"role":"assistant","content":'
const FIRST = `{"index":0${MESSAGE}`
const NO_REFUSAL = ',"refusal":null'
const NO_LOGPROBS = '},"logprobs":null,"finish_reason":"'

/** The text of the message from its content on, without the closing brace. */
function membersOf(reply: Reply, { legacy, origin, sizer }: ChoiceFormat): string {
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
    // The legacy form has no call ids, which the details of a call's state refer to.
    if (details !== null && !(legacy && block.type === 'tool')) state.push(...details.take(block))
    switch (block.type) {
      case 'text': {
        const before: string = text ?? ''
        for (const citation of block.citations) annotations.push(...encodeCitation(citation, before.length))
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
  const mayBeNull = calls.length > 0 || refusal !== null || reply.reason === 'filter'
  const content = text === null || text === '' ? (mayBeNull ? null : '') : text
  const contentJson = content === null ? 'null' : sizer.quoted(content)
  const refusalJson = refusal === null ? NO_REFUSAL : `,"refusal":${sizer.quoted(refusal)}`
  let members = contentJson + refusalJson
  const add = (member: string, value: JsonValue): void => {
    members += `,"${member}":${sizer.part(JSON.stringify(value))}`
  }
  if (thinking !== '') add('reasoning_content', thinking)
  if (state.length > 0) add('reasoning_details', state)
  if (signature !== undefined) add('extra_content', signatureOut(signature))
  if (images.length > 0) add('images', images)
  if (annotations.length > 0) add('annotations', annotations)
  for (const [member, value] of callMembers(calls, legacy)) add(member, value)
  return members
}

/** The member that holds the tool calls; the legacy form holds the first call only. */
function callMembers(calls: readonly ToolBlock[], legacy: boolean): [string, JsonValue][] {
  const [first] = calls
  if (first === undefined) return []
  if (!legacy) return [['tool_calls', calls.map(toolCall)]]
  return [['function_call', { name: first.name, arguments: argumentsOf(first) }]]
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

/** `{}` for a call without arguments, because clients parse the text. */
function argumentsOf(block: ToolBlock): string {
  return hasNoArguments(block.json) ? '{}' : block.json
}

/** An image in OpenRouter's form, beside the content. OpenAI's chat completions has no images in replies. */
export function imageOut(url: string, index: number): JsonObject {
  return { type: 'image_url', index, image_url: { url } }
}

/**
 * A citation as a `url_citation`; empty if it has no URL. `offset` is the length of the message's text before
 * the cited block, in UTF-16 units.
 */
export function encodeCitation(citation: Citation, offset: number): JsonObject[] {
  if (citation.url === undefined) return []
  const inner: JsonObject = { url: citation.url, title: citation.title ?? '' }
  inner['start_index'] = offset + (citation.start ?? 0)
  inner['end_index'] = offset + (citation.end ?? citation.start ?? 0)
  return [{ type: 'url_citation', url_citation: inner }]
}

/**
 * The `logprobs` of a choice.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  const content = tokens.map(({ top, ...token }) => {
    return { ...encodeLogprob(token), top_logprobs: top.map(encodeLogprob) }
  })
  return { content, refusal: null }
}

function encodeLogprob({ token, logprob, bytes }: Logprob): JsonObject {
  return { token, logprob, bytes: bytes === null ? null : [...bytes] }
}

/**
 * The JSON text. The three totals are always integers, because the types of OpenAI's SDKs require them. The
 * text is concatenated without `JSON.stringify`, which takes longer.
 */
export function encodeUsage(usage: Usage): string {
  let prompt = put('', '"cached_tokens":', usage.cacheRead)
  prompt = put(prompt, '"cache_write_tokens":', usage.cacheWrite)
  prompt = put(prompt, '"text_tokens":', usage.inputText)
  prompt = put(prompt, '"image_tokens":', usage.inputImage)
  prompt = put(prompt, '"audio_tokens":', usage.inputAudio)
  prompt = put(prompt, '"video_tokens":', usage.inputVideo)
  let completion = put('', '"reasoning_tokens":', usage.reasoning)
  completion = put(completion, '"text_tokens":', usage.outputText)
  completion = put(completion, '"image_tokens":', usage.outputImage)
  completion = put(completion, '"audio_tokens":', usage.outputAudio)
  const { input = 0, output = 0 } = usage
  const behind = completion === '' ? '}' : `,"completion_tokens_details":{${completion}}}`
  const details = prompt === '' ? behind : `,"prompt_tokens_details":{${prompt}}${behind}`
  return `{"prompt_tokens":${input},"completion_tokens":${output},"total_tokens":${totalTokens(usage) ?? 0}${details}`
}

/** Appends a member if there is a count; `name` is the quoted name with its colon. */
function put(members: string, name: string, count: number | undefined): string {
  if (count === undefined) return members
  return members === '' ? name + String(count) : `${members},${name}${count}`
}

/** `tools`: the reply has tool calls. `legacy`: the client sent `functions` and expects `function_call`. */
export function encodeFinishReason(reason: FinishReason, tools: boolean, legacy: boolean): string {
  const isCall = tools && (reason === 'stop' || reason === 'tool-use')
  if (isCall && legacy) return 'function_call'
  return stopWordOf('openai-chat', isCall ? 'tool-use' : reason === 'tool-use' ? 'stop' : reason)
}
