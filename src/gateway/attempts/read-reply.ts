/**
 * Reads a reply: passes its bytes if both sides use the same format, else translates it, whole or as a
 * stream.
 */
import { isAscii } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { WireError } from '../../errors.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { NO_OUTPUT } from '../../formats/chat/output-size.js'
import { reportsOutput } from '../../formats/chat/usage.js'
import { transcribes } from '../../formats/chat/task.js'
import type { MediaWriter } from '../../formats/chat/media-event.js'
import type { Seed } from '../../formats/dialect.js'
import { MediaStream } from '../../formats/media-stream.js'
import { Grammar } from '../../formats/chat/grammar.js'
import { observedFormat, toolOf } from '../../formats/observed-format.js'
import { CapturedStream } from '../../policy/capture-and-replay.js'
import { AWS_EVENT_STREAM } from '../../formats/wire/aws/event-stream.js'
import { parseLatin1 } from '../../formats/wire/frames/frame-shapes.js'
import { parseArray, parseReply } from '../../formats/wire/json/parse-body.js'
import { parsedSteps } from '../../formats/wire/json/parse-scanned.js'
import { mayBeDeep, ReplyScan } from '../../formats/wire/json/reply-scan.js'
import { strayReply } from '../../formats/wire/upstream-errors.js'
import { atOnce, type Steps } from '../../base/steps.js'
import { copiesOf } from '../body-memory.js'
import type { ServedRequest } from '../served-request.js'
import type { Target } from '../generation.js'
import type { Call } from '../phases/call.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { joinChunks, joinedSteps, LARGE_BYTES } from '../streams/join-chunks.js'
import { PassthroughStream } from '../streams/passthrough-stream.js'
import { ReplyTransform, type ReplyOwner } from '../streams/reply-transform.js'
import { ArrayForm, arrayOfEvents, EVENT_STREAM, type StreamForm } from '../streams/sse-or-json-array.js'
import {
  tooComplex,
  TranslatedStream,
  type ReplyResult,
  type TranslationOptions,
} from '../../formats/translated-stream.js'
import { WholeChoices, SingleWholeReply, type WholeReply } from '../streams/whole-reply.js'
import { NO_LISTENERS, type ReplyListener } from './attempt-result.js'
import type { PreparedRequest } from './prepare-candidate.js'
import { taskSteps, type TaskPart } from './read-task.js'
import { vectorSteps } from './read-vectors.js'

/** A larger whole reply is refused; the largest recorded one is a 2 MB image. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024
/** A streamed reply that may be stored is read whole up to this size. No larger one is stored. */
const MAX_STORED_BYTES = 4 * 1024 * 1024
/** Bytes of an error body that are read. */
const MAX_ERROR_BYTES = 64 * 1024

const NOT_JSON: WireError = {
  kind: 'upstream_malformed',
  message: "The upstream's reply is not JSON.",
}

/** The maximum size in bytes of a collected body: a whole reply, or an error. */
export function roomFor(isReply: boolean): number {
  return isReply ? MAX_REPLY_BYTES : MAX_ERROR_BYTES
}

