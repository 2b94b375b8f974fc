/**
 * Encodes the conversation as `system` and `messages`. The encoding of a message depends only on the messages
 * up to it, because thinking blocks and prompt caches are bound to the exact prefix. The only exception is a
 * final assistant turn.
 */
import type { GatewayError } from '../../../errors.js'
import type { JsonObject } from '../../../base/json.js'
import type { ModelFacts } from '../../chat/model-facts.js'
import type {
  AssistantPart,
  ChatRequest,
  Message,
  TextPart,
  ToolCall,
  UserPart,
  AudioPart,
  FilePart,
  ImagePart,
} from '../../chat/request.js'
import type { Losses } from '../../dialect.js'
import { sniffBase64, transcriptOf } from '../../wire/inline-media.js'
import { refused } from '../../wire/json/check-fields.js'
import { NestedJson } from '../../wire/json/nested-json.js'
import { cacheControl, inputOf, PROVIDER, wireId } from '../constants.js'
import { CUSTOM_INPUT } from '../../wire/custom-tools.js'
import { isBlank, type WireMessage, type MessageOf, type Conversation } from '../../wire/block-turns.js'

/**
 * Encodes all messages. Throws `GatewayError(untranslatable)` naming the message. Uses loops instead of
 * `flatMap` because every request passes through here (docs/explanation/performance.md).
 */
export function conversation(request: ChatRequest, model: ModelFacts, losses: Losses): Conversation {
  const encoder = new MessagesEncoder(model, losses)
  for (const message of request.messages) encoder.add(message)
  return encoder.done()
}

class MessagesEncoder {
  private readonly system: JsonObject[] = []
  private readonly messages: WireMessage[] = []
  private readonly model: ModelFacts
  private readonly losses: Losses
  /** The order of the calls of the latest assistant turn, by call id. */
  private callOrder = new Map<string, number>()
  /** Results of those calls that are not in a user turn yet. */
  private results: { order: number; block: JsonObject }[] = []
  private readonly nested = new NestedJson()

  constructor(model: ModelFacts, losses: Losses) {
    this.model = model
    this.losses = losses
  }

  add(message: Message): void {
    if (message.role !== 'tool') this.insertResults()
    switch (message.role) {
      case 'system':
      case 'developer':
        this.addSystem(message)
        return
      case 'user':
        this.addUser(message)
        return
      case 'assistant':
        this.addAssistant(message)
        return
      case 'tool':
        this.addResult(message)
        return
      default:
        message satisfies never
    }
  }

  done(): Conversation {
    this.insertResults()
    const { system, messages } = this
    if (messages.length === 0) {
      if (system.length === 0) throw refused('messages', 'Anthropic models need at least one user message.')
      // Instructions alone are a request elsewhere. Here they must be the user's turn.
      return { system: [], messages: [{ role: 'user', content: system }] }
    }
    this.checkPrefill()
    return { system, messages }
  }

  /** Leading instructions go to `system`. Later ones keep their position, which the prefix rule requires. */
  private addSystem(message: MessageOf<'system' | 'developer'>): void {
    const leading = this.messages.length === 0
    const inPlace = leading || this.model.midConversationSystem !== false
    const blocks: JsonObject[] = []
    for (const part of message.parts) addText(part, blocks, !inPlace)
    if (blocks.length === 0) return
    if (leading) this.system.push(...blocks)
    else this.push(inPlace ? 'system' : 'user', blocks)
  }

  private addUser(message: MessageOf<'user'>): void {
    const blocks = userBlocks(message.parts, message.index)
    // The API refuses a turn without content.
    if (blocks.length > 0) this.push('user', blocks)
  }

