/** A model to put into an example: one that this gateway serves now. */
import type { Model } from '../../server/schema/schema.js'
import { useResource } from './resource.js'

/** What most gateways serve, and what it costs little to try. */
const USUAL = 'gpt-5-mini'

/** The usual one where it is served, else the first that is, else the usual one all the same. */
export function exampleOf(models: readonly Model[]): string {
  const served = models.filter(({ route }) => route?.configured === true)
  return served.find(({ id }) => id === USUAL)?.id ?? served[0]?.id ?? USUAL
}

/** The same, asked for. */
export function useExampleModel(): string {
  return exampleOf(useResource('/models').data?.models ?? [])
}
