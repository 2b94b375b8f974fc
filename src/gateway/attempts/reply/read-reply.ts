/**
 * Reads a reply: passes its bytes if both sides use the same format, else translates it, whole or as a
 * stream.
 */
import type { JsonObject } from '../../../chat/json.js'
import { NO_OUTPUT } from '../../../chat/reply/output-size.js'
import type { Seed } from '../../../dialects/dialect.js'
import type { WireError } from '../../../errors.js'
import { parseArray, parseReply } from '../../../wire/json/parse-body.js'
import { copiesOf } from '../../bodies/body-memory.js'
import { WholeChoices } from '../../streams/whole-choices.js'
import type { RequestContext } from '../../client-exchange.js'
import type { Target } from '../../generation/generation.js'
import type { Call } from '../../phases/receive.js'
import { PassthroughTransform } from '../../streams/passthrough-transform.js'
import { ReplyTransform, type ReplyOwner } from '../../streams/reply-transform.js'
import {
  ArrayForm,
  arrayOfEvents,
  EVENT_STREAM,
  type StreamForm,
} from '../../streams/sse-or-json-array.js'
import {
  TranslatedStream,
  type ReplyResult,
  type TranslationOptions,
} from '../../streams/translated-stream.js'
import { SingleWholeReply, type WholeReply } from '../../streams/whole-reply.js'
import type { AttemptOwner, PreparedRequest } from '../attempt/attempt-owner.js'
import { readVectors } from './read-embeddings.js'

/** A larger whole reply is refused; the largest recorded one is a 2 MB image. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024
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

/** The stream for a streamed reply. */
export function openReplyStream(
  prepared: PreparedRequest,
  target: Target,
  { exchange, owner }: { readonly exchange: RequestContext; readonly owner: ReplyOwner },
): ReplyTransform {
  const { call } = prepared
  const { egress } = target
  if (egress.newTap !== null && passes(call, target)) {
    const { includeUsage } = call.request
    const tap = egress.newTap({ includeUsage, onWhole: keeper(call, target) })
    return new PassthroughTransform(tap, owner, formOf(call))
  }
  const translation = new TranslatedStream(translationOf(prepared, target, exchange))
  return new ReplyTransform(translation, owner, formOf(call))
}

function translationOf(
  { call, outgoing }: PreparedRequest,
  target: Target,
  exchange: RequestContext,
): TranslationOptions {
  const { ingress, request } = call
  const { egress } = target
  const { encodedBody, next } = outgoing
  const seed = seedOf(exchange, call, target)
  const mayOmitCall = encodedBody !== null && egress.mayOmitCall?.(encodedBody, request) === true
  return { egress, ingress, request, seed, mayPause: next !== null, mayOmitCall }
}

function formOf({ endpoint }: Call): StreamForm {
  return endpoint.array === true ? new ArrayForm() : EVENT_STREAM
}

/** A whole reply that was read: the body for the client, or a part after which the upstream paused. */
export type ReadReply =
  | {
      readonly kind: 'answer'
      readonly body: string | Buffer
      /** Size of the body, in UTF-8 if it is text. */
      readonly bytes: number
      /** Its `error` is the reason if there is no body. */
      readonly replyResult: ReplyResult
    }
  | { readonly kind: 'paused'; readonly reply: WholeReply; readonly resume: JsonObject }

/** A whole reply before it is read. */
export interface UnreadReply {
  readonly bytes: Buffer
  readonly target: Target
  /** It arrived as a stream: the gateway requested one, or the upstream supports no other form. */
  readonly isEvents: boolean
  /** The earlier parts if the upstream paused; null if there are none. */
  readonly begun: WholeReply | null
}

/**
 * Reads a whole reply, or one part of it; returns a promise only for many vectors. Throws `overloaded` if
 * there is no memory for its copies.
 */
