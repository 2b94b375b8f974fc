/**
 * Creates the spans of requests: one server span for each request, and one client span for each attempt.
 * Loaded only if traces are exported. A span starts when its context is needed, and gets its attributes from
 * the request's results at the end.
 */
import { OPERATIONS } from '../../formats/chat/operations.js'
import type { GuardCall } from '../../policy/guard-notes.js'
import type { IncomingHttpHeaders } from 'node:http'
import {
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
  ROOT_CONTEXT,
  type Context,
  type Span,
  type Tracer,
  type Attributes,
  type TextMapGetter,
  type TextMapSetter,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import type { UpstreamConfig } from '../../config/config.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type { Usage } from '../../formats/chat/usage.js'
import { hostOf } from '../../http/message.js'
import type { AttemptResult, ReplyListener } from '../attempts/attempt-result.js'
import { nameOf } from '../charges/ledger-entry.js'
import type { Exchange } from '../client-exchange.js'
import type { RequestTrace, TracedAttempt } from './forward-client-trace.js'
import type { End } from './log-line.js'
import { CapturedReply, inputAttributes } from './span-content.js'

/** Creates spans with a tracer. */
export class Traces implements Tracing {
  private readonly tracer: Tracer
  readonly close: () => Promise<void>

  constructor(tracer: Tracer, close: () => Promise<void>) {
    this.tracer = tracer
    this.close = close
  }

  begin(x: Exchange): RequestTrace {
    return new TracedRequest(x, this.tracer)
  }

  listener({ trace }: Exchange): ReplyListener | null {
    return trace instanceof TracedRequest ? trace.listener : null
  }

  end(x: Exchange, end: End): void {
    if (x.trace instanceof TracedRequest) x.trace.ended(x, end)
  }
}

class TracedRequest implements RequestTrace, ReplyListener {
  readonly traceId: string
  readonly exportedId: string | null
  private readonly tracer: Tracer
  private readonly span: Span
  private readonly context: Context
  private readonly capturesContent: boolean
  private readonly attempts = new Map<TracedAttempt, Span>()
  /** The bytes of the replies whose content is recorded. */
  private readonly replies = new Map<TracedAttempt, CapturedReply>()
  /** Difference between times since 1970 and monotonic times, in ms. */
  private readonly offsetMs = Date.now() - performance.now()

  constructor({ req, startedMs, generation }: Exchange, tracer: Tracer) {
    this.tracer = tracer
    this.capturesContent = generation.snapshot.config.telemetry.captureContent
    const parent = readTraceparent(req.headers)
    const startTime = this.wallMs(startedMs)
    this.span = tracer.startSpan('request', { kind: SpanKind.SERVER, startTime }, parent)
    this.context = trace.setSpan(parent, this.span)
    const { traceId, traceFlags } = this.span.spanContext()
    this.traceId = traceId
    this.exportedId = (traceFlags & TraceFlags.SAMPLED) === 0 ? null : traceId
  }

  get listener(): ReplyListener | null {
    return this.capturesContent ? this : null
  }

  bytes(attempt: TracedAttempt, chunk: Buffer): void {
    this.replies.get(attempt)?.take(chunk)
  }

  headers(attempt: TracedAttempt | null): readonly string[] {
    let { context } = this
    if (attempt !== null) {
      const startTime = this.wallMs(attempt.beganAtMs ?? performance.now())
      const options = { kind: SpanKind.CLIENT, startTime }
      const span = this.tracer.startSpan('attempt', options, context)
      this.attempts.set(attempt, span)
      context = trace.setSpan(context, span)
      if (this.capturesContent && span.isRecording()) this.replies.set(attempt, new CapturedReply())
    }
    return traceHeaders(context)
  }

  ended(x: Exchange, end: End): void {
    const { span } = this
    const endMs = x.startedMs + end.seconds * 1000
    if (span.isRecording()) this.describe(x, end)
    const ended = { x, end }
    for (const attempt of x.attempts?.list ?? []) {
      const attemptSpan = this.attempts.get(attempt)
      if (attemptSpan?.isRecording() === true) this.describeAttempt(attemptSpan, attempt, ended)
      attemptSpan?.end(this.wallMs(attempt.endedAtMs ?? endMs))
    }
    for (const call of x.guard?.calls ?? []) this.addGuardSpan(call)
    span.end(this.wallMs(endMs))
  }

  /** One call of a guard server or plugin. */
  private addGuardSpan({ guardrail, on, beganMs, endedMs, result }: GuardCall): void {
    const startTime = this.wallMs(beganMs)
    const options = { kind: SpanKind.CLIENT, startTime }
    const span = this.tracer.startSpan(`guard ${guardrail}`, options, this.context)
    span.setAttributes({
      'sluice.guardrail': guardrail,
      'sluice.guardrail.on': on,
      'sluice.guardrail.verdict': result,
    })
    if (result === 'error') span.setStatus({ code: SpanStatusCode.ERROR, message: result })
    span.end(this.wallMs(endedMs))
  }

  private describe(x: Exchange, end: End): void {
    const { span } = this
    span.updateName(serverName(x))
    span.setAttributes(serverAttributes(x, end))
    const { outcome, cause } = end
    // An error of the client leaves the status unset, as the conventions for HTTP servers require.
    if (cause === 'gateway' || cause === 'provider') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: outcome })
    }
    this.addEvents(x)
  }

  private addEvents(x: Exchange): void {
    const { span } = this
    let before: string | null = null
    for (const { occasion, after, candidate, beganAtMs } of x.attempts?.list ?? []) {
      const { name } = candidate.target.upstream.config
      const attributes = {
        'sluice.upstream': name,
        ...(before === null ? {} : { 'sluice.upstream.before': before }),
        ...(after === null ? {} : { 'error.type': after }),
      }
      if (occasion !== 'first') span.addEvent(occasion, attributes, this.wallMs(beganAtMs ?? 0))
      before = name
    }
    const { delivered } = x
    const contentMs = x.firstContentMs
    const headMs = delivered?.headMs ?? delivered?.wholeMs ?? null
    if (headMs !== null) span.addEvent('commit', {}, this.wallMs(x.startedMs + headMs))
    if (contentMs !== null) span.addEvent('first_content', {}, this.wallMs(x.startedMs + contentMs))
  }

  private describeAttempt(
    span: Span,
    attempt: AttemptResult,
    { x, end }: { readonly x: Exchange; readonly end: End },
  ): void {
    const { received: call } = x
    const isFinal = attempt === x.attempt
    const outcome = isFinal ? end.outcome : (attempt.outcome ?? 'ok')
    span.updateName(attemptName(attempt, x))
    span.setAttributes(attemptAttributes(attempt, x, outcome))
    if (attempt.contentAtMs !== null) {
      span.addEvent('first_content', {}, this.wallMs(attempt.contentAtMs))
    }
    // A cancelled hedge and a client that left are not errors of the upstream.
    if (outcome !== 'ok' && outcome !== 'cancelled' && outcome !== 'client_gone') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: outcome })
    }
    if (!this.capturesContent || call === null) return
    span.setAttributes(inputAttributes(call.request))
    // The reply of the upstream may have text that guardrails have masked or refused.
    const isGuarded = x.guard !== null
    const reply = isGuarded ? undefined : this.replies.get(attempt)
    if (reply === undefined) return
    span.setAttributes(reply.attributes(attempt.candidate.target.upstreamCodec, call.request))
  }

  private wallMs(monotonicMs: number): number {
    return monotonicMs + this.offsetMs
  }
}

