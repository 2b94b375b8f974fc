/**
 * Lets a translated request name only objects of its own account (files, caches, containers, stored prompts),
 * at upstreams with `native_sharing: account`: no other upstream receives it.
 */
import type { Target } from '../generation.js'
import type { Candidate, Route } from '../phases/choose-route.js'
import type { Call } from '../phases/receive.js'
import { idsInRequest, vendorOf } from './ids-in-request.js'
import { unknownObject, type OwnedObjects } from './owned-objects.js'

/**
 * The route with the candidates that may receive the request: all of them if it names no object. Rejects with
 * `unknown_object` if none is left.
 */
export function guardCall(
  call: Call,
  route: Route,
  { accountId, objects }: { readonly accountId: string; readonly objects: OwnedObjects },
): Route | Promise<Route> {
  const vendor = vendorOf(call.wire)
  if (vendor === null || !route.candidates.some((candidate) => hasObjects(call, candidate))) return route
  const ids = idsInRequest(call.body, vendor)
  return ids.size === 0 ? route : withOwners(call, [...ids], { route, accountId, objects })
}

async function withOwners(
  call: Call,
  ids: readonly string[],
  {
    route,
    accountId,
    objects,
  }: { readonly route: Route; readonly accountId: string; readonly objects: OwnedObjects },
): Promise<Route> {
  const allowed = new Map<string, boolean>()
  const candidates: Candidate[] = []
  for (const candidate of route.candidates) {
    const { name } = candidate.target.upstream.config
    const known =
      allowed.get(name) ??
      (!hasObjects(call, candidate) || (await objects.isOwned(name, accountId, ids)).every(Boolean))
    allowed.set(name, known)
    if (known) candidates.push(candidate)
  }
  const [first, ...others] = candidates
  if (first !== undefined) {
    // A copy for another upstream would name objects that it does not have.
    return { ...route, candidates: [first, ...others], shadow: null }
  }
  const { name } = route.candidates[0].target.upstream.config
  await objects.owned(name, accountId, ids)
  throw unknownObject(ids[0] ?? '', name)
}

/**
 * Whether the upstream reads ids of the client's format as its own objects, and accounts own these. Another
 * vendor's upstream never receives them: a codec refuses them or leaves them out.
 */
function hasObjects(call: Call, { target }: Candidate): boolean {
  const { native, platform } = target.upstream.config
  if (native.sharing === 'shared' || vendorOf(call.wire) !== vendorOf(target.wire)) return false
  // Claude on these platforms has no Files API, no containers and no skills.
  if (target.wire === 'anthropic' && (platform?.name === 'bedrock' || platform?.name === 'vertex'))
    return false
  return !refuses(call, target)
}

/** Whether the request is refused for this target anyway, with a message that names the field. */
function refuses({ wire, request }: Call, target: Target): boolean {
  return target.wire !== wire && (request.native ?? []).some(({ refusal }) => refusal !== undefined)
}
