/**
 * Lets a translated request name only objects of its own account (files, caches, containers, stored prompts),
 * at upstreams with `native_sharing: account`: no other upstream receives it.
 */
import type { Target } from '../generation.js'
import type { ServedRequest } from '../served-request.js'
import type { Candidate, Route } from '../phases/route.js'
import type { Call } from '../phases/call.js'
import { idsInRequest, soundsInRequest, vendorOf } from './ids-in-request.js'
import { unknownObject, type OwnedObjects } from './owned-objects.js'

/**
 * The route with the candidates that may receive the request: all of them if it names no object. Rejects with
 * `unknown_object` if none is left.
 */
export function guardCall(x: ServedRequest, objects: OwnedObjects): Route | Promise<Route> {
  const { call, route } = x
  const vendor = vendorOf(call.wire)
  if (vendor === null || !route.candidates.some((candidate) => hasObjects(call, candidate))) return route
  const ids = [...idsInRequest(call.body, vendor)]
  const sounds = call.wire === 'openai-chat' ? soundsInRequest(call.body) : []
  if (ids.length === 0 && sounds.length === 0) return route
  return withOwners(x, { ids, sounds }, objects)
}

/** The objects that a request names. */
interface Named {
  readonly ids: readonly string[]
  /** Sound of earlier replies. */
  readonly sounds: readonly string[]
}

async function withOwners(
  { call, route, identity }: ServedRequest,
  named: Named,
  objects: OwnedObjects,
): Promise<Route> {
  const { accountId } = identity
  const refused = new Map<string, string | null>()
  const candidates: Candidate[] = []
  for (const candidate of route.candidates) {
    const { name } = candidate.target.upstream.config
    if (!refused.has(name)) {
      const id = hasObjects(call, candidate)
        ? await refusedId(candidate, named, { accountId, objects })
        : null
      refused.set(name, id)
    }
    if (refused.get(name) === null) candidates.push(candidate)
  }
  const [first, ...others] = candidates
  if (first !== undefined) {
    // A copy for another upstream would name objects that it does not have.
    return { ...route, candidates: [first, ...others], shadow: null }
  }
  const { name } = route.candidates[0].target.upstream.config
  throw unknownObject(refused.get(name) ?? '', name)
}

/** An id that the account may not use at the upstream; null if there is none. */
async function refusedId(
  { target }: Candidate,
  { ids, sounds }: Named,
  { accountId, objects }: { readonly accountId: string; readonly objects: OwnedObjects },
): Promise<string | null> {
  const { name, dialect, preset } = target.upstream.config
  // Responses does not read the sound of earlier replies.
  const played = target.wire === 'openai-chat' ? sounds : []
  const isOpenAi = dialect === 'openai' || preset === 'azure'
  const own = isOpenAi ? [...ids, ...played] : ids
  const isOwned = await objects.isOwned(name, accountId, own)
  const unknown = own.find((_, at) => isOwned[at] !== true)
  if (unknown !== undefined || isOpenAi || played.length === 0) return unknown ?? null
  // Few others make sound, and an id that none of their replies had is theirs to judge.
  const isForeign = await objects.isForeign(name, accountId, played)
  return played.find((_, at) => isForeign[at] === true) ?? null
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
