/**
 * The interface of plugins, `sluice/pipeline`: guardrails, conditions of routes and observers on canonical
 * requests and events. A plugin is an ES module with a `Plugin` as its default export.
 */
import type { JsonObject } from '../base/json.js'
import type { Message, Tool } from '../formats/chat/request.js'
import type { Usage } from '../formats/chat/usage.js'

export type { JsonObject, Message, Tool, Usage }

/** The request that a call belongs to. Frozen. */
export interface PluginContext {
  readonly request_id: string
  readonly account_id: string
  readonly key_id: string
  /** The labels of the API key. */
  readonly labels: Readonly<Record<string, string>>
  /** Writes a line to the gateway's log. Never pass text of a request. */
  readonly log: (message: string) => void
  /** Aborted when the client has left. */
  readonly signal: AbortSignal
}

/** A text that is judged alone. Frozen. */
export interface JudgedPart {
  readonly on: 'request' | 'response'
  readonly kind: 'text' | 'reasoning' | 'arguments'
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  /** Arguments as JSON text. */
  readonly text: string
  /** The tool of arguments and results; null for any other part. */
  readonly tool: string | null
}

/** The verdict on a part; undefined: it passes. */
export type PluginVerdict =
  undefined | { readonly mask: string } | { readonly block: string } | { readonly report: string }

/** A canonical request. Frozen. */
export interface PluginRequest {
  readonly model: string
  readonly stream: boolean
  readonly system: readonly Message[]
  readonly messages: readonly Message[]
  readonly tools: readonly Tool[]
  readonly labels: Readonly<Record<string, string>>
}

/** A canonical event of a reply, after the guardrails. Frozen. */
export type PluginEvent =
  | { readonly type: 'start'; readonly model: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'refusal'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'tool_call'; readonly name: string; readonly arguments: string }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: string }
  | { readonly type: 'error'; readonly kind: string }

/** The end of a request. Frozen. */
export interface PluginSummary {
  readonly request_id: string
  readonly status: number
  /** `ok`, or a kind of error. */
  readonly outcome: string
  readonly input_tokens: number | null
  readonly output_tokens: number | null
}

/** Judges parts; `timeout_ms` of the guardrail limits it. */
export interface PluginGuardrail {
  readonly judge: (part: JudgedPart, ctx: PluginContext) => PluginVerdict | Promise<PluginVerdict>
}

/** A condition of a route, `when: { plugin: NAME.CONDITION }`. Synchronous, at most 5 ms. */
export type PluginCondition = (request: PluginRequest, ctx: PluginContext) => boolean

/** Sees requests and replies, and changes nothing. */
export interface PluginObserver {
  readonly request?: (request: PluginRequest, ctx: PluginContext) => void
  readonly event?: (event: PluginEvent, ctx: PluginContext) => void
  readonly end?: (summary: PluginSummary, ctx: PluginContext) => void
}

export interface Plugin {
  readonly api: 1
  /** Letters, digits, dashes and underscores. */
  readonly name: string
  readonly guardrails?: Readonly<Record<string, PluginGuardrail>>
  readonly conditions?: Readonly<Record<string, PluginCondition>>
  readonly observers?: Readonly<Record<string, PluginObserver>>
}

/** Returns the plugin; it only adds the types. */
export function definePlugin<T extends Plugin>(plugin: T): T {
  return plugin
}
