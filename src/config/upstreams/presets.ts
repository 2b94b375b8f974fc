/**
 * What is known of vendors that speak the chat-completions format: where they are, and in what they depart
 * from it. Data only; a preset is what a file would say itself under the upstream's keys.
 *
 * Sources, read 2026-11-20: each vendor's own page, named beside it; what the vendor's page leaves out but
 * its API refuses comes from reports of its users and is marked so.
 */
import type { ModelPrice } from '../../chat/model.js'
import type { QuirksConfig } from '../config.js'

/** The vendor's side of an upstream. */
export interface Preset {
  /** As the vendor is called. */
  readonly title: string
  /** Null where every customer has an address of their own. */
  readonly baseUrl: string | null
  /** The header that carries the key, as it is; null: `Authorization: Bearer`. */
  readonly keyHeader: string | null
  readonly quirks: QuirksConfig
  /** The same for embeddings; left out: none. */
  readonly embeddings?: QuirksConfig
  /** What its embedding models take, which are in no catalogue. */
  readonly prices?: Readonly<Record<string, ModelPrice>>
  /** It has the legacy endpoint `/completions`. */
  readonly completions?: true
}

/** No quirks at all. */
export const PLAIN: QuirksConfig = {
  drop: [],
  rename: {},
  set: {},
  messages: { drop: [], rename: {}, roles: {} },
  replies: 'pass',
}

/** Fields about OpenAI's own service, which mean nothing to others; strict vendors refuse them. */
const OPENAI_SERVICE = [
  'metadata',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'store',
  'verbosity',
]

/** What clients send back of an earlier answer; vendors that check messages refuse it. */
const ECHOES = ['annotations', 'name', 'reasoning_content', 'reasoning_details', 'refusal']

/** `max_tokens` is the older name; these vendors know no other. */
const OLD_LIMIT = { max_completion_tokens: 'max_tokens' }

/** Chat templates of open models know `system` only. */
const SYSTEM_ONLY = { developer: 'system' }

/** The vendors, as the file spells them, in the order of the documentation. */
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

/** A vendor's name as the file spells it. */
export type PresetName = (typeof PRESET_NAMES)[number]

/** The presets, by the name that a file gives. */
export const PRESETS: Readonly<Record<PresetName, Preset>> = {
  // "Azure OpenAI in Azure AI Foundry Models REST API reference": the key in `api-key`.
  azure: { title: 'Azure OpenAI', baseUrl: null, keyHeader: 'api-key', quirks: PLAIN },
  // "API Reference": unknown fields are ignored; an error may stand beside the choices (recorded).
  openrouter: {
    title: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    completions: true,
    keyHeader: null,
    quirks: PLAIN,
  },
  // "OpenAI Compatibility": 400 for logprobs, logit_bias, top_logprobs and a message's name. Users report
  // the same for `store` and for `reasoning_content` in messages. Usage of a stream is in `x_groq`, and
  // compound models change the id with every chunk (both recorded).
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
  // messages too (users' reports). Answers of thinking models are lists of parts (recorded).
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
  // "Thinking Mode": the reasoning of a turn with calls must come back as `reasoning_content`.
  // "Create Chat Completion": `max_tokens`, and no role `developer`.
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
  // "Reasoning": reasoning models, which all current ones are, refuse the penalties. They refuse `stop` as
  // well, and are left to say so: an answer that runs on is another answer.
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
  // Users report 400 "Extra inputs are not permitted" for `stream_options` and other fields it does not
  // know; usage comes with the last chunk all the same.
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
  // "OpenAI compatibility": `max_tokens` is in its list of fields, the newer name is not.
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
  // "OpenAI-Compatible Server": unknown fields are ignored; roles are the chat template's.
  vllm: {
    title: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    completions: true,
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
}