export function readReply(
  { bytes, target, isEvents, begun }: UnreadReply,
  prepared: PreparedRequest,
  { exchange, held }: Pick<AttemptOwner, 'exchange' | 'held'>,
): ReadReply | Promise<ReadReply> {
  const { call } = prepared
  const { stream, embedding } = call.request
  held.takeReply(copiesOf(bytes))
  if (embedding !== undefined) {
    const seed = seedOf(exchange, call, target)
    return readVectors(bytes, { call, target, generation: exchange.generation, seed })
  }
  const whole = (): WholeReply => begun ?? newWhole(translationOf(prepared, target, exchange))
  const isArray = call.endpoint.array === true
  if (isEvents) return readOn(whole(), isArray, (reply) => reply.readEvents(bytes))
  const text = bytes.toString('utf8')
  const body = parseReply(text)
  const parsed = body ?? (stream ? parseArray(text) : null)
  if (parsed === null) return refused(NOT_JSON)
  const { tapReply } = target.egress
  if (body !== null && !stream && tapReply !== null && passes(call, target)) {
    const tap = tapReply(body)
    if (tap.error === null) keeper(call, target)?.(body)
    return passReply(bytes, tap)
  }
  return readOn(whole(), isArray, (reply) => reply.read(parsed))
}

/** Stores a reply that passes through; the upstream stores it too. */
function keeper({ keep }: Call, { upstream }: Target): ((reply: JsonObject) => void) | undefined {
  return keep === undefined ? undefined : (reply) => void keep(reply, upstream.config.name)
}

function newWhole(translation: TranslationOptions): WholeReply {
  const { candidates = 1, stream } = translation.request
  const choices = candidates > 1 ? WholeChoices.open(translation) : null
  return choices ?? new SingleWholeReply(translation, stream)
}

/**
 * Whether a reply is passed to the client as a stream: the client requested one and the upstream replies with
 * one. A reply to a whole request is always read whole.
 */
export function streamsOn(call: Call, target: Target, isEvents: boolean): boolean {
  const { request } = call
  if (!request.stream || !isEvents) return false
  return target.egress.wholeOnly?.(request) !== true || passes(call, target)
}

/** `isArray`: the events of the stream become one JSON array. */
function readOn(
  reply: WholeReply,
  isArray: boolean,
  read: (reply: WholeReply) => JsonObject | null,
): ReadReply {
  const resume = read(reply)
  if (resume !== null) return { kind: 'paused', reply, resume }
  const replyResult = reply.encode()
  if (isArray && replyResult.error === null) {
    const body = arrayOfEvents(replyResult.body)
    return { kind: 'answer', body, bytes: body.length, replyResult }
  }
  return { kind: 'answer', body: replyResult.body, bytes: replyResult.bytes, replyResult }
}

/**
 * Whether the client gets the upstream's own bytes. A reply that would be rewritten passes too if the
 * canonical events cannot represent it: several choices, or log probabilities.
 */
function passes({ wire, request }: Call, target: Target): boolean {
  if (target.wire !== wire) return false
  if (target.upstream.config.quirks.replies === 'pass') return true
  return (request.candidates ?? 1) > 1 || request.logprobs === true
}

function passReply(
  bytes: Buffer,
  tap: Pick<ReplyResult, 'usage' | 'reason' | 'error' | 'model' | 'tier' | 'outputSize'>,
): ReadReply {
  const { usage, reason, error, model, tier, outputSize } = tap
  const outcome = error === null ? 'complete' : 'failed'
  // Member by member, without a spread (docs/explanation/performance.md).
  const replyResult: ReplyResult = {
    outcome,
    error,
    breach: null,
    usage,
    reason,
    model,
    tier,
    lost: [],
    outputSize,
  }
  return { kind: 'answer', body: bytes, bytes: bytes.length, replyResult }
}

function refused(error: WireError): ReadReply {
  const replyResult: ReplyResult = {
    outcome: 'failed',
    error,
    breach: null,
    usage: {},
    reason: null,
    model: null,
    tier: null,
    lost: [],
    outputSize: NO_OUTPUT,
  }
  return { kind: 'answer', body: '', bytes: 0, replyResult }
}

function seedOf(x: RequestContext, call: Call, target: Target): Seed {
  return {
    id: call.ingress.envelope.idPrefix + x.id,
    createdAtSeconds: Math.floor(Date.now() / 1000),
    model: call.request.model,
    origin: target.dialect,
  }
}