export function openReplyStream(
  prepared: PreparedRequest,
  target: Target,
  {
    x,
    owner,
    headers,
  }: {
    readonly x: ServedRequest
    readonly owner: ReplyOwner
    readonly headers: IncomingHttpHeaders
  },
): ReplyTransform {
  const { call } = prepared
  const { upstreamCodec } = target
  const media = openMediaStream(call, target, seedOf(x, call, target), headers)
  if (media !== null) {
    const { type } = media.writer
    const form = { ...EVENT_STREAM, type, ...(media.writer.isBytes && { heartbeat: '' }) }
    return new ReplyTransform(media.stream, owner, form)
  }
  if (upstreamCodec.newWatcher !== null && passes(call, target)) {
    const { includeUsage } = call.request
    const listeners = listenersTo(x, call)
    const onWhole = (reply: JsonObject): void => {
      if (!stream.readsOutline) noteEnd(listeners, reply, target)
    }
    const onTool = toolOf(listeners)
    const watcher = upstreamCodec.newWatcher({ includeUsage, onWhole, onTool })
    const stream = new PassthroughStream(
      watcher,
      listeners.some(({ end }) => end !== undefined) ? MAX_STORED_BYTES : undefined,
      upstreamCodec.framing,
      listeners.flatMap((listener) => {
        const sink = listener.events?.()
        return sink === undefined ? [] : [new CapturedStream(sink, upstreamCodec, call.request)]
      }),
    )
    return captured(new ReplyTransform(stream, owner, formOf(call)), listeners)
  }
  const options = translationOf(prepared, target, x)
  const guard = call.guard?.open(false) ?? null
  // The spread comes last: with a spread first, V8 gives every object a hidden class of its own.
  const translation = new TranslatedStream({ guard, ...options })
  return captured(new ReplyTransform(translation, owner, formOf(call)), listenersTo(x, call))
}

/** A stream of pictures, sound or a transcript, and how the client gets it; null for other replies. */
function openMediaStream(
  { clientCodec, request }: Call,
  { upstreamCodec }: Target,
  seed: Seed,
  headers: IncomingHttpHeaders,
): { readonly stream: MediaStream; readonly writer: MediaWriter } | null {
  const { newMediaReader } = upstreamCodec
  if (newMediaReader === undefined) return null
  const writer = clientCodec.newMediaWriter?.(request, seed)
  if (writer === undefined) return null
  const reader = isEventStream(headers) ? newMediaReader(request) : null
  return { stream: new MediaStream({ reader, writer }), writer }
}

/** Self-hosted servers may send no type, or one of any bytes. */
const SOUND_TYPE = /^(?:audio\/|application\/octet-stream|binary\/|$)/

/** Whether the reply is the bytes of sound, which are passed as they arrive. */
export function isSound({ request }: Call, headers: IncomingHttpHeaders): boolean {
  return request.task?.kind === 'speech' && SOUND_TYPE.test(typeOf(headers))
}

/** Whether the reply is the bytes of sound, which become a part of a chat. */
function isSoundOfChat({ upstreamCodec }: Target, headers: IncomingHttpHeaders): boolean {
  return upstreamCodec.bodyOfBytes !== undefined && SOUND_TYPE.test(typeOf(headers))
}

/** The stream with the log that was opened for it. */
function captured(stream: ReplyTransform, listeners: readonly ReplyListener[]): ReplyTransform {
  for (const { log = null } of listeners) stream.log ??= log
  return stream
}

/** Those of the request, in their order, and then the one that keeps the reasoning state of the candidate. */
function listenersTo({ attempts }: ServedRequest, { reasoning }: Call): readonly ReplyListener[] {
  const listeners = attempts?.listeners ?? NO_LISTENERS
  return reasoning === undefined ? listeners : [...listeners, reasoning]
}

/** Reports a reply that passes through; the upstream may store it too. */
function noteEnd(listeners: readonly ReplyListener[], reply: JsonObject, { upstream }: Target): void {
  for (const listener of listeners) listener.end?.(reply, upstream.config.name)
}

/** Reports a body that passes through. */
function notePassed(body: JsonObject, { x, prepared: { call } }: ReplyOf, target: Target): void {
  const listeners = listenersTo(x, call)
  noteEnd(listeners, body, target)
  for (const listener of listeners) {
    const sink = listener.events?.()
    if (sink !== undefined) target.upstreamCodec.decodeReply(body, call.request, new Grammar(sink))
  }
}

