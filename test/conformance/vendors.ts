/**
 * Scripted vendors of the chat-completions format, as strict as the real ones: written from their pages and
 * reports of their users, without code of the presets that are tested with them.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import type { Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { listen } from '../helpers/listen.js'

/** The rules of a vendor. */
interface Rules {
  /** Its fields, if it refuses all others. */
  readonly fields?: string
  /** Fields that it refuses or ignores. */
  readonly not?: string
  /** Members of a message, if it refuses all others. */
  readonly message?: string
  readonly roles?: string
  /** The header with the key; `authorization` by default. */
  readonly key?: string
  readonly path?: RegExp
}

const ROLES = 'system user assistant tool'
const COMMON =
  'frequency_penalty max_tokens messages model n parallel_tool_calls presence_penalty reasoning_effort response_format stop stream temperature tool_choice tools top_p'

const VENDORS: Readonly<Record<string, Rules>> = {
  azure: {
    key: 'api-key',
    path: /\/openai\/(?:v1|deployments\/[^/]+)\/chat\/completions(?:\?api-version=[\d-]+)?$/,
  },
  openrouter: {},
  groq: {
    fields: `${COMMON} citation_options compound_custom disable_tool_validation documents exclude_domains function_call functions include_domains include_reasoning max_completion_tokens reasoning_format search_settings seed service_tier stream_options user`,
    message: 'role content tool_calls tool_call_id function_call reasoning',
  },
  mistral: {
    fields: `${COMMON} guardrails prediction prompt_mode random_seed safe_prompt`,
    message: 'role content tool_calls tool_call_id prefix',
    roles: ROLES,
  },
  deepseek: { not: 'max_completion_tokens', roles: ROLES },
  xai: { not: 'frequency_penalty presence_penalty' },
  together: { not: 'max_completion_tokens', roles: ROLES },
  fireworks: {
    fields: `${COMMON} context_length_exceeded_behavior ignore_eos logit_bias logprobs max_completion_tokens min_p mirostat_lr mirostat_target perf_metrics_in_response prediction prompt_truncate_len raw_output repetition_penalty seed speculation thinking top_k top_logprobs typical_p user`,
    roles: ROLES,
  },
  ollama: { not: 'max_completion_tokens', roles: ROLES },
  vllm: { roles: ROLES },
  cerebras: {
    not: 'frequency_penalty presence_penalty logit_bias parallel_tool_calls service_tier',
    roles: ROLES,
  },
  sambanova: {
    not: 'max_completion_tokens frequency_penalty presence_penalty logit_bias logprobs top_logprobs n seed user',
  },
  deepinfra: { not: 'max_completion_tokens parallel_tool_calls logprobs seed user' },
  nebius: { not: 'max_completion_tokens', roles: ROLES },
  novita: { roles: ROLES },
  hyperbolic: { not: 'max_completion_tokens logit_bias logprobs parallel_tool_calls stream_options' },
  perplexity: { not: 'logit_bias logprobs n seed stop parallel_tool_calls' },
  cohere: { not: 'logit_bias top_logprobs n parallel_tool_calls store user' },
  nvidia: { not: 'max_completion_tokens logit_bias logprobs n user stream_options' },
  moonshot: { not: 'max_completion_tokens', roles: ROLES },
  zai: {
    not: 'max_completion_tokens frequency_penalty presence_penalty logit_bias n seed user parallel_tool_calls',
    roles: ROLES,
  },
  minimax: {},
  dashscope: { not: 'max_completion_tokens', roles: ROLES },
  volcengine: { not: 'max_completion_tokens parallel_tool_calls' },
  siliconflow: { not: 'max_completion_tokens', roles: ROLES },
  huggingface: {},
  github: {},
  cloudflare: {},
  databricks: {
    not: 'max_completion_tokens frequency_penalty presence_penalty seed logit_bias parallel_tool_calls',
  },
  snowflake: {},
  watsonx: {},
  ovhcloud: { not: 'max_completion_tokens', roles: ROLES },
  scaleway: { not: 'logit_bias frequency_penalty n top_logprobs user', roles: ROLES },
  friendli: { roles: ROLES },
  featherless: { not: 'max_completion_tokens', roles: ROLES },
  nscale: { not: 'max_completion_tokens', roles: ROLES },
  lambda: { roles: ROLES },
  baseten: { roles: ROLES },
  parasail: { roles: ROLES },
  chutes: { not: 'max_completion_tokens', roles: ROLES },
  vercel: {},
  'lm-studio': { not: 'max_completion_tokens', roles: ROLES },
  'llama-cpp': { roles: ROLES },
  sglang: { roles: ROLES },
  tgi: { not: 'max_completion_tokens', roles: ROLES },
  litellm: {},
  jina: {},
  voyage: {},
  tei: {},
}

