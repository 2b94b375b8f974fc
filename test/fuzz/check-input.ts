/**
 * Checks the properties of every input: only a GatewayError is thrown, a reply ends exactly once, other
 * readers accept the output, chunk boundaries change nothing, and the time is bounded.
 */
import { isDeepStrictEqual } from 'node:util'
import { Fold, type Reply } from '../../src/formats/chat/fold.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import { objectOf, type JsonObject } from '../../src/base/json.js'
import type { ChatRequest } from '../../src/formats/chat/request.js'
import type { DialectName, Seed } from '../../src/formats/dialect.js'
import { ERRORS, GatewayError, rowOf, type WireError } from '../../src/errors.js'
import { PassthroughStream } from '../../src/gateway/streams/passthrough-stream.js'
import { TranslatedStream, type Translation } from '../../src/formats/translated-stream.js'
import { streamReply, translateReply } from '../../src/gateway/streams/whole-reply.js'
import { parseObject, parseReply } from '../../src/formats/wire/json/parse-body.js'
import { MAX_MESSAGE_CHARS } from '../../src/formats/wire/upstream-errors.js'
import { splice, type Edit } from '../../src/formats/wire/json/splice.js'
import { newFramer } from '../../src/formats/wire/aws/event-stream.js'
import { faultsOfStream, faultsOfWhole } from '../conformance/check-completion.js'
import { factsOf, upstream } from '../edge-cases/drive-codecs.js'
import { claimsCompletion, client, cutAt, SEED } from '../properties/transcript-streams.js'
import type { Input, PairInput, ReplyInput, RequestInput, StreamInput } from './fuzz-input.js'
import { MODELS, UPSTREAM_DIALECTS } from './generate-inputs.js'
import { refusalOf } from './provider-checks.js'

/** An input has at most some tens of kilobytes, which take milliseconds. */
const LIMIT_MS = 2000

/** Models with other rules than those of `MODELS`. */
const NEWER: Readonly<Record<DialectName, string>> = {
  'openai-chat': 'gpt-5.4',
  'openai-responses': 'gpt-6-sol',
  anthropic: 'claude-opus-5-5',
  gemini: 'gemini-2.5-flash',
  converse: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
}

const STATUSES = [400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 499, 500, 502, 503, 529, 599]

