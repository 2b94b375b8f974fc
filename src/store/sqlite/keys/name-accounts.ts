/**
 * Gives the accounts of a store of version 6 names and users, and its keys unique names. Runs in the
 * transaction that changes the tables.
 */
import { hasName } from '../../../accounts/account.js'
import {
  readAccount,
  readFormerLogin,
  readKey,
  writeAccount,
  writeKey,
  writeMember,
  writeUser,
} from '../../records/account-and-key-records.js'
import { freeAccountName, renamedKeys } from '../../records/former-accounts.js'
import { numberIn, textIn, type Connection, type Row } from '../driver.js'

/** Only inside a transaction. A damaged record does not change, so that the store opens. */
export function nameAccounts(db: Connection): void {
  const rows = db.prepare('SELECT place, id, record FROM accounts ORDER BY place').all()
  const isTaken = db.prepare('SELECT 1 FROM accounts WHERE name = ?')
  const setName = db.prepare('UPDATE accounts SET name = ?, record = ? WHERE place = ?')
  const addUser = db.prepare('INSERT INTO users (id, email, record) VALUES (?, ?, ?)')
  const addMember = db.prepare('INSERT INTO members (account_id, email, user_id, record) VALUES (?, ?, ?, ?)')
  const freeName = (email: string): string =>
    freeAccountName(email, (name) => isTaken.get(name) !== undefined)
  for (const row of rows) {
    const [id, place, text] = [textIn(row, 'id'), numberIn(row, 'place'), textIn(row, 'record')]
    const former = attempt(() => ({ ...readAccount(text), ...readFormerLogin(text) }))
    if (former === null) {
      setName.run(freeName(''), text, place)
      continue
    }
    const { account, order, liveKeys, user, member } = former
    const name = freeName(user.email)
    setName.run(name, writeAccount({ account: { ...account, name }, order, liveKeys }), place)
    addUser.run(user.id, user.email, writeUser(user))
    addMember.run(id, user.email, user.id, writeMember(member))
    nameKeys(db, id)
  }
}

function nameKeys(db: Connection, accountId: string): void {
  const rows = db.prepare('SELECT record FROM keys WHERE account_id = ? ORDER BY place')
  const setKey = db.prepare('UPDATE keys SET name = ?, record = ? WHERE digest = ?')
  const keyOf = (row: Row) => attempt(() => readKey(textIn(row, 'record')))
  const keys = rows
    .all(accountId)
    .map(keyOf)
    .filter((key) => key !== null)
  const renamed = new Map(renamedKeys(keys, Date.now()).map((key) => [key.digest, key]))
  for (const former of keys) {
    if (!hasName(former)) continue
    const key = renamed.get(former.digest) ?? former
    setKey.run(key.name, writeKey(key), key.digest)
  }
}

function attempt<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}
