/**
 * The prefixes of LiteLLM's models (`groq/…`) and the upstreams that they become. Data and the guess for a
 * model without a prefix.
 *
 * Source: LiteLLM 1.110.2, `get_llm_provider_logic.py`, `llms/` and `llms/openai_like/providers.json`.
 */
import { PRESETS, type PresetName } from '../../../config/presets.js'

/** How the upstream of a vendor is written. */
type VendorKind =
  'openai' | 'anthropic' | 'gemini' | 'vertex' | 'bedrock' | 'azure' | 'azure_ai' | 'preset' | 'address'

/** A vendor of LiteLLM. */
export interface Vendor {
  readonly prefix: string
  readonly kind: VendorKind
  /** For `preset`. */
  readonly preset?: PresetName
  /** The variables of its key, most usual first. */
  readonly variables: readonly string[]
  /** The variable of its address, if LiteLLM reads one. */
  readonly addressVariable?: string
  /** The address, if it is not that of the preset. */
  readonly address?: string
  /** The end of an own address, which LiteLLM appends, or has as the path of another protocol. */
  readonly addressEnd?: string
  readonly isCompletion?: true
}

/** Prefixes of presets with another name, and those with an address of their own. */
const PRESET_PREFIXES: Readonly<Record<string, PresetName>> = {
  openrouter: 'openrouter',
  groq: 'groq',
  mistral: 'mistral',
  codestral: 'mistral',
  deepseek: 'deepseek',
  xai: 'xai',
  together_ai: 'together',
  fireworks_ai: 'fireworks',
  ollama: 'ollama',
  ollama_chat: 'ollama',
  hosted_vllm: 'vllm',
  vllm: 'vllm',
  lm_studio: 'lm-studio',
  llamafile: 'llama-cpp',
  litellm_proxy: 'litellm',
  cerebras: 'cerebras',
  sambanova: 'sambanova',
  deepinfra: 'deepinfra',
  nebius: 'nebius',
  novita: 'novita',
  hyperbolic: 'hyperbolic',
  perplexity: 'perplexity',
  cohere: 'cohere',
  cohere_chat: 'cohere',
  nvidia_nim: 'nvidia',
  moonshot: 'moonshot',
  zai: 'zai',
  minimax: 'minimax',
  dashscope: 'dashscope',
  volcengine: 'volcengine',
  huggingface: 'huggingface',
  github: 'github',
  cloudflare: 'cloudflare',
  databricks: 'databricks',
  snowflake: 'snowflake',
  watsonx: 'watsonx',
  ovhcloud: 'ovhcloud',
  scaleway: 'scaleway',
  friendliai: 'friendli',
  featherless_ai: 'featherless',
  nscale: 'nscale',
  lambda_ai: 'lambda',
  baseten: 'baseten',
  vercel_ai_gateway: 'vercel',
}

const ADDRESS_VARIABLES: Readonly<Record<string, string>> = {
  ollama: 'OLLAMA_API_BASE',
  ollama_chat: 'OLLAMA_API_BASE',
  hosted_vllm: 'HOSTED_VLLM_API_BASE',
  vllm: 'HOSTED_VLLM_API_BASE',
  lm_studio: 'LM_STUDIO_API_BASE',
  llamafile: 'LLAMAFILE_API_BASE',
  litellm_proxy: 'LITELLM_PROXY_API_BASE',
  databricks: 'DATABRICKS_API_BASE',
  snowflake: 'SNOWFLAKE_API_BASE',
  watsonx: 'WATSONX_API_BASE',
}

/** The paths of own addresses. */
const ADDRESS_ENDS: Readonly<Record<string, string>> = {
  ollama: '/v1',
  ollama_chat: '/v1',
  huggingface: '/v1',
  snowflake: '/api/v2/cortex/v1',
  watsonx: '/ml/gateway/v1',
}

/** Variables that LiteLLM reads and the preset does not. */
const KEY_VARIABLES: Readonly<Record<string, readonly string[]>> = {
  litellm_proxy: ['LITELLM_PROXY_API_KEY'],
  codestral: ['CODESTRAL_API_KEY'],
  watsonx: ['WATSONX_APIKEY', 'WATSONX_API_KEY', 'WX_API_KEY'],
  lm_studio: ['LM_STUDIO_API_KEY'],
}

