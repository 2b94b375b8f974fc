/**
 * Headers, errors and special events of Gemini's format.
 */
import { errorReply, Refusal } from '../emulated-exchange.js'
import type { FrameWriter } from '../emulated-exchange.js'
import type { JsonObject } from '../../chat/json.js'

const COMMON = { 'server-timing': 'gfet4t7; dur=1', vary: 'Origin' }
/** Headers of a whole reply and of the array form of a stream. */
export const WHOLE = { 'content-type': 'application/json; charset=UTF-8', ...COMMON }
/** Headers of a stream of events. */
export const STREAM = {
  'content-type': 'text/event-stream',
  'content-disposition': 'attachment',
  ...COMMON,
}

const STATES: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** The frames of errors, unknown events and keep-alives. */
export const geminiFrames: FrameWriter = {
  errorBody: (status, message, type) => geminiError(status, message, { state: type }),
  errorEvent: (type) =>
    frame(
      JSON.stringify({
        error: {
          code: 503,
          message: 'The model is overloaded. Please try again later.',
          status: type ?? 'UNAVAILABLE',
        },
      }),
    ),
  unknownEvent: () =>
    'event: future\r\ndata: {"invented": {"depth": 1},"responseId": "future"}\r\n\r\n',
  frame,
  textEvent: (text) =>
    frame(
      `{"candidates": [{"content": {"parts": [{"text": ${JSON.stringify(text)}}],"role": "model"},"index": 0}],"modelVersion": "emulated","responseId": "giant"}`,
    ),
  ping: () => ': ping\r\n\r\n',
  streamHeaders: STREAM,
  wholeHeaders: WHOLE,
}

/** An event with this data. Gemini ends lines with CRLF. */
export function frame(data: string): string {
  return `data: ${data}\r\n\r\n`
}

/** The body of a Google error. Without a `state`, the status decides. */
function geminiError(
  status: number,
  message: string,
  { details = [], state }: { details?: readonly JsonObject[]; state?: string | undefined },
): string {
  const error = {
    code: status,
    message,
    status: state ?? STATES[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT'),
    ...(details.length > 0 && { details }),
  }
  return `${JSON.stringify({ error }, undefined, 2)}\n`
}

/** Throws a refusal with Google's error body. */
export function refuseGemini(
  status: number,
  message: string,
  details: readonly JsonObject[] = [],
): never {
  throw new Refusal(errorReply(status, WHOLE, geminiError(status, message, { details })))
}
