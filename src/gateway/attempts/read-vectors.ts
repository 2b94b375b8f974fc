/** Reads a reply to a request for embeddings. */
import type { WireError } from '../../errors.js'
import { NO_OUTPUT } from '../../formats/chat/output-size.js'
import type { Vector, Vectors } from '../../formats/chat/request.js'
import type { Usage } from '../../formats/chat/usage.js'
import type { Seed } from '../../formats/dialect.js'
import type { ReplyResult } from '../../formats/translated-stream.js'
import { outlineOf, vectorText, type Outline } from '../../formats/wire/embedding-vectors.js'
import type { ReplyScan } from '../../formats/wire/json/reply-scan.js'
import type { Steps } from '../../base/steps.js'
import { inputTokens, promptSizeOf } from '../../ledger/estimate-tokens.js'
import type { Generation, Target } from '../generation.js'
import type { Call } from '../phases/call.js'
import type { ReplyListener } from './attempt-result.js'
import { joinedSteps } from '../streams/join-chunks.js'

/** A reply with vectors, encoded for the client. */
interface VectorsReply {
  readonly kind: 'answer'
  readonly body: string | Buffer
  /** Size of the body, in UTF-8 if it is text. */
  readonly bytes: number
  /** Its `error` is the reason if there is no body. */
  readonly replyResult: ReplyResult
}

/** The error of a reply without vectors in the expected format. */
const MALFORMED: WireError = {
  kind: 'upstream_malformed',
  message: "The upstream's reply contains no embeddings.",
}

/** The outline of a reply that is not a JSON object. */
const NO_OUTLINE: Outline = { body: {}, arrays: [] }
/** Digits that are read as numbers in one step; they take about 5 ms. */
const STEP_CHARS = 1024 * 1024

/** The request that a reply with vectors belongs to. */
interface VectorsRequest {
  readonly call: Call
  readonly target: Target
  /** Has the facts of the model. */
  readonly generation: Generation
  /** The members of the reply that the gateway makes itself. */
  readonly seed: Seed
  readonly listeners: readonly ReplyListener[]
}

/**
 * Reads the reply to a request for embeddings in steps; `scanning` is null for a small one. The upstream's
 * own bytes pass if both sides use the same format and its vectors have the form that the client requested;
 * of a large one that passes, only the outline is read.
 */
export function* vectorSteps(
  chunks: Buffer[],
  scanning: Steps<ReplyScan> | null,
  { call, target, generation, seed, listeners }: VectorsRequest,
): Steps<VectorsReply> {
  const { request, clientCodec } = call
  const { readVectors } = target.upstreamCodec
  const form = request.embedding?.base64 === true ? 'base64' : 'json'
  const scan = scanning === null ? null : yield* scanning
  const bytes = yield* joinedSteps(chunks)
  yield
  const isRead = listeners.some(({ whole }) => whole !== undefined)
  if (scan?.isComplete === true && target.wire === call.wire && !isRead) {
    const outline = Buffer.from(scan.outline, 'latin1').toString('utf8')
    const read = readVectors?.((yield* outlineOf(outline)) ?? NO_OUTLINE) ?? null
    if (read === null) return failed(MALFORMED)
    if ('kind' in read) return failed(read)
    if (isInForm(read.vectors, form)) return passedReply(bytes, bytes.length, read)
  }
  const outline = yield* outlineOf(bytes.toString('utf8'))
  const read = outline === null ? null : (readVectors?.(outline) ?? null)
  if (read === null) return failed(MALFORMED)
  if ('kind' in read) return failed(read)
  const isSameForm = isInForm(read.vectors, form)
  if (isSameForm && target.wire === call.wire) {
    for (const listener of listeners) listener.whole?.({ kind: 'vectors', vectors: read })
    return passedReply(bytes, bytes.length, read)
  }
  yield
  const vectors = isSameForm ? read.vectors : yield* inForm(read.vectors, form)
  if (vectors === null) return failed(MALFORMED)
  yield
  const usage = counted(read.usage, call, generation)
  const shown = { ...read, vectors, usage }
  for (const listener of listeners) listener.whole?.({ kind: 'vectors', vectors: shown })
  const body = clientCodec.encodeVectors?.(shown, request, seed) ?? null
  yield
  return body === null ? failed(MALFORMED) : passedReply(body, Buffer.byteLength(body), read)
}

function isInForm(vectors: readonly Vector[], form: Vector['form']): boolean {
  return vectors.every((vector) => vector.form === form)
}

/** Converts the vectors; null if one is damaged. */
function* inForm(vectors: readonly Vector[], form: Vector['form']): Steps<readonly Vector[] | null> {
  const converted: Vector[] = []
  let chars = 0
  for (const vector of vectors) {
    const json = vectorText(vector, form)
    if (json === null) return null
    converted.push({ form, text: form === 'json' ? json : json.slice(1, -1) })
    chars += vector.text.length
    if (chars < STEP_CHARS) continue
    chars = 0
    yield
  }
  return converted
}

/** The usage, with an estimate of the prompt if the upstream does not count it. */
function counted(usage: Usage, { request }: Call, generation: Generation): Usage {
  if (usage.input !== undefined) return usage
  const { family } = generation.facts(request.model)
  return { ...usage, input: inputTokens(promptSizeOf(request), family) }
}

function passedReply(body: string | Buffer, bytes: number, { usage, model }: Vectors): VectorsReply {
  return { kind: 'answer', body, bytes, replyResult: replyResultOf(null, usage, model) }
}

function failed(error: WireError): VectorsReply {
  return { kind: 'answer', body: '', bytes: 0, replyResult: replyResultOf(error, {}, null) }
}

function replyResultOf(error: WireError | null, usage: Usage, model: string | null): ReplyResult {
  const outcome = error === null ? 'complete' : 'failed'
  const nothing = { breach: null, reason: null, tier: null, lost: [], outputSize: NO_OUTPUT }
  return { outcome, error, usage, model, ...nothing }
}
