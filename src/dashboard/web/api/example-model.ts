/** The model of code examples: one that the gateway serves and that the key may use. */
import type { Model } from '../../server/schema/schema.js'
import { useResource } from './load-resource.js'

/** A cheap model that most gateways serve. */
const USUAL = 'gpt-5-mini'

/**
 * The usual model if it is served, otherwise the first served one, otherwise the usual one. `allowed`
 * contains ids and `*` patterns.
 */
export function exampleOf(
  models: readonly Model[],
  allowed: readonly string[] | null = null,
): string {
  const served = models
    .filter(({ id, route }) => route?.configured === true && isAllowed(id, allowed))
    .map(({ id }) => id)
  const named = allowed?.find((pattern) => !pattern.endsWith('*'))
  return served.find((id) => id === USUAL) ?? served[0] ?? named ?? USUAL
}

function isAllowed(id: string, allowed: readonly string[] | null): boolean {
  if (allowed === null) return true
  return allowed.some((pattern) =>
    pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : id === pattern,
  )
}

/** The example model, from the gateway's list of models. */
export function useExampleModel(allowed: readonly string[] | null = null): string {
  return exampleOf(useResource('/models').data?.models ?? [], allowed)
}
