/** Builds the log line of an exchange, and classifies the end of its stream. */
import { rowOf, type Cause, type ErrorKind, type WireError } from '../../errors.js'
import { hideSecrets } from '../../hide-secrets.js'
import type { ExchangeLine } from '../../observe/log-fields.js'
import type { Outcome, StreamEnd } from '../../observe/metrics/closed-labels.js'
import { attemptList } from '../attempts/attempt-result.js'
import type { Exchange } from '../client-exchange.js'
import { MAX_QUOTING_MESSAGE, nameOf } from '../charges/ledger-entry.js'

/** Maximum length of a logged path: a path may contain a long model name. */
const MAX_PATH = 256

/** Classifies the end of a stream. `isComplete`: the upstream's reply reached its terminator. */
export function streamEndOf(outcome: Outcome, isComplete: boolean): StreamEnd {
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

/** The end of an exchange. */
export interface End {
  readonly status: number
  readonly outcome: Outcome
  /** Undefined for `ok`. */
  readonly cause: Cause | undefined
  readonly seconds: number
  readonly overheadMs: number
  /** The column of its ledger entry. */
  readonly units: string | null
}

/**
 * Whether the line is written: always for failures, slow requests and requests with more than one attempt,
 * and for the share `log.sample_success` of the others.
 */
export function isLogged(x: Exchange, { outcome, seconds }: End): boolean {
  const { sampleSuccess, slowMs } = x.generation.snapshot.config.log
  if (sampleSuccess === 1 || outcome !== 'ok') return true
  if ((x.attempts?.list.length ?? 0) > 1) return true
  if ((x.firstContentMs ?? seconds * 1000) > slowMs) return true
  return Math.random() < sampleSuccess
}

/** The line that ends the exchange in the log. Durations are in ms; undefined if a phase did not happen. */
export function lineOf(x: Exchange, end: End): ExchangeLine {
  const { identified, authenticated, intake, received: call, admitted, attempts: sent, delivered } = x
  const { attempt, candidate, replyResult, error } = x
  const wire = error?.wire ?? replyResult?.error
  const usage = replyResult?.usage
  const { operation = null } = identified ?? {}
  const target = candidate?.target
  const stream = call?.request.stream ?? false
  const model = call?.request.model
  const { status, outcome } = end
  const attempts = sent?.list.length ?? 0
  const waits = x.waits
  return {
    request_id: x.id,
    client_request_id: identified?.clientRequestId ?? undefined,
    trace_id: x.trace?.traceId,
    client_address: x.clientAddress,
    method: x.req.method ?? '',
    path: operation === null ? undefined : x.path.slice(0, MAX_PATH),
    status,
    outcome,
    cause: end.cause,
    limit: admitted?.kind === 'refused' ? (admitted.limit ?? undefined) : undefined,
    key_id: authenticated?.identity.keyId,
    account_id: authenticated?.identity.accountId,
    route: target?.route,
    upstream: target?.upstream.config.name,
    dialect: operation === 'native' ? 'native' : target?.dialect,
    model: model === undefined ? undefined : x.generation.modelLabel(model, target ?? null),
    upstream_model: nameOf(replyResult?.model ?? x.upstreamModel) ?? undefined,
    stream,
    generation: x.generation.snapshot.generation,
    gateway: x.generation.snapshot.config.server.name,
    generation_hash: x.generation.hash,
    attempts,
    attempted:
      sent === null || attempts === 0 || (attempts === 1 && outcome === 'ok')
        ? undefined
        : attemptList(sent, outcome),
    upstream_status: attempt?.status ?? undefined,
    upstream_code: wire?.upstreamCode ?? replyResult?.breach ?? undefined,
    upstream_message: upstreamMessage(x, wire ?? null),
    upstream_request_id: attempt?.requestId ?? undefined,
    end:
      stream && replyResult !== null ? streamEndOf(outcome, replyResult.outcome === 'complete') : undefined,
    finish_reason: replyResult?.reason ?? undefined,
    param: loggedParam(wire?.param),
    lost: joined(sent?.losses ?? []),
    lost_in_reply: joined(replyResult?.lost ?? []),
    duration_ms: end.seconds * 1000,
    overhead_ms: end.overheadMs,
    auth_ms: authenticated?.tookMs,
    receive_ms: intake?.tookMs ?? undefined,
    admit_ms: admitted?.tookMs ?? undefined,
    guardrails: joined(x.guard?.list ?? []),
    guard_ms: x.guard?.tookMs,
    back_off_ms: positive(sent?.backOffMs),
    connect_ms: waits.connectMs ?? undefined,
    first_byte_ms: waits.firstByteMs ?? undefined,
    reply_ms: waits.replyMs ?? undefined,
    translate_ms: positive(sent?.translateMs),
    first_token_ms: x.firstContentMs ?? undefined,
    relay_ms: delivered?.relayMs ?? undefined,
    client_wait_ms: positive(delivered?.clientWaitMs),
    bytes_in: intake?.bytes ?? 0,
    bytes_out: delivered?.sentBytes ?? 0,
    chunks: positive(delivered?.chunks),
    input_tokens: usage?.input,
    output_tokens: usage?.output,
    cache_read_tokens: usage?.cacheRead,
    cache_write_tokens: usage?.cacheWrite,
    reasoning_tokens: usage?.reasoning,
    units: end.units ?? undefined,
  }
}

/** Failures of upstreams whose message is the gateway's own, unless the upstream named the error. */
const WITHOUT_WORDS: ReadonlySet<ErrorKind> = new Set([
  'upstream_unreachable',
  'upstream_timeout',
  'upstream_truncated',
  'upstream_malformed',
])

/** The upstream's own words about its failure or refusal, where messages may be kept. */
function upstreamMessage({ generation }: Exchange, wire: WireError | null): string | undefined {
  if (wire === null || !generation.snapshot.config.ledger.errorMessages) return undefined
  const { kind, upstreamCode, upstreamMessage: words = wire.message } = wire
  const isTheirs =
    wire.upstreamMessage !== undefined ||
    upstreamCode !== undefined ||
    (rowOf(kind).source === 'upstream' && !WITHOUT_WORDS.has(kind))
  return isTheirs ? hideSecrets(words.slice(0, MAX_QUOTING_MESSAGE)) : undefined
}

/**
 * Field names that the log may contain. A path may also contain names that the client chose, such as a key of
 * its metadata, and those may be any text, even a prompt.
 */
const FIELDS = new Set([
  'anthropic-beta',
  'anthropic-version',
  'background',
  'content-encoding',
  'content-type',
  'conversation',
  'frequency_penalty',
  'function_call',
  'functions',
  'include',
  'input',
  'instructions',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_output_tokens',
  'max_tokens',
  'messages',
  'metadata',
  'model',
  'n',
  'output_config',
  'parallel_tool_calls',
  'presence_penalty',
  'previous_response_id',
  'prompt',
  'reasoning',
  'reasoning_effort',
  'response_format',
  'seed',
  'service_tier',
  'speed',
  'stop',
  'stop_sequences',
  'store',
  'stream',
  'stream_options',
  'system',
  'temperature',
  'text',
  'thinking',
  'tool_choice',
  'tools',
  'top_k',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
])

/**
 * The field at the start of the path with its index (`messages[3]`); `other` if the name is not in `FIELDS`.
 */
function loggedParam(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  const [place = '', name = ''] = /^([a-z_-]+)(?:\[\d+\])?/.exec(path) ?? []
  return FIELDS.has(name) ? place : 'other'
}

/** Undefined for 0, so that the log line omits it. */
function positive(amount: number | undefined): number | undefined {
  return amount === 0 ? undefined : amount
}

function joined(paths: readonly string[]): string | undefined {
  return paths.length === 0 ? undefined : paths.join(',')
}
