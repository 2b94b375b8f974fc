/** Routes that can never match, as `sluice check` notes them. */
import type { RouteConfig, WhenConfig } from '../config/config.js'

/** Characters of patterns, which no model id contains. */
const PATTERN = /[*?^$|()[\]{}\\]/

/** One line for each route that can never match, in file order. */
export function unreachableNotes(routes: readonly RouteConfig[]): string[] {
  const earlier = new Map<string, { index: number; when: WhenConfig }[]>()
  return routes.flatMap(({ match, when }, index) => {
    const pattern = patternNote(match, index)
    if (when === null) return pattern
    const place = JSON.stringify(match)
    const others = earlier.get(place) ?? []
    earlier.set(place, [...others, { index, when }])
    const first = others.find((other) => implies(when, other.when))
    if (first === undefined) return pattern
    const shadowed = `routes[${index}] can never match: routes[${first.index}] takes all of its requests before it`
    return [...pattern, shadowed]
  })
}

/** A note about a prefix or an id with a pattern character. */
function patternNote(match: RouteConfig['match'], index: number): string[] {
  const [key, text] = 'model' in match ? ['model', match.model] : ['prefix', match.prefix]
  const position = text.search(PATTERN)
  if (position === -1) return []
  const place = `routes[${index}].${key}`
  const advice = position === 0 ? '' : `; write prefix: ${text.slice(0, position)}`
  return [
    `${place}: "${text}" can never match: it is plain text, not a pattern, and no model id contains "${text.charAt(position)}"${advice}`,
  ]
}

/** Whether every request that matches the first conditions matches the second. */
function implies(one: WhenConfig, other: WhenConfig): boolean {
  return (
    Object.entries(other.labels).every(([name, value]) => one.labels[name] === value) &&
    (other.images === null || one.images === other.images) &&
    (other.tools === null || one.tools === other.tools) &&
    (other.minPromptTokens ?? 0) <= (one.minPromptTokens ?? 0)
  )
}