function translationOf(
  { call, outgoing }: PreparedRequest,
  target: Target,
  x: ServedRequest,
): TranslationOptions {
  const { request } = call
  const listeners = listenersTo(x, call)
  const clientCodec = observedFormat(call.clientCodec, listeners)
  const { upstreamCodec } = target
  const { encodedBody, next } = outgoing
  const seed = seedOf(x, call, target)
  const mayOmitCall = encodedBody !== null && upstreamCodec.mayOmitCall?.(encodedBody, request) === true
  const onTool = toolOf(listeners)
  return { upstreamCodec, clientCodec, request, seed, mayPause: next !== null, mayOmitCall, onTool }
}

function formOf({ endpoint }: Call): StreamForm {
  return endpoint.array === true ? new ArrayForm() : EVENT_STREAM
}

/** The parts of a reply so far: of a chat that paused, or of a task. */
export type EarlierReply = WholeReply | TaskPart

/** A whole reply that was read: the body for the client, or a part after which the upstream paused. */
export type ReadReply =
  | {
      readonly kind: 'answer'
      readonly body: string | Buffer
      /** Size of the body, in UTF-8 if it is text. */
      readonly bytes: number
      /** The content type if it is not that of the request; null: events. */
      readonly type?: string | null
      /** Its `error` is the reason if there is no body. */
      readonly replyResult: ReplyResult
    }
  | { readonly kind: 'paused'; readonly reply: EarlierReply; readonly resume: JsonObject }

/** A whole reply before it is read. */
interface UnreadReply {
  readonly headers: IncomingHttpHeaders
  /** Emptied while the reply is read. */
  readonly chunks: Buffer[]
  readonly bytes: number
  readonly target: Target
  /** It arrived as a stream: the gateway requested one, or the upstream supports no other form. */
  readonly isEvents: boolean
  /** The rest of the scan of a large reply that is JSON; null for any other. */
  readonly scan: Steps<ReplyScan> | null
  /** The earlier parts if the upstream paused, or the verdicts on earlier inputs; null if there are none. */
  readonly begun: EarlierReply | null
}

/** The request of a reply. */
interface ReplyOf {
  readonly x: ServedRequest
  readonly prepared: PreparedRequest
}

/**
 * Reads a whole reply, or one part of it; returns a promise for a large reply, and for many vectors. Throws
 * `overloaded` if there is no memory for its copies.
 */
export function readReply(reply: UnreadReply, of: ReplyOf): ReadReply | Promise<ReadReply> {
  const { call } = of.prepared
  const { stream, embedding, task } = call.request
  const { target, isEvents } = reply
  if (embedding !== undefined) return readVectorsOf(reply, of)
  if (task !== undefined) return readTaskOf(reply, of)
  if (isSoundOfChat(target, reply.headers)) {
    of.x.held.takeReply(reply.bytes * 4)
    const body = target.upstreamCodec.bodyOfBytes?.(joinChunks(reply.chunks)) ?? {}
    return readOn(wholeOf(reply, of), call, (whole) => whole.read(body))
  }
  if (reply.bytes > LARGE_BYTES) {
    return bodyTurns.run(largeReply(reply, of)).then((read) => judgedLarge(read, call))
  }
  const bytes = joinChunks(reply.chunks)
  of.x.held.takeReply(copiesOf(bytes.length, isAscii(bytes)))
  const whole = (): WholeReply => wholeOf(reply, of)
  if (isEvents) return readOn(whole(), call, (reply) => atOnce(reply.readEvents([bytes])))
  const text = bytes.toString('utf8')
  if (mayBeDeep(text)) {
    const scan = new ReplyScan()
    scan.add(bytes.toString('latin1'), false)
    if (scan.excess !== null) return outlined(bytes, scan, reply, of)
  }
  const body = parseReply(text)
  const parsed = body ?? replyInArray(parseArray(text), stream)
  if (parsed === null) return refused(strayReply(NOT_JSON, text.slice(0, MAX_ERROR_BYTES)))
  const { replyFacts } = target.upstreamCodec
  if (body !== null && !stream && replyFacts !== null && passes(call, target)) {
    const watcher = replyFacts(body, toolOf(listenersTo(of.x, call)))
    if (watcher.error === null) notePassed(body, of, target)
    return passReply(bytes, watcher)
  }
  return readOn(whole(), call, (reply) => reply.read(parsed))
}

