/**
 * One call to one upstream, until its first content: the only place where retries live.
 * Knows no client socket. A 200 is not believed until its first content event, so an upstream that says
 * 200 and dies is still an ordinary failed attempt with a real status.
 */
import { setImmediate as turn } from 'node:timers/promises'
import type { JsonObject } from '../chat/json.js'
import { isConfigured } from '../config/config.js'
import type { Egress } from '../dialects/dialect.js'
import { gatewayError, GatewayError } from '../errors.js'
import type { Escrow } from '../reasoning/escrow.js'
import { pathAt } from '../upstreams/place.js'
import type { Answer } from './answer.js'
import { Attempt } from './attempt.js'
import type { Deadlines } from './deadlines.js'
import type { Exchange } from './exchange.js'
import { UNFORESEEN } from './fault.js'
import type { Target } from './generation.js'
import { LossList, lossy } from './losses.js'
import { bodyOf, render, type Outgoing } from './outgoing.js'
import { LARGE_BYTES } from './pieces.js'
import type { Call } from './receive.js'
import { remembered } from './remember.js'

/**
 * Sends the call. Throws, or rejects with, `GatewayError`; resolves when there is something to tell the
 * client.
 */
export function forward(
  x: Exchange,
  call: Call,
  target: Target,
  model: string,
  { deadlines, escrow }: Means,
): Promise<Answer> {
  const { config } = target.upstream
  if (!isConfigured(config)) {
    throw new GatewayError(
      'upstream_unconfigured',
      `The upstream '${config.name}' has no key: set ${config.apiKeySource ?? 'api_key'}.`,
    )
  }
  x.cancellation.check()
  const beganMs = performance.now()
  const send = (asked: Call): Promise<Answer> => {
    const outgoing = prepare(x, asked, target, model)
    const nowMs = performance.now()
    x.facts.translateMs += nowMs - beganMs
    return attempt(x, asked, target, deadlines, outgoing, nowMs)
  }
  if (call.raw.length > LARGE_BYTES)
    return inTurns(x, () => remembered(x, call, target, model, escrow), send)
  const found = remembered(x, call, target, model, escrow)
  return found instanceof Promise ? found.then(send) : send(found)
}

/** The same for a large body: other requests are served before its earlier turns are sought, and after. */
async function inTurns(
  x: Exchange,
  find: () => Call | Promise<Call>,
  send: (call: Call) => Promise<Answer>,
): Promise<Answer> {
  await turn()
  const found = await find()
  await turn()
  x.cancellation.check()
  return send(found)
}

/** What an exchange is carried out with. */
export interface Means {
  readonly deadlines: Deadlines
  readonly escrow: Escrow
}

/** The first attempt, and a second where the request can be amended. */
function attempt(
  x: Exchange,
  call: Call,
  target: Target,
  deadlines: Deadlines,
  outgoing: Outgoing,
  nowMs: number,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const again = (error: GatewayError): void => {
      try {
        const second = amended(x, call, target, outgoing, error)
        if (second === null) reject(error)
        else new Attempt(x, call, target, deadlines, second, { resolve, reject }).send()
      } catch (cause) {
        reject(cause instanceof GatewayError ? cause : gatewayError(UNFORESEEN, cause))
      }
    }
    new Attempt(x, call, target, deadlines, outgoing, { resolve, reject: again }).send(nowMs)
  })
}

/** The upstream's request, made once. Throws where losses are not to be borne. */
function prepare(x: Exchange, call: Call, target: Target, model: string): Outgoing {
  const { egress, upstream, dialect } = target
  const { allowSyntheticUser } = x.generation.snapshot.config
  const { quirks, allowBetas: betas } = upstream.config
  const destination = { dialect, egress, quirks, betas, allowSyntheticUser }
  const losses = new LossList()
  const rendered = render(call, destination, model, x.generation.facts(model), losses)
  report(x, call, losses.paths)
  const path = pathAt(upstream.place, rendered.path, model)
  const headers = withRequestHeaders(target, rendered.accept, rendered.headers)
  const { body, bytes, said, streams } = rendered
  const { timeouts } = upstream.config
  const firstByteMs = streams ? timeouts.firstByteMs : timeouts.firstByteWholeMs
  const next = nextOf({ path, headers, firstByteMs, bytes }, said, egress)
  // Without a spread: V8 would make a new hidden class for each (docs/decisions/0037).
  return { path, headers, firstByteMs, body, bytes, said, next }
}

/** How the rest of an answer is asked for, where the upstream may pause before its end. */
function nextOf(
  way: Pick<Outgoing, 'path' | 'headers' | 'firstByteMs' | 'bytes'>,
  said: JsonObject | null,
  egress: Egress,
): Outgoing['next'] {
  const { continuation } = egress
  if (said === null || continuation?.mayPause(said) !== true) return null
  return (resume) => {
    const rest = continuation.next(said, resume)
    const next = nextOf(way, rest, egress)
    return { ...way, ...bodyOf(rest, egress, way.bytes), said: rest, next }
  }
}

/** Tells what would be lost, or refuses to lose it, as the configuration wishes. */
function report(x: Exchange, { request, dialect }: Call, lost: readonly string[]): void {
  x.facts.losses = lost
  if (lost.length > 0 && x.generation.snapshot.config.onLoss === 'reject')
    throw lossy(request, dialect, lost)
}

/**
 * The same request for a second and last attempt; null where it would fare no better. So far there is
 * one reason for it: reasoning of earlier turns that does not fit any more. Leaving that out is a loss.
 */
function amended(
  x: Exchange,
  call: Call,
  { egress, series }: Target,
  outgoing: Outgoing,
  error: GatewayError,
): Outgoing | null {
  const before = outgoing.said
  if (before === null) return null
  const said = egress.dropReasoning?.(before, error.wire) ?? null
  if (said === null) return null
  x.cancellation.check()
  report(x, call, [...new Set([...x.facts.losses, 'messages.reasoning'])])
  series.reasoningDropped()
  const known = egress.headers(before)
  const headers = [...outgoing.headers]
  for (const [name, value] of Object.entries(egress.headers(said))) {
    if (!(name in known)) headers.push(name, value)
  }
  const { path, firstByteMs, bytes } = outgoing
  const way = { path, headers, firstByteMs, bytes }
  return { ...way, ...bodyOf(said, egress, bytes), said, next: nextOf(way, said, egress) }
}

function withRequestHeaders(
  target: Target,
  accept: string,
  more: Readonly<Record<string, string>>,
): string[] {
  const headers = [...(target.headers[0] ?? []), 'accept', accept]
  for (const name in more) headers.push(name, more[name] ?? '')
  return headers
}
