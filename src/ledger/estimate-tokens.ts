/**
 * Estimates the tokens of a request or reply without a tokenizer: if an upstream did not report them, and for the maximum
 * that a request may need. The rates are fitted to recorded traffic; `docs/reference/ledger.md` states the error.
 */
import type { JsonValue } from '../chat/json.js'
import type { ModelFamily } from '../chat/model.js'
import type { OutputSize } from '../chat/reply/output-size.js'
import type { ChatRequest, MediaSource, ThinkingPart, UserPart } from '../chat/request.js'

/** The sizes of the parts of a request that become tokens. */
export interface PromptSize {
  /** UTF-8, of instructions, turns and calls. */
  textBytes: number
  messages: number
  tools: number
  /** Of the tools, as JSON. */
  toolBytes: number
  /** Of the schema that the reply must follow, as JSON. */
  schemaBytes: number
  images: number
  /** Documents and audio. */
  files: number
  /** Of their bytes, where they are inline, and of sealed reasoning that comes back. */
  fileBytes: number
}

/** All sizes 0. */
export function emptyPromptSize(): PromptSize {
  return {
    textBytes: 0,
    messages: 0,
    tools: 0,
    toolBytes: 0,
    schemaBytes: 0,
    images: 0,
    files: 0,
    fileBytes: 0,
  }
}

/** Tokens per unit of each size. Fitted by hand to the recordings; `bench/suites/tokens.ts` shows the error. */
interface Rates {
  readonly textByte: number
  readonly message: number
  /** Once, if there are tools: the vendor's own instructions about them. */
  readonly tooling: number
  readonly toolByte: number
  readonly schemaByte: number
  readonly image: number
  readonly file: number
  readonly fileByte: number
  /** Of a reply: the overhead of one tool call. */
  readonly call: number
}

/**
 * All vendors come to about four bytes of text a token, in any script (1 byte a letter in Latin, 2 in
 * Cyrillic, 3 in Chinese). They differ in what they add: Claude's own words about tools, its grammar for
 * schemas, and what a picture counts (OpenAI tiles, Anthropic pixels, Google a fixed number).
 */
const RATES: Readonly<Record<ModelFamily, Rates>> = {
  openai: {
    textByte: 0.25,
    message: 5,
    tooling: 0,
    toolByte: 0.15,
    schemaByte: 0.2,
    image: 1_000,
    file: 1_000,
    fileByte: 0.002,
    call: 8,
  },
  anthropic: {
    textByte: 0.25,
    message: 5,
    tooling: 480,
    toolByte: 0.4,
    schemaByte: 0.85,
    image: 1_500,
    file: 1_500,
    fileByte: 0.02,
    call: 35,
  },
  google: {
    textByte: 0.24,
    message: 1,
    tooling: 0,
    toolByte: 0.18,
    schemaByte: 0.02,
    image: 700,
    file: 300,
    fileByte: 0.002,
    call: 3,
  },
}

/**
 * No byte-level vocabulary has more tokens than bytes. The other rates are the maximum that a vendor documents or a
 * recording shows: an image at full resolution, the instructions about tools, the markers around a turn.
 */
const MOST: Readonly<Record<ModelFamily, Rates>> = {
  openai: most(40_000),
  anthropic: most(5_000),
  google: most(2_300),
}

function most(image: number): Rates {
  const one = { textByte: 1, toolByte: 1, schemaByte: 1, fileByte: 1 }
  return { ...one, message: 32, tooling: 1_000, image, file: 20_000, call: 64 }
}

/** Maximum length of the instructions that some vendors put before the first turn. */
const MOST_PREAMBLE = 200

