/**
 * Which machine reads a reply: by whether both sides speak one dialect, and whether it is a stream.
 */
import type { JsonObject } from '../chat/json.js'
import type { Seed } from '../dialects/dialect.js'
import type { WireError } from '../errors.js'
import { parseArray, parseReply } from '../wire/json.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import type { Call } from './receive.js'
import { PassedStream } from './passed.js'
import {
  streamReply,
  type TranslatedReply,
  TranslatedStream,
  type Translation,
  type Verdict,
  WholeAnswer,
} from './translate.js'

const NOT_JSON: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply is not JSON.',
}

/** The machine for a streamed reply; `mayPause` where it may come in several parts. */
export function openTranslation(
  x: Exchange,
  call: Call,
  target: Target,
  mayPause: boolean,
): Translation {
  const { egress } = target
  if (egress.newTap !== null && passes(call, target)) {
    return new PassedStream(egress.newTap({ includeUsage: call.request.includeUsage }))
  }
  return new TranslatedStream(egress, call.ingress, call.request, seedOf(x, call, target), mayPause)
}

/** A whole reply as it was read: what the client gets, or a part after which the upstream paused. */
export type ReadReply =
  | {
      readonly kind: 'answer'
      readonly body: string | Buffer
      /** `error` says why there is no body. */
      readonly verdict: Verdict
    }
  | { readonly kind: 'paused'; readonly answer: WholeAnswer; readonly resume: JsonObject }

/** What is known of a whole reply before it is read. */
export interface Reading {
  /** It came as a stream: the gateway asked for one, or the upstream knows no other form. */
  readonly isEvents: boolean
  readonly mayPause: boolean
  /** The parts before it, where the upstream paused. */
  readonly begun: WholeAnswer | null
}

/** Reads a whole reply, or one part of it. */
export function readReply(
  bytes: Buffer,
  x: Exchange,
  call: Call,
  target: Target,
  { isEvents, mayPause, begun }: Reading,
): ReadReply {
  const { egress } = target
  const seed = seedOf(x, call, target)
  if (isEvents) {
    const answer = begun ?? new WholeAnswer(egress, call.ingress, call.request, mayPause)
    return readOn(answer, answer.readEvents(bytes), seed)
  }
  const text = bytes.toString('utf8')
  const body = parseReply(text)
  if (call.request.stream) {
    const pieces = body ?? parseArray(text)
    if (pieces === null) return refused(NOT_JSON)
    return told(streamReply(pieces, egress, call.ingress, call.request, seed))
  }
  if (body === null) return refused(NOT_JSON)
  if (egress.tapReply !== null && passes(call, target)) {
    return passReply(bytes, egress.tapReply(body))
  }
  const answer = begun ?? new WholeAnswer(egress, call.ingress, call.request, mayPause)
  return readOn(answer, answer.read(body), seed)
}

function readOn(answer: WholeAnswer, resume: JsonObject | null, seed: Seed): ReadReply {
  return resume === null ? told(answer.encode(seed)) : { kind: 'paused', answer, resume }
}

function told(verdict: TranslatedReply): ReadReply {
  return { kind: 'answer', body: verdict.body, verdict }
}

/**
 * Whether the upstream's own bytes are what the client gets. A reply that is to be rewritten passes all the
 * same where the canon has no place for what was asked: several answers, or how likely each word was.
 */
function passes({ dialect, request }: Call, target: Target): boolean {
  if (target.dialect !== dialect) return false
  if (target.upstream.config.quirks.replies === 'pass') return true
  return (request.candidates ?? 1) > 1 || request.logprobs === true
}

function passReply(
  bytes: Buffer,
  tap: Pick<Verdict, 'usage' | 'reason' | 'error' | 'model'>,
): ReadReply {
  const { usage, reason, error, model } = tap
  const outcome = error === null ? 'complete' : 'failed'
  const verdict = { outcome, error, breach: null, usage, reason, model, lost: [] } as const
  return { kind: 'answer', body: bytes, verdict }
}

function refused(error: WireError): ReadReply {
  const verdict: Verdict = {
    outcome: 'failed',
    error,
    breach: null,
    usage: {},
    reason: null,
    model: null,
    lost: [],
  }
  return { kind: 'answer', body: '', verdict }
}

function seedOf(x: Exchange, call: Call, target: Target): Seed {
  return {
    id: `chatcmpl-${x.id}`,
    createdAtSeconds: Math.floor(Date.now() / 1000),
    model: x.facts.model ?? call.request.model,
    origin: target.dialect,
  }
}
