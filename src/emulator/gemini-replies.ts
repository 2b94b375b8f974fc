/**
 * Replies of Gemini's generateContent: whole, as an SSE stream and as a JSON array. They follow recorded
 * traffic of 2025–2026.
 */
import { geminiMedia } from './gemini-media.js'
import { generateOutput, tokenProbabilities } from './model-output.js'
import { readGemini, STREAM, WHOLE, frame, thoughtSignature } from './gemini-requests.js'
import { seededRandom, lettersOf } from './seeded-random.js'
import { replyInForm, wholeReply } from './emulated-exchange.js'
import type { ModelOutput, ParsedRequest, Reply } from './emulated-exchange.js'
import type { JsonObject } from '../base/json.js'

/** The reply to `POST /models/{model}:generateContent` and `:streamGenerateContent`. */
export function geminiReply(request: ParsedRequest): Reply {
  const { modelInput, stream, showThoughts, count, topLogprobs } = readGemini(request)
  const media = geminiMedia(request)
  if (media !== null) return media
  const modelOutput = generateOutput(modelInput, request.seed)
  const random = seededRandom(request.seed)
  const tail = {
    modelVersion: ALIASES[modelInput.model] ?? modelInput.model,
    responseId: `${lettersOf(random, 17)}_${lettersOf(random, 5)}`,
  }
  const [first] = modelOutput.calls
  const signature = modelInput.thinking ? thoughtSignature(first?.name, random) : undefined
  const parts = partsOf(modelOutput, { showThoughts, signature, seed: request.seed })
  const candidates: Candidate[] = [{ modelOutput, parts: parts.whole }]
  for (let seed = request.seed + 1; candidates.length < count; seed += 1) {
    const other = generateOutput(modelInput, seed)
    candidates.push({
      modelOutput: other,
      parts: partsOf(other, { showThoughts, signature, seed }).whole,
    })
  }
  const isSse = request.query.get('alt') === 'sse'
  return replyInForm(stream, {
    wholeHeaders: WHOLE,
    body: () => `${JSON.stringify(wholeBody(candidates, tail, topLogprobs), undefined, 2)}\n`,
    streamHeaders: isSse ? STREAM : WHOLE,
    units: () => {
      const chunks = chunksOf(modelOutput, parts.streamed, tail)
      return isSse ? chunks.map(frame) : arrayOfChunks(chunks)
    },
    counted: modelOutput.usage,
  })
}

/** The chunks as one JSON array, with Google's line ends. */
function arrayOfChunks(chunks: readonly string[]): string[] {
  return [...chunks.map((chunk, index) => (index === 0 ? `[${chunk}\n` : `,\r\n${chunk}\n`)), ']']
}

/** The body of `:countTokens`. */
export function geminiCount(request: ParsedRequest): Reply {
  const { modelInput } = readGemini(request)
  const total = generateOutput(modelInput, request.seed).usage.input
  const body = {
    totalTokens: total,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: total }],
  }
  return wholeReply(WHOLE, `${JSON.stringify(body, undefined, 2)}\n`)
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

interface PartOptions {
  readonly showThoughts: boolean
  /** Undefined for a model that does not think. */
  readonly signature: string | undefined
  readonly seed: number
}

