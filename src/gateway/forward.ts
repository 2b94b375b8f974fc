/**
 * One call to one upstream, until its first content: the only place where retries will live.
 * Knows no client socket. A 200 is not believed until its first content event, so an upstream that says
 * 200 and dies is still an ordinary failed attempt with a real status.
 */
import { GatewayError } from '../errors.js'
import { pathAt } from '../upstreams/place.js'
import { Attempt, type Answer, type Outgoing } from './attempt.js'
import type { Deadlines } from './deadlines.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import { LossList, lossy } from './losses.js'
import { render } from './outgoing.js'
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

/** The upstream's request, made once. Throws where losses are not to be borne. */
function prepare(x: Exchange, call: Call, target: Target, model: string): Outgoing {
  const { egress, upstream, dialect } = target
  const { allowSyntheticUser } = x.generation.snapshot.config
  const destination = { dialect, egress, quirks: upstream.config.quirks, allowSyntheticUser }
  const losses = new LossList()
  const rendered = render(call, destination, model, x.generation.facts(model), losses)
  report(x, call, losses.paths)
  return {
    path: pathAt(upstream.place, rendered.path, model),
    headers: withRequestHeaders(target, rendered.accept, rendered.headers),
    body: rendered.body,
  }
}

/** Tells what would be lost, or refuses to lose it, as the configuration wishes. */
function report(x: Exchange, { request }: Call, lost: readonly string[]): void {
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
