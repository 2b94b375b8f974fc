/**
 * Lets a native request name only objects of its own account, if the upstream has `native_sharing: account`.
 * The provider receives the request after that.
 */
import { PassThrough, type Readable } from 'node:stream'
import { GatewayError } from '../../errors.js'
import { headerOf } from '../../http/message.js'
import type { Exchange } from '../client-exchange.js'
import type { HeldMemory } from '../body-memory.js'
import type { OwnedObjects, Owner } from '../objects/owned-objects.js'
import { idInValue, isIdMember, objectInPath } from '../objects/object-ids.js'
import type { ProviderObject } from '../../store/provider-objects.js'
import type { RequestScan, RequestSummary } from '../objects/request-scan.js'
import { batchIn, createsBatch } from './batches.js'
import { segmentsOf, type NativeCall } from './admit-native.js'
import { inspectBody } from './inspect-body.js'
import { ObjectReplies } from './object-replies.js'

/** A native request whose objects are to be checked. */
interface GuardedRequest {
  readonly x: Exchange
  readonly call: NativeCall
  readonly owner: Owner
  readonly objects: OwnedObjects
  readonly held: HeldMemory
}

/** A request that names only objects of its account. */
export interface Guarded {
  /** The collection at the end of its path; '' for other paths. */
  readonly collection: string
  readonly lastSegment: string
  readonly body: Readable
  /** Reads the reply; null if objects are shared. */
  readonly replies: ObjectReplies | null
  /** The requests of the batch that it creates, or of the files that it names; empty if they are unknown. */
  readonly summaries: readonly RequestSummary[]
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
  const segments = segmentsOf(x, config)
  const named = objectInPath(segments, call.rules)
  const lastSegment = segments.at(-1) ?? ''
  const collection = named.id === null ? named.collection : ''
  const path = { collection, lastSegment }
  if (config.native.sharing === 'shared') return { ...path, body, replies: null, summaries: [] }
  const upstream = config.name
  const { accountId } = owner
  const ids = idsInQuery(call.url)
  if (named.id !== null) ids.unshift(named.id)
  const own = ids.length === 0 ? [] : await objects.owned(upstream, accountId, ids)
  const object = named.id === null ? null : (own[0] ?? null)
  const method = call.method
  const request = { upstream, owner, method, lastSegment, named, object }
  if (source === null) {
    const replies = new ObjectReplies({ ...request, scan: null, stream: null }, objects)
    return { ...path, body, replies, summaries: [] }
  }
  const inputs: ProviderObject[] = []
  const inspected = await inspectBody(source, {
    contentType: headerOf(x.req, 'content-type') ?? '',
    isEncoded: (headerOf(x.req, 'content-encoding') ?? 'identity') !== 'identity',
    isUpload: segments[0] === 'upload' && x.req.headers['x-goog-upload-command'] !== 'start',
    held,
    check: async (list) => {
      inputs.push(...(await objects.owned(upstream, accountId, list)))
    },
  })
  const { scan } = inspected
  // The last part of an upload is not the whole file.
  const stream =
    headerOf(x.req, OFFSET) === undefined || headerOf(x.req, OFFSET) === '0' ? inspected.stream : null
  return {
    ...path,
    body: inspected.body,
    replies: new ObjectReplies({ ...request, scan, stream }, objects),
    summaries: createsBatch(method, collection, lastSegment) ? requestsOf(scan, inputs) : [],
  }
}

const OFFSET = 'x-goog-upload-offset'

/**
 * The requests of a batch: in files, or else in its own body. Throws `malformed_request` for a file whose
 * requests were not read on their way, because they may name objects of other accounts.
 */
function requestsOf(scan: RequestScan | null, named: readonly ProviderObject[]): RequestSummary[] {
  if (scan === null) return []
  const files = named.filter(({ id }) => scan.inputs.has(id))
  if (files.length === 0) return [scan.summary]
  return files.map((file) => {
    const summary = batchIn(file)
    if (summary !== null) return summary
    throw new GatewayError(
      'malformed_request',
      `The file '${file.id}' of the batch cannot be checked for objects of other accounts (native_sharing: account): upload it as JSON lines, in one request.`,
    )
  })
}

/** Parameters that name an object, such as the call that a WebSocket joins. */
function idsInQuery(url: URL): string[] {
  const ids: string[] = []
  for (const [name, value] of url.searchParams) {
    if (value !== '' && (isIdMember(name) || name === 'call_id')) ids.push(idInValue(value))
  }
  return ids
}