function partsOf(modelOutput: ModelOutput, { showThoughts, signature, seed }: PartOptions): Parts {
  const random = seededRandom(seed ^ 0x5bd1e995)
  const signed = signature === undefined ? {} : { thoughtSignature: signature }
  const thoughts =
    modelOutput.thinking !== '' && showThoughts ? [{ text: modelOutput.thinking, thought: true }] : []
  const thoughtChunks = thoughts.map((thought) => [thought])
  if (modelOutput.calls.length > 0) {
    const calls = modelOutput.calls.map(({ name, args }, index) => ({
      functionCall: { name, args, id: lettersOf(random, 8).toLowerCase() },
      // Gemini signs only the first of several parallel calls.
      ...(index === 0 && signed),
    }))
    const closing = signature === undefined ? [] : [[{ text: '' }]]
    return { whole: [...thoughts, ...calls], streamed: [...thoughtChunks, calls, ...closing] }
  }
  const text = modelOutput.text === '' ? [] : [{ text: modelOutput.text, ...signed }]
  const chunks = grouped(modelOutput.chunks).map((chunk) => [{ text: chunk }])
  const closing = signature === undefined && chunks.length > 0 ? [] : [[{ text: '', ...signed }]]
  return { whole: [...thoughts, ...text], streamed: [...thoughtChunks, ...chunks, ...closing] }
}

/** Gemini sends longer chunks than others: first one word, then four at a time. */
function grouped(chunks: readonly string[]): string[] {
  const groups = chunks.slice(0, 1)
  for (let at = 1; at < chunks.length; at += 4) {
    groups.push(chunks.slice(at, at + 4).join(''))
  }
  return groups
}

function finishOf(modelOutput: ModelOutput): string {
  return modelOutput.end === 'length' ? 'MAX_TOKENS' : 'STOP'
}

function usageOf(modelOutput: ModelOutput, output: number): JsonObject {
  const { input, thinking } = modelOutput.usage
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
  readonly modelOutput: ModelOutput
  readonly parts: readonly JsonObject[]
}

/** `logprobsResult` and `avgLogprobs`. */
function logprobsResultOf(modelOutput: ModelOutput, topLogprobs: number): JsonObject {
  const tokens = tokenProbabilities(modelOutput, topLogprobs)
  const candidateOf = ({ token, logprob }: { token: string; logprob: number }): JsonObject => {
    return { token, logProbability: logprob }
  }
  const sum = tokens.reduce((total, { logprob }) => total + logprob, 0)
  return {
    avgLogprobs: tokens.length === 0 ? 0 : sum / tokens.length,
    logprobsResult: {
      ...(topLogprobs > 0 && {
        topCandidates: tokens.map(({ alternatives }) => ({
          candidates: alternatives.map(candidateOf),
        })),
      }),
      chosenCandidates: tokens.map(candidateOf),
    },
  }
}

/** A whole reply. The prompt counts once, regardless of the number of candidates. */
function wholeBody(
  candidates: readonly Candidate[],
  tail: Tail,
  topLogprobs: number | undefined,
): JsonObject {
  const [first] = candidates
  const output = candidates.reduce(
    (sum, { modelOutput: { usage } }) => sum + usage.output - usage.thinking,
    0,
  )
  return {
    candidates: candidates.map(({ modelOutput, parts }, index) => ({
      content: { ...(parts.length > 0 && { parts: [...parts] }), role: 'model' },
      finishReason: finishOf(modelOutput),
      index,
      ...(topLogprobs !== undefined && logprobsResultOf(modelOutput, topLogprobs)),
    })),
    ...(first !== undefined && { usageMetadata: usageOf(first.modelOutput, output) }),
    ...tail,
  }
}

function chunksOf(
  modelOutput: ModelOutput,
  streamed: readonly (readonly JsonObject[])[],
  tail: Tail,
): string[] {
  const total = modelOutput.usage.output - modelOutput.usage.thinking
  const after = `,"modelVersion": ${JSON.stringify(tail.modelVersion)},"responseId": "${tail.responseId}"}`
  return streamed.map((parts, index) => {
    const last = index === streamed.length - 1
    const finish = last ? `"finishReason": "${finishOf(modelOutput)}",` : ''
    const output = last ? total : Math.floor((total * (index + 1)) / streamed.length)
    return (
      `{"candidates": [{"content": {"parts": ${JSON.stringify(parts)},"role": "model"},` +
      `${finish}"index": 0}],"usageMetadata": ${JSON.stringify(usageOf(modelOutput, output))}${after}`
    )
  })
}
