/**
 * Encodes a whole reply as a `GenerateContentResponse`.
 */
import type { TokenLogprob, Logprob, FinishReason } from '../../chat/event.js'
import type { Reply, ReplyBlock } from '../../chat/fold.js'
import type { JsonObject } from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import { totalTokens, type Usage } from '../../chat/usage.js'
import type { Choice, Seed } from '../../dialect.js'
import { sizedText, type SizedText } from '../../wire/frames/sized-text.js'
import { quote } from '../../wire/json/write-json.js'
import { PROVIDER } from '../constants.js'
import { Sources, PartWriter } from './encode-content.js'
import { isStopWord, stopWordOf } from '../../wire/stop-reasons.js'

/** The JSON body of a completed reply; `seed` has its id and model. */
export function encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
  return encodeChoices([{ index: 0, reply }], request, seed)
}

/** The JSON body of several replies to one request. */
export function encodeChoices(choices: readonly Choice[], request: ChatRequest, seed: Seed): SizedText {
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
  let candidates = ''
  for (const choice of choices) {
    candidates += `${candidates === '' ? '' : ','}${candidate(choice, request, seed)}`
  }
  return sizedText(`{"candidates":[${candidates}],${tail}}`)
}

function candidate({ index, reply }: Choice, request: ChatRequest, seed: Seed): string {
  const writer = new PartWriter(seed.origin, request.hidesThoughts === true)
  const sources = new Sources()
  const tokens: TokenLogprob[] = []
  const isFiltered = reply.reason === 'filter'
  const { reason, raw } = reply
  const ending = { reason, raw, isRefusal: reply.blocks.some(isRefusal) }
  // Concatenated, not joined: `join` would copy an image several times.
  let parts = ''
  const add = (part: string | null): void => {
    if (part !== null) parts += parts === '' ? part : `,${part}`
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
  const content = parts === '' ? '' : `"content":{"parts":[${parts}],"role":"model"},`
  let members = `"finishReason":"${encodeFinishReason(ending, seed.origin)}","index":${index}`
  const refusal = isFiltered ? refusalIn(reply.blocks) : ''
  if (refusal !== '') members += `,"finishMessage":${quote(refusal)}`
  const metadata = sources.metadata()
  if (metadata !== null) members += `,"groundingMetadata":${JSON.stringify(metadata)}`
  if (tokens.length > 0) members += `,"logprobsResult":${JSON.stringify(encodeLogprobs(tokens))}`
  return `{${content}${members}}`
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

/**
 * `logprobsResult` of a candidate.
 *
 * Source: ai.google.dev/api/generate-content, "LogprobsResult", read 2026-11-20.
 */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  return {
    topCandidates: tokens.map(({ top }) => ({ candidates: top.map(likelyOut) })),
    chosenCandidates: tokens.map(likelyOut),
  }
}

function likelyOut({ token, logprob }: Logprob): JsonObject {
  return { token, logProbability: logprob }
}

const TIERS: Readonly<Record<string, string>> = {
  default: 'standard',
  flex: 'flex',
  priority: 'priority',
}

/**
 * The JSON of `usageMetadata`. Thinking tokens are not part of `candidatesTokenCount`; cached tokens are part
 * of the prompt.
 *
 * Source: ai.google.dev/api/generate-content, "UsageMetadata", read 2026-11-20.
 */
export function encodeUsage(usage: Usage, serviceTier: string | undefined): string {
  const { input, output, reasoning } = usage
  const visible = output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0))
  let members = `"promptTokenCount":${input ?? 0}`
  members += count('candidatesTokenCount', visible)
  members += `,"totalTokenCount":${totalTokens(usage) ?? 0}`
  members += count('cachedContentTokenCount', usage.cacheRead)
  members += count('thoughtsTokenCount', reasoning)
  const { inputText, inputImage, inputAudio, inputVideo } = usage
  const prompt = kinds({ TEXT: inputText, IMAGE: inputImage, AUDIO: inputAudio, VIDEO: inputVideo })
  if (prompt !== '') members += `,"promptTokensDetails":[${prompt}]`
  const candidates = kinds({ TEXT: usage.outputText, IMAGE: usage.outputImage, AUDIO: usage.outputAudio })
  if (candidates !== '') members += `,"candidatesTokensDetails":[${candidates}]`
  const tier = serviceTier === undefined ? undefined : TIERS[serviceTier]
  if (tier !== undefined) members += `,"serviceTier":"${tier}"`
  return `{${members}}`
}

function count(name: string, tokens: number | undefined): string {
  return tokens === undefined ? '' : `,"${name}":${tokens}`
}

function kinds(counts: Readonly<Record<string, number | undefined>>): string {
  return Object.entries(counts)
    .filter(([, tokens]) => tokens !== undefined)
    .map(([modality, tokens]) => `{"modality":"${modality}","tokenCount":${tokens ?? 0}}`)
    .join(',')
}

/** Block reasons of Gemini upstreams. */
const BLOCKS: ReadonlySet<string> = new Set([
  'SAFETY',
  'OTHER',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'IMAGE_SAFETY',
  'MODEL_ARMOR',
  'JAILBREAK',
])

/** How a reply ended. */
interface Ending {
  readonly reason: FinishReason
  readonly raw: string | null
  readonly serviceTier?: string | undefined
  /** True if the reply has a refusal of the model. */
  readonly isRefusal?: boolean
}

/**
 * The `finishReason`; STOP also for calls, for which Gemini has no reason. The word of a Gemini upstream is
 * passed unchanged.
 */
export function encodeFinishReason(
  { reason, raw, isRefusal = false }: Ending,
  origin: string | undefined,
): string {
  // OpenAI models end a refusal with `stop`.
  if (isRefusal && reason === 'stop') return 'SAFETY'
  if (origin === PROVIDER && isStopWord('gemini', raw)) return raw
  return stopWordOf('gemini', reason)
}

/**
 * The `blockReason` if a Gemini upstream rejected the prompt (`isEmpty`: the reply has no content); else
 * null.
 */
export function encodeBlockReason(
  { reason, raw }: Ending,
  origin: string | undefined,
  isEmpty: boolean,
): string | null {
  if (!isEmpty || reason !== 'filter' || origin !== PROVIDER || raw === null) return null
  return BLOCKS.has(raw) ? raw : null
}
