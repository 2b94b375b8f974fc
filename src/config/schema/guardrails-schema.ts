/**
 * The keys of guardrails and plugins. Part of `config-file-schema.ts`; `check-guardrails.ts` checks the
 * values.
 */
import { DAY_MS } from '../../base/time-units.js'
import * as z from 'zod'
import { accountSelector } from '../../accounts/account.js'
import { PERSONAL_NAMES } from '../../policy/rules/built-in-rules.js'
import type { Immutable } from './section.js'
import { name, text, whole } from './value-types.js'

/** `PLUGIN.NAME` */
export const pluginHook = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, {
    error: 'must be PLUGIN.NAME, as in acme.lunch',
  })

/** `plugins:` */
export const pluginsSchema = z
  .array(text(4_096))
  .max(64)
  .default([])
  .describe(
    'ES modules with guardrails, conditions of routes and observers, as `sluice/pipeline` describes them. A relative path starts at this file. They run in the process of the gateway and are trusted.',
  )

const applyTo = z
  .strictObject({
    all: z.literal(true).optional().describe('All requests.'),
    labels: z
      .record(text(64), text(256))
      .optional()
      .describe('Requests whose API key has these labels, all of them.'),
    accounts: z
      .array(text(320))
      .min(1)
      .max(10_000)
      .optional()
      .describe('Requests of these accounts, by name, id or e-mail address.'),
  })
  .describe(
    'Judges these requests on every route, after the guardrails of the route: one of `all`, `labels` and `accounts`.',
  )

const breaker = z
  .strictObject({
    failures: whole(1, 1_000)
      .default(5)
      .describe(
        'Consecutive errors after which the server or plugin is not called: connection, time and protocol. Errors for an account count for it alone, and while as many happen for others, its first one is enough; a server that cannot be connected to is called for none. A text that the server refuses (4xx, but 408 counts), that is too large, or that is above 64 KiB and judged too late does not count.',
      ),
    open_seconds: z
      .number()
      .gt(0)
      .max(86_400)
      .default(10)
      .describe('How long it is not called; then one call tests it.'),
  })
  .prefault({})
  .describe(
    'The circuit breaker of the guardrail. While it is open, no call is made and `on_error` decides at once.',
  )

const SIDES = ['request', 'response'] as const

/** `guardrails.NAME` */
export const guardrailSchema = z.strictObject({
  patterns: z
    .array(text(4_096))
    .min(1)
    .max(256)
    .optional()
    .describe(
      'Built-in rules (`aws_access_key`, `private_key`, `github_token`, `slack_token`, `google_api_key`, `llm_api_key`, `stripe_key`, `jwt`) or regular expressions in RE2 syntax. Look-around, back-references and expressions that match the empty text are refused.',
    ),
  detect: z
    .array(z.enum(PERSONAL_NAMES))
    .min(1)
    .max(PERSONAL_NAMES.length)
    .optional()
    .describe('Built-in rules for personal data. `card` and `iban` check the checksum.'),
  deny_tools: z
    .array(text(256))
    .min(1)
    .max(1_000)
    .optional()
    .describe(
      'Names of tools that replies may not call; `*` at the end matches any suffix. Only with `on: [response]` and `action: block` or `report`.',
    ),
  url: text(2_048).optional().describe('The address of a guard server. It may be private or loopback.'),
  protocol: z
    .enum(['webhook', 'litellm', 'moderations'])
    .optional()
    .describe(
      "The protocol of the guard server: `webhook` (agentgateway: `URL/request`, `URL/response`), `litellm` (LiteLLM's generic guardrail API) or `moderations` (`URL/moderations`, as OpenAI's). Required with `url`.",
    ),
  plugin: pluginHook.optional().describe('`PLUGIN.NAME`: a guardrail of a plugin that `plugins` loads.'),
  on: z
    .array(z.enum(SIDES))
    .min(1)
    .max(2)
    .optional()
    .describe('What is judged. Default: both; with `deny_tools`: `[response]`.'),
  action: z
    .enum(['block', 'mask', 'report'])
    .optional()
    .describe(
      'What a match does. `block`: the request or reply is refused. `mask`: the match is replaced by `[NAME]`. `report`: it is only noted. With `url` or `plugin` the verdict decides, and the only value is `report`. Default: `block`.',
    ),
  stream: z
    .enum(['window', 'buffer'])
    .default('window')
    .describe(
      'How streams are judged. `window`: at most `window_chars` are held back at a time. `buffer`: nothing is sent before the whole reply was judged.',
    ),
  window_chars: whole(16, 8_192)
    .default(400)
    .describe('Maximum number of characters of text or reasoning that are held back.'),
  overlap_chars: whole(0, 8_191)
    .optional()
    .describe(
      'The end of a judged window that is held back and judged again with what follows; less than `window_chars`. Default: a quarter of it.',
    ),
  timeout_ms: whole(1, DAY_MS)
    .optional()
    .describe(
      'Maximum time of one judgement: connection, request and whole reply; of own rules, CPU time for a request, and for a whole reply in all its events. Default: 1000, with `plugin` 50.',
    ),
  on_error: z
    .enum(['open', 'closed'])
    .default('closed')
    .describe(
      'What happens if the guard fails. `closed`: 503 `guardrail_unavailable`. `open`: the request continues, and the failure is noted. A request whose text is too large to be judged is refused with 413 in both cases, unless `action` is `report`.',
    ),
  max_text_bytes: whole(1, 67_108_864)
    .default(1_048_576)
    .describe(
      'Maximum size of the text of one call to a guard server. More texts are judged in several calls, at most 16; a single text above it is refused with 413. Neither counts for the breaker.',
    ),
  max_reply_bytes: whole(1, 67_108_864)
    .default(4_194_304)
    .describe(
      'Maximum size of the reply of a guard server; more is an error, which does not count for the breaker.',
    ),
  proxy: text(2_048)
    .optional()
    .describe(
      'The HTTP proxy to reach the guard server through, as `proxy` of an upstream: `env` (the default), `none` or a URL.',
    ),
  headers: z.record(text(256), text(8_192)).optional().describe('Headers for each call of the guard server.'),
  params: z
    .record(text(256), z.json())
    .optional()
    .describe('`additional_provider_specific_params` of the protocol `litellm`.'),
  model: text(256)
    .optional()
    .describe('The model of the protocol `moderations`. Default: `omni-moderation-latest`.'),
  thresholds: z
    .record(text(256), z.number().min(0).max(1))
    .optional()
    .describe(
      'Scores by category, for the protocol `moderations`: a score at or above its number blocks, and `flagged` is ignored.',
    ),
  breaker,
  unseen: z
    .enum(['report', 'block'])
    .default('report')
    .describe(
      'What happens with content that is not judged: images, audio, files, conversations that the provider holds, and members of the body that may have text, such as descriptions of tools.',
    ),
  apply_to: applyTo.optional(),
})

