/**
 * A request in the emulator's own terms, the same for every provider, and the answer to it.
 * Knows no wire format: each provider's file reads its own and writes its own.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject, JsonValue } from '../chat/json.js'

/** Whose wire format a request speaks. */
export type Provider = 'openai' | 'anthropic' | 'gemini'

/** A request as it arrived, body read and parsed. */
export interface ParsedRequest {
  readonly provider: Provider
  readonly method: string
  /** Below the provider's base, without the query: `/chat/completions`. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** `undefined` where the body was empty or not JSON. */
  readonly body: JsonObject | undefined
  /** The number that everything random-looking in the reply starts from. */
  readonly seed: number
  /** Whether model ids outside the provider's own families are taken too. */
  readonly anyModel: boolean
  /** Seconds since 1970, for `created`. */
  readonly now: number
}

/** A tool that the request offers. */
export interface Tool {
  readonly name: string
  readonly schema: JsonValue | undefined
}

/** A tool's result that the request ends with. */
export interface ToolResult {
  readonly name: string | undefined
  readonly text: string
}

/** What the request asks for. */
export interface ModelInput {
  readonly model: string
  /** The last user message's text, directives included. */
  readonly prompt: string
  /** The results that came after the last model turn; empty where the user spoke last. */
  readonly results: readonly ToolResult[]
  readonly tools: readonly Tool[]
  readonly choice: 'auto' | 'none' | 'required' | { readonly name: string }
  /** Whether more than one call per turn is allowed. */
  readonly parallel: boolean
  /** Media types of the last user message's images. */
  readonly images: readonly string[]
  /** The schema that the answer must fit, or `true` for any JSON object. */
  readonly json: JsonValue | undefined
  readonly stop: readonly string[]
  /** In tokens; `undefined` for no limit. */
  readonly limit: number | undefined
  readonly thinking: boolean
  /** Characters of everything the model would read. */
  readonly inputChars: number
}

/** One call of a tool in an answer. */
export interface ToolCall {
  readonly name: string
  readonly args: JsonObject
}

/** What the emulated model says. */
export interface ModelOutput {
  readonly thinking: string
  readonly text: string
  /** The text again, cut into the pieces of a stream. */
  readonly chunks: readonly string[]
  readonly calls: readonly ToolCall[]
  readonly end: 'stop' | 'length' | 'tool'
  /** The stop sequence that ended it. */
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
  /** How many units at the end only say that the stream is over. */
  readonly terminators: number
  /** Tokens of the whole answer, as the provider counts and bills them. */
  readonly counted?: { readonly input: number; readonly output: number }
  /** The same answer as a whole body, for `200 JSON on a stream request`. */
  readonly whole?: () => Reply
}

/** How a provider says things that no normal reply holds. */
export interface FrameWriter {
  /** An error body for a status; `type` overrides the provider's own word for it. */
  errorBody(status: number, message: string, type?: string): string
  /** A framed event that carries an error in the middle of a stream. */
  errorEvent(type?: string): string
  /** A framed event of a type that nobody has defined, with extra fields. */
  unknownEvent(): string
  /** Any data as a framed event. */
  frame(data: string): string
  /** A framed text delta. */
  textEvent(text: string): string
  /** A framed keep-alive, or a comment where the provider has none. */
  ping(): string
  readonly streamHeaders: Readonly<Record<string, string>>
  readonly wholeHeaders: Readonly<Record<string, string>>
}

/** Thrown by a provider's reader: the request breaks one of that provider's rules. */
export class Refusal extends Error {
  readonly reply: Reply

  constructor(reply: Reply) {
    super(`refused with ${reply.status}`)
    this.reply = reply
  }
}

/** ≈ 4 characters per token, the rule that every emulated count follows. */
export function tokensOf(chars: number): number {
  return Math.ceil(chars / 4)
}
