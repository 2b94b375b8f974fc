/** The result of a native request for the metrics, the log and the ledger. Pure. */
import { NO_OUTPUT } from '../../chat/reply/output-size.js'
import type { Usage } from '../../chat/usage.js'
import type { ErrorKind, WireError } from '../../errors.js'
import type { ReplyResult } from '../streams/translated-stream.js'

/** The result of a reply that passed to the client unchanged. */
export function nativeReplyResult(status: number, usage: Usage): ReplyResult {
  return {
    outcome: 'complete',
    error: status < 400 ? null : errorOf(status),
    breach: null,
    usage,
    reason: null,
    model: null,
    tier: null,
    lost: [],
    outputSize: NO_OUTPUT,
  }
}

function errorOf(status: number): WireError {
  return { kind: kindOf(status), message: `The upstream replied with status ${status}.` }
}

function kindOf(status: number): ErrorKind {
  if (status === 429) return 'upstream_busy'
  return status < 500 ? 'upstream_rejected' : 'upstream_failed'
}
