/**
 * One call to one upstream, until its first content: the only place where retries live.
 * Knows no client socket. A 200 is not believed until its first content event, so an upstream that says
 * 200 and dies is still an ordinary failed attempt with a real status.
 */
import type { Losses } from '../dialects/dialect.js'
import { GatewayError } from '../errors.js'
import { splice } from '../wire/splice.js'
import { applyQuirks, quirkEdits } from '../upstreams/quirks.js'
import type { Escrow } from '../reasoning/escrow.js'
import { Attempt, type Answer, type Outgoing } from './attempt.js'
import type { Deadlines } from './deadlines.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import type { Call } from './receive.js'
import { remembered } from './remember.js'

/** More than a request with every field that some dialect lacks has. */
const MAX_LOSSES = 32
const PLAIN_PATH = /^[\w$.[\]-]{1,80}$/

/** Sends the call. Rejects with `GatewayError`; resolves when there is something to tell the client. */
export async function forward(
  x: Exchange,
  call: Call,
  target: Target,
  model: string,
  { deadlines, escrow }: Means,
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
  const found = remembered(x, call, target, model, escrow)
  const asked = found instanceof Promise ? await found : found
  const outgoing = prepare(x, asked, target, model)
  x.facts.translateMs += performance.now() - before
  let answer: Answer
  try {
    answer = await attempt(x, asked, target, deadlines, outgoing)
  } catch (error) {
    const second = amended(x, target, outgoing, error)
    if (second === null) throw error
    answer = await attempt(x, asked, target, deadlines, second)
  }
  // A stream holds its own end back.
  if (answer.kind === 'whole' && x.holding !== null) await x.holding
  return answer
}

/** What an exchange is carried out with. */
export interface Means {
  readonly deadlines: Deadlines
  readonly escrow: Escrow
}

function attempt(
  x: Exchange,
  call: Call,
  target: Target,
  deadlines: Deadlines,
  outgoing: Outgoing,
): Promise<Answer> {
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
      said: null,
    }
  }
  const stream = call.request.stream || egress.streamsWhole?.(call.request, facts) === true
  const { path, accept } = egress.target(model, stream)
  const said = applyQuirks(
    egress.encodeRequest({ ...call.request, model, stream }, facts, losses),
    quirks,
  )
  report(x, lost)
  return {
    path: upstream.basePath + path,
    headers: withRequestHeaders(target, accept, egress.headers(said)),
    body: JSON.stringify(said),
    said,
  }
}

/** Tells what is lost, or refuses to lose it, as the configuration wishes. */
function report(x: Exchange, lost: ReadonlySet<string>): void {
  if (lost.size === 0) return
  x.facts.losses = [...lost]
  if (x.generation.snapshot.config.onLoss === 'reject') throw lossy(lost)
}

/**
 * The same request for a second and last attempt; null where it would fare no better. So far there is
 * one reason for it: reasoning of earlier turns that does not fit any more. Leaving that out is a loss.
 */
function amended(
  x: Exchange,
  { egress, series }: Target,
  outgoing: Outgoing,
  error: unknown,
): Outgoing | null {
  const before = outgoing.said
  if (before === null || !(error instanceof GatewayError)) return null
  const said = egress.dropReasoning?.(before, error.wire) ?? null
  if (said === null) return null
  x.cancellation.check()
  report(x, new Set([...x.facts.losses, 'messages.reasoning']))
  series.reasoningDropped()
  const known = egress.headers(before)
  const headers = [...outgoing.headers]
  for (const [name, value] of Object.entries(egress.headers(said))) {
    if (!(name in known)) headers.push(name, value)
  }
  return { ...outgoing, headers, body: JSON.stringify(said), said }
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
