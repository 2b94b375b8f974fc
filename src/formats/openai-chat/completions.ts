/**
 * The older format `/v1/completions`: decodes its requests, encodes its replies, and reads those of an
 * upstream.
 */
import type { ChatEvent, EventSink } from '../chat/event.js'
import type { Reply } from '../chat/fold.js'
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest, NativeField } from '../chat/request.js'
import { mergeUsage, type Usage } from '../chat/usage.js'
import type {
  Choice,
  ChoicePosition,
  Seed,
  StreamEncoder,
  Losses,
  StreamDecoder,
  StreamWatcher,
  WatchedRequest,
  ReplyFacts,
} from '../dialect.js'
import { sizedText, type SizedText } from '../wire/frames/sized-text.js'
import { array, boolean, given, integer, refuse, string } from '../wire/json/check-fields.js'
import type { Edit } from '../wire/json/splice.js'
import { withheldEdits } from '../wire/openai/withheld-fields.js'
import { decodeRequest } from './client/decode-request.js'
import { encodeStreamError } from './client/encode-error.js'
import { encodeUsage, encodeFinishReason } from './client/encode-reply.js'
import { replyFacts, ChunkWatcher } from './passthrough.js'
import { decodeReply, ChunkDecoder } from './upstream/decode-reply.js'

const MAX_PROMPTS = 2048
const TOKEN_IDS = { min: 0, max: 2 ** 31 }

/** The start of the errors about fields that chats cannot express. */
const CHAT_ONLY = 'The upstream of this model has no completions endpoint. Its chat endpoint accepts'

/** Throws `malformed_request` naming the field that breaks a rule. */
export function decodeCompletion(body: JsonObject): ChatRequest {
  const { prompt, echo, best_of: best, suffix, logprobs, ...chat } = body
  if (chat['messages'] !== undefined) refuse('messages', 'is not a field of completions: send prompt instead')
  const { texts, tokenIds, prompts } = promptOf(prompt)
  const isPlain = prompts === 1 && texts.length === 1 && texts[0] !== ''
  // All other fields have the rules of chats.
  const request = decodeRequest({ ...chat, messages: [{ role: 'user', content: 'prompt' }] })
  request.messages = [{ role: 'user', index: 0, parts: texts.map((text) => ({ type: 'text', text })) }]
  const native: NativeField[] = []
  if (!isPlain) {
    const rule = texts.length < prompts ? 'text and no token ids' : 'one prompt that is not empty'
    native.push({ path: 'prompt', refusal: `${CHAT_ONLY} ${rule}. Send one string as prompt.` })
  }
  if (given(echo) && boolean(echo, 'echo')) {
    native.push({ path: 'echo', refusal: `${CHAT_ONLY} no echo. Leave it out.` })
  }
  if (given(suffix) && string(suffix, 'suffix') !== '') {
    native.push({ path: 'suffix', refusal: `${CHAT_ONLY} no suffix. Leave it out.` })
  }
  const generated = given(best) ? integer(best, 'best_of', { min: 1, max: 20 }) : 1
  if (generated > 1) native.push({ path: 'best_of' })
  if (given(logprobs) && integer(logprobs, 'logprobs', { min: 0, max: 5 }) >= 0)
    native.push({ path: 'logprobs' })
  return {
    ...request,
    ...(prompts > 1 && { candidates: (request.candidates ?? 1) * prompts }),
    ...(generated > (request.candidates ?? 1) && { billedChoices: generated * prompts }),
    ...(tokenIds > 0 && { tokenIds }),
    ...(native.length > 0 && { native }),
  }
}

/** The texts of the prompts, the number of token ids in prompts of token ids, and the number of prompts. */
interface Prompts {
  readonly texts: string[]
  readonly tokenIds: number
  readonly prompts: number
}

function promptOf(prompt: JsonValue | undefined): Prompts {
  if (!given(prompt)) return { texts: [''], tokenIds: 0, prompts: 1 }
  if (typeof prompt === 'string') return { texts: [prompt], tokenIds: 0, prompts: 1 }
  const items = array(prompt, 'prompt', 200_000)
  if (items.length === 0) refuse('prompt', 'must not be empty')
  if (typeof items[0] === 'number') {
    return { texts: [], tokenIds: idsIn(items, 'prompt'), prompts: 1 }
  }
  if (items.length > MAX_PROMPTS) refuse('prompt', `must have at most ${MAX_PROMPTS} items`)
  const texts: string[] = []
  let tokenIds = 0
  for (const [at, item] of items.entries()) {
    if (typeof item === 'string') texts.push(item)
    else tokenIds += idsIn(array(item, `prompt[${at}]`, 200_000), `prompt[${at}]`)
  }
  return { texts, tokenIds, prompts: items.length }
}

function idsIn(items: readonly JsonValue[], path: string): number {
  items.forEach((id, at) => integer(id, `${path}[${at}]`, TOKEN_IDS))
  return items.length
}

/** The body of a finished reply. */
export function encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
  return encodeChoices([{ index: 0, reply }], request, seed)
}

