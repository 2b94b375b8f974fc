/** Chooses what reads a reply: by whether both sides use the same format, and whether it is a stream. */
import type { JsonObject } from '../../../chat/json.js'
import { NO_OUTPUT } from '../../../chat/reply/output-size.js'
import type { Seed } from '../../../dialects/dialect.js'
import type { WireError } from '../../../errors.js'
import { parseArray, parseReply } from '../../../wire/json/parse-body.js'
import { copiesOf } from '../../bodies/body-budget.js'
import { WholeChoices } from '../../streams/whole-choices.js'
import type { RequestContext } from '../../exchange.js'
import type { Target } from '../../generation/generation.js'
import type { Call } from '../../phases/receive.js'
import { PassthroughTransform } from '../../streams/passthrough-transform.js'
import { ReplyTransform, type ReplyOwner } from '../../streams/reply-transform.js'
import {
  ArrayForm,
  arrayOfEvents,
  EVENT_STREAM,
  type StreamForm,
} from '../../streams/stream-form.js'
import { TranslatedStream, type ReplyResult } from '../../streams/translated-stream.js'
import { SingleWholeReply, type WholeReply } from '../../streams/whole-reply.js'
import type { AttemptOwner, PreparedRequest } from '../attempt/attempt-owner.js'
import { readVectors } from './read-embeddings.js'

/** A whole reply above this is refused; the largest recorded one is 2 MB of image. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024
/** As much of an error body as is read. */
const MAX_ERROR_BYTES = 64 * 1024

const NOT_JSON: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply is not JSON.',
}

/** How many bytes of a body are held, of a whole reply or of an error. */
export function roomFor(isReply: boolean): number {
  return isReply ? MAX_REPLY_BYTES : MAX_ERROR_BYTES
}

/** The stream for a streamed reply. */
export function openReplyStream(
  { call, outgoing }: PreparedRequest,
  target: Target,
  { exchange, owner }: { readonly exchange: RequestContext; readonly owner: ReplyOwner },
): ReplyTransform {
  const { egress } = target
  const { ingress, request } = call
  if (egress.newTap !== null && passes(call, target)) {
    const { includeUsage } = request
    const tap = egress.newTap({ includeUsage, onWhole: keeper(call, target) })
    return new PassthroughTransform(tap, owner, formOf(call))
  }
  const seed = seedOf(exchange, call, target)
  const mayPause = outgoing.next !== null
  const translation = new TranslatedStream(egress, ingress, request, seed, mayPause)
  return new ReplyTransform(translation, owner, formOf(call))
}

function formOf({ endpoint }: Call): StreamForm {
  return endpoint.array === true ? new ArrayForm() : EVENT_STREAM
}

/** A whole reply as it was read: what the client gets, or a part after which the upstream paused. */
export type ReadReply =
  | {
      readonly kind: 'answer'
      readonly body: string | Buffer
      /** How many the body has, in UTF-8 where it is a text. */
      readonly bytes: number
      /** `error` says why there is no body. */
      readonly replyResult: ReplyResult
    }
  | { readonly kind: 'paused'; readonly reply: WholeReply; readonly resume: JsonObject }

/** What is known of a whole reply before it is read. */
export interface Given {
  /** It came as a stream: the gateway asked for one, or the upstream knows no other form. */
  readonly isEvents: boolean
  /** The parts before it, where the upstream paused. */
  readonly begun: WholeReply | null
}

/**
 * Reads a whole reply, or one part of it: at once, but for many vectors. Throws `overloaded` if its copies cannot be
 * held.
 */
export function readReply(
  bytes: Buffer,
  { exchange, held }: Pick<AttemptOwner, 'exchange' | 'held'>,
  { call, outgoing }: PreparedRequest,
  target: Target,
  { isEvents, begun }: Given,
): ReadReply | Promise<ReadReply> {
  const { stream, embedding } = call.request
  const mayPause = outgoing.next !== null
  held.takeReply(copiesOf(bytes))
  if (embedding !== undefined) {
    return readVectors(bytes, seedOf(exchange, call, target), exchange, { call, target })
  }
  const answer = (): WholeReply =>
    begun ?? newWhole(call, target, seedOf(exchange, call, target), mayPause)
  const isArray = call.endpoint.array === true
  if (isEvents) return readOn(answer(), isArray, (it) => it.readEvents(bytes))
  const text = bytes.toString('utf8')
  const body = parseReply(text)
  const pieces = body ?? (stream ? parseArray(text) : null)
  if (pieces === null) return refused(NOT_JSON)
  const { tapReply } = target.egress
  if (body !== null && !stream && tapReply !== null && passes(call, target)) {
    const tap = tapReply(body)
    if (tap.error === null) keeper(call, target)?.(body)
    return passReply(bytes, tap)
  }
  return readOn(answer(), isArray, (it) => it.read(pieces))
}

/** Keeps a reply that passes through, which the upstream has as well. */
function keeper({ keep }: Call, { upstream }: Target): ((reply: JsonObject) => void) | undefined {
  return keep === undefined ? undefined : (reply) => void keep(reply, upstream.config.name)
}

function newWhole(call: Call, { egress }: Target, seed: Seed, mayPause: boolean): WholeReply {
  const { ingress, request } = call
  const { candidates = 1 } = request
  const choices =
    candidates > 1 ? WholeChoices.open(egress, ingress, request, seed, mayPause) : null
  if (choices !== null) return choices
  return new SingleWholeReply(egress, ingress, request, seed, { stream: request.stream, mayPause })
}

/**
 * Whether a reply is to be streamed on as it comes: the client wants a stream and the upstream answers
 * in one. What was asked for whole is read whole, whatever it comes as.
 */
export function streamsOn(call: Call, target: Target, isEvents: boolean): boolean {
  const { request } = call
  if (!request.stream || !isEvents) return false
  return target.egress.wholeOnly?.(request) !== true || passes(call, target)
}

/** `isArray`: the events of the stream are to be one JSON array. */
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
 * Whether the upstream's own bytes are what the client gets. A reply that is to be rewritten passes all the
 * same where the canon has no place for what was asked: several answers, or how likely each word was.
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
  // Member by member, without a spread (docs/decisions/0037).
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
