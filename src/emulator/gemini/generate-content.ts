/**
 * Gemini's generateContent as a provider speaks it: whole reply, SSE stream, array stream.
 * Knows no other provider and no fault. Follows recorded traffic of 2025–2026.
 */
import { answerTo, weighed } from '../answer.js'
import { readGemini } from './decode-request.js'
import { STREAM, WHOLE, frame } from './errors.js'
import { thoughtSignature } from './check-thinking.js'
import { diceOf, lettersOf } from '../seed.js'
import type { Answer, Call, Reply } from '../ask.js'
import type { JsonObject } from '../../chat/json.js'

/** The reply to `POST /models/{model}:generateContent` and `:streamGenerateContent`. */
export function geminiReply(call: Call): Reply {
  const { ask, stream, showThoughts, count, weighs } = readGemini(call)
  const answer = answerTo(ask, call.seed)
  const dice = diceOf(call.seed)
  const tail = {
    modelVersion: ALIASES[ask.model] ?? ask.model,
    responseId: `${lettersOf(dice, 17)}_${lettersOf(dice, 5)}`,
  }
  const [first] = answer.calls
  const signature = ask.thinking ? thoughtSignature(first?.name, dice) : undefined
  const parts = partsOf(answer, showThoughts, signature, call.seed)
  const said = [{ answer, parts: parts.whole }]
  for (let seed = call.seed + 1; said.length < count; seed += 1) {
    const other = answerTo(ask, seed)
    said.push({ answer: other, parts: partsOf(other, showThoughts, signature, seed).whole })
  }
  const whole = (): Reply => ({
    status: 200,
    headers: WHOLE,
    units: [`${JSON.stringify(wholeBody(said, tail, weighs), undefined, 2)}\n`],
    stream: false,
    terminators: 0,
    counted: answer.usage,
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
      counted: answer.usage,
    }
  }
  const units = [
    ...chunks.map((chunk, index) => (index === 0 ? `[${chunk}\n` : `,\r\n${chunk}\n`)),
    ']',
  ]
  return {
    status: 200,
    headers: WHOLE,
    units,
    stream: true,
    terminators: 1,
    whole,
    counted: answer.usage,
  }
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

/** One candidate of a whole reply. */
interface Candidate {
  readonly answer: Answer
  readonly parts: readonly JsonObject[]
}

/** `logprobsResult` and its mean. */
function weightsOf(answer: Answer, weighs: number): JsonObject {
  const tokens = weighed(answer, weighs)
  const told = ({ token, logprob }: { token: string; logprob: number }): JsonObject => {
    return { token, logProbability: logprob }
  }
  const sum = tokens.reduce((total, { logprob }) => total + logprob, 0)
  return {
    avgLogprobs: tokens.length === 0 ? 0 : sum / tokens.length,
    logprobsResult: {
      ...(weighs > 0 && {
        topCandidates: tokens.map(({ rivals }) => ({ candidates: rivals.map(told) })),
      }),
      chosenCandidates: tokens.map(told),
    },
  }
}

/** The prompt is counted once, whatever is said to it. */
function wholeBody(said: readonly Candidate[], tail: Tail, weighs: number | undefined): JsonObject {
  const [first] = said
  const output = said.reduce((sum, { answer: { usage } }) => sum + usage.output - usage.thinking, 0)
  return {
    candidates: said.map(({ answer, parts }, index) => ({
      content: { ...(parts.length > 0 && { parts: [...parts] }), role: 'model' },
      finishReason: finishOf(answer),
      index,
      ...(weighs !== undefined && weightsOf(answer, weighs)),
    })),
    ...(first !== undefined && { usageMetadata: usageOf(first.answer, output) }),
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
