/**
 * Presets of vendors, most with the chat-completions format: their URLs, the variables of their keys and
 * their deviations from the format. Data only; a preset supplies values for the keys of an upstream.
 *
 * Sources, read 2026-11-20 and 2026-11-28: each vendor's documentation, named beside it. "LiteLLM": the rules
 * of LiteLLM 1.110.2 for the vendor. Deviations that are not documented come from users' reports and are
 * marked so. A field is dropped only where its source calls it refused or not supported.
 */
import type { ModelPrice } from '../formats/chat/model-facts.js'
import { NO_TASKS, type TaskForms } from '../formats/chat/operations.js'
import type { DialectChoice } from './platform-settings.js'

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
  /** Null if every customer has a separate URL. May contain the variable of an account as `${NAME}`. */
  readonly baseUrl: string | null
  /** The variables that hold the key, most usual first; empty: it needs none. */
  readonly variables: readonly string[]
  /** Absent: `openai-chat`. */
  readonly dialect?: DialectChoice
  /** The URL for `dialect: openai-responses`; absent: `baseUrl`. */
  readonly responsesUrl?: string
  /** The header that carries the key without a prefix; null: `Authorization: Bearer`. */
  readonly keyHeader: string | null
  readonly quirks: QuirksConfig
  /** Quirks for embeddings; absent if there are none. */
  readonly embeddings?: QuirksConfig
  /** Prices of its models that embed, rank or moderate, which are in no catalogue. */
  readonly prices?: Readonly<Record<string, ModelPrice>>
  /** Whether it has the legacy endpoint `/completions`. */
  readonly completions?: true
  /** How it serves operations beside chat and embeddings; absent: as any upstream of its dialect. */
  readonly operations?: TaskForms
}

/** Cohere's usual price of a search. */
const SEARCH: ModelPrice = { perSearch: 0.002 }
const COHERE: TaskForms = { ...NO_TASKS, rerank: 'cohere' }
const COHERE_V1: TaskForms = { ...NO_TASKS, rerank: 'cohere-v1' }
const JINA: TaskForms = { ...NO_TASKS, rerank: 'jina' }

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
  'openai',
  'anthropic',
  'gemini',
  'cerebras',
  'sambanova',
  'deepinfra',
  'nebius',
  'novita',
  'hyperbolic',
  'perplexity',
  'cohere',
  'nvidia',
  'moonshot',
  'zai',
  'minimax',
  'dashscope',
  'volcengine',
  'siliconflow',
  'huggingface',
  'github',
  'cloudflare',
  'databricks',
  'snowflake',
  'watsonx',
  'ovhcloud',
  'scaleway',
  'friendli',
  'featherless',
  'nscale',
  'lambda',
  'baseten',
  'parasail',
  'chutes',
  'vercel',
  'lm-studio',
  'llama-cpp',
  'sglang',
  'tgi',
  'litellm',
  'jina',
  'voyage',
  'tei',
] as const

export type PresetName = (typeof PRESET_NAMES)[number]

