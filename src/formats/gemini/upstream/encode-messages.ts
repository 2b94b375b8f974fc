/**
 * Encodes messages as `contents` and `systemInstruction`. The encoding of a message depends only on the
 * messages up to it, because signed thoughts and caches depend on the exact prefix.
 */
import { GatewayError } from '../../../errors.js'
import { isObject, type JsonObject } from '../../../base/json.js'
import type {
  AssistantPart,
  Message,
  ToolCall,
  AudioPart,
  FilePart,
  ImagePart,
  MediaSource,
  UserPart,
  AssistantMessage,
} from '../../chat/request.js'
import type { Losses } from '../../dialect.js'
import { sniffBase64, transcriptOf, typeOfName } from '../../wire/inline-media.js'
import { SOUND_INPUT_FORMATS, soundTypeOf } from '../../wire/media/sound.js'
import { refused } from '../../wire/json/check-fields.js'
import { NestedJson } from '../../wire/json/nested-json.js'
import { PROVIDER, SKIP_SIGNATURE, type Content, type Part } from '../constants.js'
import { CUSTOM_INPUT } from '../../wire/custom-tools.js'

type ToolMessage = Extract<Message, { role: 'tool' }>
/** The options of `encodeContents`. */
interface ContentsOptions {
  /** 3+ models check signatures, match call ids and take images in function responses. */
  thirdGeneration: boolean
  /** False for gemma: its system text is the start of the first user turn. */
  systemInstruction: boolean
  losses: Losses
}

/** A conversation in Gemini's format. */
interface EncodedContents {
  system: Part[]
  contents: Content[]
}

/** Members of parts of model output, which may be sent back; other opaque blocks are dropped. */
const REPLAYED = ['text', 'executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse', 'inlineData']

/**
 * Encodes the conversation. Throws `GatewayError(untranslatable)` for parts that Gemini does not accept and
 * if the conversation does not start with a user turn, `malformed_request` if calls and results do not match.
 */
export function encodeContents(messages: readonly Message[], options: ContentsOptions): EncodedContents {
  const encoder = new ContentsEncoder(options)
  for (const message of messages) encoder.add(message)
  return encoder.done()
}

class ContentsEncoder {
  private readonly options: ContentsOptions
  private readonly system: Part[] = []
  private readonly contents: Content[] = []
  /** The calls of the latest assistant turn in order, and their results so far. */
  private step = new Map<string, { call: ToolCall; result: ToolMessage | null }>()
  private stepIndex = 0
  /** User parts between the calls and their results. */
  private pendingParts: Part[] = []
  private leading = true
  private readonly nested = new NestedJson()

  constructor(options: ContentsOptions) {
    this.options = options
  }

  add(message: Message): void {
    switch (message.role) {
      case 'system':
      case 'developer':
        this.addSystem(message.parts.map((part) => part.text).filter((text) => text !== ''))
        return
      case 'user':
        this.leading = false
        this.closeStep()
        for (const part of message.parts) {
          const encoded = encodeUserPart(part, `messages[${message.index}].content`)
          if (encoded !== null) this.push('user', [encoded])
        }
        return
      case 'assistant':
        this.leading = false
        this.closeStep()
        this.addAssistant(message)
        return
      case 'tool':
        this.addResult(message)
        return
      default:
        message satisfies never
    }
  }

  done(): EncodedContents {
    this.closeStep()
    const { system, contents } = this
    if (contents.length > 0) return { system, contents }
    if (system.length === 0) throw refused('messages', 'this upstream needs a user message with content.')
    // Instructions alone are a request elsewhere. Here they must be the user's turn.
    return { system: [], contents: [{ role: 'user', parts: system }] }
  }

  private addSystem(texts: string[]): void {
    if (texts.length === 0) return
    if (this.leading) {
      const parts = texts.map((text): Part => ({ text }))
      if (this.options.systemInstruction) for (const part of parts) this.system.push(part)
      else this.push('user', parts)
      return
    }
    // Moving it to `systemInstruction` would reorder instructions and change the prefix.
    const part = { text: `<system>\n${texts.join('\n')}\n</system>` }
    if (this.step.size > 0) this.pendingParts.push(part)
    else this.push('user', [part])
  }

  private addAssistant(message: AssistantMessage): void {
    const parts: Part[] = []
    for (const part of message.parts) {
      const encoded = assistantPart(part, this.options.losses)
      if (encoded !== null) parts.push(encoded)
    }
    message.toolCalls.forEach((call, at) => parts.push(this.callPart(call, at === 0)))
    if (parts.length === 0) return
    if (this.contents.length === 0) {
      throw refused(
        `messages[${message.index}]`,
        'this upstream needs a user message first. Put one before it.',
      )
    }
    this.push('model', parts)
    this.step = new Map(message.toolCalls.map((call) => [call.id, { call, result: null }]))
    this.stepIndex = message.index
  }

