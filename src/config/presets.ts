/**
 * Presets of vendors, most with the chat-completions format: their URLs, the variables of their keys and
 * their deviations from the format. Data only; a preset supplies values for the keys of an upstream.
 *
 * Sources, read 2026-11-20 and 2026-11-28: each vendor's documentation, named in `rules`. "LiteLLM": the
 * rules of LiteLLM 1.110.2 for the vendor. Deviations that are not documented come from users' reports and
 * are marked so. A field is dropped only where its source calls it refused or not supported.
 */
import type { ModelPrice } from '../formats/chat/model-facts.js'
import { NO_TASKS, OPENAI_MEDIA, type TaskForms } from '../formats/chat/operations.js'
import type { DialectChoice } from './platform-settings.js'
import { ECHOES, OLD_LIMIT, OPENAI_SERVICE, PLAIN, SYSTEM_ONLY, type QuirksConfig } from './quirks.js'

/** The values that a preset supplies to an upstream. */
export interface Preset {
  /** The vendor's name. */
  readonly title: string
  /**
   * The source of its rules, as Markdown: a page of its documentation in quotes, or "LiteLLM", and what its
   * users should know.
   */
  readonly rules: string
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

/** The names of the presets in the file, in the order of the documentation. */
export const PRESET_NAMES = [
  ...(['azure', 'openrouter', 'groq', 'mistral', 'deepseek', 'xai', 'together', 'fireworks'] as const),
  ...(['ollama', 'vllm', 'openai', 'anthropic', 'gemini', 'cerebras', 'sambanova', 'deepinfra'] as const),
  ...(['nebius', 'novita', 'hyperbolic', 'perplexity', 'cohere', 'nvidia', 'moonshot', 'zai'] as const),
  ...(['minimax', 'dashscope', 'volcengine', 'siliconflow', 'huggingface', 'github'] as const),
  ...(['cloudflare', 'databricks', 'snowflake', 'watsonx', 'ovhcloud', 'scaleway', 'friendli'] as const),
  ...(['featherless', 'nscale', 'lambda', 'baseten', 'parasail', 'chutes', 'vercel', 'lm-studio'] as const),
  ...(['llama-cpp', 'sglang', 'tgi', 'litellm', 'jina', 'voyage', 'tei'] as const),
] as const

export type PresetName = (typeof PRESET_NAMES)[number]

export const PRESETS: Readonly<Record<PresetName, Preset>> = {
  azure: {
    title: 'Azure OpenAI',
    rules: '"Azure OpenAI in Azure AI Foundry Models REST API reference": the key in `api-key`.',
    baseUrl: null,
    variables: ['AZURE_API_KEY', 'AZURE_OPENAI_API_KEY'],
    keyHeader: 'api-key',
    quirks: PLAIN,
    operations: { ...COHERE, ...OPENAI_MEDIA },
  },
  openrouter: {
    title: 'OpenRouter',
    rules: '"API Reference": unknown fields are ignored; an error may occur beside the choices (recorded).',
    baseUrl: 'https://openrouter.ai/api/v1',
    variables: ['OPENROUTER_API_KEY'],
    completions: true,
    keyHeader: null,
    quirks: PLAIN,
    operations: COHERE_V1,
  },
  groq: {
    title: 'Groq',
    rules:
      '"OpenAI Compatibility": 400 for logprobs, logit_bias, top_logprobs and a message\'s name. Users report the same for `store` and for `reasoning_content` in messages. Usage of a stream is in `x_groq`, and compound models change the id with every chunk (both recorded).',
    baseUrl: 'https://api.groq.com/openai/v1',
    variables: ['GROQ_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['logit_bias', 'logprobs', 'prediction', 'top_logprobs', ...OPENAI_SERVICE],
      messages: { ...PLAIN.messages, drop: ECHOES },
      replies: 'rewrite',
    },
    operations: { ...NO_TASKS, ...OPENAI_MEDIA, images: 'none', image_edits: 'none' },
  },
  mistral: {
    title: 'Mistral',
    rules:
      '"Chat Completion API": `random_seed`, `max_tokens`; 422 `extra_forbidden` for any other field, in messages too (users\' reports). Replies of thinking models are lists of parts (recorded). Ids of calls have 9 letters or digits; others are replaced.',
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
    operations: { ...NO_TASKS, moderations: 'mistral', transcriptions: 'mistral', speech: 'mistral' },
  },
  deepseek: {
    title: 'DeepSeek',
    rules:
      '"Thinking Mode": the reasoning of a turn with calls must be sent back as `reasoning_content`. "Create Chat Completion": `max_tokens`, and no role `developer`.',
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
  xai: {
    title: 'xAI',
    rules:
      '"Reasoning": reasoning models, which all current ones are, refuse the penalties. They refuse `stop` too; it is not dropped, because the client would get a different reply.',
    baseUrl: 'https://api.x.ai/v1',
    variables: ['XAI_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['frequency_penalty', 'presence_penalty'] },
    operations: NO_TASKS,
  },
  together: {
    title: 'Together',
    rules: '"Create chat completion": `max_tokens` only.',
    baseUrl: 'https://api.together.xyz/v1',
    variables: ['TOGETHER_API_KEY', 'TOGETHERAI_API_KEY'],
    completions: true,
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
    operations: { ...COHERE_V1, ...OPENAI_MEDIA },
  },
  fireworks: {
    title: 'Fireworks',
    rules:
      'Users report 400 "Extra inputs are not permitted" for `stream_options` and other unknown fields; the last chunk contains the usage even without it.',
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
    operations: { ...JINA, ...OPENAI_MEDIA },
  },
  ollama: {
    title: 'Ollama',
    rules: '"OpenAI compatibility": its list of fields contains `max_tokens` and not the newer name.',
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
  vllm: {
    title: 'vLLM',
    rules: '"OpenAI-Compatible Server": unknown fields are ignored; the chat template defines the roles.',
    baseUrl: 'http://127.0.0.1:8000/v1',
    variables: ['HOSTED_VLLM_API_KEY', 'VLLM_API_KEY'],
    completions: true,
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
    operations: { ...NO_TASKS, ...OPENAI_MEDIA, rerank: 'vllm' },
  },
  openai: {
    title: 'OpenAI',
    rules: '"API reference".',
    dialect: 'openai',
    baseUrl: 'https://api.openai.com/v1',
    variables: ['OPENAI_API_KEY'],
    keyHeader: null,
    completions: true,
    quirks: PLAIN,
    prices: { 'omni-moderation': { input: 0, output: 0 } },
  },
  anthropic: {
    title: 'Anthropic',
    rules: '"API overview".',
    dialect: 'anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    variables: ['ANTHROPIC_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  gemini: {
    title: 'Google',
    rules: '"Gemini API reference".',
    dialect: 'gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  cerebras: {
    title: 'Cerebras',
    rules:
      '"OpenAI compatibility": 400 for these fields, and no role `developer`; thoughts are in `reasoning`.',
    baseUrl: 'https://api.cerebras.ai/v1',
    variables: ['CEREBRAS_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['frequency_penalty', 'presence_penalty', 'logit_bias', 'parallel_tool_calls', 'service_tier'],
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
  },
  sambanova: {
    title: 'SambaNova',
    rules: '"OpenAI compatibility"; LiteLLM.',
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
  deepinfra: {
    title: 'DeepInfra',
    rules: 'LiteLLM. `tool_choice: required` is refused.',
    baseUrl: 'https://api.deepinfra.com/v1/openai',
    variables: ['DEEPINFRA_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['parallel_tool_calls', 'logprobs', 'seed', 'user'], rename: OLD_LIMIT },
    operations: { ...NO_TASKS, ...OPENAI_MEDIA, rerank: 'deepinfra' },
  },
  nebius: {
    title: 'Nebius',
    rules: 'LiteLLM.',
    baseUrl: 'https://api.studio.nebius.ai/v1',
    variables: ['NEBIUS_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  novita: {
    title: 'Novita',
    rules: 'LiteLLM.',
    baseUrl: 'https://api.novita.ai/v3/openai',
    variables: ['NOVITA_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  hyperbolic: {
    title: 'Hyperbolic',
    rules: 'LiteLLM.',
    baseUrl: 'https://api.hyperbolic.xyz/v1',
    variables: ['HYPERBOLIC_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['logit_bias', 'logprobs', 'parallel_tool_calls', 'stream_options'],
      rename: OLD_LIMIT,
    },
  },
  perplexity: {
    title: 'Perplexity',
    rules:
      '"OpenAI compatibility": no tools. Users report the end of chat completions on 2026-09-27; the format of Responses (`dialect: openai-responses`) is served below `/v1`. Usage has searches and citations beside the tokens.',
    baseUrl: 'https://api.perplexity.ai',
    responsesUrl: 'https://api.perplexity.ai/v1',
    variables: ['PERPLEXITY_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['logit_bias', 'logprobs', 'n', 'seed', 'stop', 'parallel_tool_calls'] },
  },
  cohere: {
    title: 'Cohere',
    rules: 'LiteLLM for the fields; "Compatibility API" for the address.',
    baseUrl: 'https://api.cohere.ai/compatibility/v1',
    variables: ['COHERE_API_KEY', 'CO_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['logit_bias', 'top_logprobs', 'n', 'parallel_tool_calls', 'store', 'user'] },
    operations: COHERE,
    // "Pricing".
    prices: { 'rerank-v3.5': SEARCH, 'rerank-v4.0-fast': SEARCH, 'rerank-v4.0-pro': { perSearch: 0.0025 } },
  },
  nvidia: {
    title: 'NVIDIA NIM',
    rules: 'LiteLLM. What a model takes differs.',
    baseUrl: 'https://integrate.api.nvidia.com/v1',
    variables: ['NVIDIA_API_KEY', 'NVIDIA_NIM_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['logit_bias', 'logprobs', 'n', 'user', 'stream_options'], rename: OLD_LIMIT },
  },
  moonshot: {
    title: 'Moonshot',
    rules:
      'LiteLLM. In China: https://api.moonshot.cn/v1. `tool_choice: required` is refused; thinking models take `temperature` 1 only, and turns with calls need `reasoning_content`. Cached tokens are also in `usage.cached_tokens`. Names of tools begin with a letter, and schemas are "Moonshot Flavored JSON Schema" (both for translated requests).',
    baseUrl: 'https://api.moonshot.ai/v1',
    variables: ['MOONSHOT_API_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      rename: OLD_LIMIT,
      messages: { ...PLAIN.messages, rename: { reasoning: 'reasoning_content' }, roles: SYSTEM_ONLY },
    },
  },
  zai: {
    title: 'Z.ai',
    rules:
      'LiteLLM. Coding plan: https://api.z.ai/api/coding/paas/v4; in China: https://open.bigmodel.cn/api/paas/v4.',
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
  minimax: {
    title: 'MiniMax',
    rules:
      'LiteLLM. In China: https://api.minimaxi.com/v1. Without `reasoning_split`, thoughts are in the text. Errors are in `base_resp`, with status 200.',
    baseUrl: 'https://api.minimax.io/v1',
    variables: ['MINIMAX_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, set: { reasoning_split: true } },
  },
  dashscope: {
    title: 'Alibaba DashScope',
    rules: 'LiteLLM. In China: https://dashscope.aliyuncs.com/compatible-mode/v1. Some models only stream.',
    baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    variables: ['DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  volcengine: {
    title: 'Volcengine Ark',
    rules: 'LiteLLM. The model may be the id of an endpoint (`ep-…`).',
    baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
    variables: ['ARK_API_KEY', 'VOLCENGINE_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, drop: ['parallel_tool_calls'], rename: OLD_LIMIT },
  },
  siliconflow: {
    title: 'SiliconFlow',
    rules: '"Chat completions". In China: https://api.siliconflow.cn/v1.',
    baseUrl: 'https://api.siliconflow.com/v1',
    variables: ['SILICONFLOW_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  huggingface: {
    title: 'Hugging Face',
    rules:
      'LiteLLM. The model is `OWNER/NAME`, or `OWNER/NAME:PROVIDER`; the rules are those of the provider.',
    baseUrl: 'https://router.huggingface.co/v1',
    variables: ['HF_TOKEN', 'HUGGINGFACE_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  github: {
    title: 'GitHub Models',
    rules: '"REST API endpoints for models inference". The model is `PUBLISHER/NAME`.',
    baseUrl: 'https://models.github.ai/inference',
    variables: ['GITHUB_TOKEN', 'GITHUB_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  cloudflare: {
    title: 'Cloudflare Workers AI',
    rules: '"OpenAI compatible API endpoints"; LiteLLM. The model is `@cf/…`; errors are in `errors`.',
    baseUrl: 'https://api.cloudflare.com/client/v4/accounts/${CLOUDFLARE_ACCOUNT_ID}/ai/v1',
    variables: ['CLOUDFLARE_API_TOKEN'],
    keyHeader: null,
    quirks: PLAIN,
  },
  databricks: {
    title: 'Databricks',
    rules: 'LiteLLM. https://WORKSPACE/serving-endpoints. The content of thinking models is a list.',
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
  snowflake: {
    title: 'Snowflake Cortex',
    rules:
      '"Cortex REST API". https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1. A JWT needs the header `x-snowflake-authorization-token-type: KEYPAIR_JWT`.',
    baseUrl: null,
    variables: ['SNOWFLAKE_PAT', 'SNOWFLAKE_JWT'],
    keyHeader: null,
    quirks: PLAIN,
  },
  watsonx: {
    title: 'IBM watsonx',
    rules:
      '"Inferencing models through the model gateway". https://REGION.ml.cloud.ibm.com/ml/gateway/v1. The key is an access token of IAM, which lasts an hour: use `auth: { ibm: { api_key } }`, which renews it.',
    baseUrl: null,
    variables: ['WATSONX_TOKEN'],
    keyHeader: null,
    quirks: PLAIN,
  },
  ovhcloud: {
    title: 'OVHcloud',
    rules: 'LiteLLM.',
    baseUrl: 'https://oai.endpoints.kepler.ai.cloud.ovh.net/v1',
    variables: ['OVHCLOUD_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  scaleway: {
    title: 'Scaleway',
    rules: '"Using the Chat API": the list of supported fields.',
    baseUrl: 'https://api.scaleway.ai/v1',
    variables: ['SCW_SECRET_KEY'],
    keyHeader: null,
    quirks: {
      ...PLAIN,
      drop: ['logit_bias', 'frequency_penalty', 'n', 'top_logprobs', 'user'],
      messages: { ...PLAIN.messages, roles: SYSTEM_ONLY },
    },
  },
  friendli: {
    title: 'FriendliAI',
    rules: 'LiteLLM.',
    baseUrl: 'https://api.friendli.ai/serverless/v1',
    variables: ['FRIENDLI_TOKEN'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  featherless: {
    title: 'Featherless',
    rules: 'LiteLLM.',
    baseUrl: 'https://api.featherless.ai/v1',
    variables: ['FEATHERLESS_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  nscale: {
    title: 'Nscale',
    rules: 'LiteLLM.',
    baseUrl: 'https://inference.api.nscale.com/v1',
    variables: ['NSCALE_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  lambda: {
    title: 'Lambda',
    rules: 'LiteLLM.',
    baseUrl: 'https://api.lambda.ai/v1',
    variables: ['LAMBDA_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  baseten: {
    title: 'Baseten',
    rules: 'LiteLLM.',
    baseUrl: 'https://inference.baseten.co/v1',
    variables: ['BASETEN_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  parasail: {
    title: 'Parasail',
    rules: 'LiteLLM.',
    baseUrl: 'https://api.parasail.io/v1',
    variables: ['PARASAIL_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  chutes: {
    title: 'Chutes',
    rules: 'LiteLLM.',
    baseUrl: 'https://llm.chutes.ai/v1',
    variables: ['CHUTES_API_KEY'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  vercel: {
    title: 'Vercel AI Gateway',
    rules: 'LiteLLM. The model is `VENDOR/NAME`.',
    baseUrl: 'https://ai-gateway.vercel.sh/v1',
    variables: ['AI_GATEWAY_API_KEY', 'VERCEL_AI_GATEWAY_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
  },
  'lm-studio': {
    title: 'LM Studio',
    rules: 'LiteLLM; the port is that of Codex for it.',
    baseUrl: 'http://127.0.0.1:1234/v1',
    variables: [],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  'llama-cpp': {
    title: 'llama.cpp',
    rules: '"llama.cpp server". Ids of calls may be empty or repeat.',
    baseUrl: 'http://127.0.0.1:8080/v1',
    variables: [],
    keyHeader: null,
    completions: true,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  sglang: {
    title: 'SGLang',
    rules: '"OpenAI APIs - Completions".',
    baseUrl: 'http://127.0.0.1:30000/v1',
    variables: [],
    keyHeader: null,
    completions: true,
    quirks: { ...PLAIN, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
    operations: { ...NO_TASKS, rerank: 'sglang' },
  },
  tgi: {
    title: 'Text Generation Inference',
    rules: '"Messages API"; LiteLLM. One model, whose name is free (`tgi`).',
    baseUrl: 'http://127.0.0.1:8080/v1',
    variables: ['HF_TOKEN'],
    keyHeader: null,
    quirks: { ...PLAIN, rename: OLD_LIMIT, messages: { ...PLAIN.messages, roles: SYSTEM_ONLY } },
  },
  litellm: {
    title: 'LiteLLM',
    rules: "LiteLLM's own proxy.",
    baseUrl: 'http://127.0.0.1:4000/v1',
    variables: ['LITELLM_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
    operations: { ...COHERE, ...OPENAI_MEDIA, moderations: 'openai' },
  },
  jina: {
    title: 'Jina AI',
    rules: '"Reranker API", "Embeddings API".',
    baseUrl: 'https://api.jina.ai/v1',
    variables: ['JINA_API_KEY', 'JINA_AI_API_KEY'],
    keyHeader: null,
    quirks: PLAIN,
    embeddings: { ...PLAIN, drop: ['user'] },
    operations: JINA,
  },
  voyage: {
    title: 'Voyage AI',
    rules: '"Rerankers", "Text Embeddings": `output_dimension`.',
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
  tei: {
    title: 'Text Embeddings Inference',
    rules: '"Text Embeddings Inference API": ranking has no version in its path.',
    baseUrl: 'http://127.0.0.1:8080/v1',
    variables: ['HF_TOKEN'],
    keyHeader: null,
    quirks: PLAIN,
    operations: { ...NO_TASKS, rerank: 'tei' },
  },
}