/** The methods that http.request.method allows. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'PATCH'])

/** The presets for which the conventions define another provider name. */
const PROVIDERS: Readonly<Record<string, string>> = {
  azure: 'azure.ai.openai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
}

/** `POST /v1/chat/completions`; the method alone if the path is unknown. */
function serverName(x: Exchange): string {
  const method = methodOf(x)
  const route = httpRoute(x)
  return route === undefined ? method : `${method} ${route}`
}

function methodOf({ req }: Exchange): string {
  const { method = '' } = req
  return METHODS.has(method) ? method : 'HTTP'
}

/** The path without the parts that the client chooses. */
function httpRoute({ path, identified, candidate }: Exchange): string | undefined {
  const operation = identified?.operation ?? null
  if (operation === null) return undefined
  if (operation === 'native') {
    return candidate === null ? '/native/{upstream}' : `/native/${candidate.target.upstream.config.name}`
  }
  const gemini = /^(\/v1(?:beta)?\/models\/).+?(:[A-Za-z]+)?$/.exec(path)
  if (gemini !== null) return `${gemini[1]}{model}${gemini[2] ?? ''}`
  return path.replace(/^(\/v1\/responses\/)[^/]+/, '$1{id}')
}

function serverAttributes(x: Exchange, end: End): Attributes {
  const { req, generation } = x
  const { identified, authenticated, admitted, candidate, received: call, attempts } = x
  const { status, outcome, cause } = end
  const [address, port] = splitHost(hostOf(req))
  return {
    'http.request.method': METHODS.has(req.method ?? '') ? req.method : '_OTHER',
    'http.response.status_code': status,
    'http.route': httpRoute(x),
    'url.path': (identified?.operation ?? null) === null ? undefined : x.path.slice(0, 256),
    'url.scheme': 'encrypted' in req.socket ? 'https' : 'http',
    'server.address': address,
    'server.port': port,
    'client.address': x.clientAddress,
    'network.protocol.version': req.httpVersion,
    'error.type': outcome === 'ok' ? undefined : outcome,
    'gen_ai.operation.name': operationOf(x),
    'gen_ai.request.model': nameOf(call?.request.model ?? null) ?? undefined,
    'gen_ai.response.model': nameOf(x.replyResult?.model ?? null) ?? undefined,
    'sluice.request_id': x.id,
    'sluice.client_request_id': identified?.clientRequestId ?? undefined,
    'sluice.outcome': outcome,
    'sluice.cause': cause,
    'sluice.limit': admitted?.kind === 'refused' ? (admitted.limit ?? undefined) : undefined,
    'sluice.account_id': authenticated?.identity.accountId,
    'sluice.key_id': authenticated?.identity.keyId,
    'sluice.ingress': identified?.format ?? undefined,
    'sluice.route': candidate?.target.route,
    'sluice.upstream': candidate?.target.upstream.config.name,
    'sluice.generation': generation.snapshot.generation,
    'sluice.guardrails': x.guard?.list.join(' '),
    'sluice.attempts': attempts?.list.length ?? 0,
    'sluice.overhead_ms': end.overheadMs,
  }
}