/** The violated property, of which the first word is the kind of fault; null if there is none. */
export function faultOf(input: Input): string | null {
  const began = performance.now()
  let fault: string | null
  try {
    fault = faultIn(input)
  } catch (error) {
    fault = `throws ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
  }
  const tookMs = performance.now() - began
  return fault ?? (tookMs > LIMIT_MS ? `slow: ${Math.round(tookMs)} ms` : null)
}

function faultIn(input: Input): string | null {
  switch (input.kind) {
    case 'request':
      return requestFault(input)
    case 'stream':
      return streamFault(input)
    case 'reply':
      return replyFault(input)
    case 'refusal':
      return refusalFault(input)
    case 'pair':
      return pairFault(input)
    default:
      return input satisfies never
  }
}

/** The request in a text, decoded as the gateway decodes a body; null if it refuses the body. */
export function requestOf(text: string): ChatRequest | null {
  try {
    const { value } = parseObject(Buffer.from(text))
    client.peek(value, { operation: 'chat' })
    return client.decodeRequest(value, { operation: 'chat' })
  } catch (error) {
    if (error instanceof GatewayError) return null
    throw error
  }
}

function seedOf({ dialect }: { dialect: DialectName }): Seed {
  return { ...SEED, origin: upstream(dialect).stateOrigin ?? dialect }
}

function askedOf(text: string): ChatRequest {
  const request = requestOf(text)
  if (request === null) throw new Error('the request of an input is a good one')
  return request
}

function requestFault({ text }: RequestInput): string | null {
  const request = requestOf(text)
  if (request === null) return null
  const before = JSON.stringify(request)
  checkPassed(text)
  for (const dialect of UPSTREAM_DIALECTS) {
    for (const model of new Set([request.model, MODELS[dialect], NEWER[dialect]])) {
      const fault = encodingFault({ ...request, model }, dialect, model)
      if (fault !== null) return `${fault} (${dialect}, ${model})`
      if (JSON.stringify(request) !== before) return `changes the request (${dialect}, ${model})`
    }
  }
  return null
}

/** Applies the edits of a pass-through to the body. Throws if the result is not one object. */
function checkPassed(text: string): void {
  const bytes = Buffer.from(text)
  const { value, members } = parseObject(bytes)
  const { model } = client.peek(value, { operation: 'chat' })
  for (const name of new Set([model, MODELS['openai-chat'], 'gpt-5.4'])) {
    const edits = editsOf(value, name)
    if (edits === null) continue
    const { value: reported } = parseObject(splice(bytes, members, edits))
    if (reported['model'] !== name) throw new Error(`the model is ${JSON.stringify(reported['model'])}`)
  }
}

/** The edits for a model; null if its rules refuse the body. */
function editsOf(body: JsonObject, model: string): Edit[] | null {
  try {
    const losses = { drop: () => undefined }
    return upstream('openai-chat').edits(body, model, { model: factsOf(model), losses })
  } catch (error) {
    if (error instanceof GatewayError) return null
    throw error
  }
}

function encodingFault(request: ChatRequest, dialect: DialectName, model: string): string | null {
  const upstreamCodec = upstream(dialect)
  const encode = (): { body: JsonObject; lost: string[] } | WireError => {
    const lost: string[] = []
    try {
      const drop = (path: string): void => void lost.push(path)
      upstreamCodec.target(model, request.stream)
      return { body: upstreamCodec.encodeRequest(request, factsOf(model), { drop }), lost }
    } catch (error) {
      if (error instanceof GatewayError) return error.wire
      throw error
    }
  }
  const first = encode()
  if (!isDeepStrictEqual(encode(), first)) return 'differs from one time to the next'
  if (!('body' in first)) return first.message === '' ? 'refuses without a message' : null
  if (first.lost.some((path) => path === '')) return 'loses something without a name'
  const written = JSON.stringify(first.body)
  // The gateway's own strict parser accepts its output: no duplicate keys, no invalid numbers.
  parseObject(Buffer.from(written))
  if (!isDeepStrictEqual(plain(first.body), JSON.parse(written))) return 'unwritable values'
  // Not checked for models of another family, for a thinking configuration of the client, and for what its
  // own provider judges.
  const foreign = model !== MODELS[dialect] && model !== NEWER[dialect]
  const isJudged = request.native?.some(({ isVendors }) => isVendors === true) === true
  // The gateway refuses these itself for an upstream of another format, before it translates them.
  const isRefused = dialect !== 'openai-chat' && request.native?.some(({ refusal }) => refusal !== undefined)
  if (foreign || isJudged || isRefused === true || request.rest['thinking'] !== undefined) return null
  const actual = refusalOf({ dialect, upstreamCodec }, objectOf(JSON.parse(written)), request)
  // Calls and results without a counterpart are left to a provider of the client's own format.
  if (actual === null || (dialect === 'openai-chat' && UNPAIRED.test(actual))) return null
  return `refused by the provider: ${actual}`
}

/** The provider's words about calls and results without a counterpart. */
const UNPAIRED = /role 'tool' must be a response|tool_calls' must be followed|tool_call_id/

/** The value without undefined members, which JSON omits. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const given = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(given.map(([key, each]) => [key, plain(each)]))
}

/** The output of a translation, and its end. */
interface Run {
  readonly out: string
  readonly outcome: string
  readonly error: WireError | null
  readonly breach: string | null
}

function run(translation: Translation, chunks: readonly Buffer[]): Run {
  const fragments = chunks.map((chunk) => Buffer.from(translation.write(chunk)))
  fragments.push(Buffer.from(translation.end()))
  const { outcome, error, breach } = translation
  return { out: Buffer.concat(fragments).toString('utf8'), outcome, error, breach }
}

function streamFault(input: StreamInput): string | null {
  const request = askedOf(input.request)
  const upstreamCodec = upstream(input.dialect)
  const bytes = Buffer.from(input.text, 'latin1')
  const chunks = cutAt(bytes, input.cuts)
  const translate = (): Translation =>
    new TranslatedStream({ upstreamCodec, clientCodec: client, request, seed: seedOf(input) })
  const whole = run(translate(), [bytes])
  const cut = run(translate(), chunks)
  if (!isDeepStrictEqual(cut, whole)) return 'cuts: other output'
  const fault = endFault(whole) ?? outputFault(whole, request)
  if (fault !== null || upstreamCodec.newWatcher === null) return fault
  const { newWatcher } = upstreamCodec
  const { includeUsage } = request
  const pass = (): Translation => new PassthroughStream(newWatcher({ includeUsage }))
  const passed = run(pass(), [bytes])
  if (!isDeepStrictEqual(run(pass(), chunks), passed)) return 'cuts: other output where bytes pass'
  return endFault(passed)
}

function endFault({ outcome, error, breach }: Run): string | null {
  if (breach !== null) return `grammar: ${breach}`
  if (outcome === 'open') return 'open after the end'
  if ((outcome === 'failed') !== (error !== null)) return 'ends both ways'
  return error === null ? null : errorFault(error)
}

function outputFault({ out, outcome }: Run, request: ChatRequest): string | null {
  if (outcome === 'failed') return claimsCompletion(out) ? 'claims an end that failed' : null
  const answered = { status: 200, type: 'text/event-stream', text: out, whole: true }
  // Without usage the last chunk is the finish, which the reader does not expect.
  const faults = faultsOfStream(answered).faults.filter(
    (fault) => request.includeUsage || !/usage/.test(fault),
  )
  return faults[0] === undefined ? null : `output: ${faults.join('; ')}`
}

function errorFault(error: WireError): string | null {
  if (!Object.hasOwn(ERRORS, error.kind)) return `error of no kind: ${error.kind}`
  if (error.message === '') return 'error without a message'
  if (error.message.length > MAX_MESSAGE_CHARS + 200) return 'error without a bound'
  const { status, body } = client.encodeError(error)
  JSON.parse(body)
  const { error: shown } = parseReply(client.encodeStreamError(error).replace(/^data: /, '')) ?? {}
  if (shown === undefined) return 'error that is no event'
  return status === rowOf(error.kind).status ? null : 'error with another status'
}

function replyFault({ dialect, request: requestText, text }: ReplyInput): string | null {
  const body = parseReply(text)
  if (body === null) return null
  const request = askedOf(requestText)
  const upstreamCodec = upstream(dialect)
  const options = { upstreamCodec, clientCodec: client, request, seed: seedOf({ dialect }) }
  const whole = translateReply(body, options)
  const again = streamReply(body, options)
  if (whole.breach !== null) return `grammar: ${whole.breach}`
  if (whole.outcome !== again.outcome) return 'whole and streamed end differently'
  if (!isDeepStrictEqual(whole.error, again.error)) return 'whole and streamed fail differently'
  if (whole.error !== null) return errorFault(whole.error)
  const answered = { status: 200, type: 'application/json', text: whole.body, whole: true }
  const [fault] = faultsOfWhole(answered)
  if (fault !== undefined) return `output: ${fault}`
  upstreamCodec.replyFacts?.(body)
  return outputFault({ ...again, out: again.body }, request)
}

function refusalFault({ dialect, text }: ReplyInput): string | null {
  for (const status of STATUSES) {
    const error = upstream(dialect).decodeError(status, {}, text)
    const fault = errorFault(error)
    if (fault !== null) return `${fault} (${status})`
  }
  return null
}

function pairFault(input: PairInput): string | null {
  const request = askedOf(input.request)
  const upstreamCodec = upstream(input.dialect)
  const body = parseReply(input.whole)
  if (body === null) return 'pair: the whole reply is no object'
  const whole = folded((sink) => upstreamCodec.decodeReply(body, request, sink))
  const streamed = folded((sink) => {
    const decoder = upstreamCodec.newDecoder(request, sink)
    const framer = newFramer(upstreamCodec.framing, decoder)
    for (const chunk of cutAt(Buffer.from(input.text, 'latin1'), input.cuts)) framer.write(chunk)
    framer.end()
    decoder.end()
  })
  if (whole === null || streamed === null) return 'pair: no answer'
  if (isDeepStrictEqual(whole, streamed)) return null
  return `pair: ${JSON.stringify(whole)} and ${JSON.stringify(streamed)}`
}

function folded(decode: (sink: Grammar) => void): Reply | null {
  const fold = new Fold()
  const grammar = new Grammar(fold)
  decode(grammar)
  return grammar.breach === null ? fold.reply() : null
}
