/**
 * The closed list of fields of log lines, and how their values are limited. There is no field for headers,
 * bodies, prompts or query strings.
 */
import type { Cause, ErrorKind } from '../errors.js'

/** Clients choose some strings (model, path, request id); the limit keeps lines short. */
const MAX_STRING = 256

/** The fields of the line that ends each request. A field that is not listed here is never written. */
export interface ExchangeLine {
  request_id: string
  /** The client's own request id. */
  client_request_id?: string | undefined
  /** 32 hexadecimal digits. */
  trace_id?: string | undefined
  /** The client's address, behind trusted proxies too. */
  client_address?: string | undefined
  method?: string | undefined
  /** Without the query. */
  path?: string | undefined
  status: number
  outcome: 'ok' | ErrorKind
  /** The side that has to act on the failure; absent for `ok`. */
  cause?: Cause | undefined
  /** The rule that refused the request: its subject and the name of its setting. */
  limit?: string | undefined
  key_id?: string | undefined
  account_id?: string | undefined
  route?: string | undefined
  upstream?: string | undefined
  dialect?: string | undefined
  model?: string | undefined
  upstream_model?: string | undefined
  stream?: boolean | undefined
  generation?: number | undefined
  /** The name of the gateway (`server.name`). */
  gateway?: string | undefined
  /** The hash of the generation, as `sluice generations list` prints it. */
  generation_hash?: string | undefined
  attempts?: number | undefined
  /** Each attempt in order, `upstream:outcome`, joined with `, `; absent for one attempt that succeeded. */
  attempted?: string | undefined
  upstream_status?: number | undefined
  /** The error type or code of the upstream. */
  upstream_code?: string | undefined
  /** The words of the upstream's error, or why its reply is not one. */
  upstream_message?: string | undefined
  upstream_request_id?: string | undefined
  /** How a stream ended. */
  end?: string | undefined
  finish_reason?: string | undefined
  /** The field at fault, as a path. */
  param?: string | undefined
  /** Fields that a translation lost, joined with commas. */
  lost?: string | undefined
  /** Fields of the reply that could not be translated. */
  lost_in_reply?: string | undefined
  duration_ms: number
  overhead_ms?: number | undefined
  auth_ms?: number | undefined
  receive_ms?: number | undefined
  /** What guardrails did, `NAME:VERDICT`, separated by commas. */
  guardrails?: string | undefined
  guard_ms?: number | undefined
  admit_ms?: number | undefined
  back_off_ms?: number | undefined
  connect_ms?: number | undefined
  first_byte_ms?: number | undefined
  /** From the head of the upstream's reply to its first content, or to its end if it is whole. */
  reply_ms?: number | undefined
  translate_ms?: number | undefined
  first_token_ms?: number | undefined
  relay_ms?: number | undefined
  /** The part of `relay_ms` in which the client did not read. */
  client_wait_ms?: number | undefined
  bytes_in?: number | undefined
  bytes_out?: number | undefined
  chunks?: number | undefined
  input_tokens?: number | undefined
  output_tokens?: number | undefined
  cache_read_tokens?: number | undefined
  cache_write_tokens?: number | undefined
  reasoning_tokens?: number | undefined
  /** Units other than text tokens, as in the ledger: `audio_second=61.5 image=2`. */
  units?: string | undefined
}

/** The fields of every other line. */
export interface EventFields {
  request_id?: string | undefined
  generation?: number | undefined
  /** The name of the gateway (`server.name`). */
  gateway?: string | undefined
  /** The hash of the generation, as `sluice generations list` prints it. */
  generation_hash?: string | undefined
  /** A route of the configuration: its model or prefix. */
  route?: string | undefined
  upstream?: string | undefined
  /** A name of the catalogue or of a route, never a client's text. */
  model?: string | undefined
  /** The address of a client of the ops port. */
  client_address?: string | undefined
  variable?: string | undefined
  file?: string | undefined
  host?: string | undefined
  port?: number | undefined
  ops_port?: number | undefined
  store?: string | undefined
  op?: string | undefined
  worker?: number | undefined
  workers?: number | undefined
  worker_pid?: number | undefined
  signal?: string | undefined
  exit_code?: number | undefined
  delay_ms?: number | undefined
  elapsed_ms?: number | undefined
  inflight?: number | undefined
  dropped?: number | undefined
  rows?: number | undefined
  version?: string | undefined
  key_id?: string | undefined
  account_id?: string | undefined
  reason?: string | undefined
}

/**
 * The fields of a request's line: texts are cut to 256 characters, the path has no query. An object literal
 * instead of a loop over names: 0.1 µs instead of 2 µs per line.
 */
