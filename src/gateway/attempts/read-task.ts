/** Reads the whole reply to a task: a ranking, verdicts on texts, a transcript, pictures, or sound. */
import type { IncomingHttpHeaders } from 'node:http'
import type { WireError } from '../../errors.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { NO_OUTPUT } from '../../formats/chat/output-size.js'
import { drawsPictures, transcribes, type TaskResult } from '../../formats/chat/task.js'
import { foldTranscript } from '../../formats/fold-transcript.js'
import type { FinishReason } from '../../formats/chat/event.js'
import { addUsage, type Usage } from '../../formats/chat/usage.js'
import type { EncodedTask, Seed, UnfitTask } from '../../formats/dialect.js'
import type { ReplyResult } from '../../formats/translated-stream.js'
import { parseLatin1 } from '../../formats/wire/frames/frame-shapes.js'
import { parseArray, parseReply } from '../../formats/wire/json/parse-body.js'
import { parsedSteps } from '../../formats/wire/json/parse-scanned.js'
import { mayBeDeep, ReplyScan } from '../../formats/wire/json/reply-scan.js'
import type { Steps } from '../../base/steps.js'
import type { Target } from '../generation.js'
import type { Call } from '../phases/call.js'
import type { ReplyListener } from './attempt-result.js'
import { joinedSteps } from '../streams/join-chunks.js'
import { judgedTexts, textsOfReply } from './judge-task.js'

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
  /** It is a stream of a transcript. */
  readonly isEvents: boolean
  /** The result for earlier inputs; null if there are none. */
  readonly earlier: TaskPart | null
}

/** The result for the first inputs of a task whose upstream takes one at a time. */
export interface TaskPart {
  readonly result: TaskResult
  readonly usage: Usage
  readonly repeatCause: null
}

/** The result lacks inputs, which another request sends. */
interface PausedTask {
  readonly kind: 'paused'
  readonly reply: TaskPart
  readonly resume: JsonObject
}

/** A reply that guardrails judge before it is encoded. */
interface UnjudgedTask {
  readonly kind: 'unjudged'
  readonly judge: () => Promise<TaskAnswer>
}

/** The request that the reply belongs to. */
interface TaskOf {
  readonly call: Call
  readonly target: Target
  /** The members of the reply that the gateway makes itself. */
  readonly seed: Seed
  readonly listeners: readonly ReplyListener[]
}

/**
 * Reads the reply in steps. The upstream's own bytes pass if both sides use the same format and its results
 * are in the order of the format; the reply is checked in any case.
 */
export function* taskSteps(unread: UnreadTask, of: TaskOf): Steps<TaskAnswer | UnjudgedTask | PausedTask> {
  const { call, seed } = of
  const reply = unread.isEvents ? yield* eventsRead(unread, of) : yield* bodyRead(unread, of)
  const { read, own } = reply
  if (read === null) return failed(MALFORMED)
  if (!isResult(read)) return failed(read)
  if (read.kind === 'unfit') return failed(read.error, { ...read, reason: 'stop' })
  if (isPart(read, call)) {
    return { kind: 'paused', reply: { result: read, usage: read.usage, repeatCause: null }, resume: {} }
  }
  yield
  const answerOf = (result: TaskResult, body: Buffer | string | null): TaskAnswer => {
    if (body !== null) return answer({ body }, result)
    const encoded = call.clientCodec.encodeTask?.(result, call.request, seed) ?? null
    return encoded === null ? failed(MALFORMED) : answer(encoded, result)
  }
  const { guard } = call
  const texts = guard === undefined ? null : textsOfReply(read, own?.body ?? null)
  if (guard === undefined || texts === null) return answerOf(read, own?.bytes ?? null)
  const judge = async (): Promise<TaskAnswer> => {
    const judged = await judgedTexts(texts.texts, guard.open(true))
    if ('error' in judged) return failed(judged.error, read, judged.blocked)
    const isMasked = judged.texts.some((text, at) => text !== texts.texts[at])
    if (!isMasked) return answerOf(read, own?.bytes ?? null)
    const masked = texts.masked(judged.texts)
    return answerOf(masked.read, masked.body === null ? null : JSON.stringify(masked.body))
  }
  return { kind: 'unjudged', judge }
}

