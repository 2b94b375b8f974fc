/**
 * Encodes the conversation as `system` and `messages`. The encoding of a message depends only on the messages
 * up to it, because signed reasoning and prompt caches are bound to the exact prefix.
 */
import { isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../chat/model-facts.js'
import type {
  AssistantPart,
  CacheMark,
  ChatRequest,
  Message,
  TextPart,
  ThinkingPart,
  ToolCall,
  UserPart,
} from '../chat/request.js'
import type { Losses } from '../dialect.js'
import { transcriptOf } from '../wire/inline-media.js'
import { refused } from '../wire/json/check-fields.js'
import { NestedJson } from '../wire/json/nested-json.js'
import { isClaude, isNova, PROVIDER, STATE_ORIGIN, wireId } from './constants.js'
import { DocumentNames, mediaBlock } from './encode-media.js'
import { CUSTOM_INPUT } from '../wire/custom-tools.js'
import { isBlank, type WireMessage, type MessageOf, type Conversation } from '../wire/block-turns.js'

/** Encodes all messages. Throws `GatewayError(untranslatable)` naming the message. */
export function conversation({ messages }: ChatRequest, model: ModelFacts, losses: Losses): Conversation {
  const encoder = new MessagesEncoder(model, losses)
  for (const message of messages) encoder.add(message)
  return encoder.done()
}

/** A result of a call needs content, and text must not be blank. */
const NO_RESULT = { text: '(empty)' }

class MessagesEncoder {
  private readonly system: JsonObject[] = []
  private readonly messages: WireMessage[] = []
  private readonly model: ModelFacts
  private readonly losses: Losses
  private readonly caching: Caching
  private readonly names = new DocumentNames()
  private readonly nested = new NestedJson()
  /** The order of the calls of the latest assistant turn, by call id. */
  private callOrder = new Map<string, number>()
  /** Results of those calls that are not in a user turn yet. */
  private results: { order: number; blocks: JsonObject[] }[] = []

  constructor(model: ModelFacts, losses: Losses) {
    this.model = model
    this.losses = losses
    this.caching = cachingOf(model)
  }

  add(message: Message): void {
    if (message.role !== 'tool') this.insertResults()
    switch (message.role) {
      case 'system':
      case 'developer':
        return this.addSystem(message)
      case 'user':
        return this.addUser(message)
      case 'assistant':
        return this.addAssistant(message)
      case 'tool':
        return this.addResult(message)
      default:
        message satisfies never
    }
  }

  done(): Conversation {
    this.insertResults()
    const { system, messages } = this
    if (messages.length === 0) {
      if (system.length === 0) throw refused('messages', 'Bedrock needs at least one user message.')
      // Instructions alone are a request elsewhere. Here they must be the user's turn.
      return { system: [], messages: [{ role: 'user', content: system }] }
    }
    if (messages.at(-1)?.role === 'assistant' && this.model.assistantPrefill !== true) {
      throw refused(
        'messages',
        `${this.model.id} does not continue an assistant message; end with a user message.`,
      )
    }
    return { system, messages }
  }

  /**
   * Leading instructions go to `system`. Later ones keep their position: as a turn of their own if the model
   * has such turns, else in a user turn.
   */
  private addSystem(message: MessageOf<'system' | 'developer'>): void {
    const isLeading = this.messages.length === 0
    const isOwn = this.model.midConversationSystem === true
    const blocks: JsonObject[] = []
    for (const part of message.parts) this.addText(part, blocks, !isLeading && !isOwn)
    if (blocks.length === 0) return
    if (isLeading) this.system.push(...blocks)
    else this.push(isOwn ? 'system' : 'user', blocks)
  }

  private addUser({ parts, index }: MessageOf<'user'>): void {
    const blocks = this.userBlocks(parts, index)
    // The API refuses a turn without content.
    if (blocks.length > 0) this.push('user', withText(blocks))
  }

  private addAssistant({ parts, toolCalls, index }: MessageOf<'assistant'>): void {
    const blocks: JsonObject[] = []
    for (const part of parts) this.addAssistantPart(part, blocks)
    for (const call of toolCalls) {
      if (call.signature !== undefined) this.losses.drop('messages.reasoning', 'no-equivalent')
      blocks.push(this.callBlock(call))
      this.mark(call.cache, blocks)
    }
    this.callOrder = new Map(toolCalls.map((call, at) => [call.id, at]))
    if (blocks.length === 0) return
    if (this.messages.length === 0) {
      throw refused(`messages[${index}]`, 'On Bedrock a conversation must begin with a user message.')
    }
    this.push('assistant', blocks)
  }

  private addAssistantPart(part: AssistantPart, blocks: JsonObject[]): void {
    switch (part.type) {
      case 'text':
        if (part.signature !== undefined) this.losses.drop('messages.reasoning', 'no-equivalent')
        return this.addText(part, blocks)
      case 'opaque':
        if (part.provider === PROVIDER) {
          blocks.push({ ...part.block })
          return
        }
        if (part.block.type === 'audio') {
          const transcript = transcriptOf(part, this.losses)
          if (transcript !== null) this.addText(transcript, blocks)
          return
        }
        this.losses.drop('messages.opaque', 'no-equivalent')
        return
      case 'thinking': {
        const block = this.reasoningBlock(part)
        if (block === null) this.losses.drop('messages.reasoning', 'no-equivalent')
        else blocks.push(block)
        return
      }
      default:
        part satisfies never
    }
  }

  /** Claude requires its signatures; other models sign nothing. Null for reasoning of another vendor. */
  private reasoningBlock({ origin, text, signature, redacted }: ThinkingPart): JsonObject | null {
    if (origin !== STATE_ORIGIN) return null
    const isOfClaude = isClaude(this.model)
    if (redacted !== undefined) {
      // Anthropic's base64, which Bedrock encodes again.
      const redactedContent = Buffer.from(redacted, 'latin1').toString('base64')
      return isOfClaude ? { reasoningContent: { redactedContent } } : null
    }
    if (signature !== undefined && signature !== '') {
      return isOfClaude ? { reasoningContent: { reasoningText: { text, signature } } } : null
    }
    return isOfClaude || isBlank(text) ? null : { reasoningContent: { reasoningText: { text } } }
  }

  private callBlock({ id, name, arguments: text, custom }: ToolCall): JsonObject {
    const input = custom === true ? { [CUSTOM_INPUT]: text } : this.inputOf(text)
    return { toolUse: { toolUseId: wireId(id), name, input } }
  }

  /** `{}` for blank arguments, `{"_raw": text}` if they are not a JSON object within the limits. */
  private inputOf(text: string): JsonObject {
    if (isBlank(text)) return {}
    const value = this.nested.parse(text)
    return isObject(value) ? value : { _raw: text }
  }

  private addResult({ callId, parts, isError, cache, index }: MessageOf<'tool'>): void {
    const content = this.userBlocks(parts, index).filter((block) => block.cachePoint === undefined)
    const toolResult: JsonObject = {
      toolUseId: wireId(callId),
      content: content.length === 0 ? [NO_RESULT] : content,
    }
    // Models other than Claude and Nova reject the member, and `success` is its default.
    if (isError === true) toolResult.status = 'error'
    const blocks: JsonObject[] = [{ toolResult }]
    this.mark(cache ?? parts.findLast(isMarked)?.cache, blocks)
    this.results.push({ order: this.callOrder.get(callId) ?? -1, blocks })
  }

  /** Inserts the results into one user turn, in the order of the calls. */
  private insertResults(): void {
    if (this.results.length === 0) return
    this.results.sort((a, b) => a.order - b.order)
    const blocks = this.results.flatMap((result) => result.blocks)
    this.results = []
    const turn = this.messages.at(-1)
    if (turn?.role === 'user') turn.content = [...blocks, ...turn.content]
    else this.messages.push({ role: 'user', content: blocks })
  }

  private userBlocks(parts: readonly UserPart[], index: number): JsonObject[] {
    const blocks: JsonObject[] = []
    for (const [at, part] of parts.entries()) {
      if (part.type === 'text') {
        this.addText(part, blocks)
        continue
      }
      blocks.push(mediaBlock(part, `messages[${index}].content[${at}]`, this.names))
      if (part.type !== 'audio') this.mark(part.cache, blocks)
    }
    return blocks
  }

  /** Blank text is left out. An `instruction` that cannot be a system turn is marked with tags. */
  private addText({ text, cache }: TextPart, blocks: JsonObject[], instruction = false): void {
    if (!isBlank(text)) {
      blocks.push({ text: instruction ? `<system>\n${text}\n</system>` : text })
    }
    this.mark(cache, blocks)
  }

  /** A cache point caches all before it. */
  private mark(mark: CacheMark | undefined, blocks: JsonObject[]): void {
    if (mark === undefined || blocks.length === 0) return
    const point = cachePoint(mark, this.caching, this.losses)
    if (point !== null) blocks.push(point)
  }

  /** Merges consecutive turns of one role. */
  private push(role: WireMessage['role'], content: JsonObject[]): void {
    const last = this.messages.at(-1)
    if (last?.role === role) for (const block of content) last.content.push(block)
    else this.messages.push({ role, content })
  }
}

function isMarked(part: UserPart): part is Extract<UserPart, { cache?: CacheMark }> {
  return part.type !== 'audio' && part.cache !== undefined
}

/** A document needs a text beside it. */
function withText(blocks: JsonObject[]): JsonObject[] {
  const names = blocks.flatMap(({ document }) => stringOf(objectOf(document).name) ?? [])
  if (names.length === 0 || blocks.some(({ text }) => text !== undefined)) return blocks
  return [{ text: `Attached: ${names.join(', ')}` }, ...blocks]
}

/** The cache points of a model: with a lifetime, without one, or none. */
type Caching = 'lifetimes' | 'points' | 'none'

/** Claude and Nova cache prompts. The model behind an ARN of the account is unknown, and may. */
export function cachingOf(model: ModelFacts): Caching {
  if (isClaude(model)) return 'lifetimes'
  return isNova(model) || model.id.startsWith('arn:') ? 'points' : 'none'
}

/** The block for a mark; null if the model has none, which is reported. */
export function cachePoint(mark: CacheMark, caching: Caching, losses: Losses): JsonObject | null {
  if (caching === 'none') {
    losses.drop('cache_control', 'no-equivalent')
    return null
  }
  if (mark.ttl !== '1h') return { cachePoint: { type: 'default' } }
  if (caching === 'lifetimes') return { cachePoint: { type: 'default', ttl: '1h' } }
  losses.drop('cache_control', 'approximated')
  return { cachePoint: { type: 'default' } }
}