  /**
   * Adds the placeholder signature to the first call of every step without one, not only of the current turn:
   * the current turn depends on later messages, and the API does not check earlier turns.
   */
  private callPart(call: ToolCall, first: boolean): Part {
    const functionCall: JsonObject = {
      name: call.name,
      args: callArguments(call, this.nested),
    }
    // Vertex AI takes ids of 3+ models too, and refuses those of 2.x: its discovery document, revision
    // 20260921, and anomalyco/opencode pull request 50504 (tried on its endpoints). Read 2026-11-30.
    if (this.options.thirdGeneration) functionCall.id = call.id
    const part: Part = { functionCall }
    if (call.signature !== undefined) part.thoughtSignature = call.signature
    else if (first && this.options.thirdGeneration) part.thoughtSignature = SKIP_SIGNATURE
    return part
  }

  private addResult(message: ToolMessage): void {
    const slot = this.step.get(message.callId)
    if (slot === undefined || slot.result !== null) {
      const why =
        slot === undefined
          ? 'matches no call of the assistant turn before it'
          : 'is a second result of one call'
      throw new GatewayError('malformed_request', `messages[${message.index}].tool_call_id ${why}.`, {
        param: `messages[${message.index}].tool_call_id`,
      })
    }
    slot.result = message
  }

  /** Appends the results of all calls of the step, in the order of the calls. */
  private closeStep(): void {
    if (this.step.size === 0) return
    const responses: Part[] = []
    const mediaParts: Part[] = []
    for (const { call, result } of this.step.values()) {
      if (result === null) {
        throw new GatewayError(
          'malformed_request',
          `messages[${this.stepIndex}].tool_calls: a call has no tool message with its result.`,
          { param: `messages[${this.stepIndex}].tool_calls` },
        )
      }
      responses.push(this.resultPart(call, result, mediaParts))
    }
    const pendingParts = this.pendingParts
    this.step = new Map()
    this.pendingParts = []
    this.push('user', [...responses, ...mediaParts, ...pendingParts])
  }

  private resultPart(call: ToolCall, message: ToolMessage, mediaParts: Part[]): Part {
    const texts: string[] = []
    const media: Part[] = []
    for (const part of message.parts) {
      if (part.type === 'text') texts.push(part.text)
      else {
        const encoded = encodeUserPart(part, `messages[${message.index}].content`)
        if (encoded !== null) media.push(encoded)
      }
    }
    const functionResponse: JsonObject = {
      name: call.name,
      response: responseOf(texts.join(''), message.isError === true, this.nested),
    }
    if (this.options.thirdGeneration) {
      functionResponse.id = call.id
      if (media.length > 0) functionResponse.parts = media
    } else for (const one of media) mediaParts.push(one)
    return { functionResponse }
  }

  private push(role: Content['role'], parts: Part[]): void {
    const last = this.contents.at(-1)
    if (last?.role === role) for (const part of parts) last.parts.push(part)
    else this.contents.push({ role, parts: [...parts] })
  }
}

/**
 * One part of an assistant message; null if it is omitted. The API rejects reasoning of other providers and
 * does not need Gemini's own thoughts without a signature.
 */
function assistantPart(part: AssistantPart, losses: Losses): Part | null {
  switch (part.type) {
    case 'text':
      if (part.signature !== undefined) return { text: part.text, thoughtSignature: part.signature }
      return part.text === '' ? null : { text: part.text }
    case 'thinking':
      if (part.origin !== PROVIDER || part.redacted !== undefined) {
        losses.drop('messages.reasoning', 'no-equivalent')
        return null
      }
      if (part.signature === undefined) return null
      return part.text === ''
        ? { text: '', thoughtSignature: part.signature }
        : { text: part.text, thought: true, thoughtSignature: part.signature }
    case 'opaque': {
      const own = part.provider === PROVIDER
      if (own && REPLAYED.some((key) => part.block[key] !== undefined)) return part.block
      if (part.block.type === 'audio') {
        const transcript = transcriptOf(part, losses)
        return transcript === null ? null : { text: transcript.text }
      }
      losses.drop('messages.opaque', 'no-equivalent')
      return null
    }
    default:
      part satisfies never
      return null
  }
}