/**
 * What an array is read as: the events of a stream, of which a reply that was requested whole may consist
 * too, or one body in it. Null if it has no objects.
 */
function replyInArray(array: JsonValue[] | null, isStream: boolean): JsonObject | JsonValue[] | null {
  if (array === null || !array.some(isObject)) return null
  const [only] = array
  return isObject(only) && array.length === 1 && !isStream ? only : array
}

function readVectorsOf(
  { chunks, target, bytes, scan }: UnreadReply,
  { prepared: { call }, x }: ReplyOf,
): ReadReply | Promise<ReadReply> {
  const { generation } = x
  x.held.takeReply(bytes * 2)
  const seed = seedOf(x, call, target)
  const steps = vectorSteps(chunks, scan, { call, target, generation, seed, listeners: listenersTo(x, call) })
  return scan === null ? atOnce(steps) : bodyTurns.run(steps)
}

function readTaskOf(
  { chunks, target, bytes, scan, headers, isEvents, begun }: UnreadReply,
  { prepared: { call }, x }: ReplyOf,
): ReadReply | Promise<ReadReply> {
  x.held.takeReply(bytes * 4)
  const seed = seedOf(x, call, target)
  const earlier = begun !== null && 'result' in begun ? begun : null
  const steps = taskSteps(
    { chunks, scan, headers, isEvents, earlier },
    { call, target, seed, listeners: listenersTo(x, call) },
  )
  if (scan !== null || bytes > LARGE_BYTES) {
    return bodyTurns.run(steps).then((read) => (read.kind === 'unjudged' ? read.judge() : read))
  }
  const read = atOnce(steps)
  return read.kind === 'unjudged' ? read.judge() : read
}

/**
 * Reads a large reply in steps. If both sides use the same format, only an outline is read; a reply that
 * exceeds a limit of `ReplyScan` cannot be translated.
 */
function* largeReply(reply: UnreadReply, of: ReplyOf): Steps<ReadReply | UnjudgedReply> {
  if (reply.isEvents || reply.scan === null) return yield* largeEvents(reply, of)
  const { chunks, bytes, target } = reply
  const { call } = of.prepared
  const scan = yield* reply.scan
  const isPassed = passes(call, target) && !call.request.stream && target.upstreamCodec.replyFacts !== null
  const isUsed = listenersTo(of.x, call).some(({ events, end }) => (events ?? end) !== undefined)
  const isKept = isPassed && isUsed && bytes <= MAX_STORED_BYTES
  const needsValue = scan.excess === null && (!isPassed || isKept)
  if (needsValue) of.x.held.takeReply(bytes * (scan.isAscii ? 2 : 4))
  else if (!isPassable(call, target)) return outlined(Buffer.of(), scan, reply, of)
  else of.x.held.takeReply(bytes)
  let body: Buffer | null = yield* joinedSteps(chunks)
  yield
  if (!needsValue) return outlined(body, scan, reply, of)
  const value = yield* parsedSteps(body, scan)
  if (isPassed) {
    if (isObject(value)) notePassed(value, of, target)
    return outlined(body, scan, reply, of)
  }
  // The memory of the bytes is free for the encoded reply.
  body = null
  const parsed = isObject(value)
    ? value
    : replyInArray(Array.isArray(value) ? value : null, call.request.stream)
  if (parsed === null) return refused(NOT_JSON)
  yield
  const whole = wholeOf(reply, of)
  const resume = whole.read(parsed)
  yield
  return yield* readSteps(whole, call, resume)
}

