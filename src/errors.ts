/**
 * The table of errors: kind → status, source, retry policy. Only this file decides about status codes;
 * `docs/reference/errors.md` is generated from it.
 */

/** The properties of all errors of a kind. */
export interface ErrorRow {
  /** The HTTP status that the client sees. */
  readonly status: number
  /** The component that caused it. */
  readonly source: 'client' | 'gateway' | 'upstream'
  /**
   * Whether another attempt may help: `before-first-byte` one of the gateway, `by-client` only one of the
   * client, later.
   */
  readonly retry: 'never' | 'by-client' | 'before-first-byte'
  /** The event and what the reader can do, for the documentation. */
  readonly meaning: string
}

/** Every kind of error. */
export const ERRORS = {
  malformed_request: clientRow(400, 'The request breaks a rule; the message names the path.'),
  untranslatable: clientRow(400, "The route's upstream does not support this; the message names the field."),
  guardrail_blocked: clientRow(
    400,
    'A guardrail of the gateway refused the request or its reply; the message names it.',
  ),
  dimension_required: clientRow(
    400,
    'The request has no value of a dimension with `required: true`; the message names the places.',
  ),
  invalid_dimension: clientRow(
    400,
    'The value of a dimension is longer than 128 characters or has control characters; the message names the place.',
  ),
  unauthenticated: clientRow(
    401,
    'No valid key, or its account is disabled. The message names what is wrong with the form of the credential, and is the same for every key of the right form.',
  ),
  jwt_invalid: clientRow(
    401,
    'The token of a workload is not a valid JWT: its form, its algorithm or its signature is wrong.',
  ),
  jwt_issuer: clientRow(401, 'No entry of `identity` has the issuer of the token.'),
  jwt_unknown_key: clientRow(401, "The issuer's key set has no key for the token."),
  jwt_expired: clientRow(401, 'The token has expired, or is not valid yet.'),
  jwt_audience: clientRow(401, 'The token is for another audience than those of `identity`.'),
  jwt_claims: clientRow(
    401,
    'A claim that `identity` needs is missing or has another value, or the account does not exist or is disabled.',
  ),
  jwt_revoked: clientRow(401, 'The identity of the token is denied by `sub` or `jti`.'),
  budget_exceeded: clientRow(
    402,
    'A budget of the gateway is spent, or too small for this request; the message names it. `limiting.budget_status: 429` changes the status.',
  ),
  forbidden: clientRow(403, 'The key is valid but not allowed to do this.'),
  run_ended: clientRow(403, 'The run of the request was ended by an administrator: begin another one.'),
  unknown_price: clientRow(
    403,
    'A budget applies, and a kind of tokens that the request or its reply may have, such as sound, has no price.',
  ),
  plan_limit: clientRow(
    403,
    'The plan allows no more keys: revoke one, or choose a larger plan. Dashboard and commands only.',
  ),
  not_found: clientRow(404, 'The resource does not exist or belongs to another account. Dashboard only.'),
  unknown_endpoint: clientRow(404, 'No such path.'),
  unknown_model: clientRow(404, 'No route matches this model id.'),
  unknown_response: clientRow(
    404,
    'No response with that id is stored for this account: it is unknown, has expired, or was not stored.',
  ),
  unknown_object: clientRow(
    404,
    "This account created no such file, batch, cache or other object at the upstream; with `native_sharing: shared` the upstream's own answer counts.",
  ),
  method_not_allowed: clientRow(405, 'The path exists, with another method.'),
  request_timeout: clientRow(408, 'The request did not arrive in time.', 'by-client'),
  body_too_large: clientRow(413, 'The body is larger than `server.max_body_bytes`.'),
  no_websocket: clientRow(426, 'The path serves no WebSocket: send the request over HTTP.'),
  unsupported_media_type: clientRow(
    415,
    'The body must be application/json, plain or with a content-encoding of gzip, deflate, br or zstd.',
  ),
  rate_limited: clientRow(429, 'A rate limit of the gateway; see retry-after.', 'by-client'),
  auth_throttled: clientRow(
    429,
    'Too many wrong keys came from this address; see retry-after. Keys in use keep working.',
    'by-client',
  ),
  headers_too_large: clientRow(431, 'Too many headers, or too large ones.'),
  client_gone: clientRow(499, 'The client disconnected. Log only.'),
  client_stalled: clientRow(
    499,
    'The client read its reply so slowly that `total_ms` passed. The client receives the error as the last event of a stream.',
  ),
  bug: gatewayRow(500, 'An unexpected exception; the log contains it under the request id.'),
  store_unavailable: gatewayRow(503, 'The store is unavailable, so keys cannot be checked.', 'by-client'),
  archive_unavailable: gatewayRow(
    503,
    'The archive does not reply, so what has left the store cannot be read; requests are not affected. Dashboard, admin API and commands only.',
    'by-client',
  ),
  store_unconfirmed: gatewayRow(
    503,
    'The change took effect in the primary store, but no replica has confirmed it yet: a failover now could undo it. Repeating it is safe. Dashboard and commands only.',
    'by-client',
  ),
  cannot_listen: gatewayRow(
    500,
    'An address to listen on is in use or not allowed; the message names it. Start and log only.',
  ),
  draining: gatewayRow(
    503,
    'The gateway is shutting down; send the request to another gateway.',
    'by-client',
  ),
  overloaded: gatewayRow(503, 'The gateway is full or overloaded; see retry-after.', 'by-client'),
  guardrail_unavailable: gatewayRow(
    503,
    'A guardrail with `on_error: closed` could not judge; the message names it. The request is not sent to another upstream.',
    'by-client',
  ),
  upstream_unconfigured: gatewayRow(503, 'The upstream has no key; the message names the variable.'),
  upstream_credential: gatewayRow(
    503,
    "The gateway has no valid credentials for the upstream: the cloud's token endpoint does not reply, or refuses. The log has the reason; see retry-after.",
    'before-first-byte',
  ),
  identity_unavailable: gatewayRow(
    503,
    'The identity provider does not reply, or its reply is not valid: the issuer of tokens whose keys are unknown or too old, or the one for signing in to the dashboard.',
    'by-client',
  ),
  upstream_rejected: upstreamRow(
    400,
    'The upstream refused the request; the message contains its reason.',
    'never',
  ),
  context_too_long: upstreamRow(
    400,
    "The conversation is longer than the model's context; shorten it or choose a larger model.",
    'never',
  ),
  upstream_unreachable: upstreamRow(502, 'No connection to the upstream.'),
  upstream_denied: upstreamRow(502, "The upstream refused the gateway's own credentials."),
  upstream_misconfigured: gatewayRow(
    502,
    'The upstream has no such endpoint: its `base_url`, `path` or `dialect` is wrong. The log names the upstream.',
    'before-first-byte',
  ),
  upstream_busy: upstreamRow(429, 'The upstream is rate limiting or overloaded; see retry-after.'),
  upstream_failed: upstreamRow(502, 'The upstream failed.'),
  upstream_malformed: upstreamRow(502, "The upstream's reply is not valid in its format."),
  upstream_truncated: upstreamRow(502, "The upstream's reply ended before it was complete."),
  upstream_timeout: upstreamRow(504, 'The upstream sent nothing for too long.'),
} as const satisfies Record<string, ErrorRow>

