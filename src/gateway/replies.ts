/**
 * Which machine reads a reply: by whether both sides speak one dialect, and whether it is a stream.
 */
import type { Seed } from '../dialects/dialect.js'
import type { WireError } from '../errors.js'
import { parseArray, parseReply } from '../wire/json.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import type { Call } from './receive.js'
import {
  PassedStream,
  streamReply,
  translateEvents,
  TranslatedStream,
  type TranslatedReply,
  translateReply,
  type Translation,
  type Verdict,
} from './translate.js'

const NOT_JSON: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply is not JSON.',
}

/** The machine for a streamed reply. */
export function openTranslation(x: Exchange, call: Call, target: Target): Translation {
  const { egress } = target
  if (egress.newTap !== null && passes(call, target)) {
    return new PassedStream(egress.newTap({ includeUsage: call.request.includeUsage }))
  }
  return new TranslatedStream(egress, call.ingress, call.request, seedOf(x, call, target))
}

/**
 * A whole reply as the client gets it; `verdict.error` says why there is none. `isEvents`: it came as
 * a stream.
 */
export function readReply(
  bytes: Buffer,
  x: Exchange,
  call: Call,
  target: Target,
  isEvents: boolean,
): { body: string | Buffer; verdict: Verdict } {
  const { egress } = target
  const seed = seedOf(x, call, target)
  if (isEvents) {
    return told(translateEvents(bytes, egress, call.ingress, call.request, seed))
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
  return told(translateReply(body, egress, call.ingress, call.request, seed))
}

function told(verdict: TranslatedReply): { body: string; verdict: Verdict } {
  return { body: verdict.body, verdict }
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
): { body: Buffer; verdict: Verdict } {
  const { usage, reason, error, model } = tap
  const outcome = error === null ? 'complete' : 'failed'
  return { body: bytes, verdict: { outcome, error, breach: null, usage, reason, model, lost: [] } }
}

function refused(error: WireError): { body: string; verdict: Verdict } {
  const verdict: Verdict = {
    outcome: 'failed',
    error,
    breach: null,
    usage: {},
    reason: null,
    model: null,
    lost: [],
  }
  return { body: '', verdict }
}

function seedOf(x: Exchange, call: Call, target: Target): Seed {
  return {
    id: `chatcmpl-${x.id}`,
    createdAtSeconds: Math.floor(Date.now() / 1000),
    model: x.facts.model ?? call.request.model,
    origin: target.dialect,
  }
}