/** The body of a reply with several choices. */
export function encodeChoices(choices: readonly Choice[], _request: ChatRequest, seed: Seed): SizedText {
  const written = choices.map(({ index, reply }) => {
    const texts = reply.blocks.map((block) =>
      block.type === 'text' || block.type === 'refusal' ? block.text : '',
    )
    return choiceOut(index, texts.join(''), encodeFinishReason(reply.reason, false, false))
  })
  const usage = encodeUsage(choices[0]?.reply.usage ?? {})
  return sizedText(`${headOf(seed)}"choices":[${written.join(',')}],"usage":${usage}}`)
}

/**
 * Encodes one stream.
 *
 * Source: OpenAI API reference, "The completion object", read 2026-11-20.
 */
export class CompletionEncoder implements StreamEncoder {
  private out = ''
  private usage: Usage = {}
  private readonly head: string
  private readonly includeUsage: boolean
  private readonly position: ChoicePosition

  /** `position`: the position among several choices; the end of the stream follows the last one. */
  constructor(request: ChatRequest, seed: Seed, position: ChoicePosition = { index: 0, isLast: true }) {
    this.head = `data: ${headOf(seed)}`
    this.includeUsage = request.includeUsage
    this.position = position
  }

  take(): string {
    const { out } = this
    this.out = ''
    return out
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'text-delta':
      case 'refusal-delta':
        if (event.text !== '') this.choice(event.text, null)
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'finish':
        if (event.blocked !== undefined) this.refusal(event.blocked)
        this.choice('', encodeFinishReason(event.reason, false, false))
        if (!this.position.isLast) return
        if (this.includeUsage) {
          this.out += `${this.head}"choices":[],"usage":${encodeUsage(this.usage)}}\n\n`
        }
        this.out += 'data: [DONE]\n\n'
        return
      case 'error':
        this.out += encodeStreamError(event.error)
        return
      default:
    }
  }

  /** The message of a guardrail, in the form of chat completions: legacy completions have none. */
  private refusal(message: string): void {
    const usage = this.includeUsage ? ',"usage":null' : ''
    const delta = `"delta":{"refusal":${JSON.stringify(message)}}`
    const choice = `{${delta},${choiceOut(this.position.index, '', null).slice(1)}`
    this.out += `${this.head}"choices":[${choice}]${usage}}\n\n`
  }

  private choice(text: string, reason: string | null): void {
    const usage = this.includeUsage ? ',"usage":null' : ''
    this.out += `${this.head}"choices":[${choiceOut(this.position.index, text, reason)}]${usage}}\n\n`
  }
}

function headOf({ id, createdAtSeconds, model }: Seed): string {
  return `{"id":"${id}","object":"text_completion","created":${createdAtSeconds},"model":${JSON.stringify(model)},`
}

function choiceOut(index: number, text: string, reason: string | null): string {
  const finish = reason === null ? 'null' : `"${reason}"`
  return `{"text":${JSON.stringify(text)},"index":${index},"logprobs":null,"finish_reason":${finish}}`
}

/** Edits of a client's own body: the model's name, and a stream that ends with its usage. */
export function completionEdits(body: JsonObject, model: string, losses: Losses): Edit[] {
  const edits: Edit[] = []
  for (const key in body) if (body[key] === null) edits.push({ key, json: null })
  edits.push(...withheldEdits(body, (path) => losses.drop(path, 'no-equivalent')))
  if (body['model'] !== model) edits.push({ key: 'model', json: JSON.stringify(model) })
  const options = objectOf(body['stream_options'])
  if (body['stream'] === true && options['include_usage'] !== true) {
    edits.push({ key: 'stream_options', json: JSON.stringify({ ...options, include_usage: true }) })
  }
  return edits
}

/** A completion, or one of its chunks, as a chat completion. */
function asChat(body: JsonObject): JsonObject {
  const choices = arrayOf(body['choices']).map((choice) => {
    const { text = '', index = 0, finish_reason: reason = null } = objectOf(choice)
    return { index, finish_reason: reason, delta: text === '' ? {} : { content: text } }
  })
  const { usage, ...others } = body
  return isObject(usage) ? { ...others, choices, usage } : { ...others, choices }
}

/** Decodes a whole reply. */
export function decodeCompletionReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  decodeReply(asChat(body), request, sink)
}

/** Usage, finish reason, error and model of a whole reply that passes through. */
export function completionFacts(body: JsonObject): ReplyFacts {
  return replyFacts(asChat(body))
}

/**
 * Decodes a stream of OpenAI's legacy completions. Replies and chunks are converted to those of chat
 * completions, which they resemble, and decoded as such.
 */
export class CompletionDecoder implements StreamDecoder {
  private readonly chat: ChunkDecoder

  constructor(sink: EventSink) {
    this.chat = new ChunkDecoder(sink)
  }

  frame(name: string, data: string): void {
    this.chat.frame(name, chatFrame(data))
  }

  end(): void {
    this.chat.end()
  }
}

/** Watches a stream that passes through. */
export function newCompletionWatcher(request: WatchedRequest): StreamWatcher {
  return new ChunkWatcher(request, chatFrame)
}

/**
 * A frame of a completion as one of a chat; the frame itself if it is not an object. The text is bytes read
 * as Latin-1.
 */
function chatFrame(data: string): string {
  try {
    const value: unknown = JSON.parse(data)
    return isObject(value) ? JSON.stringify(asChat(value)) : data
  } catch {
    return data
  }
}
