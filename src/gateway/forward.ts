/**
 * One call to one upstream, until its first content: the only place where retries will live.
 * Knows no client socket. A 200 is not believed until its first content event, so an upstream that says
 * 200 and dies is still an ordinary failed attempt with a real status.
 */
import type { ModelFacts } from '../chat/model.js'
import type { ChatRequest } from '../chat/request.js'
import { beginWithUser } from '../chat/synthetic-user.js'
import type { Egress, Losses } from '../dialects/dialect.js'
import { GatewayError } from '../errors.js'
import { stringifyExact } from '../wire/exact.js'
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
    new Attempt(x, call, target, deadlines, resolve, reject).send(outgoing)
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
    }
  }
  const request = requestFor(x, call.request, egress, model, facts)
  const { path, accept } = egress.target(model, request.stream)
  const body = applyQuirks(egress.encodeRequest(request, facts, losses), quirks)
  report(x, lost)
  return {
    path: upstream.basePath + path,
    headers: withRequestHeaders(target, accept, egress.headers(body)),
    body: stringifyExact(body),
  }
}

/** The request as this upstream is to be asked: its model, whether to stream, and who begins. */
function requestFor(
  x: Exchange,
  request: ChatRequest,
  egress: Egress,
  model: string,
  facts: ModelFacts,
): ChatRequest {
  const stream = request.stream || egress.streamsWhole?.(request, facts) === true
  const mayBegin = egress.userFirst === true && x.generation.snapshot.config.allowSyntheticUser
  const messages = mayBegin ? beginWithUser(request.messages) : request.messages
  const same = request.model === model && request.stream === stream && request.messages === messages
  return same ? request : { ...request, model, stream, messages }
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
