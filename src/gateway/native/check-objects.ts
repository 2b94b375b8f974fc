/**
 * Lets a native request name only objects of its own account, if the upstream has `native_sharing: account`.
 * The provider receives the request after that.
 */
import { PassThrough, type Readable } from 'node:stream'
import { GatewayError } from '../../errors.js'
import { headerOf } from '../../http/message.js'
import type { Exchange } from '../client-exchange.js'
import type { HeldMemory } from '../body-memory.js'
import { joinChunks } from '../streams/join-chunks.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { parseSteps } from '../../formats/wire/json/parse-body.js'
import { cloudOf, foreignPart } from '../objects/cloud-names.js'
import { cloudRulesOf, refusalOfBody, refusedPath, type CloudRules } from '../objects/operator-objects.js'
import type { OwnedObjects } from '../objects/owned-objects.js'
import {
  idInValue,
  isIdMember,
  isNamedByRule,
  objectInPath,
  type NamedObject,
} from '../objects/object-ids.js'
import type { ProviderObject } from '../../store/provider-objects.js'
import type { RequestScan } from '../objects/request-scan.js'
import { BatchReader, ownPath, type BatchSummary } from './batch-requests.js'
import {
  assertBatchAllowed,
  batchIn,
  createsBatch,
  isMistralJob,
  modelOfBatch,
  type NewBatch,
} from './batches.js'
import type { Metered } from './charge-native-work.js'
import type { NativeCall } from './admit-native.js'
import type { MessageCheck } from './client-messages.js'
import { beginsJson, inspectBody, uncheckable } from './inspect-body.js'
import { ObjectReplies } from './object-replies.js'

/** A native request whose objects are to be checked. */
interface GuardedRequest {
  readonly x: Exchange
  readonly call: NativeCall
  readonly metered: Metered
  readonly objects: OwnedObjects
  readonly held: HeldMemory
}

/** A request that names only objects of its account. */
interface Guarded {
  readonly body: Readable
  /** Reads the reply; null if objects are shared. */
  readonly replies: ObjectReplies | null
  /** The batch that it creates; null for other requests. */
  readonly batch: NewBatch | null
  /** Checks each message of a WebSocket; null if the provider may receive all. */
  readonly checkMessage: MessageCheck | null
}

/**
 * Checks path, query and body; `source` is the client's body. Rejects with `unknown_object`, and with
 * `malformed_request` if the body cannot be checked.
 */
export async function guardObjects(
  { x, call, metered, objects, held }: GuardedRequest,
  source: Readable | null,
): Promise<Guarded> {
  const { config } = call.target.upstream
  const body = source ?? new PassThrough()
  const { segments } = call
  const named = objectInPath(segments, call.rules)
  const cloud = cloudRulesOf(config, x.generation)
  const isOnCloud = cloudOf(config) !== null
  if (isOnCloud) assertOwnPath(segments, call, { cloud, named })
  const lastSegment = segments.at(-1) ?? ''
  const collection = named.id === null ? named.collection : ''
  const isBatch = createsBatch(call.method, collection, segments)
  const isShared = config.native.sharing === 'shared'
  if (isShared && !isBatch && !isOnCloud) return { body, replies: null, batch: null, checkMessage: null }
  const upstream = config.name
  const owner = x.identity
  const { accountId } = owner
  const ids = idsInQuery(call.url)
  if (named.id !== null) ids.unshift(named.id)
  const own = ids.length === 0 || isShared ? [] : await objects.owned(upstream, accountId, ids)
  const object = named.id === null ? null : (own[0] ?? null)
  const method = call.method
  const request = { upstream, owner, method, lastSegment, named, object }
  if (source === null) {
    const replies = isShared ? null : new ObjectReplies({ ...request, scan: null, stream: null }, objects)
    const own = isShared ? null : (list: readonly string[]) => objects.owned(upstream, accountId, list)
    return { body, replies, batch: null, checkMessage: messageCheck(own, isOnCloud ? cloud : null) }
  }
  const isJob = isMistralJob(segments)
  const modelOf = (body: RequestScan | null): string => (isJob ? (body?.model ?? '') : modelOfBatch(segments))
  const { generation } = x
  const inputs: ProviderObject[] = []
  const inspected = await inspectBody(source, {
    contentType: headerOf(x.req, 'content-type') ?? '',
    isEncoded: (headerOf(x.req, 'content-encoding') ?? 'identity') !== 'identity',
    isUpload: segments[0] === 'upload' && x.req.headers['x-goog-upload-command'] !== 'start',
    isBatch,
    held,
    openReader: (whole) => {
      const reading = { generation, headers: x.req.headers, held, upstream: config }
      const named =
        whole === null ? NOT_NAMED : { model: modelOf(whole), endpoint: isJob ? whole.endpoint : '' }
      return new BatchReader({ ...reading, ...named }, whole === null)
    },
    checkBody: isOnCloud ? (chunks) => refuseOperatorObjects(joinChunks(chunks), cloud) : null,
    checkFile: (summary) => {
      assertBatchAllowed(metered, { model: '', summaries: [summary], isUnread: false })
    },
    check: async (list) => {
      if (!isShared) inputs.push(...(await objects.owned(upstream, accountId, list)))
    },
  })
  const { scan, batch } = inspected
  // The last part of an upload is not the whole file.
  const stream =
    headerOf(x.req, OFFSET) === undefined || headerOf(x.req, OFFSET) === '0' ? inspected.stream : null
  const found = isBatch ? requestsOf(scan, batch, { named: isShared ? null : inputs, isJob }) : null
  return {
    body: inspected.body,
    replies: isShared ? null : new ObjectReplies({ ...request, scan, stream }, objects),
    batch: found === null ? null : { ...found, model: modelOf(scan) },
    checkMessage: null,
  }
}