/** The reply for the client, or a part of it. A reply that is judged is encoded afterwards. */
function* readSteps(
  reply: WholeReply,
  call: Call,
  resume: JsonObject | null,
): Steps<ReadReply | UnjudgedReply> {
  if (resume !== null) return { kind: 'paused', reply, resume }
  return call.guard === undefined ? yield* encodedSteps(reply, call) : { kind: 'unjudged', reply }
}

/** A large reply that guardrails must judge before it is encoded. */
interface UnjudgedReply {
  readonly kind: 'unjudged'
  readonly reply: WholeReply
}

async function judgedLarge(read: ReadReply | UnjudgedReply, call: Call): Promise<ReadReply> {
  if (read.kind !== 'unjudged') return read
  await read.reply.judge()
  return bodyTurns.run(encodedSteps(read.reply, call))
}

/** The encoded reply in bytes, which Node could not write in steps as text. */
function* encodedSteps(reply: WholeReply, call: Call): Steps<ReadReply> {
  const answer = encoded(reply, call)
  const { body, bytes } = answer
  if (typeof body !== 'string' || bytes < LARGE_BYTES) return answer
  yield
  return { ...answer, body: yield* encodedText(body, bytes) }
}

function* largeEvents(reply: UnreadReply, of: ReplyOf): Steps<ReadReply | UnjudgedReply> {
  const { chunks } = reply
  for (const chunk of chunks) of.x.held.takeReply(copiesOf(chunk.length, isAscii(chunk)))
  const whole = wholeOf(reply, of)
  const resume = yield* whole.readEvents(chunks)
  chunks.length = 0
  yield
  return yield* readSteps(whole, of.prepared.call, resume)
}

/**
 * A reply of which only an outline is read: passes its bytes if both sides use the same format, else refuses
 * it. The counts of its usage apply in both cases.
 */
function outlined(
  bytes: Buffer,
  scan: ReplyScan,
  { target }: UnreadReply,
  { prepared: { call }, x }: ReplyOf,
): ReadReply {
  const outline = scan.isComplete ? parseLatin1(scan.outline) : null
  if (outline === null && scan.excess === null) {
    return refused(strayReply(NOT_JSON, bytes.toString('utf8', 0, MAX_ERROR_BYTES)))
  }
  const error = tooComplex('reply', scan.excess ?? '')
  const watcher =
    outline === null
      ? null
      : (target.upstreamCodec.replyFacts?.(outline, toolOf(listenersTo(x, call))) ?? null)
  if (watcher === null) return refused(error)
  const { usage, outputSize: read } = watcher
  const size = { bytes: read.bytes + scan.omittedText, calls: read.calls }
  if (isPassable(call, target)) {
    return passReply(bytes, { ...watcher, outputSize: reportsOutput(usage) ? NO_OUTPUT : size })
  }
  // A refused reply has output too, which the provider bills.
  const outputSize = { ...size, bytes: Math.max(1, size.bytes) }
  const replyResult = resultOf({ ...watcher, outputSize, error: watcher.error ?? error })
  return { kind: 'answer', body: '', bytes: 0, replyResult }
}

/** Whether the upstream's body has the format that the client expects. */
function isPassable(call: Call, target: Target): boolean {
  return target.wire === call.wire && !call.request.stream && call.guard === undefined
}

function wholeOf({ begun, target }: UnreadReply, { prepared, x }: ReplyOf): WholeReply {
  if (begun !== null && !('result' in begun)) return begun
  return newWhole(translationOf(prepared, target, x), prepared.call.guard)
}

function newWhole(translation: TranslationOptions, judge: Call['guard']): WholeReply {
  const { candidates = 1, stream } = translation.request
  const choices = candidates > 1 ? WholeChoices.open(translation, judge) : null
  if (choices !== null) return choices
  return new SingleWholeReply({ guard: judge?.open(true) ?? null, ...translation }, stream)
}

