/**
 * Decides which tools and options of the provider a request may use (`allow_tools`), and which models these
 * tools may use.
 */
import type { Identity } from '../../accounts/account.js'
import { assertModelAllowed } from '../../accounts/allowed-models.js'
import { ANY_TOOL, type HostedTool } from '../../formats/chat/hosted-tools.js'
import { GatewayError } from '../../errors.js'
import { needsOf } from '../../limits/find-limits.js'
import type { Target } from '../generation.js'
import type { CheckedRequest } from '../served-request.js'
import { hostedAt } from '../charges/unknown-use.js'
import type { Candidate, Route } from './route.js'
import type { Call } from './call.js'

/**
 * The route without the candidates whose upstreams do not allow a tool of the request. Throws `forbidden` if
 * no candidate that would receive the tools allows them, or if a tool has a model that the key may not use.
 */
export function permitTools(route: Route, x: CheckedRequest): Route {
  const { call, identity } = x
  const { hosted } = call.request
  if (hosted === undefined) return route
  for (const { model, path } of hosted) {
    if (model !== undefined) assertModelAllowed(identity, model, `${path}.model`)
  }
  const isRestricted = identity.models !== null || isBudgeted(route, x)
  const refusals: GatewayError[] = []
  const candidates: Candidate[] = []
  let isServed = false
  for (const candidate of route.candidates) {
    const tools = hostedAt(call, candidate.target)
    const refused = refusalAt(candidate.target, tools, { identity, isRestricted })
    if (refused !== null) refusals.push(refused)
    else {
      candidates.push(candidate)
      isServed ||= tools.length > 0
    }
  }
  const [refusal] = refusals
  if (refusal === undefined) return route
  const [first, ...others] = candidates
  // The other candidates would leave the tools out.
  if (first === undefined || !isServed) throw refusal
  return { ...route, candidates: [first, ...others] }
}

/** Whether the tools of a shadow request are allowed: only those that its upstream lists. */
export function permitsShadow(call: Call, { target }: Pick<Candidate, 'target'>): boolean {
  const { allowTools } = target.upstream.config
  return hostedAt(call, target).every(({ name }) => isListed(name, allowTools ?? []))
}

/** Whether a limit on money applies to the request. */
function isBudgeted({ candidates }: Route, { call, identity, generation }: CheckedRequest): boolean {
  const { model } = call.request
  return candidates.some(({ target }) => needsOf(generation.limitsOf(identity, model, target)).money)
}

/** Throws `forbidden` if a request to the target may not use the tool, or the tool its model. */
export function assertToolAllowed(target: Target, tool: HostedTool, rules: KeyRules): void {
  const { model, path } = tool
  if (model !== undefined) assertModelAllowed(rules.identity, model, `${path}.model`)
  const refusal = refusalAt(target, [tool], rules)
  if (refusal !== null) throw refusal
}

/** Whether there are tools of the provider that requests to the target may not use. */
export function restrictsTools(target: Target, { identity, isRestricted }: KeyRules): boolean {
  const allowed = identity.allowTools ?? target.upstream.config.allowTools
  return allowed === null ? isRestricted : !allowed.includes(ANY_TOOL)
}

/** The key, and whether it has a budget or a list of models. */
interface KeyRules {
  readonly identity: Identity
  readonly isRestricted: boolean
}

function refusalAt(
  target: Target,
  tools: readonly HostedTool[],
  { identity, isRestricted }: KeyRules,
): GatewayError | null {
  const { name: upstream, allowTools } = target.upstream.config
  const allowed = identity.allowTools ?? allowTools
  if (allowed === null && !isRestricted) return null
  const refused = tools.find(({ name }) => !isListed(name, allowed ?? []))
  if (refused === undefined) return null
  const { name, path } = refused
  const message = `This API key is not allowed to use '${name}' of the provider: ${why()}`
  return new GatewayError('forbidden', message, { param: path })

  function why(): string {
    if (identity.allowTools !== null) return 'it is not in allow_tools of the key.'
    if (allowTools !== null) return `it is not in allow_tools of the upstream '${upstream}'.`
    return `a key with a budget or a list of models needs it in allow_tools, of the key or of the upstream '${upstream}'.`
  }
}

function isListed(name: string, allowed: readonly string[]): boolean {
  return allowed.includes(name) || allowed.includes(ANY_TOOL)
}
