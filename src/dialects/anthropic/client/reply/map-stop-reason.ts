/**
 * Maps canonical finish reasons to the `stop_reason` members of the Messages format.
 *
 * Source: Claude API reference, "Handling stop reasons", read 2026-11-22.
 */
import type { FinishReason } from '../../../../chat/event.js'
import { PROVIDER } from '../../shared/constants.js'

/** How a reply ended. */
export interface Ending {
  readonly reason: FinishReason
  /** The upstream's own stop reason. */
  readonly raw: string | null
  readonly stopSequence?: string
  /** The dialect of the upstream. */
  readonly origin: string | undefined
  /** True if the reply has a call for the client to run. */
  readonly hasTool: boolean
  /** The text of the model's refusal; empty if it did not refuse. */
  readonly refusal: string
}

/** Stop reasons of Anthropic upstreams, which are passed unchanged. */
const REASONS: ReadonlySet<string> = new Set([
  'end_turn',
  'max_tokens',
  'model_context_window_exceeded',
  'pause_turn',
  'refusal',
  'stop_sequence',
  'tool_use',
])

/** `"stop_reason":…,"stop_sequence":…,"stop_details":…` */
export function stopMembers(ending: Ending): string {
  const { stopSequence, refusal } = ending
  const reason = stopReason(ending)
  const sequence = stopSequence === undefined ? 'null' : JSON.stringify(stopSequence)
  const explanation = refusal === '' ? 'null' : JSON.stringify(refusal)
  const details =
    reason === 'refusal'
      ? `{"type":"refusal","category":null,"explanation":${explanation}}`
      : 'null'
  return `"stop_reason":"${reason}","stop_sequence":${sequence},"stop_details":${details}`
}

function stopReason({ reason, raw, stopSequence, origin, hasTool, refusal }: Ending): string {
  if (origin === PROVIDER && raw !== null && REASONS.has(raw)) return raw
  switch (reason) {
    case 'length':
      return 'max_tokens'
    case 'filter':
      return 'refusal'
    case 'pause':
      return 'pause_turn'
    case 'stop':
    case 'tool-use':
    case 'other':
      if (refusal !== '') return 'refusal'
      if (hasTool) return 'tool_use'
      return stopSequence === undefined ? 'end_turn' : 'stop_sequence'
    default:
      return reason satisfies never
  }
}
