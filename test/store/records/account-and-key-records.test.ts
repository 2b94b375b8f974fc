/**
 * Goal: records of earlier versions are read as their versions meant them.
 * Method: texts of such records.
 */
import t from 'tap'
import type { User } from '../../../src/accounts/account.js'
import {
  editedUser,
  readFormerLogin,
  readUser,
  writeUser,
} from '../../../src/store/records/account-and-key-records.js'

void t.test('earlier versions refuse the record of an unproven user', (t) => {
  const user: User = {
    ...{ id: 'usr_1', email: 'ada@example.com', role: 'admin', passwordHash: 'x', disabled: false },
    ...{ createdAtMs: 1, unproven: true },
  }
  t.match(JSON.parse(writeUser(user)), { v: 2, unproven: true })
  t.strictSame(readUser(writeUser(user)), user)
  const proven = editedUser(user, { unproven: null })
  t.notOk(proven !== null && 'unproven' in proven)
  t.match(proven === null ? {} : JSON.parse(writeUser(proven)), { v: 1 })
  t.end()
})

void t.test('the address of an earlier login keeps letters that Unicode maps to ASCII', (t) => {
  const account = {
    ...{ v: 1, id: 'acc_1', email: '\u212aAY@Example.com', plan: 'pro', role: 'owner' },
    ...{ passwordHash: 'x', disabled: false, createdAtMs: 1, order: 1, liveKeys: 0 },
  }
  const { user, member } = readFormerLogin(JSON.stringify(account))
  t.strictSame([user.email, member.email], ['\u212aay@example.com', '\u212aay@example.com'])
  t.end()
})
