/**
 * Chooses the route for a request by its model, and the order of the upstreams that may serve it. Sends
 * nothing.
 */
import { modelAt } from '../routing/router.js'
import type { Identity } from '../../accounts/account.js'
import { assertModelAllowed, shortModelName } from '../../accounts/allowed-models.js'
import { GatewayError, malformed } from '../../errors.js'
import { isShadowable, OPERATIONS, type Operation } from '../../formats/chat/operations.js'
import { isTaskChat } from '../../formats/task-chats.js'
import { refuseUnjudged } from '../../formats/wire/vendor-rules.js'
import type { CalledFor } from '../../policy/plugins.js'
import type { CheckedRequest } from '../served-request.js'
import type { Call } from './call.js'
import type { Candidate, Route } from './route.js'

/**
 * Chooses the route and its candidates. Throws `unknown_model` if no route matches the model, `forbidden` if
 * the key is not allowed to use it, `untranslatable` if none of its upstreams supports the operation, and
 * `malformed_request` if none judges a rule that the request breaks.
 */
export function choose({ call, identity, generation }: CheckedRequest, calledFor?: CalledFor): Route {
  const beganMs = performance.now()
  const { request } = call
  const { keyId, labels } = identity
  const routed = generation.route(request, {
    keyId,
    labels,
    ...(calledFor === undefined ? {} : { calledFor }),
  })
  if (routed === null) throw unknownModel(request.model)
  assertAllowed(call, identity)
  const { config } = routed.route
  const isTimed = config.balance === 'least_latency'
  const { states } = generation
  const candidates: Candidate[] = []
  const without = new Set<string>()
  for (const routeTarget of routed.order) {
    const target = generation.target(routeTarget, request, call)
    if (target === null) {
      without.add(routeTarget.upstream.name)
      continue
    }
    const model = modelAt(routeTarget, request.model)
    const { defaults, isFallback, canary } = routeTarget
    const latency = isTimed ? states.of(routeTarget.upstream.name).latency(routeTarget) : null
    candidates.push({ target, model, defaults, isFallback, latency, canary })
  }
  if (!isNonEmpty(candidates)) throw notServed(call.endpoint.operation, call.request.model, [...without])
  const targets = candidates.map(({ target }) => target)
  const judges = targets.map(({ wire, upstream }) => ({ wire, dialect: upstream.config.dialect }))
  refuseUnjudged(request, call.wire, judges)
  const { retry } = config
  const { operation } = call.endpoint
  const isCostly = OPERATIONS[operation].isCostly === true || targets.some(({ wire }) => isTaskChat(wire))
  const hedge = isCostly ? null : config.hedge
  const hedges = hedge === null ? null : states.hedgesOf(config)
  return {
    candidates,
    handling: { retry, hedge, hedges, stickyKey: routed.stickyKey },
    shadow: isShadowable(operation) ? routed.route.shadow : null,
    config,
    guardrails: config.guardrails,
    tookMs: performance.now() - beganMs,
  }
}

/** Throws if the credential may not use the model: for Claude Code, that is a fault of the request. */
function assertAllowed(call: Call, identity: Identity): void {
  try {
    assertModelAllowed(identity, call.request.model)
  } catch (error) {
    const isFault = identity.user !== undefined && call.dialect === 'anthropic'
    throw isFault && error instanceof GatewayError ? malformed(error.message, 'model') : error
  }
}

/** The error for an operation that no upstream of the model's route serves. */
export function notServed(operation: Operation, model: string, upstreams: readonly string[]): GatewayError {
  const { title } = OPERATIONS[operation]
  const names =
    upstreams.length === 1 ? upstreams[0] : `${upstreams.slice(0, -1).join(', ')} and ${upstreams.at(-1)}`
  const verb = upstreams.length === 1 ? 'does' : 'do'
  const message = `No upstream of the model "${shortModelName(model)}" serves ${title}; ${names ?? ''} ${verb} not`
  return new GatewayError('untranslatable', message, { param: 'model' })
}

function isNonEmpty(candidates: Candidate[]): candidates is [Candidate, ...Candidate[]] {
  return candidates.length > 0
}

/** The error for a model that no route matches. */
export function unknownModel(model: string): GatewayError {
  return new GatewayError(
    'unknown_model',
    `The model '${shortModelName(model)}' is not available: GET /v1/models lists the models of this gateway.`,
    { param: 'model' },
  )
}
