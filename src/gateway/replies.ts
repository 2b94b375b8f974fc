/**
 * Which machine reads a reply: by whether both sides speak one dialect, and whether it is a stream.
 */
import type { JsonObject } from '../chat/json.js'
import type { Ingress, Seed } from '../dialects/dialect.js'
import type { WireError } from '../errors.js'
import { parseArray, parseReply } from '../wire/json.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import type { Call } from './receive.js'
import {
  PassedStream,
  streamReply,
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
  if (target.dialect === call.dialect && egress.newTap !== null) {
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
    const answer = begun ?? new WholeAnswer(egress, call.request, mayPause)
    return readOn(answer, answer.readEvents(bytes), call.ingress, seed)
  }
  const text = bytes.toString('utf8')
  const body = parseReply(text)
  if (call.request.stream) {
    const pieces = body ?? parseArray(text)
    if (pieces === null) return refused(NOT_JSON)
    const verdict = streamReply(pieces, egress, call.ingress, call.request, seed)
    return { kind: 'answer', body: verdict.body, verdict }
  }
  if (body === null) return refused(NOT_JSON)
  if (target.dialect === call.dialect && egress.tapReply !== null) {
    return passReply(bytes, egress.tapReply(body))
  }
  const answer = begun ?? new WholeAnswer(egress, call.request, mayPause)
  return readOn(answer, answer.read(body), call.ingress, seed)
}

function readOn(
  answer: WholeAnswer,
  resume: JsonObject | null,
  ingress: Ingress,
  seed: Seed,
): ReadReply {
  if (resume !== null) return { kind: 'paused', answer, resume }
  const verdict = answer.encode(ingress, seed)
  return { kind: 'answer', body: verdict.body, verdict }
}

function passReply(
  bytes: Buffer,
  tap: Pick<Verdict, 'usage' | 'reason' | 'error' | 'model'>,
): ReadReply {
  const { usage, reason, error, model } = tap
  const outcome = error === null ? 'complete' : 'failed'
  return {
    kind: 'answer',
    body: bytes,
    verdict: { outcome, error, breach: null, usage, reason, model },
  }
}

function refused(error: WireError): ReadReply {
  const verdict: Verdict = {
    outcome: 'failed',
    error,
    breach: null,
    usage: {},
    reason: null,
    model: null,
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
