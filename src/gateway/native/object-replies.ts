/**
 * Reads the replies of native requests for the objects in them: lists keep the account's own, created objects
 * are recorded, records of deleted ones removed.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isObject, type JsonObject } from '../../base/json.js'
import { GatewayError } from '../../errors.js'
import { withinTime } from '../reasoning/escrow.js'
import { MAX_FACTS, type ProviderObject } from '../../store/provider-objects.js'
import { parseReply } from '../../formats/wire/json/parse-body.js'
import type { OwnedObjects, Owner } from '../objects/owned-objects.js'
import type { RequestScan } from '../objects/request-scan.js'
import { objectInReply, objectsMade, type NamedObject, idOfItem } from '../objects/object-ids.js'
import { batchFactsOf, type BatchFacts } from './batches.js'
import type { StreamedScan } from './inspect-body.js'
import { MemberScan } from '../../formats/wire/json/member-scan.js'
import { parseOrNull } from '../../formats/wire/json/full-scan.js'
import { bodyTurns } from '../../base/turn-queue.js'

/** A longer list is refused, and the objects in another longer reply are not read. */
const MAX_LIST_BYTES = 8 * 1024 * 1024
const MAX_OBJECT_BYTES = 1024 * 1024
const MAX_EVENT_BYTES = 1024 * 1024

/** An upload or a call lasts for hours. */
const HEAD_KEPT_MS = 7 * 86_400_000

/** Actions of Google's models that create nothing. */
const STATELESS =
  /:(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents|predict)$/

/** A request whose objects are checked. */
interface ObjectRequest {
  readonly upstream: string
  readonly owner: Owner
  readonly method: string
  readonly lastSegment: string
  readonly named: NamedObject
  /** The object that the path names. */
  readonly object: ProviderObject | null
  readonly scan: RequestScan | null
  readonly stream: StreamedScan | null
}

/** How the body of a reply is read. `collect`: until it is complete; `events`: as it passes. */
type ReplyPlan = 'pass' | 'collect' | 'events'

/** The objects of one request's reply. */
export class ObjectReplies {
  readonly request: ObjectRequest
  /** The facts of the batch that the request creates; null for other requests. */
  batch: BatchFacts | null = null
  /** Called when a client reads a batch, or (null) its results. Never rejects. */
  onBatch: (object: ProviderObject, reply: JsonObject | null) => Promise<void> = () => Promise.resolve()
  private readonly objects: OwnedObjects
  private line: Buffer[] | null = []
  private lineBytes = 0
  private recording: Promise<void> = Promise.resolve()
  private hasHead = false

  constructor(request: ObjectRequest, objects: OwnedObjects) {
    this.request = request
    this.objects = objects
  }