export const PRESETS: Readonly<Record<PresetName, Preset>> = {
  // "Azure OpenAI in Azure AI Foundry Models REST API reference": the key in `api-key`.
  azure: {
    title: 'Azure OpenAI',
    baseUrl: null,
    variables: ['AZURE_API_KEY', 'AZURE_OPENAI_API_KEY'],
    keyHeader: 'api-key',
    quirks: PLAIN,
    operations: COHERE,
  },
  // "API Reference": unknown fields are ignored; an error may occur beside the choices (recorded).
  openrouter: {
    title: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    variables: ['OPENROUTER_API_KEY'],
    completions: true,
    keyHeader: null,
    quirks: PLAIN,
    operations: COHERE_V1,
  },
  // "OpenAI Compatibility": 400 for logprobs, logit_bias, top_logprobs and a message's name. Users report the
  // same for `store` and for `reasoning_content` in messages. Usage of a stream is in `x_groq`, and compound
  // models change the id with every chunk (both recorded).
  groq: {
    title: 'Groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    variables: ['GROQ_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['logit_bias', 'logprobs', 'prediction', 'top_logprobs', ...OPENAI_SERVICE],
      messages: { ...PLAIN.messages, drop: ECHOES },
      replies: 'rewrite',
    },
    operations: NO_TASKS,
  },
  // "Chat Completion API": `random_seed`, `max_tokens`; 422 `extra_forbidden` for any other field, in
  // messages too (users' reports). Replies of thinking models are lists of parts (recorded).
  mistral: {
    title: 'Mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    variables: ['MISTRAL_API_KEY'],
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
      'mistral-moderation': { input: 0, output: 0 },
    },
    operations: { ...NO_TASKS, moderations: 'mistral' },
  },
  // "Thinking Mode": the reasoning of a turn with calls must be sent back as `reasoning_content`. "Create
  // Chat Completion": `max_tokens`, and no role `developer`.
  deepseek: {
    title: 'DeepSeek',
    baseUrl: 'https://api.deepseek.com',
    variables: ['DEEPSEEK_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { drop: [], rename: { reasoning: 'reasoning_content' }, roles: SYSTEM_ONLY },
    },
    operations: NO_TASKS,
  },
  // "Reasoning": reasoning models, which all current ones are, refuse the penalties. They refuse `stop` too;
  // it is not dropped, because the client would get a different reply.
  xai: {
    title: 'xAI',
    baseUrl: 'https://api.x.ai/v1',
    variables: ['XAI_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['frequency_penalty', 'presence_penalty'] },
    operations: NO_TASKS,
  },
  // "Create chat completion": `max_tokens` only.
  together: {
    title: 'Together',
    baseUrl: 'https://api.together.xyz/v1',
    variables: ['TOGETHER_API_KEY', 'TOGETHERAI_API_KEY'],
    completions: true,
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
    operations: COHERE_V1,
  },
  // Users report 400 "Extra inputs are not permitted" for `stream_options` and other unknown fields; the last
  // chunk contains the usage even without it.
  fireworks: {
    title: 'Fireworks',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    variables: ['FIREWORKS_API_KEY', 'FIREWORKS_AI_API_KEY'],
    completions: true,
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['service_tier', 'stream_options', ...OPENAI_SERVICE],
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
      replies: 'rewrite',
    },
    operations: JINA,
  },
  // "OpenAI compatibility": its list of fields contains `max_tokens` and not the newer name.
  ollama: {
    title: 'Ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    variables: ['OLLAMA_API_KEY'],
    completions: true,
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
    operations: NO_TASKS,
  },
  // "OpenAI-Compatible Server": unknown fields are ignored; the chat template defines the roles.
  vllm: {
    title: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    variables: ['HOSTED_VLLM_API_KEY', 'VLLM_API_KEY'],
    completions: true,
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
    operations: { ...NO_TASKS, rerank: 'vllm' },
  },
  // "API reference".
  openai: {
    title: 'OpenAI',
    dialect: 'openai',
    baseUrl: 'https://api.openai.com/v1',
    variables: ['OPENAI_API_KEY'],
    keyHeader: null,
    completions: true,
    quirks: PLAIN,
    prices: { 'omni-moderation': { input: 0, output: 0 } },
  },
  // "API overview".
  anthropic: {
    title: 'Anthropic',
    dialect: 'anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    variables: ['ANTHROPIC_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  // "Gemini API reference".
  gemini: {
    title: 'Google',
    dialect: 'gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  // "OpenAI compatibility": 400 for these fields, and no role `developer`; thoughts are in `reasoning`.
  cerebras: {
    title: 'Cerebras',
    baseUrl: 'https://api.cerebras.ai/v1',
    variables: ['CEREBRAS_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['frequency_penalty', 'presence_penalty', 'logit_bias', 'parallel_tool_calls', 'service_tier'],
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
  },
  // "OpenAI compatibility"; LiteLLM.
  sambanova: {
    title: 'SambaNova',
    baseUrl: 'https://api.sambanova.ai/v1',
    variables: ['SAMBANOVA_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: [
        'frequency_penalty',
        'presence_penalty',
        'logit_bias',
        'logprobs',
        'top_logprobs',
        'n',
        'seed',
        'user',
      ],
      rename: OLD_LIMIT,
    },
  },
  // LiteLLM. `tool_choice: required` is refused.
  deepinfra: {
    title: 'DeepInfra',
    baseUrl: 'https://api.deepinfra.com/v1/openai',
    variables: ['DEEPINFRA_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['parallel_tool_calls', 'logprobs', 'seed', 'user'], rename: OLD_LIMIT },
    operations: { ...NO_TASKS, rerank: 'deepinfra' },
  },
  // LiteLLM.
  nebius: {
    title: 'Nebius',
    baseUrl: 'https://api.studio.nebius.ai/v1',
    variables: ['NEBIUS_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM.
  novita: {
    title: 'Novita',
    baseUrl: 'https://api.novita.ai/v3/openai',
    variables: ['NOVITA_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM.
  hyperbolic: {
    title: 'Hyperbolic',
    baseUrl: 'https://api.hyperbolic.xyz/v1',
    variables: ['HYPERBOLIC_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['logit_bias', 'logprobs', 'parallel_tool_calls', 'stream_options'],
      rename: OLD_LIMIT,
    },
  },
  // "OpenAI compatibility": no tools. Users report the end of chat completions on 2026-09-27; the format of
  // Responses (`dialect: openai-responses`) is served below `/v1`. Usage has searches and citations beside
  // the tokens.
  perplexity: {
    title: 'Perplexity',
    baseUrl: 'https://api.perplexity.ai',
    responsesUrl: 'https://api.perplexity.ai/v1',
    variables: ['PERPLEXITY_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['logit_bias', 'logprobs', 'n', 'seed', 'stop', 'parallel_tool_calls'] },
  },
  // LiteLLM for the fields; "Compatibility API" for the address.
  cohere: {
    title: 'Cohere',
    baseUrl: 'https://api.cohere.ai/compatibility/v1',
    variables: ['COHERE_API_KEY', 'CO_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['logit_bias', 'top_logprobs', 'n', 'parallel_tool_calls', 'store', 'user'] },
    operations: COHERE,
    // "Pricing".
    prices: { 'rerank-v3.5': SEARCH, 'rerank-v4.0-fast': SEARCH, 'rerank-v4.0-pro': { perSearch: 0.0025 } },
  },
  // LiteLLM. What a model takes differs.
  nvidia: {
    title: 'NVIDIA NIM',
    baseUrl: 'https://integrate.api.nvidia.com/v1',
    variables: ['NVIDIA_API_KEY', 'NVIDIA_NIM_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['logit_bias', 'logprobs', 'n', 'user', 'stream_options'], rename: OLD_LIMIT },
  },
  // LiteLLM. In China: https://api.moonshot.cn/v1. `tool_choice: required` is refused; thinking models take
  // `temperature` 1 only, and turns with calls need `reasoning_content`. Cached tokens are also in
  // `usage.cached_tokens`.
  moonshot: {
    title: 'Moonshot',
    baseUrl: 'https://api.moonshot.ai/v1',
    variables: ['MOONSHOT_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { ...PLAIN.messages, rename: { reasoning: 'reasoning_content' }, roles: SYSTEM_ONLY },
    },
  },
  // LiteLLM. Coding plan: https://api.z.ai/api/coding/paas/v4; in China:
  // https://open.bigmodel.cn/api/paas/v4.
  zai: {
    title: 'Z.ai',
    baseUrl: 'https://api.z.ai/api/paas/v4',
    variables: ['ZAI_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: [
        'frequency_penalty',
        'presence_penalty',
        'logit_bias',
        'n',
        'seed',
        'user',
        'parallel_tool_calls',
      ],
      rename: OLD_LIMIT,
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
  },
  // LiteLLM. In China: https://api.minimaxi.com/v1. Without `reasoning_split`, thoughts are in the text.
  // Errors are in `base_resp`, with status 200.
  minimax: {
    title: 'MiniMax',
    baseUrl: 'https://api.minimax.io/v1',
    variables: ['MINIMAX_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, set: { reasoning_split: true } },
  },
  // LiteLLM. In China: https://dashscope.aliyuncs.com/compatible-mode/v1. Some models only stream.
  dashscope: {
    title: 'Alibaba DashScope',
    baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    variables: ['DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM. The model may be the id of an endpoint (`ep-…`).
  volcengine: {
    title: 'Volcengine Ark',
    baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
    variables: ['ARK_API_KEY', 'VOLCENGINE_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['parallel_tool_calls'], rename: OLD_LIMIT },
  },
  // "Chat completions". In China: https://api.siliconflow.cn/v1.
  siliconflow: {
    title: 'SiliconFlow',
    baseUrl: 'https://api.siliconflow.com/v1',
    variables: ['SILICONFLOW_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM. The model is `OWNER/NAME`, or `OWNER/NAME:PROVIDER`; the rules are those of the provider.
  huggingface: {
    title: 'Hugging Face',
    baseUrl: 'https://router.huggingface.co/v1',
    variables: ['HF_TOKEN', 'HUGGINGFACE_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  // "REST API endpoints for models inference". The model is `PUBLISHER/NAME`.
  github: {
    title: 'GitHub Models',
    baseUrl: 'https://models.github.ai/inference',
    variables: ['GITHUB_TOKEN', 'GITHUB_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  // "OpenAI compatible API endpoints"; LiteLLM. The model is `@cf/…`; errors are in `errors`.
  cloudflare: {
    title: 'Cloudflare Workers AI',
    baseUrl: 'https://api.cloudflare.com/client/v4/accounts/${CLOUDFLARE_ACCOUNT_ID}/ai/v1',
    variables: ['CLOUDFLARE_API_TOKEN'],
    keyHeader: null,
    quirks: PLAIN,
  },
  // LiteLLM. https://WORKSPACE/serving-endpoints. The content of thinking models is a list.
  databricks: {
    title: 'Databricks',
    baseUrl: null,
    variables: ['DATABRICKS_TOKEN', 'DATABRICKS_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['frequency_penalty', 'presence_penalty', 'seed', 'logit_bias', 'parallel_tool_calls'],
      rename: OLD_LIMIT,
      replies: 'rewrite',
    },
  },
  // "Cortex REST API". https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1. A JWT needs the header
  // `x-snowflake-authorization-token-type: KEYPAIR_JWT`.
  snowflake: {
    title: 'Snowflake Cortex',
    baseUrl: null,
    variables: ['SNOWFLAKE_PAT', 'SNOWFLAKE_JWT'],
    keyHeader: null,
    quirks: PLAIN,
  },
  // "Inferencing models through the model gateway". https://REGION.ml.cloud.ibm.com/ml/gateway/v1. The key
  // is an access token of IAM, which lasts about an hour.
  watsonx: {
    title: 'IBM watsonx',
    baseUrl: null,
    variables: ['WATSONX_TOKEN'],
    keyHeader: null,
    quirks: PLAIN,
  },
  // LiteLLM.
  ovhcloud: {
    title: 'OVHcloud',
    baseUrl: 'https://oai.endpoints.kepler.ai.cloud.ovh.net/v1',
    variables: ['OVHCLOUD_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // "Using the Chat API": the list of supported fields.
  scaleway: {
    title: 'Scaleway',
    baseUrl: 'https://api.scaleway.ai/v1',
    variables: ['SCW_SECRET_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['logit_bias', 'frequency_penalty', 'n', 'top_logprobs', 'user'],
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
  },
  // LiteLLM.
  friendli: {
    title: 'FriendliAI',
    baseUrl: 'https://api.friendli.ai/serverless/v1',
    variables: ['FRIENDLI_TOKEN'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM.
  featherless: {
    title: 'Featherless',
    baseUrl: 'https://api.featherless.ai/v1',
    variables: ['FEATHERLESS_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM.
  nscale: {
    title: 'Nscale',
    baseUrl: 'https://inference.api.nscale.com/v1',
    variables: ['NSCALE_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM.
  lambda: {
    title: 'Lambda',
    baseUrl: 'https://api.lambda.ai/v1',
    variables: ['LAMBDA_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM.
  baseten: {
    title: 'Baseten',
    baseUrl: 'https://inference.baseten.co/v1',
    variables: ['BASETEN_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM.
  parasail: {
    title: 'Parasail',
    baseUrl: 'https://api.parasail.io/v1',
    variables: ['PARASAIL_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM.
  chutes: {
    title: 'Chutes',
    baseUrl: 'https://llm.chutes.ai/v1',
    variables: ['CHUTES_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM. The model is `VENDOR/NAME`.
  vercel: {
    title: 'Vercel AI Gateway',
    baseUrl: 'https://ai-gateway.vercel.sh/v1',
    variables: ['AI_GATEWAY_API_KEY', 'VERCEL_AI_GATEWAY_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  // LiteLLM; the port is that of Codex for it.
  'lm-studio': {
    title: 'LM Studio',
    baseUrl: 'http://127.0.0.1:1234/v1',
    variables: [],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // "llama.cpp server". Ids of calls may be empty or repeat.
  'llama-cpp': {
    title: 'llama.cpp',
    baseUrl: 'http://127.0.0.1:8080/v1',
    variables: [],
    keyHeader: null,
    completions: true,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // "OpenAI APIs - Completions".
  sglang: {
    title: 'SGLang',
    baseUrl: 'http://127.0.0.1:30000/v1',
    variables: [],
    keyHeader: null,
    completions: true,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
    operations: { ...NO_TASKS, rerank: 'sglang' },
  },
  // "Messages API"; LiteLLM. One model, whose name is free (`tgi`).
  tgi: {
    title: 'Text Generation Inference',
    baseUrl: 'http://127.0.0.1:8080/v1',
    variables: ['HF_TOKEN'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  // LiteLLM's own proxy.
  litellm: {
    title: 'LiteLLM',
    baseUrl: 'http://127.0.0.1:4000/v1',
    variables: ['LITELLM_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
    operations: { rerank: 'cohere', moderations: 'openai' },
  },
  // "Reranker API", "Embeddings API".
  jina: {
    title: 'Jina AI',
    baseUrl: 'https://api.jina.ai/v1',
    variables: ['JINA_API_KEY', 'JINA_AI_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
    embeddings: { ...PLAIN, drop: ['user'] },
    operations: JINA,
  },
  // "Rerankers", "Text Embeddings": `output_dimension`.
  voyage: {
    title: 'Voyage AI',
    baseUrl: 'https://api.voyageai.com/v1',
    variables: ['VOYAGE_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
    embeddings: { ...PLAIN, drop: ['user'], rename: { dimensions: 'output_dimension' } },
    operations: { ...NO_TASKS, rerank: 'voyage' },
    // "Pricing".
    prices: {
      'rerank-2.5': { input: 0.05, output: 0 },
      'rerank-2.5-lite': { input: 0.02, output: 0 },
      'rerank-3': { input: 0.05, output: 0 },
      'rerank-3-lite': { input: 0.02, output: 0 },
    },
  },
  // "Text Embeddings Inference API": ranking has no version in its path.
  tei: {
    title: 'Text Embeddings Inference',
    baseUrl: 'http://127.0.0.1:8080/v1',
    variables: ['HF_TOKEN'],
    keyHeader: null,
    quirks: PLAIN,
    operations: { ...NO_TASKS, rerank: 'tei' },
  },
}
