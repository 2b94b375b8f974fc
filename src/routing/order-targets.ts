/**
 * Orders the targets of a route: the chosen one, the other targets by weight, then the fallbacks. Pure:
 * randomness, the latency of targets and the sticky key are arguments.
 */
import type { ModelRoute, RouteTarget } from './router.js'
import { stickiest } from './sticky.js'

/** The inputs for the choice of a target. */
export interface Choice {
  /** A number from 0 to below 1, new with each call. */
  readonly random: () => number
  /** Requests with the same key get the same target; null: no preference. See `stickyKeyOf`. */
  readonly stickyKey: string | null
  /** The ids of aborted targets (`RouteTarget.canary`), which get no requests, as with weight 0. */
  readonly aborted: ReadonlySet<string>
  /** Expected time to first content at the current load of the target, in ms; 0 is unknown. */
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
  const first = drawTarget(active, random())
  if (config.balance === 'weighted' || first === undefined) return first
  const second = drawTarget(
    active.filter((target) => target !== first),
    random(),
  )
  return second !== undefined && latencyMs(second) < latencyMs(first) ? second : first
}

/** Draws a target with a probability that is proportional to its weight. `point` is from 0 to below 1. */
export function drawTarget(
  targets: readonly RouteTarget[],
  point: number,
): RouteTarget | undefined {
  let total = 0
  for (const { weight } of targets) total += weight
  let remaining = point * total
  for (const target of targets) {
    remaining -= target.weight
    if (remaining < 0) return target
  }
  // Rounding can leave a small remainder above 0.
  return targets.at(-1)
}
