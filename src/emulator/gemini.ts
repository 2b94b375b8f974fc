/**
 * Gemini's generateContent as a provider speaks it: whole reply, SSE stream, array stream.
 * Knows no other provider and no fault. Follows recorded traffic of 2025–2026.
 */
import { Refusal } from './ask.js'
import { answerTo } from './answer.js'
import { readGemini } from './gemini-request.js'
import { diceOf, lettersOf, opaqueOf } from './seed.js'
import type { Answer, Call, Reply, Voice } from './ask.js'
import type { JsonObject } from '../chat/json.js'

const COMMON = { 'server-timing': 'gfet4t7; dur=1', vary: 'Origin' }
const WHOLE = { 'content-type': 'application/json; charset=UTF-8', ...COMMON }
const STREAM = {
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

/** Gemini's forms for errors, unknown events and the like. */
export const geminiVoice: Voice = {
  errorBody: (status, message, type) => geminiError(status, message, [], type),
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

function frame(data: string): string {
  return `data: ${data}\r\n\r\n`
}

/** The body of a Google error; `details` go in as they are. */
export function geminiError(
  status: number,
  message: string,
  details: readonly JsonObject[] = [],
  state?: string,
): string {
  const error = {
    code: status,
    message,
    status: state ?? STATES[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT'),
    ...(details.length > 0 && { details }),
  }
  return `${JSON.stringify({ error }, undefined, 2)}\n`
}

/** Throws a refusal in Google's form. */
export function refuseGemini(
  status: number,
  message: string,
  details: readonly JsonObject[] = [],
): never {
  throw new Refusal({
    status,
    headers: WHOLE,
    units: [geminiError(status, message, details)],
    stream: false,
    terminators: 0,
  })
}

/** The reply to `POST /models/{model}:generateContent` and `:streamGenerateContent`. */
export function geminiReply(call: Call): Reply {
  const { ask, stream, showThoughts } = readGemini(call)
  const answer = answerTo(ask, call.seed)
  const dice = diceOf(call.seed)
  const tail = {
    modelVersion: ALIASES[ask.model] ?? ask.model,
    responseId: `${lettersOf(dice, 17)}_${lettersOf(dice, 5)}`,
  }
  const signature = ask.thinking ? opaqueOf(dice, 120) : undefined
  const parts = partsOf(answer, showThoughts, signature, call.seed)
  const whole = (): Reply => ({
    status: 200,
    headers: WHOLE,
    units: [`${JSON.stringify(wholeBody(answer, parts.whole, tail), undefined, 2)}\n`],
    stream: false,
    terminators: 0,
  })
  if (!stream) {
    return whole()
  }
  const chunks = chunksOf(answer, parts.streamed, tail)
  if (call.query.get('alt') === 'sse') {
    return {
      status: 200,
      headers: STREAM,
      units: chunks.map(frame),
      stream: true,
      terminators: 1,
      whole,
    }
  }
  const units = [
    ...chunks.map((chunk, index) => (index === 0 ? `[${chunk}\n` : `,\r\n${chunk}\n`)),
    ']',
  ]
  return { status: 200, headers: WHOLE, units, stream: true, terminators: 1, whole }
}

/** The body of `:countTokens`. */
export function geminiCount(call: Call): Reply {
  const { ask } = readGemini(call)
  const total = answerTo(ask, call.seed).usage.input
  const body = {
    totalTokens: total,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: total }],
  }
  return {
    status: 200,
    headers: WHOLE,
    units: [`${JSON.stringify(body, undefined, 2)}\n`],
    stream: false,
    terminators: 0,
  }
}

const ALIASES: Record<string, string> = {
  'gemini-flash-latest': 'gemini-3.6-flash',
  'gemini-pro-latest': 'gemini-3.1-pro-preview',
}

interface Tail {
  readonly modelVersion: string
  readonly responseId: string
}

/** The parts of the whole reply, and those of each chunk of a stream. */
interface Parts {
  readonly whole: readonly JsonObject[]
  readonly streamed: readonly (readonly JsonObject[])[]
}

function partsOf(
  answer: Answer,
  showThoughts: boolean,
  signature: string | undefined,
  seed: number,
): Parts {
  const dice = diceOf(seed ^ 0x5bd1e995)
  const signed = signature === undefined ? {} : { thoughtSignature: signature }
  const thoughts =
    answer.thinking !== '' && showThoughts ? [{ text: answer.thinking, thought: true }] : []
  const thoughtChunks = thoughts.map((thought) => [thought])
  if (answer.calls.length > 0) {
    const calls = answer.calls.map(({ name, args }, index) => ({
      functionCall: { name, args, id: lettersOf(dice, 8).toLowerCase() },
      // Only the first of several parallel calls is signed.
      ...(index === 0 && signed),
    }))
    const closing = signature === undefined ? [] : [[{ text: '' }]]
    return { whole: [...thoughts, ...calls], streamed: [...thoughtChunks, calls, ...closing] }
  }
  const text = answer.text === '' ? [] : [{ text: answer.text, ...signed }]
  const pieces = grouped(answer.pieces).map((piece) => [{ text: piece }])
  const closing = signature === undefined && pieces.length > 0 ? [] : [[{ text: '', ...signed }]]
  return { whole: [...thoughts, ...text], streamed: [...thoughtChunks, ...pieces, ...closing] }
}

/** Gemini sends longer pieces than others: one word first, then several together. */
function grouped(pieces: readonly string[]): string[] {
  const groups = pieces.slice(0, 1)
  for (let at = 1; at < pieces.length; at += 4) {
    groups.push(pieces.slice(at, at + 4).join(''))
  }
  return groups
}

function finishOf(answer: Answer): string {
  return answer.end === 'length' ? 'MAX_TOKENS' : 'STOP'
}

function usageOf(answer: Answer, output: number): JsonObject {
  const { input, thinking } = answer.usage
  return {
    promptTokenCount: input,
    ...(output > 0 && { candidatesTokenCount: output }),
    totalTokenCount: input + output + thinking,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
    ...(thinking > 0 && { thoughtsTokenCount: thinking }),
    serviceTier: 'standard',
  }
}

function wholeBody(answer: Answer, parts: readonly JsonObject[], tail: Tail): JsonObject {
  return {
    candidates: [
      {
        content: { ...(parts.length > 0 && { parts: [...parts] }), role: 'model' },
        finishReason: finishOf(answer),
        index: 0,
      },
    ],
    usageMetadata: usageOf(answer, answer.usage.output - answer.usage.thinking),
    ...tail,
  }
}

function chunksOf(
  answer: Answer,
  streamed: readonly (readonly JsonObject[])[],
  tail: Tail,
): string[] {
  const total = answer.usage.output - answer.usage.thinking
  const after = `,"modelVersion": ${JSON.stringify(tail.modelVersion)},"responseId": "${tail.responseId}"}`
  return streamed.map((parts, index) => {
    const last = index === streamed.length - 1
    const finish = last ? `"finishReason": "${finishOf(answer)}",` : ''
    const output = last ? total : Math.floor((total * (index + 1)) / streamed.length)
    return (
      `{"candidates": [{"content": {"parts": ${JSON.stringify(parts)},"role": "model"},` +
      `${finish}"index": 0}],"usageMetadata": ${JSON.stringify(usageOf(answer, output))}${after}`
    )
  })
}
