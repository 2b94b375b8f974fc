/** Reads the whole reply to a task: a ranking of documents, verdicts on texts, or sound. */
import type { IncomingHttpHeaders } from 'node:http'
import type { WireError } from '../../errors.js'
import { isObject, type JsonValue } from '../../base/json.js'
import { NO_OUTPUT } from '../../formats/chat/output-size.js'
import { drawsPictures, type TaskResult } from '../../formats/chat/task.js'
import type { EncodedTask, Seed } from '../../formats/dialect.js'
import type { ReplyResult } from '../../formats/translated-stream.js'
import { parseLatin1 } from '../../formats/wire/frames/frame-shapes.js'
import { parseArray, parseReply } from '../../formats/wire/json/parse-body.js'
import { parsedSteps } from '../../formats/wire/json/parse-scanned.js'
import { mayBeDeep, ReplyScan } from '../../formats/wire/json/reply-scan.js'
import type { Steps } from '../../base/steps.js'
import type { Target } from '../generation.js'
import type { Call } from '../phases/receive.js'
import { joinedSteps } from '../streams/join-chunks.js'

/** The error of a reply that is not of the expected format. */
const MALFORMED: WireError = {
  kind: 'upstream_malformed',
  message: "The upstream's reply has another format than the operation.",
}

/** The reply, encoded for the client; without a body if it is an error. */
interface TaskAnswer {
  readonly kind: 'answer'
  readonly body: string | Buffer
  readonly bytes: number
  /** The content type if it is not JSON; null: events. */
  readonly type?: string | null
  /** Its `error` is the reason if there is no body. */
  readonly replyResult: ReplyResult
}

/** A whole reply before it is read. */
interface UnreadTask {
  /** Emptied while the reply is read. */
  readonly chunks: Buffer[]
  /** The rest of the scan of a large reply; null for a small one. */
  readonly scan: Steps<ReplyScan> | null
  readonly headers: IncomingHttpHeaders
}

/** The request that the reply belongs to. */
interface TaskOf {
  readonly call: Call
  readonly target: Target
  /** The members of the reply that the gateway makes itself. */
  readonly seed: Seed
}

/**
 * Reads the reply in steps. The upstream's own bytes pass if both sides use the same format and its results
 * are in the order of the format; the reply is checked in any case.
 */
export function* taskSteps(
  { chunks, scan: scanning, headers }: UnreadTask,
  { call, target, seed }: TaskOf,
): Steps<TaskAnswer> {
  const scan = scanning === null ? null : yield* scanning
  const bytes = yield* joinedSteps(chunks)
  yield
  const isPassed = target.wire === call.wire && !call.request.stream && !isRendered(call)
  const body = scan === null ? parsed(bytes) : yield* parsedLarge(bytes, scan, isPassed && isPictures(call))
  if (body === null) return failed(MALFORMED)
  yield
  const read = target.upstreamCodec.readTask?.({ body, headers }, call.request) ?? null
  if (read === null) return failed(MALFORMED)
  if (!isResult(read)) return failed(read)
  yield
  call.capture?.open().takeTask(read, bytes.length)
  if (isPassed && isInOrder(body, read)) return answer({ body: bytes }, read)
  const encoded = call.clientCodec.encodeTask?.(read, call.request, seed) ?? null
  return encoded === null ? failed(MALFORMED) : answer(encoded, read)
}

function isResult(read: TaskResult | WireError): read is TaskResult {
  return 'usage' in read
}

/** The value of a small body; null if it is not JSON, or nested too deeply. */
function parsed(bytes: Buffer): JsonValue {
  const text = bytes.toString('utf8')
  if (mayBeDeep(text)) {
    const scan = new ReplyScan()
    scan.add(bytes.toString('latin1'), false)
    if (scan.excess !== null) return null
  }
  return parseReply(text) ?? parseArray(text)
}

/** The value of a large body; of pictures that pass unchanged, an outline without the pictures. */
function* parsedLarge(bytes: Buffer, scan: ReplyScan, isOutline: boolean): Steps<JsonValue> {
  if (isOutline) return scan.isComplete ? parseLatin1(scan.outline) : null
  return scan.excess === null ? yield* parsedSteps(bytes, scan) : null
}

/** A transcript as text or subtitles, which the gateway makes of JSON. */
function isRendered({ request: { task } }: Call): boolean {
  const isTranscript = task?.kind === 'transcriptions' || task?.kind === 'translations'
  return isTranscript && !task.format.endsWith('json')
}

function isPictures({ request }: Call): boolean {
  return drawsPictures(request.task)
}

/** Whether the upstream's list has the results that the client gets, in their order. */
function isInOrder(body: JsonValue, result: TaskResult): boolean {
  if (result.kind === 'speech') return false
  if (result.kind !== 'rerank') return true
  const list = isObject(body) ? body['results'] : null
  return (
    Array.isArray(list) &&
    list.length === result.ranks.length &&
    list.every((item, at) => isObject(item) && item['index'] === result.ranks[at]?.index)
  )
}

function answer(encoded: EncodedTask, { usage, model }: TaskResult): TaskAnswer {
  const bytes = Buffer.byteLength(encoded.body)
  return { kind: 'answer', ...encoded, bytes, replyResult: resultOf(null, { usage, model }) }
}

function failed(error: WireError): TaskAnswer {
  return { kind: 'answer', body: '', bytes: 0, replyResult: resultOf(error, { usage: {}, model: null }) }
}

function resultOf(
  error: WireError | null,
  { usage, model }: Pick<TaskResult, 'usage' | 'model'>,
): ReplyResult {
  const outcome = error === null ? 'complete' : 'failed'
  const nothing = { breach: null, reason: null, tier: null, lost: [], outputSize: NO_OUTPUT }
  return { outcome, error, usage, model, ...nothing }
}