/**
 * Whether a reply is passed to the client as a stream: the client requested one and the upstream replies with
 * one. A reply to a whole request is always read whole.
 */
export function streamsOn(call: Call, target: Target, isEvents: boolean): boolean {
  const { request } = call
  // The bytes of sound may arrive as events.
  if (request.task?.kind === 'speech') return isEvents
  if (!request.stream || !isEvents) return false
  // A transcript that is judged is read whole.
  if (transcribes(request.task) && call.guard !== undefined) return false
  return target.upstreamCodec.wholeOnly?.(request) !== true || passes(call, target)
}

function readOn(
  reply: WholeReply,
  call: Call,
  read: (reply: WholeReply) => JsonObject | null,
): ReadReply | Promise<ReadReply> {
  const resume = read(reply)
  if (resume !== null) return { kind: 'paused', reply, resume }
  const judging = call.guard === undefined ? null : reply.judge()
  return judging === null ? encoded(reply, call) : judging.then(() => encoded(reply, call))
}

/** The reply for the client. The events of a stream become one JSON array if the client requested that. */
function encoded(reply: WholeReply, { endpoint }: Call): ReadReply & { readonly kind: 'answer' } {
  const replyResult = reply.encode()
  const { body, bytes } = replyResult
  if (endpoint.array !== true || replyResult.error !== null) {
    return { kind: 'answer', body, bytes, replyResult }
  }
  const array = arrayOfEvents(body)
  return { kind: 'answer', body: array, bytes: array.length, replyResult }
}

/**
 * Whether the client gets the upstream's own bytes. A reply that would be rewritten passes too if the
 * canonical events cannot represent it: several choices, or log probabilities.
 */
function passes({ wire, request, guard }: Call, target: Target): boolean {
  if (target.wire !== wire || guard !== undefined) return false
  if (target.upstream.config.quirks.replies === 'pass') return true
  return (request.candidates ?? 1) > 1 || request.logprobs === true
}

type Tapped = Pick<ReplyResult, 'usage' | 'reason' | 'error' | 'model' | 'tier' | 'outputSize'>

function passReply(bytes: Buffer, watcher: Tapped): ReadReply {
  return { kind: 'answer', body: bytes, bytes: bytes.length, replyResult: resultOf(watcher) }
}

function resultOf({ usage, reason, error, model, tier, outputSize }: Tapped): ReplyResult {
  const outcome = error === null ? 'complete' : 'failed'
  // Member by member, without a spread (docs/explanation/performance.md).
  return { outcome, error, breach: null, usage, reason, model, tier, lost: [], outputSize }
}

function refused(error: WireError): ReadReply {
  const nothing = { usage: {}, reason: null, model: null, tier: null, outputSize: NO_OUTPUT }
  return { kind: 'answer', body: '', bytes: 0, replyResult: resultOf({ ...nothing, error }) }
}

function seedOf(x: ServedRequest, call: Call, target: Target): Seed {
  return {
    id: call.clientCodec.envelope.idPrefix + x.id,
    createdAtSeconds: Math.floor(Date.now() / 1000),
    model: call.request.model,
    origin: target.upstreamCodec.stateOrigin ?? target.dialect,
  }
}

/** A 200 whose body is neither JSON nor an event stream, by its content type. */
export const OTHER_TYPE: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: "The upstream's reply has an unexpected content type.",
}

/** The error of a 200 that is no reply, with the words of its body. */
export function strayBody(body: string, headers: IncomingHttpHeaders): WireError {
  return strayReply(isKnownType(headers) ? NOT_JSON : OTHER_TYPE, body)
}

/** The upstream's request id, at most 128 characters; null if it sent none. */
export function requestIdIn(headers: IncomingHttpHeaders): string | null {
  const id = fieldOf(headers['x-request-id'] ?? headers['request-id'] ?? headers['x-amzn-requestid'])
  return id === undefined ? null : id.slice(0, 128)
}

