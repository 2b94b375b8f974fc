/**
 * The attributes of spans, by OpenTelemetry's conventions for HTTP and generative AI
 * (semantic-conventions-genai, read 2026-11-23), and `sluice.*` for the rest. They contain no prompt, key or
 * header.
 */
import type { Attributes } from '@opentelemetry/api'
import type { ChatRequest } from '../../chat/request.js'
import type { Usage } from '../../chat/usage.js'
import type { UpstreamConfig } from '../../config/config.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import type { Exchange } from '../client-exchange.js'
import { hostOf } from '../../http/message.js'
import { nameOf } from './ledger-entry.js'
import type { End } from './log-line.js'
import type { Results } from './phase-results.js'

/** The methods that http.request.method allows. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'PATCH'])

/** The presets for which the conventions define another provider name. */
const PROVIDERS: Readonly<Record<string, string>> = {
  azure: 'azure.ai.openai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
}

/** `POST /v1/chat/completions`; the method alone if the path is unknown. */
export function serverName(x: Exchange, results: Results): string {
  const method = methodOf(x)
  const route = httpRoute(x, results)
  return route === undefined ? method : `${method} ${route}`
}

function methodOf({ req }: Exchange): string {
  const { method = '' } = req
  return METHODS.has(method) ? method : 'HTTP'
}

/** The path without the parts that the client chooses. */
function httpRoute({ path }: Exchange, { identified, candidate }: Results): string | undefined {
  const operation = identified?.operation ?? null
  if (operation === null) return undefined
  if (operation === 'native') {
    return candidate === null
      ? '/native/{upstream}'
      : `/native/${candidate.target.upstream.config.name}`
  }
  const gemini = /^(\/v1(?:beta)?\/models\/).+?(:[A-Za-z]+)?$/.exec(path)
  if (gemini !== null) return `${gemini[1]}{model}${gemini[2] ?? ''}`
  return path.replace(/^(\/v1\/responses\/)[^/]+/, '$1{id}')
}

/** The attributes of the server span. */
export function serverAttributes(x: Exchange, results: Results, end: End): Attributes {
  const { req, generation } = x
  const { identified, authenticated, admission, candidate, call, sent } = results
  const { status, outcome, cause } = end
  const [address, port] = splitHost(hostOf(req))
  return {
    'http.request.method': METHODS.has(req.method ?? '') ? req.method : '_OTHER',
    'http.response.status_code': status,
    'http.route': httpRoute(x, results),
    'url.path': (identified?.operation ?? null) === null ? undefined : x.path.slice(0, 256),
    'url.scheme': 'encrypted' in req.socket ? 'https' : 'http',
    'server.address': address,
    'server.port': port,
    'client.address': x.clientAddress,
    'network.protocol.version': req.httpVersion,
    'error.type': outcome === 'ok' ? undefined : outcome,
    'gen_ai.operation.name': operationOf(results),
    'gen_ai.request.model': nameOf(call?.request.model ?? null) ?? undefined,
    'gen_ai.response.model': nameOf(results.replyResult?.model ?? null) ?? undefined,
    'sluice.request_id': x.id,
    'sluice.client_request_id': identified?.clientRequestId ?? undefined,
    'sluice.outcome': outcome,
    'sluice.cause': cause,
    'sluice.limit': admission?.kind === 'refused' ? (admission.limit ?? undefined) : undefined,
    'sluice.account_id': authenticated?.identity.accountId,
    'sluice.key_id': authenticated?.identity.keyId,
    'sluice.ingress': identified?.format ?? undefined,
    'sluice.route': candidate?.target.route,
    'sluice.upstream': candidate?.target.upstream.config.name,
    'sluice.generation': generation.snapshot.generation,
    'sluice.attempts': sent?.attempts.length ?? 0,
    'sluice.overhead_ms': end.overheadMs,
  }
}

/** `chat gpt-4o`. */
export function attemptName({ candidate }: AttemptResult, results: Results): string {
  const operation = operationOf(results) ?? 'request'
  return candidate.model === '' ? operation : `${operation} ${nameOf(candidate.model) ?? ''}`
}

