/**
 * Objects that clients created at a provider (files, batches, caches, containers, stored responses), and the
 * account that created each: several accounts share one account at the provider.
 */

export interface ProviderObject {
  /** The name of the upstream in the configuration. */
  readonly upstream: string
  /** The provider's id, or its resource name (`files/abc`); 1 to 400 characters without spaces. */
  readonly id: string
  readonly accountId: string
  /** The key that created it. */
  readonly keyId: string
  /** Null: the provider keeps it until it is deleted. */
  readonly expiresAtMs: number | null
  /** What the gateway needs later, as JSON; at most `MAX_FACTS` characters, '' for nothing. */
  readonly facts: string
}

/** Maximum length of `ProviderObject.facts`. */
export const MAX_FACTS = 8_192

/** Maximum number of objects that one call stores or finds. */
export const MAX_OBJECTS_AT_ONCE = 1_000

/**
 * Owners of objects. Methods fail as those of `Store` do. A stored object survives a crash of the machine,
 * because its owner could not use it otherwise.
 */
export interface ProviderObjects {
  /**
   * Stores objects of one account. An object of another account that has not expired stays unchanged. If the
   * account, or the store, then has more than its maximum, the account's objects that expire first are
   * removed.
   */
  put(objects: readonly ProviderObject[], nowMs: number): Promise<void>
  /**
   * Objects in the order of the ids; null for one that is unknown or has expired. The SQLite engine answers
   * synchronously and throws where Redis rejects.
   */
  find(
    upstream: string,
    ids: readonly string[],
    nowMs: number,
  ): (ProviderObject | null)[] | Promise<(ProviderObject | null)[]>
  /** Removes an object. */
  remove(upstream: string, id: string): Promise<void>
  /** Every object, in batches, in no order. */
  all(): AsyncIterable<readonly ProviderObject[]>
  /** Removes expired objects; returns their number. */
  sweep(nowMs: number): Promise<number>
}

/** The expiry of an object in an index; objects without one sort last. */
export function endOf({ expiresAtMs }: Pick<ProviderObject, 'expiresAtMs'>): number {
  return expiresAtMs ?? Number.MAX_SAFE_INTEGER
}
