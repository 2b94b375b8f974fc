/**
 * Lets a translated request name only objects of its own account (files, caches, containers, stored prompts),
 * at upstreams with `native_sharing: account`: no other upstream receives it.
 */
import type { Candidate, Route } from '../phases/choose-route.js'
import type { Call } from '../phases/receive.js'
import { idsInBody } from './object-ids.js'
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
  if (route.candidates.every(isShared)) return route
  const ids = idsInBody(call.body)
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
      (isShared(candidate) ||
        refuses(call, candidate) ||
        (await objects.isOwned(name, accountId, ids)).every(Boolean))
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

function isShared({ target }: Candidate): boolean {
  return target.upstream.config.native.sharing === 'shared'
}

/** Whether the request is refused for this candidate anyway, with a message that names the field. */
function refuses({ wire, request }: Call, { target }: Candidate): boolean {
  return target.wire !== wire && (request.native ?? []).some(({ refusal }) => refusal !== undefined)
}
