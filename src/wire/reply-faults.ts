/** Errors for replies that break their format or end early, shared by the decoders of all dialects. */
import type { WireError } from '../errors.js'

/** A frame or reply that does not follow its format. Copy it before you change it. */
export const MALFORMED_REPLY: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: "The upstream's reply is not valid in its format.",
}

/** A reply that ended without its format's end. Copy it before you change it. */
export const TRUNCATED_REPLY: Readonly<WireError> = {
  kind: 'upstream_truncated',
  message: "The upstream's reply ended before it was complete.",
}