export function exchangeFields(line: ExchangeLine): object {
  return {
    request_id: clipped(line.request_id),
    client_request_id: clipped(line.client_request_id),
    trace_id: line.trace_id,
    client_address: clipped(line.client_address),
    method: clipped(line.method),
    path: line.path === undefined ? undefined : clip(withoutQuery(line.path)),
    status: rounded(line.status),
    outcome: line.outcome,
    cause: line.cause,
    limit: clipped(line.limit),
    key_id: clipped(line.key_id),
    account_id: clipped(line.account_id),
    route: clipped(line.route),
    upstream: clipped(line.upstream),
    dialect: clipped(line.dialect),
    model: clipped(line.model),
    upstream_model: clipped(line.upstream_model),
    stream: line.stream,
    generation: rounded(line.generation),
    gateway: line.gateway,
    generation_hash: line.generation_hash,
    attempts: rounded(line.attempts),
    attempted: clipped(line.attempted),
    upstream_status: rounded(line.upstream_status),
    upstream_code: clipped(line.upstream_code),
    upstream_message: clipped(line.upstream_message),
    upstream_request_id: clipped(line.upstream_request_id),
    end: clipped(line.end),
    finish_reason: clipped(line.finish_reason),
    param: clipped(line.param),
    lost: clipped(line.lost),
    lost_in_reply: clipped(line.lost_in_reply),
    duration_ms: rounded(line.duration_ms),
    overhead_ms: rounded(line.overhead_ms),
    auth_ms: rounded(line.auth_ms),
    receive_ms: rounded(line.receive_ms),
    admit_ms: rounded(line.admit_ms),
    guardrails: line.guardrails,
    guard_ms: rounded(line.guard_ms),
    back_off_ms: rounded(line.back_off_ms),
    connect_ms: rounded(line.connect_ms),
    first_byte_ms: rounded(line.first_byte_ms),
    reply_ms: rounded(line.reply_ms),
    translate_ms: rounded(line.translate_ms),
    first_token_ms: rounded(line.first_token_ms),
    relay_ms: rounded(line.relay_ms),
    client_wait_ms: rounded(line.client_wait_ms),
    bytes_in: rounded(line.bytes_in),
    bytes_out: rounded(line.bytes_out),
    chunks: rounded(line.chunks),
    input_tokens: rounded(line.input_tokens),
    output_tokens: rounded(line.output_tokens),
    cache_read_tokens: rounded(line.cache_read_tokens),
    cache_write_tokens: rounded(line.cache_write_tokens),
    reasoning_tokens: rounded(line.reasoning_tokens),
    units: line.units,
  }
}

/** The fields of another line. */
export function eventFields(line: EventFields): object {
  return {
    request_id: clipped(line.request_id),
    generation: rounded(line.generation),
    gateway: line.gateway,
    generation_hash: line.generation_hash,
    route: clipped(line.route),
    upstream: clipped(line.upstream),
    model: clipped(line.model),
    client_address: clipped(line.client_address),
    variable: clipped(line.variable),
    file: clipped(line.file),
    host: clipped(line.host),
    port: rounded(line.port),
    ops_port: rounded(line.ops_port),
    store: clipped(line.store),
    op: clipped(line.op),
    worker: rounded(line.worker),
    workers: rounded(line.workers),
    worker_pid: rounded(line.worker_pid),
    signal: clipped(line.signal),
    exit_code: rounded(line.exit_code),
    delay_ms: rounded(line.delay_ms),
    elapsed_ms: rounded(line.elapsed_ms),
    inflight: rounded(line.inflight),
    dropped: rounded(line.dropped),
    rows: rounded(line.rows),
    version: clipped(line.version),
    key_id: clipped(line.key_id),
    account_id: clipped(line.account_id),
    reason: typeof line.reason === 'string' ? clipMiddle(line.reason) : undefined,
  }
}

/** Cuts to `MAX_STRING` UTF-16 units; a cut text ends in `…`. */
export function clip(value: string): string {
  return value.length <= MAX_STRING ? value : `${value.slice(0, MAX_STRING)}…`
}

/**
 * Keeps `MAX_STRING` UTF-16 units of each end, with `…` for what is cut between them: a message names a path,
 * which may be long, and ends with what to do.
 */
export function clipMiddle(value: string): string {
  if (value.length <= 2 * MAX_STRING) return value
  return `${value.slice(0, MAX_STRING)}…${value.slice(-MAX_STRING)}`
}

function clipped(value: string | undefined): string | undefined {
  return typeof value === 'string' ? clip(value) : undefined
}

/** At most three decimals: durations are in ms, and the clock is accurate to a microsecond. */
function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value * 1000) / 1000
}

function withoutQuery(path: string): string {
  const query = path.search(/[?#]/)
  return query === -1 ? path : path.slice(0, query)
}
