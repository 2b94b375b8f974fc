/**
 * Headers, errors and special events of OpenAI's formats.
 */
import { errorReply, Refusal } from '../emulated-exchange.js'
import type { FrameWriter } from '../emulated-exchange.js'

const COMMON = {
  'openai-version': '2020-10-01',
  'openai-organization': 'emulated',
  'openai-processing-ms': '1',
  'x-ratelimit-limit-requests': '10000',
  'x-ratelimit-limit-tokens': '1000000',
  'x-ratelimit-remaining-requests': '9999',
  'x-ratelimit-remaining-tokens': '999989',
  'x-ratelimit-reset-requests': '6ms',
  'x-ratelimit-reset-tokens': '0s',
}
/** Headers of a whole reply. */
export const WHOLE = { 'content-type': 'application/json', ...COMMON }
/** Headers of a stream. */
export const STREAM = { 'content-type': 'text/event-stream; charset=utf-8', ...COMMON }

const TYPES: Record<number, string> = { 429: 'requests' }
const CODES: Record<number, string> = { 401: 'invalid_api_key', 429: 'rate_limit_exceeded' }

/** The frames of errors, unknown events and keep-alives. */
export const openAiFrames: FrameWriter = {
  errorBody: (status, message, type) =>
    openAiError(message, {
      type: type ?? TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
      code: CODES[status] ?? null,
    }),
  errorEvent: (type) =>
    frame(
      JSON.stringify({
        error: {
          message: 'The server had an error while processing your request. Sorry about that!',
          type: type ?? 'server_error',
          param: null,
          code: null,
        },
      }),
    ),
  unknownEvent: () =>
    'event: chat.future\ndata: {"object":"chat.future","choices":[],"invented":{"depth":1}}\n\n',
  frame,
  textEvent: (text) =>
    frame(
      `{"id":"chatcmpl-giant","object":"chat.completion.chunk","created":0,"model":"emulated","choices":[{"index":0,"delta":{"content":${JSON.stringify(text)}},"logprobs":null,"finish_reason":null}]}`,
    ),
  ping: () => ': ping\n\n',
  streamHeaders: STREAM,
  wholeHeaders: WHOLE,
}

/** The body of an OpenAI error. */
function openAiError(
  message: string,
  rest: { type?: string; param?: string | null; code?: string | null } = {},
): string {
  const { type = 'invalid_request_error', param = null, code = null } = rest
  return JSON.stringify({ error: { message, type, param, code } }, undefined, 2)
}

function frame(data: string): string {
  return `data: ${data}\n\n`
}

/** Throws a refusal with OpenAI's error body. */
export function refuseOpenAi(
  status: number,
  message: string,
  rest: { type?: string; param?: string | null; code?: string | null } = {},
): never {
  throw new Refusal(errorReply(status, WHOLE, openAiError(message, rest)))
}
