/**
 * The pointers of keys in Redis, from a digest and an id to the account. They are written before the key: if
 * the process is killed then, they point to no record, which is an unknown key, and the next process that
 * needs one of them deletes them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiKey } from '../../../accounts/account.js'
import type { RedisEngine } from '../connection/engine.js'
import { listOf } from '../connection/parse-replies.js'
import { accountKey, digestKey, idKey, KEY_SCRIPTS } from './key-names.js'

/** What a pointer needs of a key. */
type Pointed = Pick<ApiKey, 'accountId' | 'id' | 'digest'>

/** A pointer that has no record for this long is of a process that was killed. */
const CLAIM_MS = 10_000
const CLAIM_POLL_MS = 20

/** Claims the pointers of the keys; if another key has one, takes all back and resolves with false. */
export async function claimPointers(
  engine: RedisEngine,
  what: string,
  keys: readonly Pointed[],
): Promise<boolean> {
  const made: { readonly pointer: string; readonly owner: string }[] = []
  // In one order: two processes that claim the same keys never wait for each other.
  const inOrder = [...keys].sort((a, b) => (a.digest < b.digest ? -1 : 1))
  for (const key of inOrder) {
    for (const pointer of pointersOf(key)) {
      const answer = await claimPointer(engine, what, pointer, ownerOf(key))
      if (answer === 'made') made.push({ pointer, owner: ownerOf(key) })
      else if (answer === 'taken') {
        for (const each of made) await release(engine, what, each)
        return false
      }
    }
  }
  return true
}

/** `own`: the key has the pointer already. Waits for another process that writes the key of the pointer. */
async function claimPointer(
  engine: RedisEngine,
  what: string,
  pointer: string,
  owner: string,
): Promise<'made' | 'own' | 'taken'> {
  const claim = { keys: [pointer], args: [owner] }
  for (let waitedMs = 0; ; waitedMs += CLAIM_POLL_MS) {
    const answer = await engine.changes.prepareDurably(what, KEY_SCRIPTS.createPointer, claim)
    const [claimed, other] = listOf(answer)
    if (claimed === 1) return 'made'
    if (other === owner) return 'own'
    const [accountId = '', id = ''] = String(other).split(' ')
    const record = [accountKey(accountId), `id:${id}`]
    if ((await engine.admin.send(what, 'hexists', record)) === 1) return 'taken'
    if (waitedMs < CLAIM_MS) await sleep(CLAIM_POLL_MS)
    else await release(engine, what, { pointer, owner: String(other) })
  }
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
