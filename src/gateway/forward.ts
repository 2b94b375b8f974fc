/**
 * One call to one upstream, until its first content: the only place where retries will live.
 * Knows no client socket. A 200 is not believed until its first content event, so an upstream that says
 * 200 and dies is still an ordinary failed attempt with a real status.
 */
import type { ChatRequest } from '../chat/request.js'
import { GatewayError } from '../errors.js'
import { splice } from '../wire/splice.js'
import { applyQuirks, quirkEdits } from '../upstreams/quirks.js'
import { Attempt, type Answer, type Outgoing } from './attempt.js'
import type { Deadlines } from './deadlines.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import { LossList, lossy } from './losses.js'
import type { Call } from './receive.js'

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
    new Attempt(x, call, target, deadlines, resolve, reject).send(outgoing)
  })
}

/** The upstream's request: the client's bytes spliced, or the conversation said in its dialect. */
function prepare(x: Exchange, call: Call, target: Target, model: string): Outgoing {
  const { egress, upstream } = target
  const { quirks } = upstream.config
  const losses = new LossList()
  const facts = x.generation.facts(model)
  if (target.dialect === call.dialect) {
    const { path, accept } = egress.target(model, call.request.stream)
    const edits = egress.edits(call.body, model, facts, losses)
    edits.push(...quirkEdits(call.body, quirks))
    report(x, call.request, losses.paths)
    return {
      path: upstream.basePath + path,
      headers: withRequestHeaders(target, accept, egress.headers(call.body)),
      body: edits.length === 0 ? call.raw : splice(call.raw, call.members, edits),
    }
  }
  const stream = call.request.stream || egress.streamsWhole?.(call.request, facts) === true
  const { path, accept } = egress.target(model, stream)
  const body = applyQuirks(
    egress.encodeRequest({ ...call.request, model, stream }, facts, losses),
    quirks,
  )
  report(x, call.request, losses.paths)
  return {
    path: upstream.basePath + path,
    headers: withRequestHeaders(target, accept, egress.headers(body)),
    body: JSON.stringify(body),
  }
}

/** Tells what would be lost, or refuses to lose it, as the configuration wishes. */
function report(x: Exchange, request: ChatRequest, lost: readonly string[]): void {
  x.facts.losses = lost
  if (lost.length > 0 && x.generation.snapshot.config.onLoss === 'reject')
    throw lossy(request, lost)
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
