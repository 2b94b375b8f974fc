/**
 * Headers, errors and special events of Anthropic's format.
 */
import { errorReply, Refusal } from '../emulated-exchange.js'
import type { FrameWriter } from '../emulated-exchange.js'

const COMMON = {
  'anthropic-organization-id': '00000000-0000-4000-8000-000000000000',
  'anthropic-ratelimit-input-tokens-limit': '4000000',
  'anthropic-ratelimit-input-tokens-remaining': '4000000',
  'anthropic-ratelimit-input-tokens-reset': '2026-01-01T00:00:00Z',
  'anthropic-ratelimit-output-tokens-limit': '800000',
  'anthropic-ratelimit-output-tokens-remaining': '800000',
  'anthropic-ratelimit-output-tokens-reset': '2026-01-01T00:00:00Z',
  'anthropic-ratelimit-requests-limit': '20000',
  'anthropic-ratelimit-requests-remaining': '19999',
  'anthropic-ratelimit-requests-reset': '2026-01-01T00:00:00Z',
  vary: 'Accept-Encoding',
}
/** Headers of a whole reply. */
export const WHOLE = { 'content-type': 'application/json', ...COMMON }
/** Headers of a stream. */
export const STREAM = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  ...COMMON,
}

const TYPES: Record<number, string> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}
const REQUEST_ID = 'req_011EmulatedEmulatedEmulat'

/** The frames of errors, unknown events and keep-alives. */
export const anthropicFrames: FrameWriter = {
  errorBody: (status, message, type) =>
    anthropicError(
      type ?? TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'),
      message,
    ),
  errorEvent: (type) =>
    named(
      'error',
      JSON.stringify({
        type: 'error',
        error: { details: null, type: type ?? 'overloaded_error', message: 'Overloaded' },
        request_id: REQUEST_ID,
      }),
    ),
  unknownEvent: () =>
    'event: future_event\ndata: {"type":"future_event","index":0,"invented":{"depth":1}}\n\n',
  frame: (data) => named('content_block_delta', data),
  textEvent: (text) =>
    named(
      'content_block_delta',
      `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${JSON.stringify(text)}}}`,
    ),
  ping: () => PING,
  streamHeaders: STREAM,
  wholeHeaders: WHOLE,
}

/** The keep-alive event, byte for byte. */
export const PING = 'event: ping\ndata: {"type": "ping"}\n\n'

function named(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`
}

function anthropicError(type: string, message: string): string {
  return JSON.stringify({ type: 'error', error: { type, message }, request_id: REQUEST_ID })
}

/** Throws a refusal with Anthropic's error body. */
export function refuseAnthropic(status: number, message: string, type?: string): never {
  const body = anthropicFrames.errorBody(status, message, type)
  throw new Refusal(errorReply(status, WHOLE, body))
}
