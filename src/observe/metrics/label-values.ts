/** The closed sets that label values of the metrics come from. */
import type { ErrorKind } from '../../errors.js'

/** A phase of a request, in order of happening. */
export type Hop =
  | 'authenticate'
  | 'receive'
  | 'route'
  | 'admit'
  | 'connect'
  | 'first_byte'
  | 'translate'
  | 'relay'
  | 'settle'

/** How a streamed reply ended: as it should, by the upstream, by the client, or by the gateway. */
export type StreamEnd =
  | 'complete'
  | 'truncated'
  | 'malformed'
  | 'upstream_timeout'
  | 'upstream_error'
  | 'client_gone'
  | 'client_stalled'
  | 'key_ended'
  | 'draining'
  | 'gateway_error'

/** What became of a client's key. */
export type AuthResult =
  | 'ok'
  | 'missing'
  | 'malformed'
  | 'unknown'
  | 'revoked'
  | 'expired'
  | 'disabled'
  | 'throttled'
  | 'store_unavailable'

/** What a limit is about. */
export type LimitKind = 'requests' | 'tokens' | 'concurrent' | 'usd_day' | 'usd_month'

/** Whom a transfer waited for. undici does not report how long an upstream takes to read a request. */
export type Side = 'client'

/** How a request or attempt ended. */
export type Outcome = 'ok' | ErrorKind

/** What came of a hedge; see the metric's help. */
export type HedgeResult = 'won' | 'lost' | 'failed' | 'denied'

/** The format that a client spoke; `none` if its path is unknown. */
export type IngressLabel =
  'chat' | 'completions' | 'messages' | 'responses' | 'gemini' | 'embeddings' | 'native' | 'none'
