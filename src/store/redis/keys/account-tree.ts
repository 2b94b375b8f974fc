/**
 * The names and parents of all accounts in Redis, in one slot of a Cluster. An account exists if it has a
 * name here; its record has the same name and parent.
 */
import { MAX_LEVELS, type Account } from '../../../accounts/account.js'
import type { AccountConflict, AccountsByName } from '../../account-changes.js'
import type { RedisEngine } from '../connection/redis-engine.js'
import { listOf, stringsOf } from '../connection/parse-replies.js'
import { accountKey, childrenKey, KEY_SCRIPTS, TREE_KEYS } from './key-names.js'

const [NAMES, IDS, BY_NAME, PARENTS] = TREE_KEYS
const CONFLICTS = [
  ...(['name_taken', 'no_parent', 'parent_loop', 'too_deep'] as const),
  ...(['has_children', 'email_taken'] as const),
]

/** Whether a step is the last of its change, and what its error states then. */
export type Step = 'prepareDurably' | 'runDurably'

/** The tree of a store. */
export class AccountTree {
  private readonly engine: RedisEngine

  constructor(engine: RedisEngine) {
    this.engine = engine
  }

  /** Gives the account its name and parent, or changes its parent. Null, or the rule that it breaks. */
  async place(
    what: string,
    account: Account,
    step: Step = 'prepareDurably',
  ): Promise<AccountConflict | null> {
    const { id, name, parentId } = account
    const args = ['place', id, name, parentId ?? '', MAX_LEVELS]
    const [code, owner] = await this.run(what, args, step)
    if (code === 'name_taken' && owner !== undefined && (await this.isPurged(what, owner))) {
      // The process that removed the account was killed before it freed the name.
      await this.remove(what, owner)
      return this.place(what, account, step)
    }
    return conflictIn(code)
  }

  /** Refuses new children, and the name of a new account, from now on; `has_children` if there are any. */
  async close(what: string, id: string): Promise<AccountConflict | null> {
    return conflictIn((await this.run(what, ['close', id]))[0])
  }

  /** Takes `close` back. */
  async open(what: string, id: string): Promise<void> {
    await this.run(what, ['open', id])
  }

  /** Frees the name. */
  async remove(what: string, id: string): Promise<void> {
    await this.run(what, ['remove', id])
  }

  /** The name; null if the account does not exist. */
  async nameOf(what: string, id: string): Promise<string | null> {
    const name = await this.engine.admin.send(what, 'hget', [NAMES, id])
    return typeof name === 'string' ? name : null
  }

  /** The id of the account with the name; null if there is none. */
  async idOf(what: string, name: string): Promise<string | null> {
    const id = await this.engine.admin.send(what, 'hget', [IDS, name])
    return typeof id === 'string' ? id : null
  }

  /** The parent of an account in the tree; undefined for none. */
  async parentOf(what: string, id: string): Promise<string | undefined> {
    const parent = await this.engine.admin.send(what, 'hget', [PARENTS, id])
    return typeof parent === 'string' ? parent : undefined
  }

  async children(what: string, id: string): Promise<string[]> {
    return stringsOf(await this.engine.admin.send(what, 'smembers', [childrenKey(id)]))
  }

  /** Ids in the order of the names, and the cursor of the next page. */
  async page(
    what: string,
    { after, limit }: AccountsByName,
  ): Promise<{ readonly ids: readonly string[]; readonly next: string | null }> {
    const { admin } = this.engine
    const range = [BY_NAME, after === null ? '-' : `(${after}`, '+', 'LIMIT', 0, limit + 1]
    const names = stringsOf(await admin.send(what, 'zrangebylex', range))
    if (names.length === 0) await this.engine.assertSameStore(what)
    const own = names.slice(0, limit)
    const ids = own.length === 0 ? [] : listOf(await admin.send(what, 'hmget', [IDS, ...own]))
    const next = names.length > limit ? (own.at(-1) ?? null) : null
    return { ids: ids.filter((id) => typeof id === 'string'), next }
  }

  private async isPurged(what: string, id: string): Promise<boolean> {
    return (await this.engine.admin.send(what, 'hexists', [accountKey(id), 'purged'])) === 1
  }

  private async run(
    what: string,
    args: readonly (string | number)[],
    step: Step = 'prepareDurably',
  ): Promise<string[]> {
    const parameters = { keys: TREE_KEYS, args }
    return stringsOf(await this.engine.changes[step](what, KEY_SCRIPTS.accountTree, parameters))
  }
}

function conflictIn(code: string | undefined): AccountConflict | null {
  return CONFLICTS.find((each) => each === code) ?? null
}
