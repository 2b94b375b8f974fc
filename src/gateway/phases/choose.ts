/** The model's name → the route, and the upstreams that may serve the request, in order. Sends nothing. */
import { namesModel, type Identity } from '../../accounts/account.js'
import { GatewayError } from '../../errors.js'
import type { RouteTarget } from '../../routing/router.js'
import type { Generation, Target } from '../generation.js'
import type { Call } from './receive.js'

/** One upstream that may serve a request, and the model that it is asked for. */
export interface Candidate {
  readonly target: Target
  /** As the upstream names it. */
  readonly model: string
}

/** Where a request may go. */
export interface Route {
  /** In the order in which they are tried; never empty. */
  readonly candidates: readonly [Candidate, ...Candidate[]]
  /** Null if the path decided. */
  readonly tookMs: number | null
}

/** Throws `unknown_model` if no route takes the model, and `forbidden` if the key may not use it. */
export function choose(call: Call, identity: Identity, generation: Generation): Route {
  const beganMs = performance.now()
  const { request, dialect } = call
  const { keyId, labels } = identity
  const [first, ...others] = generation.route(request, { keyId, labels })?.order ?? []
  if (first === undefined) throw unknownModel(request.model)
  assertAllowed(identity, request.model)
  const candidateOf = (target: RouteTarget): Candidate => ({
    target: generation.target(target, request, dialect),
    model: target.model ?? request.model,
  })
  const candidates = [candidateOf(first), ...others.map(candidateOf)] as const
  return { candidates, tookMs: performance.now() - beganMs }
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
    `This API key may not ask for the model '${shortened(model)}'; its owner says which it may.`,
    { param: 'model' },
  )
}

function shortened(model: string): string {
  return model.length > 100 ? `${model.slice(0, 100)}…` : model
}
