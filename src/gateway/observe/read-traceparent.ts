/**
 * Reads the client's trace context (`traceparent`, `tracestate`) as the parent of a request's spans, and
 * writes that of an attempt. The SDK's sampler (OTEL_TRACES_SAMPLER, by default the parent's flag) decides
 * whether spans are sampled. Without tracing, `forward-client-trace.ts` forwards the headers unchanged.
 */
import {
  ROOT_CONTEXT,
  type Context,
  type TextMapGetter,
  type TextMapSetter,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import type { IncomingHttpHeaders } from 'node:http'

const PROPAGATOR = new W3CTraceContextPropagator()

const FROM_CLIENT: TextMapGetter<IncomingHttpHeaders> = {
  keys: (headers) => Object.keys(headers),
  get: (headers, name) => headers[name],
}

const TO_UPSTREAM: TextMapSetter<string[]> = {
  set: (headers, name, value) => void headers.push(name, value),
}

/** The context of the client's span; an empty one if the headers are missing or invalid. */
export function readTraceparent(headers: IncomingHttpHeaders): Context {
  return PROPAGATOR.extract(ROOT_CONTEXT, headers, FROM_CLIENT)
}

/** Name, value, … of the headers with the span in the context. */
export function traceHeaders(context: Context): string[] {
  const headers: string[] = []
  PROPAGATOR.inject(context, headers, TO_UPSTREAM)
  return headers
}
