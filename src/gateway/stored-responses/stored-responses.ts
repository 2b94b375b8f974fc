/**
 * Answers that are kept, so that a client can go on from one by its id, read it and remove it.
 * Each is encrypted with the account and its id, so that no account can read the responses of another one, and the store
 * contains no plain text. The client's format defines what is stored (`Ingress.storage`).
 */
import { setImmediate as turn } from 'node:timers/promises'
import { isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../chat/json.js'
import type { ChatEvent } from '../../chat/event.js'
import type { StoredItem, StoredReply, ReplyStorage } from '../../chat/reply/stored-reply.js'
import type { Ingress, StreamEncoder } from '../../dialects/dialect.js'
import { GatewayError, type WireError } from '../../errors.js'
import { Seal } from '../../reasoning/seal.js'
import { withinTime } from '../../reasoning/within-time.js'
import type { SharedCache } from '../../store/store.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import type { SizedText } from '../../wire/frames/sized-text.js'
import type { Holding } from '../bodies/body-budget.js'
import { AccountShares } from './account-shares.js'
import type { Call, KeepReply } from '../phases/receive.js'
import { LARGE_BYTES } from '../bodies/join-chunks.js'

/** The settings in force. */
export interface StoredResponsesSettings {
  /** How long an answer is kept; 0: none is. */
  readonly storeSeconds: number
  /** Of the store's shelf, which reasoning state is kept on as well. */
  readonly maxEntries: number
  readonly maxBytes: number
}

/** What the kept answers are made of. */
export interface StoredResponsesOptions {
  readonly shelf: SharedCache
  readonly settings: () => StoredResponsesSettings
  readonly secret: string
  /** Wall clock, in ms: several processes compare times. */
  readonly now: () => number
}

/** One answer with its conversation may have so much of the shelf's bytes, and never more than this. */
const SHARE = 64
const MAX_BYTES = 4 * 1024 * 1024
/** One account may have so much of the shelf, for each process. */
const ACCOUNT_SHARE = 16
/** Most parts of one answer that can be named. */
const MAX_NAMED = 256
const VERSION = 1

/** One per process. */
export class StoredResponses {
  private readonly options: StoredResponsesOptions
  private readonly seal: Seal
  private readonly shares: AccountShares

  constructor(options: StoredResponsesOptions) {
    this.options = options
    this.seal = new Seal(options.secret)
    this.shares = new AccountShares((name, nowMs) => this.put(name, '', nowMs))
  }

  /**
   * The call with what it names of kept answers in place of the names, and prepared to keep its own. Throws, or rejects
   * with, `GatewayError`: `malformed_request` for what is not kept, `store_unavailable` if the store does not answer.
   */
  resume(call: Call, accountId: string, held: Holding): Call | Promise<Call> {
    const { storage } = call.ingress
    if (storage === undefined) return call
    const named = storage.references(call.body)
    if (named.previous === null && named.items.length === 0) {
      const conversation = { input: storage.inputOf(call.body), bytes: call.raw.length }
      return this.keeping(call, accountId, storage, conversation)
    }
    return this.expanded(call, { accountId, held }, storage, named)
  }

  /** The answer, or null. Rejects as the store does. */
  async find(accountId: string, id: string): Promise<StoredReply | null> {
    const [text = null] = await this.read([this.nameOf(accountId, 'reply', id)])
    return text === null ? null : recordIn(text)
  }

  /** Removes the answer; false if there is none. Rejects as the store does. */
  async remove(accountId: string, id: string, storage: ReplyStorage): Promise<boolean> {
    const kept = await this.find(accountId, id)
    if (kept === null) return false
    const nowMs = this.options.now()
    const items = storage.outputOf(kept).slice(0, MAX_NAMED)
    const ids = items.flatMap(({ item }) => storage.idOf(item) ?? [])
    const names = ids.map((each) => this.nameOf(accountId, 'item', each))
    for (const name of [this.nameOf(accountId, 'reply', id), ...names]) {
      await this.put(name, '', nowMs)
    }
    return true
  }

  private async expanded(
    call: Call,
    { accountId, held }: { readonly accountId: string; readonly held: Holding },
    storage: ReplyStorage,
    { previous, items }: ReturnType<ReplyStorage['references']>,
  ): Promise<Call> {
    const distinct = [...new Set(items)]
    const names = distinct.map((id) => this.nameOf(accountId, 'item', id))
    if (previous !== null) names.push(this.nameOf(accountId, 'reply', previous))
    const texts = await this.read(names)
    const bytes = texts.reduce((sum, text) => sum + (text?.length ?? 0), call.raw.length)
    if (bytes > LARGE_BYTES) await turn()
    for (const text of texts) held.take(2 * (text?.length ?? 0))
    const last = previous === null ? null : this.recordOr(texts.at(-1) ?? null, storage)
    const found = new Map<string, StoredItem>()
    for (const [at, id] of distinct.entries()) {
      const kept = itemIn(texts[at] ?? null)
      if (kept !== null) found.set(id, kept)
    }
    const before = last === null ? [] : [...last.input, ...storage.outputOf(last)]
    const { request, input, members, bodyFor } = storage.expand(call.body, before, found)
    const resumed = { ...call, request, history: { members, bodyFor } }
    return this.keeping(resumed, accountId, storage, { input, bytes })
  }

  private recordOr(text: string | null, { previousParam }: ReplyStorage): StoredReply {
    const { storeSeconds } = this.options.settings()
    const record = text === null ? null : recordIn(text)
    if (record !== null) return record
    const why =
      storeSeconds === 0
        ? 'the gateway keeps none (responses.store_seconds is 0)'
        : text === null
          ? `it is unknown, expired (answers are kept for ${storeSeconds} seconds), made with store: false or by another account`
          : 'its conversation was too large to be kept'
    throw new GatewayError(
      'malformed_request',
      `${previousParam} names a response that is not kept here: ${why}. Send the whole conversation as input`,
      { param: previousParam },
    )
  }

  /** The call, with what keeps its answer if that is wanted. */
  private keeping(
    call: Call,
    accountId: string,
    storage: ReplyStorage,
    { input, bytes }: { readonly input: readonly StoredItem[]; readonly bytes: number },
  ): Call {
    const { storeSeconds } = this.options.settings()
    if (storeSeconds === 0 || !storage.shouldStore(call.body)) return call
    // A body that is too large is not even written.
    const isLarge = bytes > this.mostBytes()
    const keep: KeepReply = (reply, upstream) =>
      withinTime(this.keep(accountId, storage, { input: isLarge ? null : input, reply, upstream }))
    return { ...call, keep }
  }

  /** Never rejects: a response that cannot be stored is still sent. */
  private async keep(
    accountId: string,
    storage: ReplyStorage,
    record: Omit<StoredReply, 'input'> & { readonly input: readonly StoredItem[] | null },
  ): Promise<void> {
    const { id } = record.reply
    if (typeof id !== 'string') return
    const { maxBytes, maxEntries } = this.options.settings()
    const nowMs = this.options.now()
    const { input, reply, upstream } = record
    const tooLarge = JSON.stringify({ v: VERSION, tooLarge: true })
    const whole =
      input === null
        ? tooLarge
        : stringifyExact({ v: VERSION, upstream, input: input.map(packed), reply })
    const isTooLarge = input === null || whole.length > this.mostBytes()
    const text = isTooLarge ? tooLarge : whole
    if (text.length > LARGE_BYTES) await turn()
    const entries = [{ name: this.nameOf(accountId, 'reply', id), text }]
    for (const kept of isTooLarge ? [] : storage.outputOf(record).slice(0, MAX_NAMED)) {
      const part = storage.idOf(kept.item)
      if (part === null) continue
      const name = this.nameOf(accountId, 'item', part)
      entries.push({ name, text: stringifyExact(packed(kept)) })
    }
    const expiresAtMs = nowMs + this.options.settings().storeSeconds * 1000
    const room = { entries: maxEntries / ACCOUNT_SHARE, bytes: maxBytes / ACCOUNT_SHARE }
    try {
      for (const { name, text: value } of entries) await this.put(name, value, expiresAtMs)
      const sizes = entries.map((each) => ({ name: each.name, bytes: each.text.length }))
      await this.shares.add(accountId, { sizes, expiresAtMs }, room, nowMs)
    } catch {
      // The store counts its failures; a client that references the response gets an error.
    }
  }

  /** Of one answer with its conversation. */
  private mostBytes(): number {
    return Math.min(this.options.settings().maxBytes / SHARE, MAX_BYTES)
  }

  private put(name: string, text: string, expiresAtMs: number): Promise<void> {
    const { maxEntries, maxBytes } = this.options.settings()
    const item = { value: this.seal.seal(name, text), expiresAtMs }
    const room = { entries: maxEntries, bytes: maxBytes }
    return this.options.shelf.put(name, item, room, this.options.now())
  }

  private async read(names: readonly string[]): Promise<(string | null)[]> {
    const items = await this.options.shelf.get(names, this.options.now())
    return names.map((name, at) => {
      const item = items[at] ?? null
      return item === null ? null : this.seal.open(name, item.value)
    })
  }

  private nameOf(accountId: string, kind: 'reply' | 'item', id: string): string {
    return this.seal.name(['stored', kind, accountId, id, ''])
  }
}

/** Null for what was too large to be kept, and for what another version wrote. */
function recordIn(text: string): StoredReply | null {
  const value = objectOf(parsed(text))
  const { input, reply, upstream } = value
  if (value['v'] !== VERSION || !Array.isArray(input) || !isObject(reply)) return null
  return { input: input.map(unpacked), reply, upstream: stringOf(upstream) ?? null }
}

function itemIn(text: string | null): StoredItem | null {
  return text === null || text === '' ? null : unpacked(parsed(text))
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

/** The call whose answer is kept if that is wanted; `hold` gets what the end of the reply is to wait for. */
export function keptBy(call: Call, hold: (kept: Promise<void>) => void): Call {
  const { keep } = call
  if (keep === undefined) return call
  const held: KeepReply = (reply, upstream) => {
    const kept = keep(reply, upstream)
    hold(kept)
    return kept
  }
  const ingress = keepingIngress(call.ingress, (reply) => void held(reply, null))
  return { ...call, keep: held, ingress }
}

/** The client's format; `onReply` gets the reply that the client gets, before its last bytes are written. */
function keepingIngress(ingress: Ingress, onReply: (reply: JsonObject) => void): Ingress {
  const report = (body: SizedText): SizedText => {
    onReply(objectOf(JSON.parse(body.text)))
    return body
  }
  return {
    ...ingress,
    encodeReply: (...args) => report(ingress.encodeReply(...args)),
    encodeChoices: (...args) => report(ingress.encodeChoices(...args)),
    newEncoder: (...args) => new KeepingEncoder(ingress.newEncoder(...args), onReply),
  }
}

/** Tells the whole reply when the stream ends well. */
class KeepingEncoder implements StreamEncoder {
  private readonly encoder: StreamEncoder
  private readonly onReply: (reply: JsonObject) => void

  constructor(encoder: StreamEncoder, onReply: (reply: JsonObject) => void) {
    this.encoder = encoder
    this.onReply = onReply
  }

  event(event: ChatEvent): void {
    this.encoder.event(event)
    if (event.type !== 'finish') return
    const { response = null } = this.encoder
    if (response !== null) this.onReply(objectOf(JSON.parse(response)))
  }

  take(): string {
    return this.encoder.take()
  }

  failed(error: WireError): string | null {
    return this.encoder.failed?.(error) ?? null
  }
}