/** The name of an error: metric label, log field and documentation heading. */
export type ErrorKind = keyof typeof ERRORS

/** An error as a vendor names it. */
interface NativeError {
  /** The vendor whose clients receive it. */
  readonly dialect: string
  readonly type: string
  /** Anthropic's `error.details`. */
  readonly details?: Readonly<Record<string, string | readonly string[]>>
}

/** An error as data, for a client. Contains no host, key or stack. */
export interface WireError {
  kind: ErrorKind
  /** For the client: what to change, or what happens next. */
  message: string
  /** The request field at fault, as a path: `messages[3].content`. */
  param?: string
  /** Seconds after which a retry makes sense; sent as `retry-after`. */
  retryAfterSeconds?: number
  /** False if the kind allows a retry but the upstream reported that it is pointless. */
  retryable?: boolean
  /** The upstream's type, status or code, for the log. */
  upstreamCode?: string
  /** The upstream's own words, for the log, where `message` has others because they are not the client's. */
  upstreamMessage?: string
  /** The guardrail that decided, for Google's `ErrorInfo`. */
  guardrail?: string
  /** The HTTP status, if the configuration chooses another one than that of the kind. */
  status?: number
  /** OpenAI's `error.code`, if the kind does not determine it. */
  code?: string
  /** The vendor's own type and details, for clients of that vendor's format. */
  native?: NativeError
}

/** The only exception that may cross a module boundary; any other one is a `bug`. */
export class GatewayError extends Error {
  readonly wire: WireError

  /** `cause` goes to the log and never to the client. */
  constructor(
    kind: ErrorKind,
    message: string,
    rest: Omit<WireError, 'kind' | 'message'> & { cause?: unknown } = {},
  ) {
    const { cause, ...fields } = rest
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'GatewayError'
    this.wire = { kind, message, ...fields }
    if (waitSecondsOf(this.wire) === undefined) delete this.wire.retryAfterSeconds
  }

  get kind(): ErrorKind {
    return this.wire.kind
  }
}

/**
 * Whether it is a failure of the provider, which circuit breakers and canaries count. Refusals of invalid
 * requests and the gateway's own errors do not count.
 */
export function isProviderFailure(kind: ErrorKind): boolean {
  switch (kind) {
    case 'upstream_unreachable':
    case 'upstream_denied':
    case 'upstream_busy':
    case 'upstream_timeout':
    case 'upstream_failed':
    case 'upstream_truncated':
    case 'upstream_malformed':
      return true
    default:
      return false
  }
}

