/**
 * The pointers of keys in Redis, from a digest and an id to the account. They are written before the key: if
 * the process is killed then, they point to no record, which is an unknown key, and the next process that
 * needs one of them deletes them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiKey } from '../../../accounts/account.js'
import type { RedisEngine } from '../connection/redis-engine.js'
import { listOf } from '../connection/parse-replies.js'
import { accountKey, digestKey, idKey, KEY_SCRIPTS } from './key-names.js'

/** What a pointer needs of a key. */
type Pointed = Pick<ApiKey, 'accountId' | 'id' | 'digest'>

/** A pointer that has no record for this long is of a process that was killed. */
const CLAIM_MS = 10_000
const CLAIM_POLL_MS = 20
/** Pointers that are written at the same time. */
const AT_ONCE = 64

/** A pointer, and the value that names its key. */
interface Claim {
  readonly pointer: string
  readonly owner: string
}

/**
 * Claims the pointers of the keys; if another key has one, takes all back and resolves with false. While
 * another process writes the key of one, it holds none, so that two processes never wait for each other.
 */
export async function claimPointers(
  engine: RedisEngine,
  what: string,
  keys: readonly Pointed[],
): Promise<boolean> {
  const wanted = keys.flatMap((key) =>
    pointersOf(key).map((pointer): Claim => ({ pointer, owner: ownerOf(key) })),
  )
  for (let waitedMs = 0; ; waitedMs += CLAIM_POLL_MS) {
    const made: Claim[] = []
    const foreign: Claim[] = []
    await inParts(wanted, async (claim) => {
      const { pointer, owner } = claim
      const parameters = { keys: [pointer], args: [owner] }
      const answer = await engine.changes.prepareDurably(what, KEY_SCRIPTS.createPointer, parameters)
      const [claimed, other] = listOf(answer)
      if (claimed === 1) made.push(claim)
      else if (other !== owner) foreign.push({ pointer, owner: String(other) })
    })
    if (foreign.length === 0) return true
    await inParts(made, (claim) => release(engine, what, claim))
    for (const claim of foreign) {
      if (await hasRecord(engine, what, claim)) return false
      if (waitedMs >= CLAIM_MS) await release(engine, what, claim)
    }
    await sleep(CLAIM_POLL_MS * (1 + Math.random()))
  }
}

async function inParts<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) {
    await Promise.all(items.slice(at, at + AT_ONCE).map(work))
  }
}

/** Whether the key of the pointer is written, and not only claimed. */
async function hasRecord(engine: RedisEngine, what: string, { owner }: Claim): Promise<boolean> {
  const [accountId = '', id = ''] = owner.split(' ')
  const field = [accountKey(accountId), `id:${id}`]
  return (await engine.admin.send(what, 'hexists', field)) === 1
}

/** Deletes the pointers of these keys. */
export async function releasePointers(
  engine: RedisEngine,
  what: string,
  keys: readonly Pointed[],
): Promise<void> {
  const all = keys.flatMap((key) =>
    pointersOf(key).map((pointer): Claim => ({ pointer, owner: ownerOf(key) })),
  )
  await inParts(all, (claim) => release(engine, what, claim))
}

async function release(engine: RedisEngine, what: string, { pointer, owner }: Claim): Promise<void> {
  await engine.admin.run(what, KEY_SCRIPTS.deletePointer, { keys: [pointer], args: [owner] })
}

function pointersOf({ id, digest }: Pointed): string[] {
  return [idKey(id), digestKey(digest)]
}

/** The value of a key's pointers. */
function ownerOf({ accountId, id, digest }: Pointed): string {
  return `${accountId} ${id} ${digest}`
}
