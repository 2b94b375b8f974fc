/**
 * Goal: records of earlier versions are read as their versions meant them.
 * Method: texts of such records.
 */
import t from 'tap'
import { readFormerLogin } from '../../../src/store/records/account-and-key-records.js'

void t.test('the address of an earlier login keeps letters that Unicode maps to ASCII', (t) => {
  const account = {
    ...{ v: 1, id: 'acc_1', email: '\u212aAY@Example.com', plan: 'pro', role: 'owner' },
    ...{ passwordHash: 'x', disabled: false, createdAtMs: 1, order: 1, liveKeys: 0 },
  }
  const { user, member } = readFormerLogin(JSON.stringify(account))
  t.strictSame([user.email, member.email], ['\u212aay@example.com', '\u212aay@example.com'])
  t.end()
})
