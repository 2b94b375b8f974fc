/**
 * Creates the spans of requests: one server span for each request, and one client span for each attempt.
 * Loaded only if traces are exported. A span starts when its context is needed, and gets its attributes from
 * the request's results at the end.
 */
import {
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span,
  type Tracer,
} from '@opentelemetry/api'
import type { AttemptResult } from '../attempts/attempt-result.js'
import type { Exchange } from '../client-exchange.js'
import type { End } from './log-line.js'
import { firstContentMs, type Results } from './phase-results.js'
import { readTraceparent, traceHeaders } from './read-traceparent.js'
import { CapturedReply, inputAttributes } from './span-content.js'
import { attemptAttributes, attemptName, serverAttributes, serverName } from './span-attributes.js'
import type { RequestTrace, TracedAttempt } from './forward-client-trace.js'
import type { Tracing } from './tracing.js'

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

  end(x: Exchange, results: Results, end: End): void {
    if (x.trace instanceof TracedRequest) x.trace.end(x, results, end)
  }
}

/** The spans of one request. */
class TracedRequest implements RequestTrace {
  readonly traceId: string
  private readonly tracer: Tracer
  private readonly span: Span
  private readonly context: Context
  private readonly capturesContent: boolean
  private readonly attempts = new Map<TracedAttempt, Span>()
  /** Difference between times since 1970 and monotonic times, in ms. */
  private readonly offsetMs = Date.now() - performance.now()

  constructor({ req, startedMs, generation }: Exchange, tracer: Tracer) {
    this.tracer = tracer
    this.capturesContent = generation.snapshot.config.telemetry.captureContent
    const parent = readTraceparent(req.headers)
    const startTime = this.wallMs(startedMs)
    this.span = tracer.startSpan('request', { kind: SpanKind.SERVER, startTime }, parent)
    this.context = trace.setSpan(parent, this.span)
    this.traceId = this.span.spanContext().traceId
  }

  headers(attempt: TracedAttempt | null): readonly string[] {
    let { context } = this
    if (attempt !== null) {
      const startTime = this.wallMs(attempt.beganAtMs ?? performance.now())
      const options = { kind: SpanKind.CLIENT, startTime }
      const span = this.tracer.startSpan('attempt', options, context)
      this.attempts.set(attempt, span)
      context = trace.setSpan(context, span)
      if (this.capturesContent && span.isRecording()) attempt.captured = new CapturedReply()
    }
    return traceHeaders(context)
  }

  end(x: Exchange, results: Results, end: End): void {
    const { span } = this
    const endMs = x.startedMs + end.seconds * 1000
    if (span.isRecording()) this.describe(x, results, end)
    const ended = { results, end }
    for (const attempt of results.sent?.attempts ?? []) {
      const attemptSpan = this.attempts.get(attempt)
      if (attemptSpan?.isRecording() === true) this.describeAttempt(attemptSpan, attempt, ended)
      attemptSpan?.end(this.wallMs(attempt.endedAtMs ?? endMs))
    }
    span.end(this.wallMs(endMs))
  }

  private describe(x: Exchange, results: Results, end: End): void {
    const { span } = this
    span.updateName(serverName(x, results))
    span.setAttributes(serverAttributes(x, results, end))
    const { outcome, cause } = end
    // An error of the client leaves the status unset, as the conventions for HTTP servers require.
    if (cause === 'gateway' || cause === 'provider') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: outcome })
    }
    this.addEvents(x, results)
  }

  private addEvents(x: Exchange, results: Results): void {
    const { span } = this
    let before: string | null = null
    for (const { occasion, after, candidate, beganAtMs } of results.sent?.attempts ?? []) {
      const { name } = candidate.target.upstream.config
      const attributes = {
        'sluice.upstream': name,
        ...(before === null ? {} : { 'sluice.upstream.before': before }),
        ...(after === null ? {} : { 'error.type': after }),
      }
      if (occasion !== 'first') span.addEvent(occasion, attributes, this.wallMs(beganAtMs ?? 0))
      before = name
    }
    const { delivery } = results
    const contentMs = firstContentMs(x, results)
    const headMs = delivery?.headMs ?? delivery?.wholeMs ?? null
    if (headMs !== null) span.addEvent('commit', {}, this.wallMs(x.startedMs + headMs))
    if (contentMs !== null) span.addEvent('first_content', {}, this.wallMs(x.startedMs + contentMs))
  }

  private describeAttempt(
    span: Span,
    attempt: AttemptResult,
    { results, end }: { readonly results: Results; readonly end: End },
  ): void {
    const { call } = results
    const isFinal = attempt === results.attempt
    const outcome = isFinal ? end.outcome : (attempt.outcome ?? 'ok')
    span.updateName(attemptName(attempt, results))
    span.setAttributes(attemptAttributes(attempt, results, outcome))
    if (attempt.contentAtMs !== null) {
      span.addEvent('first_content', {}, this.wallMs(attempt.contentAtMs))
    }
    // A cancelled hedge and a client that left are not errors of the upstream.
    if (outcome !== 'ok' && outcome !== 'cancelled' && outcome !== 'client_gone') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: outcome })
    }
    if (!this.capturesContent || call === null) return
    span.setAttributes(inputAttributes(call.request))
    if (attempt.captured instanceof CapturedReply) {
      span.setAttributes(attempt.captured.attributes(attempt.candidate.target.egress, call.request))
    }
  }

  private wallMs(monotonicMs: number): number {
    return monotonicMs + this.offsetMs
  }
}
