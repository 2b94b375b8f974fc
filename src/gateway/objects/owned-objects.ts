/**
 * Checks and records which account owns an object at an upstream, for upstreams with `native_sharing:
 * account`.
 */
import type { Identity } from '../../accounts/account.js'
import { GatewayError } from '../../errors.js'
import { withinTime } from '../reasoning/escrow.js'
import {
  MAX_OBJECTS_AT_ONCE,
  type ProviderObject,
  type ProviderObjects,
} from '../../store/provider-objects.js'

/** The store, and the wall clock in ms. */
interface OwnedObjectsOptions {
  readonly store: ProviderObjects
  readonly now: () => number
}

/** Maximum length of an id; a longer one is unknown. */
const MAX_ID = 400
/** A failed write is repeated after this time, this many times. */
const RETRY_MS = 2_000
const RETRIES = 30
/** Objects whose write is being repeated. */
const MAX_WAITING = 10_000

/** The account and key of a request. */
export type Owner = Pick<Identity, 'accountId' | 'keyId'>

/** The owners that one process checks and records. */
export class OwnedObjects {
  private readonly options: OwnedObjectsOptions
  private waiting = 0

  constructor(options: OwnedObjectsOptions) {
    this.options = options
  }

  /** The wall clock. */
  nowMs(): number {
    return this.options.now()
  }

  /**
   * The account's objects with these ids. Rejects with `unknown_object` if one is unknown or belongs to
   * another account, and with `store_unavailable`.
   */
  async owned(upstream: string, accountId: string, ids: readonly string[]): Promise<ProviderObject[]> {
    const distinct = [...new Set(ids)]
    const found = await this.find(upstream, distinct)
    return found.map((object, at) => {
      if (object?.accountId === accountId) return object
      throw unknownObject(distinct[at] ?? '', upstream)
    })
  }

  /** For each id whether the object belongs to the account. */
  async isOwned(upstream: string, accountId: string, ids: readonly string[]): Promise<boolean[]> {
    const found = await this.find(upstream, ids)
    return found.map((object) => object?.accountId === accountId)
  }

  /** For each id whether the object is known to belong to another account. */
  async isForeign(upstream: string, accountId: string, ids: readonly string[]): Promise<boolean[]> {
    const found = await this.find(upstream, ids)
    return found.map((object) => object !== null && object.accountId !== accountId)
  }

  /**
   * Stores the owner of objects. Waits at most 500 ms; a failed write is repeated. Never rejects, because the
   * objects exist already.
   */
  record(objects: readonly ProviderObject[]): Promise<void> {
    const valid = objects.filter(({ id }) => id.length <= MAX_ID)
    return valid.length === 0 ? Promise.resolve() : withinTime(this.put(valid, RETRIES))
  }

  /** Removes the record of a deleted object. Never rejects: the record of one that is gone is harmless. */
  remove(upstream: string, id: string): Promise<void> {
    return withinTime(this.options.store.remove(upstream, id).catch(() => undefined))
  }

  private async find(upstream: string, ids: readonly string[]): Promise<(ProviderObject | null)[]> {
    const { store, now } = this.options
    const found: (ProviderObject | null)[] = []
    for (let at = 0; at < ids.length; at += MAX_OBJECTS_AT_ONCE) {
      const batch = ids.slice(at, at + MAX_OBJECTS_AT_ONCE)
      found.push(...(await store.find(upstream, batch, now())))
    }
    return found
  }

  private async put(objects: readonly ProviderObject[], retries: number): Promise<void> {
    try {
      await this.options.store.put(objects, this.options.now())
    } catch {
      if (retries === 0 || this.waiting + objects.length > MAX_WAITING) return
      this.waiting += objects.length
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())
      this.waiting -= objects.length
      await this.put(objects, retries - 1)
    }
  }
}

/** The error of an id that the account may not use; the same for ids of others and unknown ids. */
export function unknownObject(id: string, upstream: string): GatewayError {
  const shown = /^[\w./:-]{1,100}$/.test(id) ? `'${id}'` : 'with this id'
  return new GatewayError(
    'unknown_object',
    `No object ${shown} of this account exists at the upstream "${upstream}": it is unknown, has expired, or another account created it.`,
  )
}