/** The first reason to refuse a request; null if the vendor accepts it. */
function fault(
  rules: Rules,
  { url, headers, body }: { url: string; headers: IncomingHttpHeaders; body: JsonObject },
) {
  const { fields, not = '', message, roles, key = 'authorization', path = /completions$/ } = rules
  if (!path.test(url)) return 'no such address'
  if (headers[key]?.includes('vendor-key') !== true) return 'no key'
  if (key !== 'authorization' && headers.authorization !== undefined) return 'two keys'
  const keys = Object.keys(body)
  const known = fields?.split(' ')
  const unknown = keys.find((one) => known?.includes(one) === false || not.split(' ').includes(one))
  if (unknown !== undefined) return unknown
  const members = message?.split(' ')
  for (const each of arrayOf(body['messages']).map(objectOf)) {
    const extra = Object.keys(each).find((one) => members?.includes(one) === false)
    if (extra !== undefined) return `messages.${extra}`
    const role = stringOf(each['role']) ?? ''
    if (roles?.split(' ').includes(role) === false) return `role ${role}`
  }
  return null
}

/** A reply that is sent once. */
export interface Script {
  readonly status: number
  readonly type: string
  readonly body: string
  /** The rest, sent a little later. */
  readonly rest?: string
}

/** Vendors behind one port, each below `/NAME`. */
export interface Vendors {
  readonly origin: string
  /** The address, headers and body of the latest request. */
  last: { url: string; headers: IncomingHttpHeaders; body: JsonObject } | null
  /** Replies by the text of the first message; otherwise a reply of one word. */
  readonly scripts: Map<string, Script>
}

/** Starts the vendors; they end with the test. */
export async function startVendors(t: Test): Promise<Vendors> {
  const vendors: Vendors = { origin: '', last: null, scripts: new Map() }
  const server = createServer((request, response) => {
    void json(request).then((value) => {
      const body = objectOf(value)
      const url = request.url ?? ''
      vendors.last = { url, headers: request.headers, body }
      const rules = VENDORS[url.split('/')[1] ?? ''] ?? { path: /^$/ }
      const wrong = fault(rules, { url, headers: request.headers, body })
      if (wrong === null) answer(response, body, vendors.scripts)
      else end(response, { status: 400, type: JSON_TYPE, body: refusal(wrong) })
    })
  })
  const port = await listen(t, server)
  return Object.assign(vendors, { origin: `http://127.0.0.1:${port}` })
}

const JSON_TYPE = 'application/json'

function refusal(param: string): string {
  return JSON.stringify({
    error: { message: `${param} is refused`, type: 'invalid_request_error' },
  })
}

function answer(response: ServerResponse, body: JsonObject, scripts: Vendors['scripts']): void {
  const words = JSON.stringify(arrayOf(body['messages'])[0])
  const [, script] = [...scripts].find(([text]) => words.includes(text)) ?? []
  end(response, script ?? (body['stream'] === true ? STREAMED : WHOLE))
}

function end(response: ServerResponse, { status, type, body, rest }: Script): void {
  response.writeHead(status, { 'content-type': type })
  if (rest === undefined) response.end(body)
  else response.write(body, () => setTimeout(() => response.end(rest), 30))
}

const HEAD = { id: 'chatcmpl-1', created: 1, model: 'm' }
const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }

const WHOLE: Script = {
  status: 200,
  type: JSON_TYPE,
  body: JSON.stringify({
    ...HEAD,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes' }, finish_reason: 'stop' }],
    usage: USAGE,
  }),
}

/** Usage is in the last choice's chunk, as Mistral, DeepSeek and Fireworks send it. */
const STREAMED: Script = {
  status: 200,
  type: 'text/event-stream',
  body: [
    { choices: [{ index: 0, delta: { role: 'assistant', content: 'Yes' }, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: USAGE },
  ]
    .map((chunk) => ({ ...HEAD, object: 'chat.completion.chunk', ...chunk }))
    .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
    .concat('data: [DONE]\n\n')
    .join(''),
}
