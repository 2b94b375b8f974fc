/**
 * Accounts in Redis. An account exists when the pointer of its e-mail exists, which is written last; lists
 * omit records without one.
 */
import type { Account } from '../../../accounts/account.js'
import { damaged, unavailable } from '../../errors.js'
import { writeAccount } from '../../records/account-and-key-records.js'
import { isAccountId, isName, type RedisEngine } from '../connection/engine.js'
import * as layout from './key-names.js'
import { KEY_SCRIPTS } from './key-names.js'
import {
  MISMATCH,
  EMPTY_PAGE,
  parseAccount,
  isCursor,
  listOf,
  stringsOf,
} from '../connection/parse-replies.js'
import type { RedisAuditTrail } from './audit-trail.js'
import type { AccountEdit, AccountOutcome, Page, PageQuery } from '../../store.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'

/** The part of `Store` that is about accounts. */
export class RedisAccounts {
  private readonly engine: RedisEngine
  private readonly trail: RedisAuditTrail

  constructor(engine: RedisEngine, trail: RedisAuditTrail) {
    this.engine = engine
    this.trail = trail
  }

  async create(account: Account, auditEntries: readonly AuditEntry[]): Promise<AccountOutcome> {
    const email = account.email.toLowerCase()
    if (!isAccountId(account.id) || !isName(email)) return 'bad_name'
    await this.engine.assertSameStore('creating an account')
    return this.trail.withAuditEntries(account.id, auditEntries, (entryArgs) =>
      this.put(account, email, entryArgs),
    )
  }

  private async put(
    account: Account,
    email: string,
    entryArgs: readonly string[],
  ): Promise<AccountOutcome> {
    const what = 'creating an account'
    const { admin, changes } = this.engine
    const own = [layout.accountKey(account.id)]
    const keys = [...own, layout.pendingAuditKey(account.id)]
    const args = [textOf(account), ...entryArgs]
    const put = await changes.prepareDurably(what, KEY_SCRIPTS.putAccount, { keys, args })
    const claim = [layout.emailKey(email)]
    if (put !== 1 && !(await this.isUnfinished(what, account, claim))) return 'id_taken'
    await changes.prepareDurably(what, KEY_SCRIPTS.listAccount, {
      keys: layout.ORDER_KEYS,
      args: [account.id],
    })
    const [claimed, owner] = listOf(
      await changes.runDurably(what, KEY_SCRIPTS.createPointer, {
        keys: claim,
        args: [account.id],
      }),
    )
    if (claimed === 1) return 'created'
    // Another process has finished the same account.
    if (owner === account.id) return 'id_taken'
    await admin.send(what, 'del', keys)
    await admin.send(what, 'zrem', [layout.ORDER_KEYS[0], account.id])
    return 'email_taken'
  }

  async byId(id: string): Promise<Account | null> {
    const what = 'reading an account'
    const text = await this.textOf(what, id)
    return text === null ? null : parseAccount(what, id, text)
  }

  async byEmail(email: string): Promise<Account | null> {
    const name = email.toLowerCase()
    const what = 'reading an account by its e-mail'
    const id = await this.engine.admin.send(what, 'get', [layout.emailKey(name)])
    if (id === null) {
      await this.engine.assertSameStore(what)
      return null
    }
    const account = typeof id === 'string' ? await this.byId(id) : null
    if (account === null) throw unavailable(`${what} failed`, damaged('an e-mail', MISMATCH))
    return account
  }

  async list({ order, after, limit }: PageQuery): Promise<Page<Account>> {
    if (!isCursor(after)) return EMPTY_PAGE
    const what = 'listing accounts'
    const start = after === null ? null : `(${after}`
    const [from, to] = order === 'newest_first' ? ['+inf', '-inf'] : ['-inf', '+inf']
    const command = order === 'newest_first' ? 'zrevrangebyscore' : 'zrangebyscore'
    // One more item shows whether there is another page.
    const page = [start ?? from, to, 'WITHSCORES', 'LIMIT', 0, limit + 1]
    const found = stringsOf(
      await this.engine.admin.send(what, command, [layout.ORDER_KEYS[0], ...page]),
    )
    if (found.length === 0) await this.engine.assertSameStore(what)
    const ids = found.filter((_, at) => at % 2 === 0).slice(0, limit)
    const listed = await Promise.all(ids.map((id) => this.listed(id)))
    const items = listed.filter((account) => account !== null)
    return { items, next: found.length > 2 * limit ? (found[2 * limit - 1] ?? null) : null }
  }

  async change(
    accountId: string,
    edit: AccountEdit,
    auditEntries: AuditEntriesOf<Account>,
  ): Promise<Account | null> {
    const what = 'changing an account'
    const keys = [layout.accountKey(accountId)]
    // A new password does not change the keys.
    const isPublished = edit.plan !== undefined || edit.disabled !== undefined
    const channel = isPublished ? this.engine.channel : ''
    for (;;) {
      const old = await this.textOf(what, accountId)
      if (old === null) return null
      const before = parseAccount(what, accountId, old)
      const account = { ...before, ...edit }
      const args = [old, textOf(account), channel]
      // If another change came in between, it is read again.
      const change = { accountId, keys, args, auditEntries: auditEntries(before, account) }
      const done = await this.trail.runDurably(what, KEY_SCRIPTS.replaceAccount, change)
      if (done === 1) return account
    }
  }

  /** Whether the record was left by a process that was killed before it wrote the pointer of the e-mail. */
  private async isUnfinished(what: string, account: Account, email: string[]): Promise<boolean> {
    if ((await this.engine.admin.send(what, 'get', email)) !== null) return false
    return (await this.textOf(what, account.id)) === textOf(account)
  }

  private async textOf(what: string, id: string): Promise<string | null> {
    const args = [layout.accountKey(id), 'account']
    const text = await this.engine.admin.send(what, 'hget', args)
    if (typeof text === 'string') return text
    await this.engine.assertSameStore(what)
    return null
  }

  /** Null for a record that was never finished: the pointer of its e-mail is missing, or another's. */
  private async listed(id: string): Promise<Account | null> {
    const account = await this.byId(id)
    if (account === null) return null
    const email = layout.emailKey(account.email.toLowerCase())
    const owner = await this.engine.admin.send('listing accounts', 'get', [email])
    return owner === id ? account : null
  }
}

/** Order and number of live keys are stored beside the record in Redis, not in it. */
function textOf(account: Account): string {
  return writeAccount({ account, order: 0, liveKeys: 0 })
}
