/**
 * The party that has to act on a failed request. Narrower than the `source` of an error: a rate limit belongs
 * to the account, and a provider's refusal of the request to the client.
 */
import { ERRORS, rowOf, type ErrorKind } from './errors.js'

/** The outcome of a request; `lost`: the process of the gateway crashed. */
type Outcome = 'ok' | 'lost' | ErrorKind

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
  auth_throttled: 'limits',
  plan_limit: 'limits',
  // The provider has validated the request, as the gateway would have.
  upstream_rejected: 'client',
  context_too_long: 'client',
  // The gateway's own credential is missing or wrong.
  upstream_denied: 'gateway',
}

/** The cause of a failure; null if the request succeeded. */
export function causeOf(outcome: Outcome): Cause | null {
  if (outcome === 'ok') return null
  // The process of the gateway crashed.
  if (outcome === 'lost') return 'gateway'
  const { source } = rowOf(outcome)
  return EXCEPTIONS[outcome] ?? (source === 'upstream' ? 'provider' : source)
}

/** The outcomes that have this cause. */
export function outcomesOf(cause: Cause): Outcome[] {
  const kinds: Outcome[] = [...Object.keys(ERRORS).filter(isKind), 'lost']
  return kinds.filter((outcome) => causeOf(outcome) === cause)
}

/** Whether it is the name of an outcome. */
export function isOutcome(name: string): name is Outcome {
  return name === 'ok' || name === 'lost' || isKind(name)
}

function isKind(name: string): name is ErrorKind {
  return Object.hasOwn(ERRORS, name)
}