  /**
   * Records what the head of a reply names: the upload that the client continues, a call that it joins.
   */
  head(status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || status > 299 || !this.creates) return
    const upload = uploadIdIn(headers)
    const call = headers.location?.split('/').at(-1)
    const ids = [upload, call].flatMap((id) => (id === undefined || id === '' ? [] : [id]))
    const { upstream, owner } = this.request
    const expiresAtMs = this.objects.nowMs() + HEAD_KEPT_MS
    const objects = ids.map((id) => ({ upstream, id, ...owned(owner), expiresAtMs, facts: '' }))
    if (objects.length === 0) return
    this.hasHead = true
    this.recording = this.objects.record(objects)
  }

  /** Throws `upstream_malformed` for a list that cannot be read. */
  plan(status: number, headers: IncomingHttpHeaders): ReplyPlan {
    if (status < 200 || status > 299 || this.request.method === 'HEAD') return 'pass'
    const type = headers['content-type'] ?? ''
    const isEncoded = (headers['content-encoding'] ?? 'identity') !== 'identity'
    // The client may use what the head names as soon as it has it.
    if (this.hasHead) return 'collect'
    const isJson = type.includes('json') && !type.includes('jsonl') && !isEncoded
    if (this.isList) {
      if (this.request.named.collection !== '' && !isJson && status !== 204) throw unreadableList()
      return isJson ? 'collect' : 'pass'
    }
    if (!this.creates && !this.isObject) return 'pass'
    if (this.creates && type.includes('event-stream')) return 'events'
    return isJson ? 'collect' : 'pass'
  }

  /** The size at which a collected reply is refused (a list) or passed on unread. */
  get maxBytes(): number {
    return this.isList ? MAX_LIST_BYTES : MAX_OBJECT_BYTES
  }

  /** A list must not be passed on unread. */
  get isList(): boolean {
    const { method, named } = this.request
    return method === 'GET' && named.id === null && !named.isPublic
  }

  /** The body that the client gets instead of the upstream's. Rejects with `GatewayError`. */
  async read(body: Buffer): Promise<Buffer> {
    if (this.isList) {
      const { upstream, owner } = this.request
      const own = await filterList(body, (ids) => this.objects.isOwned(upstream, owner.accountId, ids))
      if (own === null) throw unreadableList()
      return own
    }
    const reply = parseReply(body.toString())
    if (reply === null) return body
    const nowMs = this.objects.nowMs()
    if (this.creates) await this.created(reply, nowMs)
    else await this.made(reply)
    return body
  }

  /** A chunk of a stream of events: the first event names the object. */
  event(chunk: Buffer): void {
    if (this.line === null) return
    const end = chunk.indexOf(0x0a)
    this.line.push(end < 0 ? chunk : chunk.subarray(0, end))
    this.lineBytes += chunk.length
    if (end < 0) {
      if (this.lineBytes > MAX_EVENT_BYTES) this.line = null
      return
    }
    const text = Buffer.concat(this.line).toString()
    this.line = []
    this.lineBytes = 0
    const event = text.startsWith('data:') ? parseReply(text.slice('data:'.length)) : null
    const object = event === null ? null : (event['response'] ?? event['interaction'] ?? event)
    if (isObject(object) && objectInReply(object, 0) !== null) {
      this.line = null
      this.recording = this.created(object, this.objects.nowMs())
    } else if (end + 1 < chunk.length) this.event(chunk.subarray(end + 1))
  }

  /** Resolves when the end of the reply may be sent. */
  async ended(status: number): Promise<void> {
    await this.recording
    const { method, named, upstream, object, lastSegment } = this.request
    const isResults = /^(?:content|results)$|:download$/.test(lastSegment)
    if (isResults && object !== null && status < 300 && batchFactsOf(object) !== null) {
      await withinTime(this.onBatch(object, null))
    }
    if (method === 'DELETE' && named.isWhole && object !== null && status < 300) {
      await this.objects.remove(upstream, object.id)
    }
  }

  private get isObject(): boolean {
    return this.request.named.id !== null && this.request.method !== 'DELETE'
  }

  private get creates(): boolean {
    const { method, named, lastSegment, scan } = this.request
    if (method === 'GET' || method === 'DELETE' || named.id !== null) return false
    if (named.collection === 'completions') return scan?.isStored === true
    if (named.collection === 'responses') return scan?.isStored !== false
    return named.collection !== '' || (lastSegment.includes(':') && !STATELESS.test(lastSegment))
  }

  private async created(reply: JsonObject, nowMs: number): Promise<void> {
    // Google's reply to an upload.
    const inner = reply['file']
    const object = objectInReply(reply, nowMs) ?? (isObject(inner) ? objectInReply(inner, nowMs) : null)
    if (object === null) return
    const { upstream, owner, stream } = this.request
    const summary = stream?.summary ?? null
    const known = this.batch ?? (summary === null ? null : { batch: summary })
    const facts = known === null ? '' : JSON.stringify(known)
    await this.objects.record([
      { upstream, ...object, ...owned(owner), facts: facts.length > MAX_FACTS ? '' : facts },
    ])
  }

  /** Records what the provider made for an object of the account. */
  private async made(reply: JsonObject): Promise<void> {
    const { upstream, owner, object } = this.request
    if (object === null) return
    const batch = batchFactsOf(object)
    const facts = JSON.stringify({ of: object.id, ...batch })
    const made = objectsMade(reply).map((id) => {
      return { upstream, id, ...owned(owner), expiresAtMs: null, facts }
    })
    await this.objects.record(made)
    if (batch !== null) await withinTime(this.onBatch(object, reply))
  }
}

