/**
 * The end of every exchange: metrics and the one log line. The only reader of `facts`.
 */
import type { DialectName } from '../dialects/dialect.js'
import { rowOf } from '../errors.js'
import type { Logger } from '../log.js'
import type { ExchangeLine } from '../log-lines.js'
import type { Metrics, Outcome, StreamEnd } from '../metrics/hops.js'
import { nameOf, outcomeOf, overheadMs } from './charge.js'
import type { Exchange, Facts } from './exchange.js'

/** A path with a model's name may be as long as a head. */
const MAX_PATH = 256

/** Records what happened. Called exactly once per exchange. */
export function settle(x: Exchange, metrics: Metrics, log: Logger): void {
  const beganMs = performance.now()
  const { facts } = x
  const outcome = outcomeOf(x)
  const status = outcome === 'client_gone' ? 499 : x.res.statusCode
  const seconds = (beganMs - x.startedMs) / 1000
  recordHops(facts, metrics)
  facts.overheadMs = overheadMs(x, beganMs, facts.relayMs)
  metrics.overhead(facts.overheadMs / 1000)
  if (facts.target === null) {
    metrics.unrouted(status, outcome)
  } else {
    facts.target.series.finished(status, outcome)
    recordReply(x, facts, seconds, outcome)
    recordLosses(x, facts.target.dialect, metrics)
  }
  log.exchangeLine(lineOf(x, status, outcome, seconds))
  metrics.hops.settle.observe((facts.bookMs + performance.now() - beganMs) / 1000)
}

function recordHops(facts: Facts, { hops }: Metrics): void {
  const { authenticateMs, receiveMs, routeMs, admitMs, connectMs, firstByteMs, relayMs } = facts
  if (authenticateMs !== null) hops.authenticate.observe(authenticateMs / 1000)
  if (receiveMs !== null) hops.receive.observe(receiveMs / 1000)
  if (routeMs !== null) hops.route.observe(routeMs / 1000)
  if (admitMs !== null) hops.admit.observe(admitMs / 1000)
  if (connectMs !== null) hops.connect.observe(connectMs / 1000)
  if (firstByteMs !== null) hops.first_byte.observe(firstByteMs / 1000)
  if (facts.translateMs > 0) hops.translate.observe(facts.translateMs / 1000)
  if (relayMs !== null) hops.relay.observe(relayMs / 1000)
}

function recordReply(x: Exchange, facts: Facts, seconds: number, outcome: Outcome): void {
  const { target, verdict } = facts
  if (target === null || verdict === null || x.operation === 'native') return
  if (facts.stream) target.series.streamEnd(streamEndOf(outcome, verdict.outcome === 'complete'))
  if (facts.clientWaitMs > 0) target.series.backpressure('client', facts.clientWaitMs / 1000)
  const ttftMs = facts.firstContentMs
  const model = x.generation.modelLabel(facts.model ?? '')
  target.series.served(model, seconds, ttftMs === null ? null : ttftMs / 1000, verdict.usage)
}

/** Either way: what the upstream was not told, and what the client was not. */
function recordLosses(x: Exchange, upstream: DialectName, metrics: Metrics): void {
  const { dialect, facts } = x
  if (dialect === null) return
  for (const path of facts.losses) metrics.loss(dialect, upstream, path)
  for (const path of facts.verdict?.lost ?? []) metrics.loss(upstream, dialect, path)
}

/** `complete`: the upstream's reply came to its proper end. */
function streamEndOf(outcome: Outcome, isComplete: boolean): StreamEnd {
  if (outcome === 'client_gone') return 'client_gone'
  if (outcome === 'ok' || isComplete) return 'complete'
  switch (outcome) {
    case 'upstream_truncated':
      return 'truncated'
    case 'upstream_malformed':
      return 'malformed'
    case 'client_stalled':
    case 'draining':
    case 'upstream_timeout':
      return outcome
    default:
  }
  const { source } = rowOf(outcome)
  if (source === 'upstream') return 'upstream_error'
  return source === 'client' ? 'key_ended' : 'gateway_error'
}

function lineOf(x: Exchange, status: number, outcome: Outcome, seconds: number): ExchangeLine {
  const { facts, req } = x
  const { verdict, error, target } = facts
  const wire = error?.wire ?? verdict?.error
  const usage = verdict?.usage
  return {
    request_id: x.id,
    client_request_id: facts.clientRequestId ?? undefined,
    client_address: x.clientAddress,
    method: req.method ?? '',
    path: x.operation === null ? undefined : x.path.slice(0, MAX_PATH),
    status,
    outcome,
    key_id: facts.keyId ?? undefined,
    account_id: facts.accountId ?? undefined,
    route: target?.route,
    upstream: target?.upstream.config.name,
    dialect: x.operation === 'native' ? 'native' : target?.dialect,
    model: facts.model === null ? undefined : x.generation.modelLabel(facts.model),
    upstream_model: nameOf(verdict?.model ?? facts.upstreamModel) ?? undefined,
    stream: facts.stream,
    generation: x.generation.snapshot.generation,
    upstream_status: facts.upstreamStatus ?? undefined,
    upstream_code: wire?.upstreamCode ?? verdict?.breach ?? undefined,
    upstream_request_id: facts.upstreamRequestId ?? undefined,
    end:
      facts.stream && verdict !== null
        ? streamEndOf(outcome, verdict.outcome === 'complete')
        : undefined,
    finish_reason: verdict?.reason ?? undefined,
    param: loggedParam(wire?.param),
    lost: joined(facts.losses),
    lost_in_reply: joined(verdict?.lost ?? []),
    duration_ms: seconds * 1000,
    overhead_ms: facts.overheadMs,
    auth_ms: facts.authenticateMs ?? undefined,
    receive_ms: facts.receiveMs ?? undefined,
    first_byte_ms: facts.firstByteMs ?? undefined,
    first_token_ms: facts.firstContentMs ?? undefined,
    bytes_in: facts.receivedBytes,
    bytes_out: facts.sentBytes,
    input_tokens: usage?.input,
    output_tokens: usage?.output,
    cache_read_tokens: usage?.cacheRead,
    cache_write_tokens: usage?.cacheWrite,
    reasoning_tokens: usage?.reasoning,
  }
}

/**
 * Fields by which a log may be searched. A path holds names that the client chose (a key of its
 * metadata, one that came twice), and those may be anything, a prompt too.
 */
const FIELDS = new Set([
  'content-encoding',
  'content-type',
  'frequency_penalty',
  'function_call',
  'functions',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'messages',
  'metadata',
  'model',
  'n',
  'parallel_tool_calls',
  'presence_penalty',
  'reasoning_effort',
  'response_format',
  'seed',
  'stop',
  'stream',
  'stream_options',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'user',
])

/** The field at the start of the path, with its index: `messages[3]`; `other` where it is not ours. */
function loggedParam(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  const [place = '', name = ''] = /^([a-z_-]+)(?:\[\d+\])?/.exec(path) ?? []
  return FIELDS.has(name) ? place : 'other'
}

function joined(paths: readonly string[]): string | undefined {
  return paths.length === 0 ? undefined : paths.join(',')
}