/** The attributes of the span of an attempt that ended with `outcome`. */
export function attemptAttributes(
  attempt: AttemptResult,
  results: Results,
  outcome: string,
): Attributes {
  const { candidate, replyResult, status, occasion } = attempt
  const { config } = candidate.target.upstream
  const { hostname, port, protocol } = new URL(config.baseUrl)
  const request = results.call?.request
  return {
    ...(request === undefined ? {} : requestAttributes(request)),
    ...usageAttributes(replyResult?.usage ?? {}),
    'gen_ai.operation.name': operationOf(results),
    'gen_ai.provider.name': providerOf(config, candidate.target.dialect),
    'gen_ai.request.model': nameOf(candidate.model === '' ? null : candidate.model) ?? undefined,
    'gen_ai.response.model': nameOf(replyResult?.model ?? null) ?? undefined,
    'gen_ai.response.finish_reasons': reasonsOf(replyResult?.reason ?? null),
    'gen_ai.response.time_to_first_chunk': secondsBetween(attempt.beganAtMs, attempt.contentAtMs),
    'server.address': hostname.replace(/^\[|\]$/g, ''),
    'server.port': Number(port === '' ? (protocol === 'https:' ? 443 : 80) : port),
    'http.request.method': 'POST',
    'http.response.status_code': status ?? undefined,
    'error.type': outcome === 'ok' ? undefined : outcome,
    'sluice.upstream': config.name,
    'sluice.occasion': occasion,
    'sluice.outcome': outcome,
    'sluice.upstream_request_id': attempt.requestId?.slice(0, 256) ?? undefined,
    'sluice.connect_ms': attempt.connectMs ?? undefined,
    'sluice.first_byte_ms': attempt.firstByteMs ?? undefined,
  }
}

/** The settings of the request. Stop sequences are the client's text and are left out. */
function requestAttributes(request: ChatRequest): Attributes {
  const { candidates = 1, responseFormat } = request
  const isJson = responseFormat !== undefined && responseFormat.type !== 'text'
  return {
    'gen_ai.request.stream': request.stream ? true : undefined,
    'gen_ai.request.max_tokens': request.maxOutputTokens,
    'gen_ai.request.temperature': request.temperature,
    'gen_ai.request.top_p': request.topP,
    'gen_ai.request.top_k': request.topK,
    'gen_ai.request.frequency_penalty': request.frequencyPenalty,
    'gen_ai.request.presence_penalty': request.presencePenalty,
    'gen_ai.request.seed': request.seed,
    'gen_ai.request.choice.count': candidates === 1 ? undefined : candidates,
    'gen_ai.request.reasoning.level': request.reasoningEffort,
    'gen_ai.output.type': isJson ? 'json' : undefined,
  }
}

function usageAttributes(usage: Usage): Attributes {
  return {
    'gen_ai.usage.input_tokens': usage.input,
    'gen_ai.usage.output_tokens': usage.output,
    'gen_ai.usage.cache_read.input_tokens': usage.cacheRead,
    'gen_ai.usage.cache_write.input_tokens': usage.cacheWrite,
    'gen_ai.usage.reasoning.output_tokens': usage.reasoning,
  }
}

/** The operation by the name of the conventions; undefined if they do not define it. */
function operationOf({ identified }: Results): string | undefined {
  switch (identified?.operation) {
    case 'chat':
      return 'chat'
    case 'completions':
      return 'text_completion'
    case 'embeddings':
      return 'embeddings'
    default:
      return undefined
  }
}

function providerOf({ preset, baseUrl }: UpstreamConfig, dialect: string): string {
  if (preset !== null) return PROVIDERS[preset] ?? preset
  if (dialect === 'anthropic') return 'anthropic'
  if (dialect !== 'gemini') return 'openai'
  return baseUrl.includes('aiplatform.googleapis.com') ? 'gcp.vertex_ai' : 'gcp.gemini'
}

function reasonsOf(reason: string | null): string[] | undefined {
  return reason === null ? undefined : [reason]
}

function secondsBetween(fromMs: number | null, toMs: number | null): number | undefined {
  return fromMs === null || toMs === null ? undefined : (toMs - fromMs) / 1000
}

/** Host and port of a `Host` header. */
function splitHost(host: string | undefined): [string | undefined, number | undefined] {
  const [, name, port] = /^(\[[0-9a-fA-F:.]+\]|[^:]{1,255})(?::(\d{1,5}))?$/.exec(host ?? '') ?? []
  return [name, port === undefined ? undefined : Number(port)]
}