/** The id in the address that Google sends for the bytes of a file. */
function uploadIdIn(headers: IncomingHttpHeaders): string | undefined {
  const url = headers['x-goog-upload-url']
  return typeof url === 'string' && URL.canParse(url)
    ? (new URL(url).searchParams.get('upload_id') ?? undefined)
    : undefined
}

function owned({ accountId, keyId }: Owner): Owner {
  return { accountId, keyId }
}

function unreadableList(): GatewayError {
  return new GatewayError(
    'upstream_malformed',
    'The list of the upstream cannot be read, so that objects of other accounts could be in it (native_sharing: account).',
  )
}

// Removes objects of other accounts from a provider's list, by its bytes: the rest of the list passes
// unchanged. A long list is read in several turns of the event loop.

/** Bytes scanned, and items parsed, in one turn. */
const SLICE_BYTES = 256 * 1024
const SLICE_ITEMS = 500

interface Item {
  readonly from: number
  readonly to: number
  readonly id: string
}

/** A list with the objects that `areOwned` names; null if the body is no list that can be read. */
async function filterList(
  body: Buffer,
  areOwned: (ids: readonly string[]) => Promise<boolean[]>,
): Promise<Buffer | null> {
  const items = await itemsOf(body)
  if (items === null) return null
  const kept: boolean[] = []
  for (let at = 0; at < items.length; at += SLICE_ITEMS) {
    if (at > 0) await bodyTurns.next()
    kept.push(...(await areOwned(items.slice(at, at + SLICE_ITEMS).map(({ id }) => id))))
  }
  if (kept.every(Boolean)) return body
  return withoutOthers(body, items, kept)
}

async function itemsOf(body: Buffer): Promise<Item[] | null> {
  const ranges: { readonly from: number; readonly to: number }[] = []
  const scan = new MemberScan({
    isLines: false,
    selects: () => false,
    found: () => undefined,
    item: (from, to) => ranges.push({ from, to }),
  })
  for (let at = 0; at < body.length; at += SLICE_BYTES) {
    if (at > 0) await bodyTurns.next()
    if (!scan.write(body.subarray(at, at + SLICE_BYTES))) return null
  }
  if (!scan.end()) return null
  const items: Item[] = []
  for (const [at, { from, to }] of ranges.entries()) {
    if (at > 0 && at % SLICE_ITEMS === 0) await bodyTurns.next()
    items.push({ from, to, id: idOfItem(parseOrNull(body.toString('utf8', from, to))) ?? '' })
  }
  return items
}

function withoutOthers(body: Buffer, items: readonly Item[], kept: readonly boolean[]): Buffer {
  const parts: Buffer[] = []
  const comma = Buffer.from(',')
  let end = 0
  let isFirst = true
  const own = items.filter((_, at) => kept[at] === true)
  for (const [at, { from, to }] of items.entries()) {
    const between = body.toString('utf8', end, from)
    // Another array begins.
    if (at === 0 || !/^\s*,\s*$/.test(between)) {
      parts.push(Buffer.from(withOwnCursors(between, own)))
      isFirst = true
    }
    end = to
    if (kept[at] !== true) continue
    if (!isFirst) parts.push(comma)
    isFirst = false
    parts.push(body.subarray(from, to))
  }
  parts.push(Buffer.from(withOwnCursors(body.toString('utf8', end), own)))
  return Buffer.concat(parts)
}

/** The members with the first and last id of the page name objects of the account. */
function withOwnCursors(text: string, own: readonly Item[]): string {
  return text.replace(/"(first|last)_id"\s*:\s*"[^"]*"/g, (_, which: string) => {
    const item = which === 'first' ? own[0] : own.at(-1)
    return `"${which}_id":${JSON.stringify(item?.id ?? null)}`
  })
}