  private addAssistant(message: MessageOf<'assistant'>): void {
    const blocks: JsonObject[] = []
    for (const part of message.parts) this.addAssistantPart(part, blocks)
    for (const call of message.toolCalls) {
      if (call.signature !== undefined) this.losses.drop('messages.reasoning', 'no-equivalent')
      blocks.push(callBlock(call, this.nested))
    }
    this.callOrder = new Map(message.toolCalls.map((call, at) => [call.id, at]))
    if (blocks.length === 0) return
    if (this.messages.length === 0) {
      throw refused(
        `messages[${message.index}]`,
        'For Anthropic models a conversation must begin with a user message.',
      )
    }
    this.push('assistant', blocks)
  }

  private addAssistantPart(part: AssistantPart, blocks: JsonObject[]): void {
    switch (part.type) {
      case 'text':
        if (part.signature !== undefined) this.losses.drop('messages.reasoning', 'no-equivalent')
        addText(part, blocks)
        return
      case 'opaque':
        if (part.provider === PROVIDER) {
          blocks.push({ ...part.block })
          return
        }
        if (part.block.type === 'audio') {
          const transcript = transcriptOf(part, this.losses)
          if (transcript !== null) addText(transcript, blocks)
          return
        }
        this.losses.drop('messages.opaque', 'no-equivalent')
        return
      case 'thinking':
        if (part.origin === PROVIDER && part.redacted !== undefined) {
          blocks.push({ type: 'redacted_thinking', data: part.redacted })
        } else if (part.origin === PROVIDER && part.signature !== undefined) {
          blocks.push({ type: 'thinking', thinking: part.text, signature: part.signature })
        } else this.losses.drop('messages.reasoning', 'no-equivalent')
        return
      default:
        part satisfies never
    }
  }

  private addResult(message: MessageOf<'tool'>): void {
    const content = userBlocks(message.parts, message.index)
    const block: JsonObject = { type: 'tool_result', tool_use_id: wireId(message.callId) }
    if (content.length > 0) block.content = content
    if (message.isError === true) block.is_error = true
    Object.assign(block, cacheControl(message.cache))
    this.results.push({ order: this.callOrder.get(message.callId) ?? -1, block })
  }

  /** Inserts the results at the start of the user turn, in the order of the calls. */
  private insertResults(): void {
    if (this.results.length === 0) return
    this.results.sort((a, b) => a.order - b.order)
    const blocks = this.results.map(({ block }) => block)
    this.results = []
    const turn = this.messages.at(-1)
    if (turn?.role === 'user') turn.content = [...blocks, ...turn.content]
    else this.messages.push({ role: 'user', content: blocks })
  }

  /** Merges consecutive turns of one role. */
  private push(role: WireMessage['role'], content: JsonObject[]): void {
    const last = this.messages.at(-1)
    if (last?.role === role) for (const block of content) last.content.push(block)
    else this.messages.push({ role, content })
  }

  /**
   * Checks a final assistant turn, which the model continues. A turn that a server tool paused may always be
   * continued; a prefilled text is accepted only by some models.
   */
  private checkPrefill(): void {
    const last = this.messages.at(-1)
    const block = last?.content.at(-1)
    if (last?.role !== 'assistant' || block === undefined) return
    if (block.type !== 'text') return
    if (this.model.assistantPrefill !== true) {
      throw refused(
        'messages',
        `${this.model.id} does not continue an assistant message; end with a user message.`,
      )
    }
    if (typeof block.text === 'string') block.text = block.text.trimEnd()
  }
}

/**
 * Adds a text part to the blocks, except a blank one, which the API rejects. An `instruction` that cannot be
 * a system turn is marked with tags.
 */
function addText(part: TextPart, blocks: JsonObject[], instruction = false): void {
  if (isBlank(part.text)) return
  const text = instruction
    ? `<system>
${part.text}
</system>`
    : part.text
  // Avoids a spread without a cache mark: every request passes through here.
  blocks.push(
    part.cache === undefined ? { type: 'text', text } : { type: 'text', text, ...cacheControl(part.cache) },
  )
}

function contentOf(index: number): string {
  return `messages[${index}].content`
}

