/** Explains which route takes a model id, for the command line and the dashboard. Pure. */
import { whenText } from './route-conditions.js'
import type { ModelRoute } from './router.js'

/** The explanation. */
export interface Reason {
  /** The path of the route in the configuration; null if no route takes the id. */
  readonly place: string | null
  readonly why: string
  /** Routes that would take it too, but lose. */
  readonly others: readonly string[]
}

/** Why the route of `model` is this one; `all` are those that take it under some condition. */
export function reasonOf(found: ModelRoute | null, all: readonly ModelRoute[]): Reason {
  if (found === null) {
    const why =
      all.length === 0
        ? 'no exact model and no prefix of any route fits'
        : 'the conditions of no route that fits hold'
    return { place: null, why, others: all.map(nameOf) }
  }
  const { match } = found.config
  const why =
    'model' in match
      ? `the id is exactly '${found.label}'`
      : `'${found.label}' is the longest prefix that fits, and no route has the exact id`
  const others = all.filter((route) => route !== found).sort((a, b) => a.index - b.index)
  return { place: `routes[${found.index}]`, why, others: others.map(nameOf) }
}

function nameOf({ index, label, config: { match, when } }: ModelRoute): string {
  const what = 'model' in match ? 'model' : 'prefix'
  const condition = when === null ? '' : `, when ${whenText(when)}`
  return `routes[${index}] ${what} '${label}'${condition}`
}