/** What a reply has; `own`: the upstream's own bytes and their value, if the client may get them. */
interface ReadTask {
  readonly read: TaskResult | UnfitTask | WireError | null
  readonly own: { readonly bytes: Buffer; readonly body: JsonValue } | null
}

function* eventsRead({ chunks }: UnreadTask, { call, target }: TaskOf): Steps<ReadTask> {
  const { request } = call
  const reader = target.upstreamCodec.newMediaReader?.(request) ?? null
  if (reader === null || !transcribes(request.task)) return { read: null, own: null }
  const read = yield* foldTranscript(chunks, reader)
  chunks.length = 0
  return { read, own: null }
}

function* bodyRead(
  { chunks, scan: scanning, headers, earlier }: UnreadTask,
  { call, target, listeners }: TaskOf,
): Steps<ReadTask> {
  const scan = scanning === null ? null : yield* scanning
  const bytes = yield* joinedSteps(chunks)
  yield
  const isPassed = target.wire === call.wire && !call.request.stream && !isRendered(call)
  const isOutline = isPassed && isPictures(call) && call.guard === undefined
  const body = scan === null ? parsed(bytes) : yield* parsedLarge(bytes, scan, isOutline)
  if (body === null) return { read: null, own: null }
  yield
  const part = target.upstreamCodec.readTask?.({ body, headers }, call.request) ?? null
  if (part === null || !isResult(part)) return { read: part, own: null }
  const read = earlier === null ? part : joined(earlier.result, part)
  if (read.kind === 'unfit' || isPart(read, call)) return { read, own: null }
  for (const listener of listeners) listener.whole?.({ kind: 'task', result: read, bytes: bytes.length })
  return { read, own: isPassed && isInOrder(body, read) ? { bytes, body } : null }
}

/** The result for the inputs so far. */
function joined<Part extends TaskResult | UnfitTask>(earlier: TaskResult, part: Part): Part | TaskResult {
  const usage = addUsage(earlier.usage, part.usage)
  if (part.kind !== 'moderations' || earlier.kind !== 'moderations') return { ...part, usage }
  const sizes = [earlier.outputSize ?? NO_OUTPUT, part.outputSize ?? NO_OUTPUT]
  const bytes = sizes.reduce((sum, size) => sum + size.bytes, 0)
  return {
    ...part,
    usage,
    outputSize: { bytes, calls: 0 },
    verdicts: [...earlier.verdicts, ...part.verdicts],
  }
}

/** Whether inputs of the request are left. */
function isPart(read: TaskResult, { request: { task } }: Call): boolean {
  return (
    read.kind === 'moderations' && task?.kind === 'moderations' && read.verdicts.length < task.inputs.length
  )
}

function isResult(read: TaskResult | UnfitTask | WireError): read is TaskResult | UnfitTask {
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
  return transcribes(task) && !task.format.endsWith('json')
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

function answer(encoded: EncodedTask, result: TaskResult): TaskAnswer {
  const bytes = Buffer.byteLength(encoded.body)
  return { kind: 'answer', ...encoded, bytes, replyResult: resultOf(null, result) }
}

/** `read`: what a refused reply has used. */
function failed(
  error: WireError,
  read: Served = { usage: {}, model: null },
  blocked?: ReplyResult['blocked'],
): TaskAnswer {
  return { kind: 'answer', body: '', bytes: 0, replyResult: { ...resultOf(error, read), blocked } }
}

/** What a reply has besides its result. */
interface Served extends Pick<TaskResult, 'usage' | 'model' | 'outputSize'> {
  /** Null: the upstream names none. */
  readonly reason?: FinishReason | null
}

function resultOf(
  error: WireError | null,
  { usage, model, outputSize = NO_OUTPUT, reason = null }: Served,
): ReplyResult {
  const outcome = error === null ? 'complete' : 'failed'
  const nothing = { breach: null, tier: null, lost: [] }
  return { outcome, error, usage, model, outputSize, reason, ...nothing }
}
