/**
 * Which store an embedded one is: an id, made with the store and kept in it.
 */
import { randomBytes } from 'node:crypto'
import { storeLost } from './failure.js'
import { put, type LmdbEngine } from './lmdb-engine.js'

/** As in `Store`. */
export interface Identity {
  readonly id: string
  readonly isNew: boolean
}

/** The store's id, made where it has none; a store of an earlier version has accounts and no id. */
export async function identify(
  engine: LmdbEngine,
  expectedId: string | undefined,
): Promise<Identity> {
  const meta = engine.table('meta')
  const found = await engine.read('opening', () => meta.get('store-id'))
  if (expectedId !== undefined && found !== expectedId) {
    throw storeLost(found === undefined ? 'none' : 'another')
  }
  if (found !== undefined) return { id: found, isNew: false }
  const made = randomBytes(9).toString('base64url')
  return engine.write('opening', () => {
    const there = meta.get('store-id')
    if (there !== undefined) return { id: there, isNew: false }
    put(meta, 'store-id', made)
    return { id: made, isNew: meta.get('accounts') === undefined }
  })
}