/** The sizes of a request. */
export function promptSizeOf(request: ChatRequest): PromptSize {
  const bulk = emptyPromptSize()
  for (const message of request.messages) {
    bulk.messages += 1
    for (const part of message.parts) {
      if (part.type === 'thinking') addThinking(bulk, part)
      else if (part.type === 'opaque') bulk.textBytes += jsonBytes(part.block)
      else addPart(bulk, part)
    }
    if (message.role !== 'assistant') continue
    for (const { name, arguments: json, signature = '' } of message.toolCalls) {
      bulk.textBytes += name.length + Buffer.byteLength(json)
      bulk.fileBytes += signature.length
    }
  }
  for (const { name, description = '', parameters, custom } of request.tools) {
    bulk.tools += 1
    bulk.toolBytes += 40 + name.length + Buffer.byteLength(description)
    if (parameters !== undefined) bulk.toolBytes += jsonBytes(parameters)
    if (custom?.format !== undefined) bulk.toolBytes += jsonBytes(custom.format)
  }
  // In every vocabulary, a token is about four bytes of text.
  bulk.textBytes += 4 * (request.tokenIds ?? 0)
  const format = request.responseFormat
  if (format?.type === 'json-schema') bulk.schemaBytes += jsonBytes(format.schema)
  return bulk
}

function addThinking(bulk: PromptSize, { text, signature, redacted }: ThinkingPart): void {
  bulk.textBytes += Buffer.byteLength(text)
  bulk.fileBytes += (signature?.length ?? 0) + (redacted?.length ?? 0)
}

function addPart(bulk: PromptSize, part: UserPart): void {
  switch (part.type) {
    case 'text':
      bulk.textBytes += part.textBytes ?? Buffer.byteLength(part.text)
      bulk.fileBytes += part.signature?.length ?? 0
      return
    case 'image':
      bulk.images += 1
      return
    case 'file':
      bulk.files += 1
      bulk.fileBytes += inlineBytes(part.source)
      return
    case 'audio':
      bulk.files += 1
      bulk.fileBytes += (part.data.length * 3) / 4
      return
    default:
      part satisfies never
  }
}

function inlineBytes(source: MediaSource): number {
  return source.kind === 'base64' ? (source.data.length * 3) / 4 : 0
}

/** The approximate size of the value as JSON, in a quarter of the time of writing it. */
export function jsonBytes(value: JsonValue): number {
  if (typeof value === 'string') return Buffer.byteLength(value) + 2
  if (value === null || typeof value !== 'object') return String(value).length
  let bytes = 2
  if (Array.isArray(value)) {
    for (const each of value) bytes += 1 + jsonBytes(each)
    return bytes
  }
  for (const key of Object.keys(value)) {
    bytes += key.length + 4 + jsonBytes(value[key] ?? null)
  }
  return bytes
}

/** The estimated number of prompt tokens. */
export function inputTokens(bulk: PromptSize, family: string): number {
  return Math.max(1, Math.ceil(weighed(bulk, ratesOf(RATES, family))))
}

/**
 * An upper bound of the prompt tokens. The size of media by URL or id is unknown; each counts as one large item. Callers
 * reduce the bound to the model's context window.
 */
export function maxInputTokens(bulk: PromptSize, family: string): number {
  return Math.ceil(weighed(bulk, ratesOf(MOST, family))) + MOST_PREAMBLE
}

/** Models of other vendors count as OpenAI's, whose format their upstreams use. */
function ratesOf(table: Readonly<Record<ModelFamily, Rates>>, family: string): Rates {
  return family === 'anthropic' || family === 'google' ? table[family] : table.openai
}

function weighed(bulk: PromptSize, rates: Rates): number {
  return (
    bulk.textBytes * rates.textByte +
    bulk.messages * rates.message +
    (bulk.tools > 0 ? rates.tooling : 0) +
    bulk.toolBytes * rates.toolByte +
    bulk.schemaBytes * rates.schemaByte +
    bulk.images * rates.image +
    bulk.files * rates.file +
    bulk.fileBytes * rates.fileByte
  )
}

/** About as many tokens as these words are; at least 1 where there are any. Hidden reasoning is not in it. */
export function outputTokens({ bytes, calls }: OutputSize, family: string): number {
  return Math.ceil(bytes / 4 + calls * ratesOf(RATES, family).call)
}
