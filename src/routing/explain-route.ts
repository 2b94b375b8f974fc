/** Explains which route matches a model id, for the command line and the dashboard. Pure. */
import { whenText } from './match-route-conditions.js'
import type { ModelRoute } from './router.js'

/** The explanation of a routing decision. */
export interface Reason {
  /** The path of the route in the configuration; null if no route matches the id. */
  readonly place: string | null
  readonly why: string
  /** Other routes that match the id, with a lower priority. */
  readonly others: readonly string[]
}

/** Explains the chosen route (null: none); `all` are the routes that match the id under any condition. */
export function reasonOf(chosen: ModelRoute | null, all: readonly ModelRoute[]): Reason {
  if (chosen === null) {
    const why =
      all.length === 0
        ? 'no model or prefix of a route matches'
        : 'the request does not meet the conditions of any route that matches'
    return { place: null, why, others: all.map(nameOf) }
  }
  const { match } = chosen.config
  const why =
    'model' in match
      ? `the id is exactly '${chosen.label}'`
      : `'${chosen.label}' is the longest prefix that matches, and no route has the exact id`
  const others = all.filter((route) => route !== chosen).sort((a, b) => a.index - b.index)
  return { place: `routes[${chosen.index}]`, why, others: others.map(nameOf) }
}

function nameOf({ index, label, config: { match, when } }: ModelRoute): string {
  const kind = 'model' in match ? 'model' : 'prefix'
  const condition = when === null ? '' : `, when ${whenText(when)}`
  return `routes[${index}] ${kind} '${label}'${condition}`
}
