/**
 * Maps canonical finish reasons to `finishReason` and `blockReason` of the Gemini format.
 *
 * Source: ai.google.dev/api/generate-content, "FinishReason" and "BlockReason", read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'
import { PROVIDER } from '../../shared/constants.js'

/** Finish reasons of Gemini upstreams, which are passed unchanged. */
const REASONS: ReadonlySet<string> = new Set([
  'STOP',
  'MAX_TOKENS',
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'OTHER',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'IMAGE_OTHER',
  'NO_IMAGE',
  'MODEL_ARMOR',
])

/** Block reasons of Gemini upstreams. */
const BLOCKS: ReadonlySet<string> = new Set([
  'SAFETY',
  'OTHER',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'IMAGE_SAFETY',
  'MODEL_ARMOR',
  'JAILBREAK',
])

/** How a reply ended. */
export interface Ending {
  readonly reason: FinishReason
  readonly raw: string | null
  readonly serviceTier?: string | undefined
  /** True if the reply has a refusal of the model. */
  readonly isRefusal?: boolean
}

/** The `finishReason`; STOP also for calls, for which Gemini has no reason. */
export function encodeFinishReason(
  { reason, raw, isRefusal = false }: Ending,
  origin: string | undefined,
): string {
  // OpenAI models end a refusal with `stop`.
  if (isRefusal && reason === 'stop') return 'SAFETY'
  if (origin === PROVIDER && raw !== null && REASONS.has(raw)) return raw
  switch (reason) {
    case 'stop':
    case 'tool-use':
    case 'pause':
      return 'STOP'
    case 'length':
      return 'MAX_TOKENS'
    case 'filter':
      return 'SAFETY'
    case 'other':
      return 'OTHER'
    default:
      return reason satisfies never
  }
}

/**
 * The `blockReason` if a Gemini upstream rejected the prompt (`isEmpty`: the reply has no content); else
 * null.
 */
export function encodeBlockReason(
  { reason, raw }: Ending,
  origin: string | undefined,
  isEmpty: boolean,
): string | null {
  if (!isEmpty || reason !== 'filter' || origin !== PROVIDER || raw === null) return null
  return BLOCKS.has(raw) ? raw : null
}
