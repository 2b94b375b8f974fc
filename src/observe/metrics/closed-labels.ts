/** The closed sets that label values of the metrics come from. */
import type { ClientFormat } from '../../formats/chat/operations.js'
import type { ErrorKind } from '../../errors.js'

/** A phase of a request, in order. */
export type Hop =
  | 'authenticate'
  | 'receive'
  | 'route'
  | 'admit'
  | 'guard'
  | 'connect'
  | 'first_byte'
  | 'translate'
  | 'relay'
  | 'settle'

/** The end of a streamed reply: complete, or ended by the upstream, the client or the gateway. */
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

/**
 * The peer that a transfer waited for. undici does not report how long an upstream takes to read a request.
 */
export type Side = 'client'

/** The outcome of a request or attempt. */
export type Outcome = 'ok' | ErrorKind

/** The result of a hedge; see the metric's help. */
export type HedgeResult = 'won' | 'lost' | 'failed' | 'denied'

/** The client's format; `none` if the path is unknown. */
export type ClientFormatLabel = ClientFormat | 'native' | 'none'
