/**
 * Reads the reply to a request for embeddings. The upstream's own bytes pass if both sides use the same
 * format and its vectors have the form that the client requested.
 */
import { setImmediate as turn } from 'node:timers/promises'
import type { Vector, Vectors } from '../../../chat/embedding.js'
import { NO_OUTPUT } from '../../../chat/reply/output-size.js'
import type { Usage } from '../../../chat/usage.js'
import type { Seed } from '../../../dialects/dialect.js'
import type { WireError } from '../../../errors.js'
import { promptSizeOf, inputTokens } from '../../../ledger/estimate-tokens.js'
import { outlineOf, vectorText } from '../../../wire/embedding-vectors.js'
import type { Generation, Target } from '../../generation/generation.js'
import type { Call } from '../../phases/receive.js'
import type { ReplyResult } from '../../streams/translated-stream.js'

/** A reply with vectors, encoded for the client. */
export interface VectorsReply {
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

/** Digits that are read as numbers in one turn of the event loop; they take about 5 ms. */
const TURN_CHARS = 1024 * 1024

/** The request that a reply with vectors belongs to. */
export interface VectorsRequest {
  readonly call: Call
  readonly target: Target
  /** Has the facts of the model. */
  readonly generation: Generation
  /** The members of the reply that the gateway makes itself. */
  readonly seed: Seed
}

/** Returns a promise only if many numbers have to be converted to another form. */
export function readVectors(
  bytes: Buffer,
  { call, target, generation, seed }: VectorsRequest,
): VectorsReply | Promise<VectorsReply> {
  const { request, ingress } = call
  const outline = outlineOf(bytes.toString('utf8'))
  const read = outline === null ? null : (target.egress.readVectors?.(outline) ?? null)
  if (read === null) return failed(MALFORMED)
  if ('kind' in read) return failed(read)
  const form = request.embedding?.base64 === true ? 'base64' : 'json'
  const isSameForm = read.vectors.every((vector) => vector.form === form)
  if (isSameForm && target.wire === call.wire) return passedReply(bytes, bytes.length, read)
  const write = (vectors: readonly Vector[] | null): VectorsReply => {
    const usage = counted(read.usage, call, generation)
    const body =
      vectors === null
        ? null
        : (ingress.encodeVectors?.({ ...read, vectors, usage }, request, seed) ?? null)
    return body === null ? failed(MALFORMED) : passedReply(body, Buffer.byteLength(body), read)
  }
  return isSameForm ? write(read.vectors) : inForm(read.vectors, form).then(write)
}

/** Converts the vectors in several turns of the event loop; null if one is damaged. */
async function inForm(
  vectors: readonly Vector[],
  form: Vector['form'],
): Promise<readonly Vector[] | null> {
  const converted: Vector[] = []
  let chars = 0
  for (const vector of vectors) {
    const json = vectorText(vector, form)
    if (json === null) return null
    converted.push({ form, text: form === 'json' ? json : json.slice(1, -1) })
    chars += vector.text.length
    if (chars < TURN_CHARS) continue
    chars = 0
    await turn()
  }
  return converted
}

/** The usage, with an estimate of the prompt if the upstream does not count it. */
function counted(usage: Usage, { request }: Call, generation: Generation): Usage {
  if (usage.input !== undefined) return usage
  const { family } = generation.facts(request.model)
  return { ...usage, input: inputTokens(promptSizeOf(request), family) }
}

function passedReply(
  body: string | Buffer,
  bytes: number,
  { usage, model }: Vectors,
): VectorsReply {
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
