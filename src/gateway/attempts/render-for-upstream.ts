/**
 * Renders the request for an upstream: the client's own bytes with a few keys edited if both use the same
 * format, else the conversation encoded in the upstream's dialect. Pure: the same request makes the same
 * bytes.
 */
import type { QuirksConfig, TargetDefaults } from '../../config/config.js'
import type { JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { withDefaults, type ChatRequest, type Message } from '../../formats/chat/request.js'
import {
  reportNative,
  type UpstreamCodec,
  type Losses,
  type SentBetas,
  type WireFormat,
} from '../../formats/dialect.js'
import { sizedText } from '../../formats/wire/frames/sized-text.js'
import { parseExact, stringifyExact } from '../../formats/wire/json/exact-numbers.js'
import { partsOfTask } from '../../formats/chat/task.js'
import { GatewayError } from '../../errors.js'
import { formBody } from '../../formats/wire/media/form-data.js'
import { rewrittenParts } from '../../formats/wire/media/form-fields.js'
import type { StreamedForm } from '../streams/streamed-form.js'
import { splice, type Edit } from '../../formats/wire/json/splice.js'
import { jsonSteps, largeEdit, writeJson } from '../../formats/wire/json/write-json.js'
import { atOnce, type Steps } from '../../base/steps.js'
import type { Call } from '../phases/call.js'
import { LARGE_BYTES } from '../streams/join-chunks.js'
import { defaultEdits } from './default-members.js'
import { applyQuirks, quirkEdits } from '../upstreams/apply-quirks.js'

/** The upstream and its model that a request is rendered for. */
export interface Destination {
  /** The name of the upstream, which may store state of the conversation. */
  readonly name?: string
  readonly wire: WireFormat
  readonly upstreamCodec: UpstreamCodec
  /** The upstream's name of the model. */
  readonly model: string
  readonly facts: ModelFacts
  readonly quirks: QuirksConfig
  /** Members of the request that the client left out; absent: none. */
  readonly defaults?: TargetDefaults | null
  /** Beta features that clients may request; null: all. */
  readonly betas?: readonly string[] | null
  /** Whether a user message may be inserted before a conversation that begins with another role. */
  readonly allowSyntheticUser: boolean
  /** Adds marks for the provider's prompt cache: the changed members; absent: none. */
  readonly mark?: (body: JsonObject) => JsonObject
}

/** A body with its path and the headers that depend on it. */
export interface Rendered {
  /** The dialect's path, below the upstream's base. */
  readonly path: string
  readonly accept: string
  /** Whether the upstream is requested to stream. */
  readonly streams: boolean
  readonly body: Buffer | string
  /** Size of the body, in UTF-8 if it is text. */
  readonly bytes: number
  /** The encoded body as an object; null for the client's own bytes. */
  readonly encodedBody: JsonObject | null
  readonly headers: Readonly<Record<string, string>>
  /** The body is a form that is passed on while it arrives. */
  readonly streamed?: StreamedForm
}

/** A request in its final form; all attempts on a candidate share it. */
export interface Outgoing {
  readonly path: string
  readonly headers: readonly string[]
  /** Maximum time until the reply begins; a whole reply begins when it is complete. */
  readonly firstByteMs: number
  readonly body: Buffer | string
  /** Size of the body, in UTF-8 if it is text. */
  readonly bytes: number
  /** The encoded body as an object; null for the client's own bytes. */
  readonly encodedBody: JsonObject | null
  /**
   * Makes the request for the rest of a reply that paused with `resume`; null if no reply to this request can
   * pause.
   */
  readonly next: ((resume: JsonObject) => Outgoing) | null
  /** The body is a form that is passed on while it arrives; it can be sent once. */
  readonly streamed?: StreamedForm
}

/**
 * Renders the call for an upstream. Reports fields that are left out to `losses`; throws
 * `GatewayError(untranslatable)` for fields that must not be left out.
 */
export function render(call: RenderedCall, destination: Destination, losses: Losses): Rendered {
  const form = formOf(call, destination, losses)
  if (form !== null) return form
  if (passesBytes(call, destination)) return edited(call, destination, losses)
  const sourceBytes = call.raw.length + (call.fetchedBytes ?? 0)
  if (sourceBytes > LARGE_BYTES) return atOnce(renderSteps(call, destination, losses))
  const { path, accept, streams, encodedBody, headers } = encoded(call, destination, losses)
  const { body, bytes } = bodyOf(encodedBody, destination.upstreamCodec, sourceBytes)
  return { path, accept, streams, body, bytes, encodedBody, headers }
}

/** The same for a large request, in steps. */
export function* renderSteps(call: RenderedCall, destination: Destination, losses: Losses): Steps<Rendered> {
  const form = formOf(call, destination, losses)
  if (form !== null) return form
  if (passesBytes(call, destination)) return edited(call, destination, losses)
  const { encodedBody, ...head } = encoded(call, destination, losses)
  yield
  const body = yield* jsonSteps(encodedBody)
  return { ...head, encodedBody, body, bytes: body.length }
}

/** The request as a multipart form; null if the upstream takes JSON. */
function formOf(
  { request, streamed }: RenderedCall,
  destination: Destination,
  losses: Losses,
): Rendered | null {
  const { upstreamCodec, model } = destination
  const sent = requestFor(request, destination)
  const rewrite = upstreamCodec.encodeForm?.(sent, losses) ?? null
  if (rewrite === null) {
    if (streamed !== undefined) throw tooLargeForJson()
    return null
  }
  reportNative(request, losses, upstreamCodec)
  const { path, accept } = upstreamCodec.target(model, sent.stream)
  const head = { path, accept, streams: sent.stream, encodedBody: null }
  if (streamed !== undefined) {
    const { type, length } = streamed.prepare(rewrite)
    const headers = { 'content-type': type, ...(length !== null && { 'content-length': String(length) }) }
    return { ...head, body: '', bytes: length ?? 0, headers, streamed }
  }
  const { type, body } = formBody(rewrittenParts(partsOfTask(request), rewrite))
  return { ...head, body, bytes: body.length, headers: { 'content-type': type } }
}

/** The error of a form that is not held, for an upstream that takes JSON. */
function tooLargeForJson(): GatewayError {
  const message = 'The upload is too large for this upstream, which gets files as base64 in JSON. Send less.'
  return new GatewayError('body_too_large', message)
}

/** The part of a call that is rendered. */
type RenderedCall = Pick<
  Call,
  | 'wire'
  | 'raw'
  | 'members'
  | 'body'
  | 'request'
  | 'added'
  | 'fetchedBytes'
  | 'history'
  | 'isRewritten'
  | 'streamed'
>

/** Whether the upstream gets the client's own bytes with some edits. */
function passesBytes({ wire, isRewritten }: RenderedCall, destination: Destination): boolean {
  return destination.wire === wire && isRewritten !== true
}

/** The client's own bytes with the edits that this upstream needs. */
function edited(call: RenderedCall, destination: Destination, losses: Losses): Rendered {
  const { upstreamCodec, model, facts, quirks } = destination
  const report = (path: string): void => losses.drop(path, 'no-equivalent')
  const { history } = call
  const source = history?.bodyFor(destination.name, report) ?? call.body
  const passed = passedHeaders(call, destination, losses)
  const { headers, members } = placed(passed, upstreamCodec)
  const edits = historyEdits(source, history?.members ?? [])
  const context = { model: facts, losses, ...sentBetas(call, destination, passed) }
  edits.push(...upstreamCodec.edits(source, model, context))
  if (call.added !== undefined) edits.push(call.added(facts))
  edits.push(...defaultEdits(call, destination))
  for (const key in members) edits.push({ key, json: stringifyExact(members[key] ?? null) })
  if (destination.mark !== undefined) mark(source, edits, destination.mark)
  edits.push(...quirkEdits({ body: call.body, dialectEdits: edits }, quirks, report))
  const body = edits.length === 0 ? call.raw : splice(call.raw, call.members, edits)
  const streams = call.request.stream
  const { path, accept } = upstreamCodec.target(model, streams)
  return { path, accept, streams, body, bytes: body.length, encodedBody: null, headers }
}

/** Adds the marks for the provider's prompt cache to the edits. */
function mark(source: JsonObject, edits: Edit[], marksOf: NonNullable<Destination['mark']>): void {
  const edited = { ...source }
  for (const { key, json } of edits) edited[key] = json === null ? null : parseExact(String(json))
  for (const [key, value = null] of Object.entries(marksOf(edited))) {
    const at = edits.findIndex((edit) => edit.key === key)
    if (at !== -1) edits.splice(at, 1)
    edits.push(largeEdit(key, value))
  }
}

/** The conversation in the upstream's dialect, before it is serialized. */
function encoded(
  call: RenderedCall,
  destination: Destination,
  losses: Losses,
): Omit<Rendered, 'body' | 'bytes' | 'encodedBody'> & { readonly encodedBody: JsonObject } {
  const { upstreamCodec, model, facts, quirks } = destination
  const report = (path: string): void => losses.drop(path, 'no-equivalent')
  reportNative(call.request, losses, upstreamCodec)
  const request = requestFor(call.request, destination)
  const own = upstreamCodec.encodeRequest(request, facts, losses)
  const { headers, members } = placed(upstreamCodec.headers(own), upstreamCodec)
  const placedBody = members === null ? own : { ...own, ...members }
  const marked = destination.mark?.(placedBody)
  const body = marked === undefined ? placedBody : { ...placedBody, ...marked }
  const encodedBody = applyQuirks(body, quirks, report)
  const streams = request.stream
  const { path, accept } = upstreamCodec.target(model, streams)
  return { path, accept, streams, encodedBody, headers }
}

/** The headers that stay, and the members of the body that replace the others; null if all stay. */
export function placed(
  headers: Record<string, string>,
  upstreamCodec: UpstreamCodec,
): {
  readonly headers: Readonly<Record<string, string>>
  readonly members: JsonObject | null
} {
  return upstreamCodec.inBody?.(headers) ?? { headers, members: null }
}

/** The headers that the body needs, and the client's headers of this format. */
function passedHeaders(
  { body, request }: Pick<Call, 'body' | 'request'>,
  { upstreamCodec, betas = null }: Destination,
  losses: Losses,
): Record<string, string> {
  const own = upstreamCodec.headers(body)
  const { nativeHeaders } = request
  if (nativeHeaders === undefined || upstreamCodec.forwardedHeaders === undefined) return own
  const allowed = betas ?? upstreamCodec.acceptedBetas ?? null
  return upstreamCodec.forwardedHeaders(own, nativeHeaders, { betas: allowed, losses })
}

/** The beta features of the request and of its headers; nothing if the upstream gets all. */
function sentBetas(
  { request }: Pick<Call, 'request'>,
  { upstreamCodec, betas = null }: Destination,
  passed: Readonly<Record<string, string>>,
): { readonly betas?: SentBetas } {
  if (betas === null && upstreamCodec.acceptedBetas === undefined) return {}
  const [requested, sent] = [request.nativeHeaders, passed].map(
    (headers) => new Set((headers?.['anthropic-beta'] ?? '').split(',')),
  )
  return { betas: { requested: requested ?? new Set(), sent: sent ?? new Set() } }
}

/** The edits for the members in which the body with its history differs from the client's own body. */
function historyEdits(body: JsonObject, members: readonly string[]): Edit[] {
  return members.map((key) => {
    const value = body[key]
    return value === undefined ? { key, json: null } : largeEdit(key, value)
  })
}

/** Serializes an encoded body. `sourceBytes`: size of the request that the body was made from. */
export function bodyOf(
  encodedBody: JsonObject,
  { write }: UpstreamCodec,
  sourceBytes: number,
): Pick<Rendered, 'body' | 'bytes'> {
  if (sourceBytes > LARGE_BYTES) {
    const body = writeJson(encodedBody)
    return { body, bytes: body.length }
  }
  const { text, bytes } = write === undefined ? sizedText(stringifyExact(encodedBody)) : write(encodedBody)
  return { body: text, bytes }
}

/** The request with the model, the stream flag and the first role that this upstream needs. */
function requestFor(
  received: ChatRequest,
  { upstreamCodec, model, facts, defaults = null, allowSyntheticUser }: Destination,
): ChatRequest {
  const request = withDefaults(received, defaults)
  const stream =
    upstreamCodec.wholeOnly?.(request) !== true &&
    (request.stream || upstreamCodec.streamsWhole?.(request, facts) === true)
  const mayBegin = upstreamCodec.userFirst === true && allowSyntheticUser
  const messages = mayBegin ? beginWithUser(request.messages) : request.messages
  const same = request.model === model && request.stream === stream && request.messages === messages
  return same ? request : { ...request, model, stream, messages }
}

/** Constant, because prompt caches and signed thinking require an unchanged prefix. */
const TEXT = 'Begin.'

/**
 * The messages, with a user message before a leading assistant message, for formats that require one first;
 * else the same array. The operator enables this with `allow_synthetic_user`.
 */
export function beginWithUser(messages: Message[]): Message[] {
  const at = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer')
  const first = messages[at]
  if (first?.role !== 'assistant') return messages
  const user: Message = {
    role: 'user',
    index: first.index,
    parts: [{ type: 'text', text: TEXT }],
  }
  return [...messages.slice(0, at), user, ...messages.slice(at)]
}