/** `chat gpt-4o`. */
function attemptName({ candidate }: AttemptResult, x: Exchange): string {
  const operation = operationOf(x) ?? 'request'
  return candidate.model === '' ? operation : `${operation} ${nameOf(candidate.model) ?? ''}`
}

/** The attributes of the span of an attempt that ended with `outcome`. */
function attemptAttributes(attempt: AttemptResult, x: Exchange, outcome: string): Attributes {
  const { candidate, replyResult, status, occasion } = attempt
  const { config } = candidate.target.upstream
  const { hostname, port, protocol } = new URL(config.baseUrl)
  const request = x.received?.request
  return {
    ...(request === undefined ? {} : requestAttributes(request)),
    ...usageAttributes(replyResult?.usage ?? {}),
    'gen_ai.operation.name': operationOf(x),
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
function operationOf({ identified }: Exchange): string | undefined {
  const operation = identified?.operation ?? null
  if (operation === null || operation === 'native' || operation === 'socket') return undefined
  return OPERATIONS[operation].spanName ?? undefined
}

function providerOf({ preset, baseUrl }: UpstreamConfig, dialect: string): string {
  if (preset !== null) return PROVIDERS[preset] ?? preset
  if (dialect === 'anthropic') return 'anthropic'
  if (dialect === 'converse') return 'aws.bedrock'
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

/** Creates the spans of requests; the rest of this file is loaded only if traces are exported. */
export interface Tracing {
  /** Starts the trace of a request that has arrived. */
  begin(x: Exchange): RequestTrace
  /** Gets the replies of the request if its trace records their content; else null. */
  listener(x: Exchange): ReplyListener | null
  /** Ends the trace of a request. */
  end(x: Exchange, end: End): void
  /** Exports the remaining spans; resolves within 3 seconds. */
  close(): Promise<void>
}

const PROPAGATOR = new W3CTraceContextPropagator()

const FROM_CLIENT: TextMapGetter<IncomingHttpHeaders> = {
  keys: (headers) => Object.keys(headers),
  get: (headers, name) => headers[name],
}

const TO_UPSTREAM: TextMapSetter<string[]> = {
  set: (headers, name, value) => void headers.push(name, value),
}

/**
 * The client's trace context (`traceparent`, `tracestate`), the parent of a request's spans; an empty one if
 * the headers are missing or invalid. The SDK's sampler (OTEL_TRACES_SAMPLER, by default the parent's flag)
 * decides whether spans are sampled.
 */
function readTraceparent(headers: IncomingHttpHeaders): Context {
  return PROPAGATOR.extract(ROOT_CONTEXT, headers, FROM_CLIENT)
}

/** Name, value, … of the headers with the span in the context. */
function traceHeaders(context: Context): string[] {
  const headers: string[] = []
  PROPAGATOR.inject(context, headers, TO_UPSTREAM)
  return headers
}