/** Throws for a path with a model, project, location or service that the client must not choose. */
function assertOwnPath(
  segments: readonly string[],
  { rules, url }: Pick<NativeCall, 'rules' | 'url'>,
  { cloud, named }: { readonly cloud: CloudRules; readonly named: NamedObject },
): void {
  const { config, namesModel } = cloud
  const foreign = foreignPart(segments, {
    config,
    base: url.pathname.split('/').slice(1, -segments.length),
    namesModel,
    isNamed: (at) => isNamedByRule(rules, at, segments.length),
    byNumber: named.id !== null && config.native.sharing === 'account',
  })
  if (foreign !== null) throw refusedPath(foreign, cloud)
}

/**
 * The check of the messages of a WebSocket, which is that of bodies; null if there is none. `own` rejects for
 * objects of others. A cloud gets no message that cannot be read; to other providers sound may be sent as
 * bytes.
 */
function messageCheck(
  own: ((ids: readonly string[]) => Promise<unknown>) | null,
  cloud: CloudRules | null,
): MessageCheck | null {
  if (own === null && cloud === null) return null
  return async ({ bytes, scan }) => {
    if (scan.problem !== null && (cloud !== null || beginsJson(bytes))) {
      throw uncheckable(scan.problem, 'A message of the WebSocket')
    }
    if (own !== null && scan.problem === null && scan.ids.size > 0) await own([...scan.ids])
    if (cloud !== null) await refuseOperatorObjects(bytes, cloud)
  }
}

/** A native body has more members than one of a chat: the instances of a prediction. */
const BODY_LIMITS = { maxTokens: 2_000_000, maxTextBytes: Number.MAX_SAFE_INTEGER }

/** Rejects for a body that names what the cloud would use with the gateway's identity. */
async function refuseOperatorObjects(body: Buffer, rules: CloudRules): Promise<void> {
  const { value } = await bodyTurns.start(parseSteps(body, BODY_LIMITS))
  const refusal = refusalOfBody(value, rules)
  if (refusal !== null) throw refusal
}

const OFFSET = 'x-goog-upload-offset'

/** A file is uploaded before a batch names its model. */
const NOT_NAMED = { model: '', endpoint: '' }

/**
 * The requests of a batch: in its own body, and in files; `named`: the objects that it names, null if they
 * are shared. The endpoint of a job decides about all its requests: those that were read as requests of
 * another one count as not read. Throws `malformed_request` for a file whose requests were not read on their
 * way, because they may name objects of other accounts.
 */
function requestsOf(
  scan: RequestScan | null,
  body: BatchSummary | null,
  { named, isJob }: { readonly named: readonly ProviderObject[] | null; readonly isJob: boolean },
): Omit<NewBatch, 'model'> {
  if (scan === null || body === null) return { summaries: [], isUnread: true }
  const hasOwn = body.uses.length > 0 || body.problem !== null || body.unread !== null
  const checked = (summary: BatchSummary) => (isJob ? ofEndpoint(summary, scan.endpoint) : summary)
  const own = hasOwn ? [checked(body)] : []
  if (named === null) return { summaries: own, isUnread: scan.inputs.size > 0 || own.length === 0 }
  const files = named.filter(({ id }) => scan.inputs.has(id))
  const inFiles = files.map((file) => {
    const summary = batchIn(file)
    if (summary !== null) return checked(summary)
    throw new GatewayError(
      'malformed_request',
      `The file '${file.id}' of the batch cannot be checked for objects of other accounts (native_sharing: account): upload it as JSON lines, in one request.`,
    )
  })
  return { summaries: [...own, ...inFiles], isUnread: own.length === 0 && files.length === 0 }
}

function ofEndpoint(summary: BatchSummary, endpoint: string): BatchSummary {
  const { endpoints } = summary
  const isRead = endpoints?.every((path) => path === ownPath(endpoint)) === true
  return isRead ? summary : { ...summary, unread: `the endpoint ${endpoint.slice(0, 100)}` }
}

/** Parameters that name an object, such as the call that a WebSocket joins. */
function idsInQuery(url: URL): string[] {
  const ids: string[] = []
  for (const [name, value] of url.searchParams) {
    if (value !== '' && (isIdMember(name) || name === 'call_id')) ids.push(idInValue(value))
  }
  return ids
}
