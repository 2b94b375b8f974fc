/**
 * The types of an emulated exchange: the HTTP request, the input and output of the model, and the HTTP reply.
 * They are the same for every provider.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject, JsonValue } from '../base/json.js'

/** The provider whose wire format a request has. */
export type Provider = 'openai' | 'anthropic' | 'gemini' | 'bedrock'

/** An HTTP request with its parsed body. */
export interface ParsedRequest {
  readonly provider: Provider
  readonly method: string
  /** The path below the provider's base, without the query: `/chat/completions`. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** `undefined` if the body was empty or not JSON. */
  readonly body: JsonObject | undefined
  /** The seed of random values in the reply. */
  readonly seed: number
  /** Whether model ids outside the provider's families are accepted. */
  readonly anyModel: boolean
  /** Seconds since 1970, for `created`. */
  readonly now: number
}

/** A tool that the request offers. */
export interface Tool {
  readonly name: string
  readonly schema: JsonValue | undefined
}

/** A tool result at the end of the request. */
export interface ToolResult {
  readonly name: string | undefined
  readonly text: string
}

/** The input of the model, independent of the format. */
export interface ModelInput {
  readonly model: string
  /** The last user message's text, directives included. */
  readonly prompt: string
  /** The tool results after the last model turn; empty if the last message is the user's. */
  readonly results: readonly ToolResult[]
  readonly tools: readonly Tool[]
  readonly choice: 'auto' | 'none' | 'required' | { readonly name: string }
  /** Whether several tool calls per turn are allowed. */
  readonly parallel: boolean
  /** Media types of the last user message's images. */
  readonly images: readonly string[]
  /** The schema of structured output, or `true` for any JSON object. */
  readonly json: JsonValue | undefined
  readonly stop: readonly string[]
  /** Maximum output tokens; `undefined` for no limit. */
  readonly limit: number | undefined
  readonly thinking: boolean
  /** Characters of the whole input. */
  readonly inputChars: number
}

export interface ToolCall {
  readonly name: string
  readonly args: JsonObject
}

export interface ModelOutput {
  readonly thinking: string
  readonly text: string
  /** The text, split into the chunks of a stream. */
  readonly chunks: readonly string[]
  readonly calls: readonly ToolCall[]
  readonly end: 'stop' | 'length' | 'tool'
  /** The stop sequence that ended the text. */
  readonly stopped: string | undefined
  readonly usage: { readonly input: number; readonly output: number; readonly thinking: number }
}

/** A reply ready to be sent: a body, or the events of a stream, each already framed. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** A whole body is one unit. */
  readonly units: readonly (string | Buffer)[]
  readonly stream: boolean
  /** Number of units at the end that terminate the stream. */
  readonly terminators: number
  /** Tokens of the whole output, as the provider bills them. */
  readonly counted?: { readonly input: number; readonly output: number }
  /** The same output as a whole body, for `200 JSON on a stream request`. */
  readonly whole?: () => Reply
}

/** A whole reply with status 200; `counted` is omitted if the provider bills nothing. */
export function wholeReply(
  headers: Reply['headers'],
  body: string,
  counted?: NonNullable<Reply['counted']>,
): Reply {
  const reply = { status: 200, headers, units: [body], stream: false, terminators: 0 }
  return counted === undefined ? reply : { ...reply, counted }
}

/** A whole reply with an error status. */
export function errorReply(status: number, headers: Reply['headers'], body: string): Reply {
  return { status, headers, units: [body], stream: false, terminators: 0 }
}

/** Both forms of a reply; each is made on demand. */
interface ReplyForms {
  readonly wholeHeaders: Reply['headers']
  readonly body: () => string
  readonly streamHeaders: Reply['headers']
  /** The events of the stream; the last one is its terminator. */
  readonly units: () => readonly (string | Buffer)[]
  readonly counted: NonNullable<Reply['counted']>
}

/** The reply as a stream or as a whole. */
export function replyInForm(isStream: boolean, forms: ReplyForms): Reply {
  const { wholeHeaders, body, streamHeaders, units, counted } = forms
  const whole = (): Reply => wholeReply(wholeHeaders, body(), counted)
  if (!isStream) return whole()
  return {
    status: 200,
    headers: streamHeaders,
    units: units(),
    stream: true,
    terminators: 1,
    whole,
    counted,
  }
}

/** Writes the frames of a provider's format that faults need. */
export interface FrameWriter {
  /** An error body for a status; `type` overrides the provider's error type. */
  errorBody(status: number, message: string, type?: string): string
  /** An error event for the middle of a stream. */
  errorEvent(type?: string): string | Buffer
  /** An event of an undefined type, with extra fields. */
  unknownEvent(): string | Buffer
  /** Any data as an event. */
  frame(data: string): string | Buffer
  /** A text delta. */
  textEvent(text: string): string | Buffer
  /** A keep-alive event, or a comment if the format has none. */
  ping(): string | Buffer
  readonly streamHeaders: Readonly<Record<string, string>>
  readonly wholeHeaders: Readonly<Record<string, string>>
}

/** Thrown for a request that breaks a rule of the provider; `reply` is the provider's error. */
export class Refusal extends Error {
  readonly reply: Reply

  constructor(reply: Reply) {
    super(`refused with ${reply.status}`)
    this.reply = reply
  }
}

/** The reply, or the error of the provider for a request that it refuses. */
export function replyOrRefusal(reply: () => Reply): Reply {
  try {
    return reply()
  } catch (error) {
    if (error instanceof Refusal) return error.reply
    throw error
  }
}

/** All emulated counts assume 4 characters per token. */
export function tokensOf(chars: number): number {
  return Math.ceil(chars / 4)
}
