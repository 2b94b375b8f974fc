/**
 * Presets of vendors with the chat-completions format: their URLs and their deviations from the format. Data
 * only; a preset supplies values for the keys of an upstream.
 *
 * Sources, read 2026-11-20: each vendor's documentation, named beside it. Deviations that are not documented
 * come from users' reports and are marked so.
 */
import type { ModelPrice } from '../formats/chat/model-facts.js'

/** Edits to request bodies for an upstream that deviates from its dialect; data, not code. */
export interface QuirksConfig {
  readonly drop: readonly string[]
  readonly rename: Readonly<Record<string, string>>
  readonly set: Readonly<Record<string, unknown>>
  /** The same for each entry of `messages`; `roles` maps role names. */
  readonly messages: {
    readonly drop: readonly string[]
    readonly rename: Readonly<Record<string, string>>
    readonly roles: Readonly<Record<string, string>>
  }
  /** Replies in the client's own format: passed through as bytes, or decoded and encoded again. */
  readonly replies: 'pass' | 'rewrite'
}

/** The values that a preset supplies to an upstream. */
export interface Preset {
  /** The vendor's name. */
  readonly title: string
  /** Null if every customer has a separate URL. */
  readonly baseUrl: string | null
  /** The header that carries the key without a prefix; null: `Authorization: Bearer`. */
  readonly keyHeader: string | null
  readonly quirks: QuirksConfig
  /** Quirks for embeddings; absent if there are none. */
  readonly embeddings?: QuirksConfig
  /** Prices of its embedding models, which are in no catalogue. */
  readonly prices?: Readonly<Record<string, ModelPrice>>
  /** Whether it has the legacy endpoint `/completions`. */
  readonly completions?: true
}

export const PLAIN: QuirksConfig = {
  drop: [],
  rename: {},
  set: {},
  messages: { drop: [], rename: {}, roles: {} },
  replies: 'pass',
}

/** Fields of OpenAI's own service, which strict vendors refuse. */
const OPENAI_SERVICE = [
  'metadata',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'store',
  'verbosity',
]

/** Fields of earlier replies that clients send back; vendors that validate messages refuse them. */
const ECHOES = ['annotations', 'name', 'reasoning_content', 'reasoning_details', 'refusal']

/** The older name `max_tokens` is the only one that these vendors support. */
const OLD_LIMIT = { max_completion_tokens: 'max_tokens' }

/** Chat templates of open models support only `system`. */
const SYSTEM_ONLY = { developer: 'system' }

/** The names of the presets in the file, in the order of the documentation. */
export const PRESET_NAMES = [
  'azure',
  'openrouter',
  'groq',
  'mistral',
  'deepseek',
  'xai',
  'together',
  'fireworks',
  'ollama',
  'vllm',
] as const

export type PresetName = (typeof PRESET_NAMES)[number]

export const PRESETS: Readonly<Record<PresetName, Preset>> = {
  // "Azure OpenAI in Azure AI Foundry Models REST API reference": the key in `api-key`.
  azure: { title: 'Azure OpenAI', baseUrl: null, keyHeader: 'api-key', quirks: PLAIN },
  // "API Reference": unknown fields are ignored; an error may occur beside the choices (recorded).
  openrouter: {
    title: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    completions: true,
    keyHeader: null,
    quirks: PLAIN,
  },
  // "OpenAI Compatibility": 400 for logprobs, logit_bias, top_logprobs and a message's name. Users report the
  // same for `store` and for `reasoning_content` in messages. Usage of a stream is in `x_groq`, and compound
  // models change the id with every chunk (both recorded).
  groq: {
    title: 'Groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['logit_bias', 'logprobs', 'prediction', 'top_logprobs', ...OPENAI_SERVICE],
      messages: { ...PLAIN.messages, drop: ECHOES },
      replies: 'rewrite',
    },
  },
  // "Chat Completion API": `random_seed`, `max_tokens`; 422 `extra_forbidden` for any other field, in
  // messages too (users' reports). Replies of thinking models are lists of parts (recorded).
  mistral: {
    title: 'Mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: [
        'logit_bias',
        'logprobs',
        'service_tier',
        'stream_options',
        'top_logprobs',
        'user',
        ...OPENAI_SERVICE,
      ],
      rename: { ...OLD_LIMIT, seed: 'random_seed' },
      messages: { drop: ['reasoning', ...ECHOES], rename: {}, roles: SYSTEM_ONLY },
      replies: 'rewrite',
    },
    // "Embeddings": `output_dimension`.
    embeddings: { ...PLAIN, drop: ['user'], rename: { dimensions: 'output_dimension' } },
    // "Pricing".
    prices: {
      'mistral-embed': { input: 0.1, output: 0 },
      'codestral-embed': { input: 0.15, output: 0 },
    },
  },
  // "Thinking Mode": the reasoning of a turn with calls must be sent back as `reasoning_content`. "Create
  // Chat Completion": `max_tokens`, and no role `developer`.
  deepseek: {
    title: 'DeepSeek',
    baseUrl: 'https://api.deepseek.com',
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { drop: [], rename: { reasoning: 'reasoning_content' }, roles: SYSTEM_ONLY },
    },
  },
  // "Reasoning": reasoning models, which all current ones are, refuse the penalties. They refuse `stop` too;
  // it is not dropped, because the client would get a different reply.
  xai: {
    title: 'xAI',
    baseUrl: 'https://api.x.ai/v1',
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['frequency_penalty', 'presence_penalty'] },
  },
  // "Create chat completion": `max_tokens` only.
  together: {
    title: 'Together',
    baseUrl: 'https://api.together.xyz/v1',
    completions: true,
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
  },
  // Users report 400 "Extra inputs are not permitted" for `stream_options` and other unknown fields; the last
  // chunk contains the usage even without it.
  fireworks: {
    title: 'Fireworks',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    completions: true,
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['service_tier', 'stream_options', ...OPENAI_SERVICE],
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
      replies: 'rewrite',
    },
  },
  // "OpenAI compatibility": its list of fields contains `max_tokens` and not the newer name.
  ollama: {
    title: 'Ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    completions: true,
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
  },
  // "OpenAI-Compatible Server": unknown fields are ignored; the chat template defines the roles.
  vllm: {
    title: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    completions: true,
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
}
