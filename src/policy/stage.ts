/** A guardrail on the way of a reply, and the end of a reply that it refuses. */
import type { WireError } from '../errors.js'
import type { ChatEvent } from '../formats/chat/event.js'
import { GuardError, type Guardrail, type JudgedRequest } from './guardrail.js'

/** The end of a reply that a guardrail refused, or could not judge. Nothing follows it. */
export interface Stop {
  readonly type: 'stop'
  readonly error: WireError
}

/** An event between two stages. */
export type StageEvent = ChatEvent | Stop

/** One guardrail on the way of a reply. */
export interface Stage {
  /** Takes events in order; returns those that the next stage may have. */
  take(events: readonly StageEvent[]): readonly StageEvent[] | Promise<readonly StageEvent[]>
}

/** Larger arguments of a call are not judged. */
export const MAX_ARGUMENTS = 1_048_576

/** The events of a call that is held back. */
export interface HeldCall {
  readonly events: ChatEvent[]
  readonly start: Extract<ChatEvent, { type: 'tool-start' }>
  json: string
}

/** The end of a reply that a guardrail refuses, or could not judge. */
export function stopFor(
  guardrail: Guardrail,
  of: JudgedRequest,
  reason: string | null,
  rule: string | null = null,
): Stop {
  of.notes.note(guardrail.name, 'response', 'block')
  const { wire } = guardrail.blocked(reason)
  of.notes.refusal = { message: wire.message, place: 'reply', rule }
  return { type: 'stop', error: wire }
}

/** Notes a failure; the end of the reply with `on_error: closed`, else null. */
export function stopAfterError(
  guardrail: Guardrail,
  of: JudgedRequest,
  error: unknown,
): Stop | null {
  if (!(error instanceof GuardError)) throw error
  of.notes.note(guardrail.name, 'response', 'error')
  if (guardrail.config.onError === 'open') return null
  return { type: 'stop', error: guardrail.unavailable(error).wire }
}

/** Notes content of a reply that no guardrail can read; the end of the reply with `unseen: block`. */
export function stopAtUnseen(
  guardrail: Guardrail,
  of: JudgedRequest,
  { type }: StageEvent,
): Stop | null {
  if (type !== 'image' && type !== 'opaque') return null
  const { config, name } = guardrail
  of.notes.note(name, 'response', 'unseen')
  if (config.unseen === 'report' || config.action === 'report') return null
  return stopFor(guardrail, of, 'The reply has content that it cannot read.')
}