function userBlocks(parts: UserPart[], index: number): JsonObject[] {
  const blocks: JsonObject[] = []
  for (const [i, part] of parts.entries()) {
    if (part.type === 'text') addText(part, blocks)
    else blocks.push(mediaBlock(part, `${contentOf(index)}[${i}]`))
  }
  return blocks
}

function callBlock(call: ToolCall, nested: NestedJson): JsonObject {
  return {
    type: 'tool_use',
    id: wireId(call.id),
    name: call.name,
    input: call.custom === true ? { [CUSTOM_INPUT]: call.arguments } : inputOf(call.arguments, nested),
    ...cacheControl(call.cache),
  }
}

const IMAGES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/**
 * The content block of an image, file or audio part; `path` names it in errors. Media must be inline or at an
 * https URL; the gateway fetches nothing.
 */
function mediaBlock(part: ImagePart | FilePart | AudioPart, path: string): JsonObject {
  switch (part.type) {
    case 'image':
      return { ...imageBlock(part.source, path), ...cacheControl(part.cache) }
    case 'file':
      return { ...fileBlock(part, path), ...cacheControl(part.cache) }
    case 'audio':
      throw refusedMedia(path, 'audio input', 'Send a transcript as text, or use a model that accepts audio.')
    default:
      return part satisfies never
  }
}

function imageBlock(source: ImagePart['source'], path: string): JsonObject {
  switch (source.kind) {
    case 'base64': {
      // The API rejects data whose type differs from the declared one.
      const media_type = sniffBase64(source.data) ?? source.mediaType.toLowerCase()
      if (!IMAGES.has(media_type)) {
        throw refusedMedia(path, `an image of type ${quoted(media_type)}`, 'Use JPEG, PNG, GIF or WebP.')
      }
      return { type: 'image', source: { type: 'base64', media_type, data: source.data } }
    }
    case 'url':
      return { type: 'image', source: { type: 'url', url: https(source.url, path) } }
    case 'file-id':
      throw foreignFile(path)
    default:
      return source satisfies never
  }
}

function fileBlock(part: FilePart, path: string): JsonObject {
  const { source } = part
  const title = part.filename === undefined || isBlank(part.filename) ? {} : { title: part.filename }
  switch (source.kind) {
    case 'base64': {
      const media_type = sniffBase64(source.data) ?? source.mediaType.toLowerCase()
      if (IMAGES.has(media_type)) return imageBlock(source, path)
      return { type: 'document', source: documentSource(media_type, source.data, path), ...title }
    }
    case 'url':
      return {
        type: 'document',
        source: { type: 'url', url: https(source.url, path) },
        ...title,
      }
    case 'file-id':
      throw foreignFile(path)
    default:
      return source satisfies never
  }
}

function documentSource(mediaType: string, data: string, path: string): JsonObject {
  if (mediaType === 'application/pdf') return { type: 'base64', media_type: mediaType, data }
  if (!mediaType.startsWith('text/')) {
    throw refusedMedia(path, `a file of type ${quoted(mediaType)}`, 'Use a PDF or a text file.')
  }
  const text = Buffer.from(data, 'base64').toString('utf8')
  if (isBlank(text)) throw refusedMedia(path, 'an empty file', 'Leave the part out.')
  return { type: 'text', media_type: 'text/plain', data: text }
}

/** True for a URL that the API fetches itself. */
export function readsUrl(url: string): boolean {
  return /^https:\/\//i.test(url)
}

function https(url: string, path: string): string {
  if (readsUrl(url)) return url
  throw refusedMedia(path, 'a URL that is not https', 'Send the bytes as a base64 data URL.')
}

function foreignFile(path: string): GatewayError {
  return refusedMedia(path, 'a file id of another provider', 'Send the bytes as a base64 data URL.')
}

function quoted(mediaType: string): string {
  return JSON.stringify(mediaType.slice(0, 100))
}

function refusedMedia(path: string, description: string, advice: string): GatewayError {
  return refused(path, `Anthropic models do not accept ${description}. ${advice}`)
}
