/** The route of a request: the upstreams that may serve it, and how they are tried. */
import type { HedgeConfig, RetryConfig, RouteConfig, TargetDefaults } from '../../config/config.js'
import type { HedgeBudget } from '../attempts/retry-and-hedge-budgets.js'
import type { Target } from '../generation.js'
import type { PeakEwma } from '../routing/latency-average.js'
import type { RouteShadow } from '../routing/router.js'

/** One upstream that may serve a request, and the model that is requested from it. */
export interface Candidate {
  readonly target: Target
  /** The model's name at the upstream. */
  readonly model: string
  /** Members of the request that the client left out; null: none. */
  readonly defaults: TargetDefaults | null
  readonly isFallback: boolean
  /** Records the time to the first content, if the route prefers fast targets. */
  readonly latency: PeakEwma | null
  /** The id under which its attempts are counted, as `RouteTarget.canary`; null if it is not a canary. */
  readonly canary: string | null
}

/** The settings and state for retries, hedges and stable choices of a route. */
interface Handling {
  readonly retry: RetryConfig
  readonly hedge: HedgeConfig | null
  /** Null if the route does not hedge. */
  readonly hedges: HedgeBudget | null
  /** Requests with the same key prefer the same target and credential; null: no preference. */
  readonly stickyKey: string | null
}

/** One attempt on one target, as shadow requests and lines of batches make it. */
const ONE_ATTEMPT: Handling = {
  retry: { attempts: 1, budget: 0, maxWaitMs: 0, nonIdempotent: false },
  hedge: null,
  hedges: null,
  stickyKey: null,
}

/** The route of a request. */
export interface Route {
  /** In the order in which they are tried; never empty. */
  readonly candidates: readonly [Candidate, ...Candidate[]]
  readonly handling: Handling
  /** The target that gets copies of a share of the requests; null if there is none. */
  readonly shadow: RouteShadow | null
  /** Null if the path, or the gateway itself, determined the target. */
  readonly config: RouteConfig | null
  /** Names of guardrails, in order. */
  readonly guardrails: readonly string[]
  /** Null if the path determined the target. */
  readonly tookMs: number | null
}

/** The route of a request with a fixed target, which gets one attempt. */
export function directRoute(candidate: Candidate, tookMs: number | null = null): Route {
  return {
    candidates: [candidate],
    handling: ONE_ATTEMPT,
    shadow: null,
    config: null,
    guardrails: NO_GUARDRAILS,
    tookMs,
  }
}

const NO_GUARDRAILS: readonly string[] = []
