/**
 * The order in which the targets of a route are tried: the chosen one, the other targets by weight, then `fallback`.
 * Pure: randomness, the latency of targets and the sticky key are arguments.
 */
import type { ModelRoute, RouteTarget } from './router.js'
import { stickiest } from './sticky.js'

/** What the choice of a target depends on. */
export interface Choice {
  /** A number from 0 to below 1, new with each call. */
  readonly random: () => number
  /** What the choice is stable for; null: nothing. See `stickyKeyOf`. */
  readonly stickyKey: string | null
  /** The names of aborted targets (`RouteTarget.canary`): they get no request, as if their weight were 0. */
  readonly aborted: ReadonlySet<string>
  /** Expected time to first content, in ms, with the load that the target has now; 0 is unknown. */
  readonly latencyMs: (target: RouteTarget) => number
}

/** The targets of the route in order; never empty. Targets with weight 0, and aborted ones, are left out. */
export function orderTargets(route: ModelRoute, choice: Choice): RouteTarget[] {
  const { targets, fallback } = route
  if (targets.length === 1 && fallback.length === 0) return [...targets]
  const active = targets.filter(({ weight, canary }) => {
    return weight > 0 && (canary === null || !choice.aborted.has(canary))
  })
  const chosen = active.length === 1 ? active[0] : chosenOf(route, active, choice)
  const others = active.filter((target) => target !== chosen).sort((a, b) => b.weight - a.weight)
  return [...(chosen === undefined ? [] : [chosen]), ...others, ...fallback]
}

function chosenOf(
  { config }: ModelRoute,
  active: readonly RouteTarget[],
  { random, stickyKey, latencyMs }: Choice,
): RouteTarget | undefined {
  if (stickyKey !== null) return stickiest(active, stickyKey)
  const first = drawn(active, random())
  if (config.balance === 'weighted' || first === undefined) return first
  const second = drawn(
    active.filter((target) => target !== first),
    random(),
  )
  return second !== undefined && latencyMs(second) < latencyMs(first) ? second : first
}

/** One target, with a probability that is proportional to its weight. `point` is from 0 to below 1. */
export function drawn(targets: readonly RouteTarget[], point: number): RouteTarget | undefined {
  let total = 0
  for (const { weight } of targets) total += weight
  let left = point * total
  for (const target of targets) {
    left -= target.weight
    if (left < 0) return target
  }
  // Rounding can leave the sum of the weights a little above their total.
  return targets.at(-1)
}