const OWN: Readonly<Record<string, Omit<Vendor, 'prefix'>>> = {
  openai: { kind: 'openai', variables: ['OPENAI_API_KEY'] },
  'text-completion-openai': { kind: 'openai', variables: ['OPENAI_API_KEY'], isCompletion: true },
  anthropic: { kind: 'anthropic', variables: ['ANTHROPIC_API_KEY'] },
  gemini: { kind: 'gemini', variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'] },
  vertex_ai: { kind: 'vertex', variables: [] },
  vertex_ai_beta: { kind: 'vertex', variables: [] },
  bedrock: { kind: 'bedrock', variables: [] },
  bedrock_converse: { kind: 'bedrock', variables: [] },
  azure: { kind: 'azure', variables: ['AZURE_API_KEY'], addressVariable: 'AZURE_API_BASE' },
  azure_text: { kind: 'azure', variables: ['AZURE_API_KEY'], addressVariable: 'AZURE_API_BASE' },
  azure_ai: { kind: 'azure_ai', variables: ['AZURE_AI_API_KEY'], addressVariable: 'AZURE_AI_API_BASE' },
}

/** Vendors with other protocols, which no dialect supports. */
const OTHER_PROTOCOLS: ReadonlySet<string> = new Set([
  'replicate',
  'sagemaker',
  'sagemaker_chat',
  'predibase',
  'petals',
  'nlp_cloud',
  'oobabooga',
  'triton',
  'elevenlabs',
  'deepgram',
  'voyage',
  'jina_ai',
  'github_copilot',
  'chatgpt',
])

/** The vendor of a prefix; null if there is none, `other` for one whose protocol no dialect supports. */
export function vendorOf(prefix: string): Vendor | 'other' | null {
  if (OTHER_PROTOCOLS.has(prefix)) return 'other'
  const own = Object.hasOwn(OWN, prefix) ? OWN[prefix] : undefined
  if (own !== undefined) return { prefix, ...own }
  const preset = Object.hasOwn(PRESET_PREFIXES, prefix) ? PRESET_PREFIXES[prefix] : undefined
  if (preset === undefined) return null
  const variables = [...(KEY_VARIABLES[prefix] ?? []), ...PRESETS[preset].variables]
  const addressVariable = ADDRESS_VARIABLES[prefix]
  const addressEnd = ADDRESS_ENDS[prefix]
  return {
    ...{ prefix, kind: 'preset', preset, variables },
    ...(addressVariable === undefined ? {} : { addressVariable }),
    ...(prefix === 'codestral' ? { address: 'https://codestral.mistral.ai/v1' } : {}),
    ...(addressEnd === undefined ? {} : { addressEnd }),
  }
}

/** An OpenAI-compatible service at an address. */
export function addressVendor(prefix: string): Vendor {
  return { prefix, kind: 'address', variables: ['OPENAI_API_KEY'] }
}

const GUESSES: readonly (readonly [model: RegExp, prefix: string])[] = [
  [
    /^(?:gpt-|chatgpt-|o[134](?:-|$)|text-embedding-|davinci|babbage|ft:|codex-|dall-e|gpt-image|whisper|tts-|omni-)/,
    'openai',
  ],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'vertex_ai'],
  [/^(?:command(?:-|$)|embed-(?:english|multilingual)-)/, 'cohere'],
  [/^(?:[a-z]{2,6}\.)?(?:amazon|anthropic|meta|cohere|mistral|ai21|deepseek)\./, 'bedrock'],
]

/** The prefix that LiteLLM guesses for a model without one; null if there is none. */
export function guessedPrefix(model: string): string | null {
  return GUESSES.find(([pattern]) => pattern.test(model))?.[1] ?? null
}

/** The id at the vendor of a model without its prefix, where LiteLLM changes it. */
export function vendorModel(prefix: string, model: string): string {
  switch (prefix) {
    case 'fireworks_ai':
      return /^[^/*]+$/.test(model) ? `accounts/fireworks/models/${model}` : model
    // `huggingface/PROVIDER/OWNER/NAME`
    case 'huggingface':
      return model.replace(/^([^/*]+)\/([^/]+\/[^/]+)$/, '$2:$1')
    // Models of OpenRouter itself, such as `openrouter/auto`; all others have the name of their vendor.
    case 'openrouter':
      return /^[^/*]+$/.test(model) ? `openrouter/${model}` : model
    default:
      return model
  }
}

/** The prefixes of vendors whose key is in a variable: those that `*` of all vendors means. */
export function keyedPrefixes(): string[] {
  return ['openai', 'anthropic', 'gemini', ...Object.keys(PRESET_PREFIXES)].filter((prefix) => {
    const vendor = vendorOf(prefix)
    return vendor !== null && vendor !== 'other' && vendor.variables.length > 0
  })
}

/** The families that a wildcard of a vendor (`openai/*`) also serves without the prefix. */
export const BARE_FAMILIES: Readonly<Record<string, readonly string[]>> = {
  openai: ['gpt-', 'chatgpt-', 'o1', 'o3', 'o4-', 'text-embedding-'],
  anthropic: ['claude-'],
  gemini: ['gemini-'],
}
