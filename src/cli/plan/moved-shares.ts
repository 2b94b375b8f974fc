/** The shares of a request that move between targets. */
import type { Destination } from './compared-config.js'

/** An upstream, and the model that is requested from it. */
export interface FlowTarget {
  readonly upstream: string
  readonly model: string
}

/** A share of a request that moves from one target to another; null: no route matches it. */
export interface Flow {
  readonly from: FlowTarget | null
  readonly to: FlowTarget | null
  /** 0 to 1. */
  readonly share: number
}

/** Smaller differences of weights are rounding. */
const LEAST_SHARE = 1e-9

/** The flows of one request, without the share that does not move. */
export function flowsOf(before: readonly Destination[], after: readonly Destination[]): Flow[] {
  if (before.length === 0 && after.length === 0) return []
  if (before.length === 0)
    return after.map((to) => ({ from: null, to: flowTargetOf(to), share: to.share }))
  if (after.length === 0) {
    return before.map((from) => ({ from: flowTargetOf(from), to: null, share: from.share }))
  }
  const gaining = sharesOf(after)
  const losing = sharesOf(before)
  for (const [name, one] of losing) {
    const other = gaining.get(name)
    if (other === undefined) continue
    const same = Math.min(one.share, other.share)
    one.share -= same
    other.share -= same
  }
  return transport([...losing.values()], [...gaining.values()])
}

interface Share {
  readonly target: FlowTarget
  share: number
}

function sharesOf(destinations: readonly Destination[]): Map<string, Share> {
  const shares = new Map<string, Share>()
  for (const destination of destinations) {
    const target = flowTargetOf(destination)
    const name = `${target.upstream} ${target.model}`
    const known = shares.get(name)
    if (known === undefined) shares.set(name, { target, share: destination.share })
    else known.share += destination.share
  }
  return shares
}

function flowTargetOf({ upstream, model }: Destination): FlowTarget {
  return { upstream, model }
}

/** Assigns the losses of targets to the gains of others, in order. */
function transport(losing: readonly Share[], gaining: readonly Share[]): Flow[] {
  const flows: Flow[] = []
  for (const from of losing) {
    for (const to of gaining) {
      const share = Math.min(from.share, to.share)
      if (share < LEAST_SHARE) continue
      from.share -= share
      to.share -= share
      flows.push({ from: from.target, to: to.target, share })
    }
  }
  return flows
}
