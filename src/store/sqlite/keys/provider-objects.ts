/** The owners of providers' objects in SQLite, limited for each account and in total. */
import { endOf, type ProviderObject, type ProviderObjects } from '../../provider-objects.js'
import type { StoreCapacity } from '../../store.js'
import { numberIn, textIn, type Row } from '../driver.js'
import { BATCH, inBatches, type Engine } from '../engine.js'
import { isName, numberOf } from '../read-records.js'

const PUT = `INSERT INTO provider_objects (upstream, id, account_id, key_id, expires_at_ms, facts)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (upstream, id) DO UPDATE SET account_id = ?3, key_id = ?4,
  expires_at_ms = ?5, facts = ?6 WHERE account_id = ?3 OR expires_at_ms <= ?7`
/** Removes the objects of an account that expire first. */
const TRIM = `DELETE FROM provider_objects WHERE place IN (
  SELECT place FROM provider_objects WHERE account_id = ?1 ORDER BY expires_at_ms, place LIMIT ?2)`
const SIZE = 'SELECT entries AS n FROM sizes WHERE name = ?'
const FIND = 'SELECT * FROM provider_objects WHERE upstream = ? AND id = ?'
const DELETE_EXPIRED = `DELETE FROM provider_objects WHERE place IN
  (SELECT place FROM provider_objects WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${BATCH})`

/** The objects of a store. */
export class SqliteProviderObjects implements ProviderObjects {
  private readonly engine: Engine
  private readonly capacity: StoreCapacity

  constructor(engine: Engine, capacity: StoreCapacity) {
    this.engine = engine
    this.capacity = capacity
  }

  async put(objects: readonly ProviderObject[], nowMs: number): Promise<void> {
    const { engine, capacity } = this
    if (objects.length === 0) return
    await engine.writeDurably("storing providers' objects", () => {
      const put = engine.prepare(PUT)
      for (const object of objects) {
        const { upstream, id, accountId, keyId, facts } = object
        if (isName(id)) put.run(upstream, id, accountId, keyId, endOf(object), facts, nowMs)
      }
      for (const accountId of new Set(objects.map((object) => object.accountId))) {
        const own = this.size(`objects of ${accountId}`) - capacity.providerObjectsPerAccount
        const all = this.size('objects') - capacity.providerObjects
        const surplus = Math.min(BATCH, Math.max(own, all))
        if (surplus > 0) engine.prepare(TRIM).run(accountId, surplus)
      }
    })
  }

  find(upstream: string, ids: readonly string[], nowMs: number): (ProviderObject | null)[] {
    return this.engine.readNow("reading providers' objects", () => {
      const select = this.engine.prepare(FIND)
      return ids.map((id) => {
        const row = isName(id) ? select.get(upstream, id) : undefined
        if (row === undefined || numberIn(row, 'expires_at_ms') <= nowMs) return null
        return objectIn(row)
      })
    })
  }

  async remove(upstream: string, id: string): Promise<void> {
    if (!isName(id)) return
    await this.engine.write("removing a provider's object", () =>
      this.engine.prepare('DELETE FROM provider_objects WHERE upstream = ? AND id = ?').run(upstream, id),
    )
  }

  async *all(): AsyncIterable<readonly ProviderObject[]> {
    const sql = `SELECT * FROM provider_objects WHERE place > ? ORDER BY place LIMIT ${BATCH}`
    for (let after = 0; ;) {
      const rows = await this.engine.read("reading providers' objects", () =>
        this.engine.prepare(sql).all(after),
      )
      const last = rows.at(-1)
      if (last === undefined) return
      yield rows.map(objectIn)
      after = numberIn(last, 'place')
    }
  }

  sweep(nowMs: number): Promise<number> {
    return inBatches(this.engine, 'removing expired objects of providers', () =>
      Number(this.engine.prepare(DELETE_EXPIRED).run(nowMs).changes),
    )
  }

  private size(name: string): number {
    return numberOf(this.engine.prepare(SIZE).get(name))
  }
}

function objectIn(row: Row): ProviderObject {
  const end = numberIn(row, 'expires_at_ms')
  return {
    upstream: textIn(row, 'upstream'),
    id: textIn(row, 'id'),
    accountId: textIn(row, 'account_id'),
    keyId: textIn(row, 'key_id'),
    expiresAtMs: end === Number.MAX_SAFE_INTEGER ? null : end,
    facts: textIn(row, 'facts'),
  }
}
