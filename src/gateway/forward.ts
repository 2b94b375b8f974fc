/**
 * One call to one upstream, until its first content: the only place where retries will live.
 * Knows no client socket. A 200 is not believed until its first content event, so an upstream that says
 * 200 and dies is still an ordinary failed attempt with a real status.
 */
import type { JsonObject } from '../chat/json.js'
import type { Continuation, Losses } from '../dialects/dialect.js'
import { GatewayError } from '../errors.js'
import { splice } from '../wire/splice.js'
import { applyQuirks, quirkEdits } from '../upstreams/quirks.js'
import { Attempt, type Answer, type Outgoing } from './attempt.js'
import type { Deadlines } from './deadlines.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import type { Call } from './receive.js'

/** More than a request with every field that some dialect lacks has. */
const MAX_LOSSES = 32
const PLAIN_PATH = /^[\w$.[\]-]{1,80}$/

/** Sends the call. Rejects with `GatewayError`; resolves when there is something to tell the client. */
export async function forward(
  x: Exchange,
  call: Call,
  target: Target,
  model: string,
  deadlines: Deadlines,
): Promise<Answer> {
  const { config } = target.upstream
  if (config.apiKey === null && config.apiKeySource !== null) {
    throw new GatewayError(
      'upstream_unconfigured',
      `The upstream '${config.name}' has no key: set ${config.apiKeySource}.`,
    )
  }
  x.cancellation.check()
  const before = performance.now()
  const outgoing = prepare(x, call, target, model)
  x.facts.translateMs += performance.now() - before
  return new Promise((resolve, reject) => {
    new Attempt(x, call, target, deadlines, outgoing, { resolve, reject }).send()
  })
}

/** The upstream's request: the client's bytes spliced, or the conversation said in its dialect. */
function prepare(x: Exchange, call: Call, target: Target, model: string): Outgoing {
  const { egress, upstream } = target
  const { quirks } = upstream.config
  const lost = new Set<string>()
  const losses: Losses = { drop: (field) => note(lost, field) }
  const facts = x.generation.facts(model)
  if (target.dialect === call.dialect) {
    const { path, accept } = egress.target(model, call.request.stream)
    const edits = egress.edits(call.body, model, facts, losses)
    edits.push(...quirkEdits(call.body, quirks))
    report(x, lost)
    return {
      path: upstream.basePath + path,
      headers: withRequestHeaders(target, accept, egress.headers(call.body)),
      body: edits.length === 0 ? call.raw : splice(call.raw, call.members, edits),
      next: null,
    }
  }
  const stream = call.request.stream || egress.streamsWhole?.(call.request, facts) === true
  const { path, accept } = egress.target(model, stream)
  const body = applyQuirks(
    egress.encodeRequest({ ...call.request, model, stream }, facts, losses),
    quirks,
  )
  report(x, lost)
  const headers = withRequestHeaders(target, accept, egress.headers(body))
  return outgoingOf(upstream.basePath + path, headers, body, egress.continuation)
}

/** The request, and how the rest of its answer is asked for where the upstream may pause. */
function outgoingOf(
  path: string,
  headers: readonly string[],
  body: JsonObject,
  continuation: Continuation | null,
): Outgoing {
  const next =
    continuation?.mayPause(body) === true
      ? (resume: JsonObject) =>
          outgoingOf(path, headers, continuation.next(body, resume), continuation)
      : null
  return { path, headers, body: JSON.stringify(body), next }
}

/** Tells what is lost, or refuses to lose it, as the configuration wishes. */
function report(x: Exchange, lost: ReadonlySet<string>): void {
  if (lost.size === 0) return
  x.facts.losses = [...lost]
  if (x.generation.snapshot.config.onLoss === 'reject') throw lossy(lost)
}

/**
 * Remembers a loss by a name that a header and a log can hold: the path of a field nobody knows is the
 * client's own text, of any characters and any number.
 */
function note(lost: Set<string>, field: string): void {
  if (lost.size < MAX_LOSSES) lost.add(PLAIN_PATH.test(field) ? field : 'other')
}

function lossy(lost: ReadonlySet<string>): GatewayError {
  const [first = ''] = lost
  return new GatewayError(
    'untranslatable',
    `This model’s provider cannot take: ${[...lost].join(', ')}. Leave it out, or ask for a model whose provider can.`,
    { param: first },
  )
}

function withRequestHeaders(
  target: Target,
  accept: string,
  more: Readonly<Record<string, string>>,
): string[] {
  const headers = [...target.headers, 'accept', accept]
  for (const name in more) headers.push(name, more[name] ?? '')
  return headers
}
