/** Canonical requests: what decoders produce and encoders read. */
import type { HostedTool } from './hosted-tools.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { Task } from './task.js'
import type { Usage } from './usage.js'

/**
 * A cache marker on a part or tool: Anthropic's `cache_control` or OpenAI's breakpoint. `breakpoint` has
 * OpenAI's own members, for upstreams that accept breakpoints.
 */
export interface CacheMark {
  ttl: '5m' | '1h'
  breakpoint?: { ttl?: '30m' | '12h' }
}

/** Text. `signature` is Gemini's state, which must be sent back with the text even if that is empty. */
export interface TextPart {
  type: 'text'
  text: string
  /** The UTF-8 length of `text`; set for a long text, which is decoded when it is first read. */
  textBytes?: number
  signature?: string
  cache?: CacheMark
}

/** The source of media: inline base64 (standard alphabet, no newlines), a URL, or a provider's file id. */
export type MediaSource =
  | { kind: 'base64'; mediaType: string; data: string }
  /** `media`: the client states that it is sound or video. */
  | { kind: 'url'; url: string; media?: 'audio' | 'video' }
  /** `origin`: the dialect of the provider; absent: OpenAI. */
  | { kind: 'file-id'; id: string; origin?: string }

export interface ImagePart {
  type: 'image'
  source: MediaSource
  detail?: 'auto' | 'low' | 'high' | 'original'
  cache?: CacheMark
}

/** A document or a video, or sound by URL. */
export interface FilePart {
  type: 'file'
  source: MediaSource
  filename?: string
  cache?: CacheMark
}

/** Audio of the user; `format` in OpenAI's names. */
export interface AudioPart {
  type: 'audio'
  format: string
  data: string
}

/** A part of a user message or tool result. */
export type UserPart = TextPart | ImagePart | FilePart | AudioPart

/** Reasoning that a client sends back; `origin` is the dialect whose state it has. */
export interface ThinkingPart {
  type: 'thinking'
  text: string
  signature?: string
  redacted?: string
  origin?: string
}

/** A whole block that only its own provider accepts. */
export interface OpaquePart {
  type: 'opaque'
  provider: string
  block: JsonObject
}

/** A part of an assistant message. Tool calls are separate. */
export type AssistantPart = TextPart | ThinkingPart | OpaquePart

/** A tool call. `arguments` is the raw text, which may be invalid JSON. */
export interface ToolCall {
  id: string
  name: string
  arguments: string
  custom?: boolean
  signature?: string
  cache?: CacheMark
}

/**
 * One message. `index` is its index in the client's `messages`, for errors. Assistant content precedes the
 * tool calls; a tool message is the result of one call.
 */
export type Message =
  | { role: 'system' | 'developer'; index: number; parts: TextPart[] }
  | { role: 'user'; index: number; parts: UserPart[] }
  | { role: 'assistant'; index: number; parts: AssistantPart[]; toolCalls: ToolCall[] }
  | {
      role: 'tool'
      index: number
      callId: string
      parts: UserPart[]
      isError?: boolean
      cache?: CacheMark
    }

/** A former turn of the model. */
export type AssistantMessage = Extract<Message, { role: 'assistant' }>

/** A function (JSON Schema arguments) or a custom tool (free text input). */
export interface Tool {
  name: string
  description?: string
  /** The arguments' JSON Schema; absent means no arguments. */
  parameters?: JsonObject
  strict?: boolean
  /** Set for a custom tool; `format` is OpenAI's grammar object, if any. */
  custom?: { format?: JsonObject }
  cache?: CacheMark
}

/** Whether the model may, must or must not call tools, and which ones. */
export type ToolChoice =
  | { mode: 'auto' }
  | { mode: 'none' }
  | { mode: 'required' }
  | { mode: 'named'; name: string }
  | { mode: 'allowed'; required: boolean; names: string[] }

/** The required format of the reply. */
export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json-object' }
  | {
      type: 'json-schema'
      name: string
      description?: string
      schema: JsonObject
      strict?: boolean
    }

/** Reasoning efforts, in ascending order. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/**
 * The path of a field that only upstreams of the client's own format accept. For other upstreams it is
 * reported as a loss, or refused with the message `refusal` if the reply would be wrong without it.
 */
export interface NativeField {
  path: string
  refusal?: string
  /** It breaks a rule that its own format may not have; other upstreams cannot be served rightly. */
  isMalformed?: true
  /** It breaks a rule of the format's own vendor that others may not have. */
  isVendors?: true
}

/** The namespace and name of a tool in the client's request. */
export interface NamespacedTool {
  readonly namespace: string
  readonly name: string
}

/** Types of tools that OpenAI defines and the client runs. */
export type ClientToolType = 'apply_patch' | 'local_shell' | 'shell' | 'tool_search'

/**
 * Google's settings for pictures and sound: the ratio and the resolution of pictures, the voice, formats of
 * sound, and how sound is written down.
 */
export type MediaSetting = 'imageConfig' | 'speechConfig' | 'responseFormat' | 'audioTranscriptionConfig'