/** True if the body is a stream of events by its content type. */
export function isEventStream(headers: IncomingHttpHeaders): boolean {
  const type = typeOf(headers)
  return type.startsWith('text/event-stream') || type.startsWith(AWS_EVENT_STREAM)
}

/** The form of a body; null if more bytes are needed. */
type BodyForm = 'events' | 'json' | 'other'

const BOM_BYTES = Buffer.from([0xef, 0xbb, 0xbf])
/** Fields and comments with which a stream of events begins. */
const FIELDS = ['data:', 'event:', 'id:', 'retry:', ':']

/** The body without a byte order mark. */
export function withoutBom(body: Buffer): Buffer {
  return body.subarray(0, 3).equals(BOM_BYTES) ? body.subarray(3) : body
}

/** What a body is by its first bytes; null if there are too few. `isBinary`: its events are no text. */
export function bodyForm(first: Buffer, isBinary: boolean): BodyForm | null {
  const start = withoutBom(first).subarray(0, 64).toString('latin1').trimStart()
  if (start === '' || (first.length < 3 && first[0] === BOM_BYTES[0]))
    return first.length < 64 ? null : 'other'
  if (start.startsWith('{') || start.startsWith('[')) return 'json'
  if (FIELDS.some((field) => start.startsWith(field))) return isBinary ? 'other' : 'events'
  return FIELDS.some((field) => field.startsWith(start)) ? null : 'other'
}

/** Whether a body of another form than JSON and events is no reply, such as a page or a text. */
export function isStray(first: Buffer, headers: IncomingHttpHeaders, isBinary: boolean): boolean {
  if (first.length === 0) return false
  if (!isEventStream(headers)) return !isKnownType(headers)
  // Events may begin with a field that is not known.
  return isBinary || !/^\s*[\w-]{1,32}:/.test(first.toString('latin1', 0, 64))
}

/** Whether a body has the content type of JSON or events. */
function isKnownType(headers: IncomingHttpHeaders): boolean {
  return typeOf(headers).includes('json') || isEventStream(headers)
}

/** Whether the first bytes decide about the form of a body: AWS frames its events in binary. */
export function isSniffed(target: Target, headers: IncomingHttpHeaders): boolean {
  return !typeOf(headers).startsWith(AWS_EVENT_STREAM) && !isSoundOfChat(target, headers)
}

/** The error of a 200 that cannot be read: compressed although `identity` was requested. */
export function unreadable(headers: IncomingHttpHeaders): WireError | null {
  const encoding = fieldOf(headers['content-encoding'])
  if (encoding !== undefined && encoding !== 'identity') {
    return {
      kind: 'upstream_malformed',
      message: 'The upstream compressed its reply without a request for it.',
    }
  }
  const coding = fieldOf(headers['transfer-encoding'])?.toLowerCase()
  if (coding !== undefined && coding !== 'chunked') {
    const message = "The upstream's reply has a transfer coding that was not requested."
    return { kind: 'upstream_malformed', message }
  }
  return null
}

function typeOf(headers: IncomingHttpHeaders): string {
  return fieldOf(headers['content-type'])?.toLowerCase() ?? ''
}

/** One value; several fields of one name are joined (RFC 9110, 5.2). */
function fieldOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}

/** Characters that are encoded in one step. */
const ENCODED_CHARS = 1024 * 1024

/** The text in UTF-8, which has `size` bytes. */
function* encodedText(text: string, size: number): Steps<Buffer> {
  const bytes = Buffer.allocUnsafe(size)
  let written = 0
  for (let at = 0; at < text.length;) {
    let end = at + ENCODED_CHARS
    // The halves of a pair of surrogates stay together.
    const last = text.charCodeAt(end - 1)
    if (last >= 0xd800 && last <= 0xdbff) end -= 1
    written += bytes.write(text.slice(at, end), written)
    at = end
    yield
  }
  return bytes
}
