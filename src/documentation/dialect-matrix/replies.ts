/** Every concept that a reply of an upstream may have, in the order of `docs/reference/dialects.md`. */
import { REPLY_CONTENT } from './reply-content.js'
import { REPLY_ENDS } from './reply-ends.js'
import type { ReplyConcept } from './reply-fragments.js'

/** All of them. */
export const REPLY_CONCEPTS: readonly ReplyConcept[] = [...REPLY_CONTENT, ...REPLY_ENDS]