/** The arguments as an object. Text that is not a JSON object becomes `{"_raw": text}`. */
function callArguments(call: ToolCall, nested: NestedJson): JsonObject {
  if (call.custom === true) return { [CUSTOM_INPUT]: call.arguments }
  if (call.arguments.trim() === '') return {}
  return parsedObject(call.arguments, nested) ?? { _raw: call.arguments }
}

function responseOf(text: string, isError: boolean, nested: NestedJson): JsonObject {
  if (isError) return { error: text }
  return parsedObject(text, nested) ?? { output: text }
}

function parsedObject(text: string, nested: NestedJson): JsonObject | null {
  // Only text that can be an object is parsed: tool results may be megabytes of plain text.
  if (!/^\s*\{/.test(text)) return null
  const value = nested.parse(text)
  return isObject(value) ? value : null
}

/** Types that Gemini accepts inline; it rejects office formats and archives. */
const FILE_TYPE = /^(?:application\/pdf|(?:text|image|audio|video)\/.+)$/

/**
 * One part of a user or tool message; null for an empty text, which the API rejects.
 * Throws `GatewayError(untranslatable)` naming the part's message (`path`).
 *
 * Encodes images, files and audio as inline bytes, or by URL if Gemini reads it. The gateway fetches nothing:
 * any other URL, or a file id of another provider, is an error.
 */
function encodeUserPart(part: UserPart, path: string): Part | null {
  switch (part.type) {
    case 'text':
      return part.text === '' ? null : { text: part.text }
    case 'image':
      return encodeImage(part, path)
    case 'file':
      return encodeFile(part, path)
    case 'audio':
      return encodeAudio(part, path)
    default:
      part satisfies never
      return null
  }
}

/**
 * True for a URL that the API reads itself: uploads to its Files API, YouTube videos, and on Vertex AI
 * objects in Google's buckets, which the gateway passes on only if the upstream allows them.
 */
export function readsUrl(url: string): boolean {
  return (
    isGoogleBucket(url) ||
    /^https:\/\/(?:generativelanguage\.googleapis\.com\/v\w+\/files\/|(?:www\.)?youtube\.com\/watch\?|youtu\.be\/)/.test(
      url,
    )
  )
}

function isGoogleBucket(url: string): boolean {
  return /^gs:\/\//i.test(url)
}

/** A file that Google reads. Vertex AI needs the media type of an object in a bucket. */
function fileData(fileUri: string, filename: string | undefined, path: string): Part {
  if (!isGoogleBucket(fileUri)) return { fileData: { fileUri } }
  const mimeType = typeOfName(fileUri) ?? typeOfName(filename ?? '')
  if (mimeType !== undefined) return { fileData: { fileUri, mimeType } }
  throw refused(path, 'the name of an object in a bucket needs an extension, such as .pdf')
}

function encodeImage({ source }: ImagePart, path: string): Part {
  if (source.kind === 'url' && readsUrl(source.url)) return fileData(source.url, undefined, path)
  const { mediaType, data } = inline(source, 'image', path)
  const type = sniffBase64(data) ?? mediaType
  return blob(type === 'image/jpg' ? 'image/jpeg' : type, data)
}

function encodeFile({ source, filename }: FilePart, path: string): Part {
  if (source.kind === 'url' && readsUrl(source.url)) return fileData(source.url, filename, path)
  const { mediaType, data } = inline(source, 'file', path)
  const type = sniffBase64(data) ?? mediaType
  if (FILE_TYPE.test(type)) return blob(type, data)
  throw refused(
    path,
    `this upstream reads PDF, text, image, audio and video files, not ${type.slice(0, 80)}. Convert the ` +
      'file to PDF or text.',
  )
}

function encodeAudio(part: AudioPart, path: string): Part {
  const mimeType = soundTypeOf(part.format)
  if (mimeType !== undefined) return blob(mimeType, part.data)
  throw refused(path, `this upstream accepts audio as ${SOUND_INPUT_FORMATS.join(', ')}. Convert it.`)
}

function inline(source: MediaSource, what: string, path: string): Extract<MediaSource, { kind: 'base64' }> {
  if (source.kind === 'base64') return source
  throw refused(
    path,
    source.kind === 'url'
      ? `the gateway does not fetch URLs for this upstream. Send the ${what} as a base64 data: URL, or use ` +
          'an OpenAI or Anthropic model, which fetch it themselves.'
      : `this upstream does not accept file ids of another provider. Send the ${what} inline as base64.`,
  )
}

function blob(mimeType: string, data: string): Part {
  return { inlineData: { mimeType, data } }
}
