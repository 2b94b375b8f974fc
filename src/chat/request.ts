/**
 * A conversation as it is asked for, in no dialect's words.
 * Holds what survives translation; how a field is spelled is each dialect's own business.
 */
import type { Embedding } from './embedding.js'
import type { JsonObject, JsonValue } from './json.js'

/**
 * A cache marker that a client set on a part or tool (Anthropic's `cache_control`, OpenAI's breakpoints).
 * `breakpoint` is what one of OpenAI's said, for an upstream that knows them.
 */
export interface CacheMark {
  ttl: '5m' | '1h'
  breakpoint?: { ttl?: '30m' | '12h' }
}

/** Words. `signature` is state of Gemini's that must come back with them, even where they are empty. */
export interface TextPart {
  type: 'text'
  text: string
  /** The UTF-8 length of `text`; given for a long text, which is decoded when it is first read. */
  textBytes?: number
  signature?: string
  cache?: CacheMark
}

/** Where bytes come from: inline base64 (standard alphabet, no newlines), a URL, or a provider's file id. */
export type MediaSource =
  | { kind: 'base64'; mediaType: string; data: string }
  | { kind: 'url'; url: string }
  /** `origin`: the dialect in which its provider is spoken to; absent: one of OpenAI's. */
  | { kind: 'file-id'; id: string; origin?: string }

/** A picture, by address or by its bytes. */
export interface ImagePart {
  type: 'image'
  source: MediaSource
  detail?: 'auto' | 'low' | 'high' | 'original'
  cache?: CacheMark
}

/** A document, by address, by its bytes or by the provider’s id. */
export interface FilePart {
  type: 'file'
  source: MediaSource
  filename?: string
  cache?: CacheMark
}

/** Audio the user spoke: `format` as OpenAI spells it. */
export interface AudioPart {
  type: 'audio'
  format: string
  data: string
}

/** What a user may say. */
export type UserPart = TextPart | ImagePart | FilePart | AudioPart

/** Reasoning a client sent back; `origin` names the dialect whose state it is. */
export interface ThinkingPart {
  type: 'thinking'
  text: string
  signature?: string
  redacted?: string
  origin?: string
}

/** A whole vendor block that only its own provider understands. */
export interface OpaquePart {
  type: 'opaque'
  provider: string
  block: JsonObject
}

/** What a model may have said, save its tool calls. */
export type AssistantPart = TextPart | ThinkingPart | OpaquePart

/** A call the model made. `arguments` is the raw text; it may not be JSON. */
export interface ToolCall {
  id: string
  name: string
  arguments: string
  custom?: boolean
  signature?: string
  cache?: CacheMark
}

/**
 * One turn. `index` is its place in the client's `messages`, for error messages.
 * Assistant content stands before its tool calls; a tool message answers one call.
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

/** Whether the model may, must or must not call tools, or which one it must. */
export type ToolChoice =
  | { mode: 'auto' }
  | { mode: 'none' }
  | { mode: 'required' }
  | { mode: 'named'; name: string }
  | { mode: 'allowed'; required: boolean; names: string[] }

/** The form that the answer must have. */
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

/** How much the model is to think, least first. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/**
 * Something that only an upstream of the client's own format takes, by its path. Elsewhere it is reported as lost, or
 * refused with `refusal` if the reply would be wrong without it.
 */
export interface NativeField {
  path: string
  refusal?: string
}

/** A tool as the client names it. */
export interface NamespacedTool {
  readonly namespace: string
  readonly name: string
}

/** A parsed and validated request. Absent means the client did not say. */
export interface ChatRequest {
  /** The model id as the upstream is to see it. */
  model: string
  messages: Message[]
  stream: boolean
  /** The client asked for the final usage chunk of a stream. */
  includeUsage: boolean
  tools: Tool[]
  toolChoice?: ToolChoice
  parallelToolCalls?: boolean
  /** The client spoke the legacy `functions` form and expects `function_call` back. */
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
  logprobs?: boolean
  topLogprobs?: number
  responseFormat?: ResponseFormat
  reasoningEffort?: ReasoningEffort
  verbosity?: 'low' | 'medium' | 'high'
  /** The end user's stable id (`safety_identifier`, else `user`). */
  userId?: string
  serviceTier?: string
  /** The client does not want to read the model's reasoning; only its state goes back to it. */
  hidesThoughts?: boolean
  /** The client wants the state of the model's reasoning in the reply, to send it back with the next request. */
  includeReasoningState?: boolean
  /** Tools that the client keeps in a namespace, by the name that they have in `tools`; replies name both. */
  namespaces?: ReadonlyMap<string, NamespacedTool>
  /** Members of the body that the client's format repeats in its replies. */
  repeated?: JsonObject
  /** Fields that the canon has no place for, by their top-level name; an encoder maps or reports each. */
  rest: Record<string, JsonValue>
  /** What only upstreams of the client's own format take. */
  native?: NativeField[]
  /** Headers that only those take, by name in lower case. */
  nativeHeaders?: Readonly<Record<string, string>>
  /** Token ids that the client sent in place of text, counted. */
  tokenIds?: number
  /** Set for a request for embeddings, which has one message with all its texts. */
  embedding?: Embedding
}
