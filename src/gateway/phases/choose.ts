/** The model's name → the route, and the upstreams that may serve the request, in order. Sends nothing. */
import { namesModel, type Identity } from '../../accounts/account.js'
import { GatewayError } from '../../errors.js'
import type { HedgeConfig, RetryConfig } from '../../config/routes/route.js'
import type { PeakEwma } from '../../routing/latency-average.js'
import type { RouteShadow } from '../../routing/router.js'
import type { HedgeBudget } from '../attempts/hedge/hedge-budget.js'
import type { Generation, Target } from '../generation/generation.js'
import type { Call } from './receive.js'

/** One upstream that may serve a request, and the model that is requested from it. */
export interface Candidate {
  readonly target: Target
  /** As the upstream names it. */
  readonly model: string
  readonly isFallback: boolean
  /** Records the time to the first content, if the route prefers fast targets. */
  readonly latency: PeakEwma | null
  /** As `RouteTarget.canary`: its attempts are counted under this name. */
  readonly canary: string | null
}

/** How the failures of a route are handled, and what the state of it. */
export interface Handling {
  readonly retry: RetryConfig
  readonly hedge: HedgeConfig | null
  /** Null if the route does not hedge. */
  readonly hedges: HedgeBudget | null
  /** The choice of a target, and of a credential, is stable for it; null: for nothing. */
  readonly stickyKey: string | null
}

/** The route of a request. */
export interface Route {
  /** In the order in which they are tried; never empty. */
  readonly candidates: readonly [Candidate, ...Candidate[]]
  readonly handling: Handling
  /** The target that gets copies of some requests; null if none does. */
  readonly shadow: RouteShadow | null
  /** Null if the path decided. */
  readonly tookMs: number | null
}

/**
 * Throws `unknown_model` if no route takes the model, `forbidden` if the key may not use it, and `untranslatable` if
 * none of its upstreams has the operation.
 */
export function choose(call: Call, identity: Identity, generation: Generation): Route {
  const beganMs = performance.now()
  const { request } = call
  const { keyId, labels } = identity
  const routed = generation.route(request, { keyId, labels })
  if (routed === null) throw unknownModel(request.model)
  assertAllowed(identity, request.model)
  const { config } = routed.route
  const isTimed = config.balance === 'least_latency'
  const { states } = generation
  const [first, ...others] = routed.order.flatMap((each): Candidate[] => {
    const target = generation.target(each, request, call)
    if (target === null) return []
    const model = each.model ?? request.model
    const latency = isTimed ? states.of(each.upstream.name).latency(each) : null
    return [{ target, model, isFallback: each.isFallback, latency, canary: each.canary }]
  })
  if (first === undefined) {
    const message = `The upstream of the model '${shortened(request.model)}' has no embeddings: use another model.`
    throw new GatewayError('untranslatable', message, { param: 'model' })
  }
  const { retry, hedge } = config
  const hedges = hedge === null ? null : states.hedgesOf(config)
  return {
    candidates: [first, ...others],
    handling: { retry, hedge, hedges, stickyKey: routed.stickyKey },
    shadow: routed.route.shadow,
    tookMs: performance.now() - beganMs,
  }
}

/** The error for a model that no route takes. */
export function unknownModel(model: string): GatewayError {
  return new GatewayError(
    'unknown_model',
    `The model '${shortened(model)}' is not known here; GET /v1/models lists those that are.`,
    { param: 'model' },
  )
}

/** Throws `forbidden` for a model that the key's list does not name. */
export function assertAllowed({ models }: Identity, model: string): void {
  if (models === null || namesModel(models, model)) return
  throw new GatewayError(
    'forbidden',
    `This API key is not allowed to use the model '${shortened(model)}'.`,
    { param: 'model' },
  )
}

function shortened(model: string): string {
  return model.length > 100 ? `${model.slice(0, 100)}…` : model
}