/** A decoded and validated request. A member is absent if the client did not set it. */
export interface ChatRequest {
  /** The model id for the upstream. */
  model: string
  messages: Message[]
  stream: boolean
  /** The client requests the final usage chunk of a stream. */
  includeUsage: boolean
  tools: Tool[]
  toolChoice?: ToolChoice
  /** The reply continues the last assistant turn, which has content. */
  prefix?: true
  parallelToolCalls?: boolean
  /** The client sent the legacy `functions` and expects `function_call` in the reply. */
  legacyFunctions?: boolean
  maxOutputTokens?: number
  temperature?: number
  topP?: number
  topK?: number
  stop?: string[]
  frequencyPenalty?: number
  presencePenalty?: number
  seed?: number
  candidates?: number
  /** Choices that the provider generates and bills, if there are more than `candidates` (`best_of`). */
  billedChoices?: number
  logprobs?: boolean
  topLogprobs?: number
  responseFormat?: ResponseFormat
  reasoningEffort?: ReasoningEffort
  verbosity?: 'low' | 'medium' | 'high'
  /** The end user's stable id (`safety_identifier`, else `user`). */
  userId?: string
  serviceTier?: string
  /** The reply has no reasoning text, only reasoning state. */
  hidesThoughts?: boolean
  /** The client requests the reasoning state in the reply, to send it back with the next request. */
  includeReasoningState?: boolean
  /** Tools of a namespace, by their name in `tools`. Replies name both. */
  namespaces?: ReadonlyMap<string, NamespacedTool>
  /** Functions for tools of another type, by their name in `tools`. Replies have items of the type. */
  clientTools?: ReadonlyMap<string, ClientToolType>
  /** Members of the body that replies of the client's format repeat. */
  repeated?: JsonObject
  /** Fields without a canonical member, by their top-level name. Encoders map each or report it as a loss. */
  rest: Record<string, JsonValue>
  /** Fields that only upstreams of the client's own format accept. */
  native?: NativeField[]
  /** Names of tools that the format's own vendor refuses; upstreams of other formats get names that fit. */
  foreignNames?: { readonly path: string; readonly refusal: string }[]
  /** Headers that only those upstreams accept, by name in lower case. */
  nativeHeaders?: Readonly<Record<string, string>>
  /** Tools and options that the provider runs or bills by itself. */
  hosted?: HostedTool[]
  /** Paths of input that only the provider has: a stored prompt, a cache, a container. */
  unseen?: string[]
  /** Kinds of the reply that the client requests, in lower case; Gemini's `responseModalities`. */
  replyModalities?: readonly string[]
  /** Google's settings for pictures and sound, by their names in `generationConfig`. */
  mediaSettings?: Readonly<Partial<Record<MediaSetting, JsonValue>>>
  /** Number of token ids that the client sent in place of text. */
  tokenIds?: number
  /** Set for embeddings, whose texts are the parts of one message. */
  embedding?: Embedding
  /** Set for operations whose reply is neither a chat nor vectors; likewise. */
  task?: Task
}

/** Whether the reply is a chat: messages, or a legacy completion. */
export function isChat({ embedding, task }: Pick<ChatRequest, 'embedding' | 'task'>): boolean {
  return embedding === undefined && task === undefined
}

/** Whether the reply is pictures, sound or a transcript, whose tokens do not follow from the request. */
export function isMedia({ task }: Pick<ChatRequest, 'task'>): boolean {
  return task !== undefined && task.kind !== 'rerank' && task.kind !== 'moderations'
}

/** Members that a request gets if the client left them out. */
export interface RequestDefaults extends Readonly<
  Partial<
    Pick<
      ChatRequest,
      | 'temperature'
      | 'topP'
      | 'maxOutputTokens'
      | 'reasoningEffort'
      | 'verbosity'
      | 'seed'
      | 'presencePenalty'
      | 'frequencyPenalty'
      | 'parallelToolCalls'
      | 'serviceTier'
    >
  >
> {
  readonly stop?: readonly string[]
}

/** The request with the defaults for what the client left out; the request itself if there is nothing. */
export function withDefaults(request: ChatRequest, defaults: RequestDefaults | null): ChatRequest {
  if (defaults === null || !isChat(request)) return request
  const { stop, ...others } = defaults
  return { ...others, ...(stop === undefined ? {} : { stop: [...stop] }), ...request }
}

/** One input: a text, or the token ids of a text. */
export type EmbeddingInput = string | readonly number[]

/**
 * The part of a request that only embeddings have. Its texts are also the messages, for estimates and limits.
 */
interface Embedding {
  readonly inputs: readonly EmbeddingInput[]
  /** Numbers per vector; absent: the model's default. */
  readonly dimensions?: number
  /** The client requests vectors as base64. */
  readonly base64: boolean
}

/** One vector: the JSON text of an array of numbers, or base64 of 32-bit floats, little-endian. */
export interface Vector {
  readonly form: 'json' | 'base64'
  readonly text: string
}

/** The reply to an embeddings request. */
export interface Vectors {
  readonly vectors: readonly Vector[]
  readonly usage: Usage
  /** The model that served the request, as the upstream names it. */
  readonly model: string | null
}

/** From the least to the most effort. */
export const EFFORTS: readonly ReasoningEffort[] = [
  'none',
  'minimal',
  'low',
  'medium',
  'high',
  'xhigh',
  'max',
]

/**
 * The requested effort, or the next lower that the model supports, or its lowest. `supported` undefined means
 * unknown: the requested effort is returned.
 */
export function nearestEffort(
  requested: ReasoningEffort,
  supported: readonly string[] | undefined,
): ReasoningEffort {
  const known = EFFORTS.filter((effort) => supported?.includes(effort) === true)
  const rank = EFFORTS.indexOf(requested)
  return known.findLast((effort) => EFFORTS.indexOf(effort) <= rank) ?? known[0] ?? requested
}