/** `guardrails:` */
export const guardrailsSchema = z
  .record(name, guardrailSchema)
  .refine((value) => Object.keys(value).length <= 1_000, {
    error: 'must have at most 1000 entries',
  })
  .default({})
  .describe(
    'Guardrails on the text of requests and replies, by a name of your choice. Each has one source: `patterns` and `detect`, `deny_tools`, `url`, or `plugin`.',
  )

/** A list of guardrails, of a route or an upstream. */
export const guardrailNames = z.array(name).max(64)

/** The checked values of a guardrail in the file's spelling. */
export type GuardrailValues = z.output<typeof guardrailSchema>

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

/** A server that decides. */
export type GuardServerConfig = Immutable<ReturnType<typeof guardServerOf>>

/** The requests that a guardrail judges on every route. */
export type AppliedTo =
  | { readonly all: true }
  | { readonly labels: Readonly<Record<string, string>> }
  /** Names, ids or e-mail addresses in lower case. */
  | { readonly accounts: readonly string[] }

export type GuardrailConfig = Immutable<ReturnType<typeof guardrailOf>>

/** A direction that a guardrail judges. */
export type GuardSide = GuardrailConfig['on'][number]

const DEFAULT_MODEL = 'omni-moderation-latest'
const TIMEOUT_MS = 1_000
const PLUGIN_TIMEOUT_MS = 50

/** The resolved form, in file order; only for values without findings of `checkGuardrails`. */
export function guardrailsOf(values: z.output<typeof guardrailsSchema>): GuardrailConfig[] {
  return Object.entries(values).map(guardrailOf)
}

function guardrailOf([name, guardrail]: [string, GuardrailValues]) {
  const source = sourceOf(guardrail)
  const isPlugin = source.kind === 'plugin'
  return {
    name,
    source,
    on: guardrail.on ?? (source.kind === 'tools' ? [SIDES[1]] : SIDES),
    /** Of servers and plugins: `report`, or `block` if their verdict decides. */
    action: guardrail.action ?? 'block',
    stream: guardrail.stream,
    /** Characters, as code points. */
    windowChars: guardrail.window_chars,
    overlapChars: guardrail.overlap_chars ?? Math.floor(guardrail.window_chars / 4),
    timeoutMs: guardrail.timeout_ms ?? (isPlugin ? PLUGIN_TIMEOUT_MS : TIMEOUT_MS),
    onError: guardrail.on_error,
    maxTextBytes: guardrail.max_text_bytes,
    maxReplyBytes: guardrail.max_reply_bytes,
    breaker: {
      failures: guardrail.breaker.failures,
      openMs: guardrail.breaker.open_seconds * 1_000,
    },
    /** What happens with content that it cannot read. */
    unseen: guardrail.unseen,
    /** Null: only on routes that name it. */
    applyTo: guardrail.apply_to === undefined ? null : appliedTo(guardrail.apply_to),
  }
}

function appliedTo({ labels, accounts }: z.output<typeof applyTo>): AppliedTo {
  if (labels !== undefined) return { labels }
  if (accounts === undefined) return { all: true }
  return { accounts: accounts.map(accountSelector) }
}

function sourceOf(guardrail: GuardrailValues): GuardrailSource {
  const { patterns = [], detect = [], deny_tools, url, plugin } = guardrail
  if (deny_tools !== undefined) return { kind: 'tools', deny: deny_tools }
  if (plugin !== undefined) return { kind: 'plugin', plugin }
  return url === undefined ? { kind: 'rules', patterns, detect } : guardServerOf(url, guardrail)
}

function guardServerOf(url: string, guardrail: GuardrailValues) {
  const params: Readonly<Record<string, unknown>> = guardrail.params ?? {}
  return {
    kind: 'server' as const,
    /** Without a trailing slash. */
    url: url.endsWith('/') ? url.slice(0, -1) : url,
    protocol: guardrail.protocol ?? 'webhook',
    /** `env`, `none` or the URL of a proxy. */
    proxy: guardrail.proxy ?? 'env',
    headers: guardrail.headers ?? {},
    params,
    model: guardrail.model ?? DEFAULT_MODEL,
    /** Scores from which on a category blocks; null: the server decides. */
    thresholds: guardrail.thresholds ?? null,
  }
}
