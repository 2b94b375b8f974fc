/**
 * Lets a native request name only objects of its own account, if the upstream has `native_sharing: account`.
 * The provider is asked after that.
 */
import { PassThrough, type Readable } from 'node:stream'
import { headerOf } from '../../http/message.js'
import type { Exchange } from '../client-exchange.js'
import type { HeldMemory } from '../bodies/body-memory.js'
import type { OwnedObjects, Owner } from '../objects/owned-objects.js'
import { idInValue, isIdMember, objectInPath } from '../objects/object-ids.js'
import type { NativeCall } from './admit-native.js'
import { inspectBody } from './inspect-body.js'
import { nativePathOf } from './native-path.js'
import { ObjectReplies } from './object-replies.js'

/** A native request whose objects are to be checked. */
export interface GuardedRequest {
  readonly x: Exchange
  readonly call: NativeCall
  readonly owner: Owner
  readonly objects: OwnedObjects
  readonly held: HeldMemory
}

/** A request that names only objects of its account. */
export interface Guarded {
  readonly body: Readable
  /** Reads the reply; null if objects are shared. */
  readonly replies: ObjectReplies | null
}

/**
 * Checks path, query and body; `source` is the client's body. Rejects with `unknown_object`, and with
 * `malformed_request` if the body cannot be checked.
 */
export async function guardObjects(
  { x, call, owner, objects, held }: GuardedRequest,
  source: Readable | null,
): Promise<Guarded> {
  const { config } = call.target.upstream
  const body = source ?? new PassThrough()
  if (config.native.sharing === 'shared') return { body, replies: null }
  const upstream = config.name
  const { accountId } = owner
  const segments = nativePathOf(x.path)?.segments ?? []
  const named = objectInPath(segments, call.rules)
  const ids = idsInQuery(call.url)
  if (named.id !== null) ids.unshift(named.id)
  const own = ids.length === 0 ? [] : await objects.owned(upstream, accountId, ids)
  const object = named.id === null ? null : (own[0] ?? null)
  const method = call.method
  const lastSegment = segments.at(-1) ?? ''
  const request = { upstream, owner, method, lastSegment, named, object }
  if (source === null) {
    return { body, replies: new ObjectReplies({ ...request, scan: null, stream: null }, objects) }
  }
  const inspected = await inspectBody(source, {
    contentType: headerOf(x.req, 'content-type') ?? '',
    isEncoded: (headerOf(x.req, 'content-encoding') ?? 'identity') !== 'identity',
    isUpload: segments[0] === 'upload' && x.req.headers['x-goog-upload-command'] !== 'start',
    held,
    check: async (list) => void (await objects.owned(upstream, accountId, list)),
  })
  const { scan, stream } = inspected
  return {
    body: inspected.body,
    replies: new ObjectReplies({ ...request, scan, stream }, objects),
  }
}

/** Parameters that name an object, such as the call that a WebSocket joins. */
function idsInQuery(url: URL): string[] {
  const ids: string[] = []
  for (const [name, value] of url.searchParams) {
    if (value !== '' && (isIdMember(name) || name === 'call_id')) ids.push(idInValue(value))
  }
  return ids
}
