/**
 * Stores responses, so that clients can continue, read and delete them by their ids. Each is encrypted with
 * the account and its id, so that no account can read the responses of another one and the store contains no
 * plain text. The client's format defines the stored values (`ClientCodec.storage`).
 */
import type { Identity } from '../../accounts/account.js'
import { namesModel, shortModelName } from '../../accounts/allowed-models.js'
import { GatewayError } from '../../errors.js'
import { isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { StoredItem, StoredReply, ReplyStorage } from '../../formats/chat/stored-reply.js'
import type { ResolvedEndpoint } from '../../formats/index.js'
import { stringifyExact } from '../../formats/wire/json/exact-numbers.js'
import { Seal } from '../../store/seal.js'
import type { SharedCache } from '../../store/store.js'
import type { HeldMemory } from '../body-memory.js'
import type { Exchange } from '../client-exchange.js'
import type { Call, KeepReply } from '../phases/call.js'
import { sendObject } from '../phases/relay.js'
import type { Delivery } from '../phases/phase-results.js'
import { withinTime } from '../reasoning/escrow.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { LARGE_BYTES } from '../streams/join-chunks.js'
import type { ConnectionResponses, StoredRecord } from './connection-responses.js'

/** The current settings. */
interface StoredResponsesSettings {
  /** How long a response is stored; 0: responses are not stored. */
  readonly storeSeconds: number
  /** Maximum number of values in the store's cache, which reasoning state uses too. */
  readonly maxEntries: number
  readonly maxBytes: number
}

/** The cache, settings and secret of the stored responses. */
interface StoredResponsesOptions {
  readonly cache: SharedCache
  readonly settings: () => StoredResponsesSettings
  readonly secret: string
  /** Wall clock, in ms: several processes compare times. */
  readonly now: () => number
}

/** One response with its conversation may use 1/64 of the cache's bytes, and at most 4 MiB. */
const REPLY_SHARE = 64
const MAX_BYTES = 4 * 1024 * 1024
/** One account may use 1/16 of the cache, counted in each process. */
const ACCOUNT_SHARE = 16
/** Maximum number of items of one response that clients can reference. */
const MAX_ITEMS = 256
const VERSION = 1

/** The account and the models of a key that reads stored responses. */
type Reader = Pick<Identity, 'accountId' | 'models'>

/** The key of a call, and the stored form of its format. */
interface StorageOwner {
  readonly reader: Reader
  readonly storage: ReplyStorage
  /** The responses of the WebSocket of the call; null over HTTP. */
  readonly kept: ConnectionResponses | null
}

/** The conversation of a call, and its size in bytes. */
interface Conversation {
  readonly input: readonly StoredItem[]
  readonly bytes: number
}

/** The stored responses that one process reads and writes. */
export class StoredResponses {
  private readonly options: StoredResponsesOptions
  private readonly seal: Seal
  private readonly shares: AccountShares

  constructor(options: StoredResponsesOptions) {
    this.options = options
    this.seal = new Seal(options.secret)
    this.shares = new AccountShares({
      limit: () => this.shareLimit(),
      remove: (name, nowMs) => this.put(name, '', nowMs),
    })
  }

  /**
   * Replaces references to stored responses in the call by their contents, and makes the call store its own
   * reply. Throws, or rejects with, `GatewayError`: `malformed_request` if a referenced response is not
   * stored, `forbidden` if the key may not use its model, `store_unavailable` if the store does not reply.
   */
  resume(x: Exchange): Call | Promise<Call> {
    const { call, identity: reader, held } = x
    const kept = x.turn?.kept ?? null
    const { storage } = call.clientCodec
    if (storage === undefined) return call
    const references = storage.references(call.body)
    if (references.previous === null && references.items.length === 0) {
      const conversation = { input: storage.inputOf(call.body), bytes: call.raw.length }
      return this.withStorage(call, { reader, storage, kept }, conversation)
    }
    return this.expanded(call, { reader, storage, kept, held }, references)
  }

  /**
   * The stored response, or null. Rejects with `forbidden` if the key may not use its model, and if the store
   * fails.
   */
  async find(reader: Reader, id: string): Promise<StoredReply | null> {
    const [text = null] = await this.read([this.nameOf(reader.accountId, 'reply', id)])
    const record = text === null ? null : recordIn(text)
    if (record !== null) assertReadable(reader, record.model, 'response_id')
    return record
  }

  /** Deletes the response with its items; false if there is none. Rejects as `find` does. */
  async remove(reader: Reader, id: string, storage: ReplyStorage): Promise<boolean> {
    const stored = await this.find(reader, id)
    if (stored === null) return false
    const { accountId } = reader
    const nowMs = this.options.now()
    const items = storage.outputOf(stored).slice(0, MAX_ITEMS)
    const ids = items.flatMap(({ item }) => storage.idOf(item) ?? [])
    const names = ids.map((itemId) => this.nameOf(accountId, 'item', itemId))
    for (const name of [this.nameOf(accountId, 'reply', id), ...names]) {
      await this.put(name, '', nowMs)
    }
    return true
  }

  private async expanded(
    call: Call,
    owner: StorageOwner & { readonly held: HeldMemory },
    { previous, items }: ReturnType<ReplyStorage['references']>,
  ): Promise<Call> {
    const { reader, storage, held, kept } = owner
    const { accountId } = reader
    const distinct = [...new Set(items)]
    const names = distinct.map((id) => this.nameOf(accountId, 'item', id))
    const known = previous === null ? null : (kept?.find(previous) ?? null)
    if (previous !== null && known === null) names.push(this.nameOf(accountId, 'reply', previous))
    const texts = names.length === 0 ? [] : await this.read(names)
    const knownBytes = known?.bytes ?? 0
    const bytes = texts.reduce((sum, text) => sum + (text?.length ?? 0), call.raw.length + knownBytes)
    held.take(2 * knownBytes)
    if (bytes > LARGE_BYTES) await bodyTurns.next()
    for (const text of texts) held.take(2 * (text?.length ?? 0))
    if (known !== null) assertReadable(reader, known.model, storage.previousParam)
    const last = previous === null ? null : (known ?? this.previousReply(texts.at(-1) ?? null, owner))
    const foundItems = new Map<string, StoredItem>()
    for (const [index, id] of distinct.entries()) {
      const item = itemIn(texts[index] ?? null, reader)
      if (item !== null) foundItems.set(id, item)
    }
    const history = last === null ? [] : [...last.input, ...storage.outputOf(last)]
    const { request, input, members, bodyFor } = storage.expand(call.body, history, foundItems)
    const resumed = { ...call, request, history: { members, bodyFor } }
    return this.withStorage(resumed, owner, { input, bytes })
  }

  private previousReply(text: string | null, { reader, storage }: StorageOwner): StoredReply {
    const { storeSeconds } = this.options.settings()
    const { previousParam } = storage
    const record = text === null ? null : recordIn(text)
    if (record !== null) {
      assertReadable(reader, record.model, previousParam)
      return record
    }
    const why =
      storeSeconds === 0
        ? 'the gateway stores none (responses.store_seconds is 0)'
        : text === null
          ? `it is unknown, expired (responses are stored for ${storeSeconds} seconds), created with store: false or by another account`
          : 'its conversation was too large to be stored'
    throw new GatewayError(
      'malformed_request',
      `${previousParam} names a response that is not stored here: ${why}. Send the whole conversation as input`,
      { param: previousParam, code: 'previous_response_not_found' },
    )
  }

  /**
   * The call, with a function that stores its reply if the client requests that, and keeps that of a
   * WebSocket.
   */
  private withStorage(call: Call, owner: StorageOwner, { input, bytes }: Conversation): Call {
    const { reader, storage, kept } = owner
    const { storeSeconds } = this.options.settings()
    const isStored = storeSeconds !== 0 && storage.shouldStore(call.body)
    if (!isStored && kept === null) return call
    // An input that is too large is not serialized.
    const isLarge = bytes > this.maxReplyBytes()
    const { accountId } = reader
    const { model } = call.request
    const own = isLarge ? null : input
    const keep: KeepReply = (reply, upstream) => {
      if (kept !== null) {
        const replyBytes = JSON.stringify(reply).length
        const sizes = { bytes: bytes + replyBytes, ownBytes: call.raw.length + replyBytes }
        const { id } = reply
        if (typeof id === 'string') kept.add(id, { input, reply, upstream, model, ...sizes })
      }
      if (!isStored) return Promise.resolve()
      return withinTime(this.keep(accountId, storage, { input: own, reply, upstream, model }))
    }
    return { ...call, keep }
  }

  /** Maximum size of the responses that one WebSocket keeps: the share of an account. */
  readonly connectionBytes = (): number => this.shareLimit().bytes

  /** Never rejects: a response that cannot be stored is still sent. */
  private async keep(
    accountId: string,
    storage: ReplyStorage,
    record: Omit<StoredRecord, 'input'> & { readonly input: readonly StoredItem[] | null },
  ): Promise<void> {
    const { id } = record.reply
    if (typeof id !== 'string') return
    const nowMs = this.options.now()
    const { input, reply, upstream, model } = record
    const tooLarge = JSON.stringify({ v: VERSION, tooLarge: true })
    const whole =
      input === null
        ? tooLarge
        : stringifyExact({ v: VERSION, upstream, model, input: input.map(packed), reply })
    const isTooLarge = input === null || whole.length > this.maxReplyBytes()
    const text = isTooLarge ? tooLarge : whole
    if (text.length > LARGE_BYTES) await bodyTurns.next()
    const entries = [{ name: this.nameOf(accountId, 'reply', id), text }]
    for (const outputItem of isTooLarge ? [] : storage.outputOf(record).slice(0, MAX_ITEMS)) {
      const itemId = storage.idOf(outputItem.item)
      if (itemId === null) continue
      const name = this.nameOf(accountId, 'item', itemId)
      entries.push({ name, text: stringifyExact({ ...packed(outputItem), m: model }) })
    }
    const expiresAtMs = nowMs + this.options.settings().storeSeconds * 1000
    try {
      for (const { name, text: value } of entries) await this.put(name, value, expiresAtMs)
      const sizes = entries.map((entry) => ({ name: entry.name, bytes: entry.text.length }))
      await this.shares.add(accountId, { sizes, expiresAtMs }, nowMs)
    } catch {
      // The store counts its failures; a client that references the response gets an error.
    }
  }

  private shareLimit(): ShareLimit {
    const { maxEntries, maxBytes } = this.options.settings()
    return { entries: maxEntries / ACCOUNT_SHARE, bytes: maxBytes / ACCOUNT_SHARE }
  }

  /** Maximum size of one response with its conversation. */
  private maxReplyBytes(): number {
    return Math.min(this.options.settings().maxBytes / REPLY_SHARE, MAX_BYTES)
  }

  private put(name: string, text: string, expiresAtMs: number): Promise<void> {
    const { maxEntries, maxBytes } = this.options.settings()
    const item = { name, value: this.seal.seal(name, text), expiresAtMs }
    const room = { entries: maxEntries, bytes: maxBytes }
    return this.options.cache.put(item, room, this.options.now())
  }

  private async read(names: readonly string[]): Promise<(string | null)[]> {
    const items = await this.options.cache.get(names, this.options.now())
    return names.map((name, index) => {
      const item = items[index] ?? null
      return item === null ? null : this.seal.open(name, item.value)
    })
  }

  private nameOf(accountId: string, kind: 'reply' | 'item', id: string): string {
    return this.seal.name(['stored', kind, accountId, id, ''])
  }
}

/** Null for a response that was too large to be stored, and for values of another version. */
function recordIn(text: string): StoredRecord | null {
  const value = objectOf(parsed(text))
  const { input, reply, upstream } = value
  if (value['v'] !== VERSION || !Array.isArray(input) || !isObject(reply)) return null
  // Records of earlier versions have only the model in the reply.
  const model = stringOf(value['model']) ?? stringOf(reply['model']) ?? ''
  return { input: input.map(unpacked), reply, upstream: stringOf(upstream) ?? null, model }
}

/** Throws `forbidden` if the key may not use the item's model. */
function itemIn(text: string | null, reader: Reader): StoredItem | null {
  if (text === null || text === '') return null
  const value = parsed(text)
  assertReadable(reader, stringOf(objectOf(value)['m']) ?? '', 'input')
  return unpacked(value)
}

/** A key reads only what models that it may use have written. */
function assertReadable({ models }: Reader, model: string, param: string): void {
  if (models === null || namesModel(models, model)) return
  throw new GatewayError(
    'forbidden',
    `This API key is not allowed to use the model '${shortModelName(model)}', which wrote the stored response.`,
    { param },
  )
}

function packed({ item, upstream }: StoredItem): JsonObject {
  return { i: item, u: upstream }
}

function unpacked(value: JsonValue): StoredItem {
  const { i: item = null, u: upstream } = objectOf(value)
  return { item, upstream: stringOf(upstream) ?? null }
}

function parsed(text: string | null): JsonValue {
  return text === null || text === '' ? null : (JSON.parse(text) as JsonValue)
}

/** Values that were written together and expire together. */
interface Batch {
  readonly sizes: readonly { readonly name: string; readonly bytes: number }[]
  readonly expiresAtMs: number
}

/** The maximum for one account. */
interface ShareLimit {
  readonly entries: number
  readonly bytes: number
}

interface Share {
  /** Oldest first. */
  readonly batches: Batch[]
  entries: number
  bytes: number
}

/**
 * Maximum number of tracked accounts. Beyond it, the account whose last write is oldest is no longer tracked.
 */
const MAX_ACCOUNTS = 10_000

/** The limit of the shares, and the cache of the values. */
interface AccountSharesOptions {
  /** The current limit. */
  readonly limit: () => ShareLimit
  /** Deletes a value from the cache. */
  readonly remove: (name: string, nowMs: number) => Promise<void>
}

/**
 * Tracks the share of the store's cache that each account uses with values of this process. An account that
 * exceeds its share loses its own oldest values.
 */
class AccountShares {
  private readonly shares = new Map<string, Share>()
  private readonly options: AccountSharesOptions

  constructor(options: AccountSharesOptions) {
    this.options = options
  }

  /**
   * Counts the values of a batch that was written to the cache, and removes the account's oldest values if it
   * exceeds its share. Rejects if `remove` does.
   */
  async add(accountId: string, batch: Batch, nowMs: number): Promise<void> {
    const limit = this.options.limit()
    const share = this.shares.get(accountId) ?? { batches: [], entries: 0, bytes: 0 }
    this.shares.delete(accountId)
    this.shares.set(accountId, share)
    share.batches.push(batch)
    count(share, batch, 1)
    const [oldest] = this.shares.keys()
    if (this.shares.size > MAX_ACCOUNTS && oldest !== undefined) this.shares.delete(oldest)
    const namesToRemove: string[] = []
    for (let [first] = share.batches; first !== undefined; [first] = share.batches) {
      const isOver = share.entries > limit.entries || share.bytes > limit.bytes
      const hasExpired = first.expiresAtMs <= nowMs
      if (!hasExpired && (!isOver || share.batches.length === 1)) break
      share.batches.shift()
      count(share, first, -1)
      if (!hasExpired) namesToRemove.push(...first.sizes.map(({ name }) => name))
    }
    for (const name of namesToRemove) await this.options.remove(name, nowMs)
  }
}

function count(share: Share, { sizes }: Batch, sign: 1 | -1): void {
  share.entries += sign * sizes.length
  for (const { bytes } of sizes) share.bytes += sign * bytes
}

/**
 * Sends or deletes a stored response. Rejects with `GatewayError(unknown_response)` if the account has no
 * such response, and with `forbidden` if the key may not use its model.
 *
 * Serves the endpoints that read and delete stored responses. Sends nothing to an upstream.
 */
export async function serveStoredResponse(
  x: Exchange,
  { endpoint, clientCodec }: ResolvedEndpoint,
  { identity, responses }: { readonly identity: Identity; readonly responses: StoredResponses },
): Promise<Delivery> {
  const { storage } = clientCodec
  const id = endpoint.model ?? ''
  if (storage === undefined) throw unknownResponse(id)
  if (x.req.method === 'DELETE') {
    if (!(await responses.remove(identity, id, storage))) throw unknownResponse(id)
    return sendObject(x, stringifyExact(storage.deletedReply(id)))
  }
  const stored = await responses.find(identity, id)
  if (stored === null) throw unknownResponse(id)
  const body = endpoint.operation === 'stored-input' ? storage.inputPage(id, stored) : stored.reply
  return sendObject(x, stringifyExact(body))
}

function unknownResponse(id: string): GatewayError {
  return new GatewayError(
    'unknown_response',
    `No response '${id}' is stored for this account: it is unknown, has expired, or was created with store: false.`,
    { param: 'response_id' },
  )
}
