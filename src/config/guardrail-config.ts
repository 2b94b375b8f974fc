/** The configuration of guardrails as the code reads it. Part of `config.ts`. */

/** What decides. */
export type GuardrailSource =
  | {
      readonly kind: 'rules'
      /** Names of built-in rules, or RE2 expressions. */
      readonly patterns: readonly string[]
      readonly detect: readonly string[]
    }
  /** Names of tools, `*` at the end matches any suffix. */
  | { readonly kind: 'tools'; readonly deny: readonly string[] }
  | GuardServerConfig
  /** `PLUGIN.NAME` */
  | { readonly kind: 'plugin'; readonly plugin: string }

/** The protocol of a guard server. */
export type GuardProtocol = 'webhook' | 'litellm' | 'moderations'

/** A server that decides. */
export interface GuardServerConfig {
  readonly kind: 'server'
  /** Without a trailing slash. */
  readonly url: string
  readonly protocol: GuardProtocol
  readonly headers: Readonly<Record<string, string>>
  readonly params: Readonly<Record<string, unknown>>
  readonly model: string
  /** Scores from which on a category blocks; null: the server decides. */
  readonly thresholds: Readonly<Record<string, number>> | null
}

/** A direction that a guardrail judges. */
export type GuardSide = 'request' | 'response'

/** The requests that a guardrail judges on every route. */
export type AppliedTo =
  | { readonly all: true }
  | { readonly labels: Readonly<Record<string, string>> }
  /** Names, ids or e-mail addresses in lower case. */
  | { readonly accounts: readonly string[] }

/** One guardrail. */
export interface GuardrailConfig {
  readonly name: string
  readonly source: GuardrailSource
  readonly on: readonly GuardSide[]
  /** Of servers and plugins: `report`, or `block` if their verdict decides. */
  readonly action: 'block' | 'mask' | 'report'
  readonly stream: 'window' | 'buffer'
  /** Characters, as code points. */
  readonly windowChars: number
  readonly overlapChars: number
  readonly timeoutMs: number
  readonly onError: 'open' | 'closed'
  readonly maxTextBytes: number
  readonly maxReplyBytes: number
  readonly breaker: { readonly failures: number; readonly openMs: number }
  /** What happens with content that it cannot read. */
  readonly unseen: 'report' | 'block'
  /** Null: only on routes that name it. */
  readonly applyTo: AppliedTo | null
}

/** A module of the operator. */
export interface PluginConfig {
  /** Its file, and the files that it imports by relative paths, directly or not. */
  readonly files: readonly string[]
  /** Absolute. */
  readonly path: string
  /** Identifies its content. */
  readonly hash: string
}
