/**
 * The pointers of keys in Redis, from a digest and an id to the account. They are written before the key: if
 * the process is killed then, they point to no record, which is an unknown key.
 */
import type { ApiKey } from '../../../accounts/account.js'
import type { RedisEngine } from '../connection/engine.js'
import { listOf } from '../connection/parse-replies.js'
import { digestKey, idKey, KEY_SCRIPTS } from './key-names.js'

/** What a pointer needs of a key. */
type Pointed = Pick<ApiKey, 'accountId' | 'id' | 'digest'>

/** Claims the pointers of the keys; if another key has one, takes all back and resolves with false. */
export async function claimPointers(
  engine: RedisEngine,
  what: string,
  keys: readonly Pointed[],
): Promise<boolean> {
  const made: { readonly pointer: string; readonly owner: string }[] = []
  for (const key of keys) {
    for (const pointer of pointersOf(key)) {
      const claim = { keys: [pointer], args: [ownerOf(key)] }
      const answer = await engine.changes.prepareDurably(what, KEY_SCRIPTS.createPointer, claim)
      const [claimed, owner] = listOf(answer)
      if (claimed === 1) made.push({ pointer, owner: ownerOf(key) })
      else if (owner !== ownerOf(key)) {
        for (const each of made) await release(engine, what, each)
        return false
      }
    }
  }
  return true
}

/** Deletes the pointers of these keys. */
export async function releasePointers(
  engine: RedisEngine,
  what: string,
  keys: readonly Pointed[],
): Promise<void> {
  for (const key of keys) {
    for (const pointer of pointersOf(key)) {
      await release(engine, what, { pointer, owner: ownerOf(key) })
    }
  }
}

async function release(
  engine: RedisEngine,
  what: string,
  { pointer, owner }: { readonly pointer: string; readonly owner: string },
): Promise<void> {
  await engine.admin.run(what, KEY_SCRIPTS.deletePointer, { keys: [pointer], args: [owner] })
}

function pointersOf({ id, digest }: Pointed): string[] {
  return [idKey(id), digestKey(digest)]
}

/** The value of a key's pointers. */
function ownerOf({ accountId, id, digest }: Pointed): string {
  return `${accountId} ${id} ${digest}`
}