/** The error as a `GatewayError`, with its fields. */
export function gatewayError(error: WireError, cause?: unknown): GatewayError {
  const { kind, message, ...fields } = error
  return new GatewayError(kind, message, cause === undefined ? fields : { ...fields, cause })
}

/** A value of a request that is not accepted; `param` is its field or path. */
export function malformed(message: string, param = ''): GatewayError {
  return new GatewayError('malformed_request', message, param === '' ? {} : { param })
}

/** Something that a client sends has more than `maxBytes`; `what` begins the sentence. */
export function bodyTooLarge(maxBytes: number, what = 'The body'): GatewayError {
  return new GatewayError('body_too_large', `${what} must not be larger than ${maxBytes} bytes.`)
}

/** The properties of the kind. */
export function rowOf(kind: ErrorKind): ErrorRow {
  return ERRORS[kind]
}

/** The HTTP status of the error. */
export function statusOf({ kind, status }: WireError): number {
  return status ?? rowOf(kind).status
}

/** Whether a client should repeat the request. */
export function isRetryable({ kind, retryable }: WireError): boolean {
  return retryable !== false && rowOf(kind).retry !== 'never'
}

/**
 * Seconds after which a repetition may succeed; undefined if that is unknown, and if no wait helps. A rate
 * limit that needs a longer wait than SDKs keep is not retryable, but its wait helps; so does that of a
 * budget that is refused with 429 and given with it.
 */
export function waitSecondsOf(error: WireError): number | undefined {
  const isBudget = error.kind === 'budget_exceeded' && error.status === 429
  const helps = isRetryable(error) || error.kind === 'rate_limited' || isBudget
  return helps ? error.retryAfterSeconds : undefined
}

type Retry = ErrorRow['retry']

/** The row of an error that the client caused. The gateway does not retry it. */
function clientRow(status: number, meaning: string, retry: Retry = 'never'): ErrorRow {
  return { status, source: 'client', retry, meaning }
}

function gatewayRow(status: number, meaning: string, retry: Retry = 'never'): ErrorRow {
  return { status, source: 'gateway', retry, meaning }
}

function upstreamRow(status: number, meaning: string, retry: Retry = 'before-first-byte'): ErrorRow {
  return { status, source: 'upstream', retry, meaning }
}

/** The outcomes of batches that did not complete, and who has to act on them. */
const OF_BATCHES = { failed: 'provider', expired: 'provider', cancelled: 'client' } as const satisfies Record<
  string,
  Cause
>

/** The outcome of a request or a batch; `lost`: the process of the gateway crashed. */
export type Outcome = 'ok' | 'lost' | keyof typeof OF_BATCHES | ErrorKind

/**
 * `limits`: a rate limit or budget of the gateway. `gateway`: its configuration, its store or the program
 * itself.
 */
export type Cause = 'client' | 'limits' | 'gateway' | 'provider'

/** All causes, in display order. */
export const CAUSES = ['client', 'limits', 'gateway', 'provider'] as const

/** Kinds whose cause differs from their source in the table of errors. */
const EXCEPTIONS: Partial<Record<ErrorKind, Cause>> = {
  rate_limited: 'limits',
  budget_exceeded: 'limits',
  auth_throttled: 'limits',
  plan_limit: 'limits',
  // The provider has validated the request, as the gateway would have.
  upstream_rejected: 'client',
  context_too_long: 'client',
  // The gateway's own credential is missing or wrong.
  upstream_denied: 'gateway',
}

/**
 * The party that has to act on a failed request; null if it succeeded. Narrower than the `source` of an
 * error: a rate limit belongs to the account, and a provider's refusal of the request to the client.
 */
export function causeOf(outcome: Outcome): Cause | null {
  if (outcome === 'ok') return null
  if (isOutcomeOfBatch(outcome)) return OF_BATCHES[outcome]
  // The process of the gateway crashed.
  if (outcome === 'lost') return 'gateway'
  const { source } = rowOf(outcome)
  return EXCEPTIONS[outcome] ?? (source === 'upstream' ? 'provider' : source)
}

/** The outcomes that have this cause. */
export function outcomesOf(cause: Cause): Outcome[] {
  const ofBatches = Object.keys(OF_BATCHES).filter(isOutcomeOfBatch)
  const kinds: Outcome[] = [...Object.keys(ERRORS).filter(isKind), 'lost', ...ofBatches]
  return kinds.filter((outcome) => causeOf(outcome) === cause)
}

/** Whether it is a refused token of a workload. */
export function isTokenError(kind: ErrorKind): boolean {
  return kind.startsWith('jwt_')
}

/** Whether it is the name of an outcome. */
export function isOutcome(name: string): name is Outcome {
  return name === 'ok' || name === 'lost' || isOutcomeOfBatch(name) || isKind(name)
}

function isOutcomeOfBatch(name: string): name is keyof typeof OF_BATCHES {
  return Object.hasOwn(OF_BATCHES, name)
}

/** Whether it is the name of a kind of error. */
export function isKind(name: string): name is ErrorKind {
  return Object.hasOwn(ERRORS, name)
}
