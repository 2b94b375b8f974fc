/**
 * Goal: a move of an account whose process was killed halfway does not allow a loop of parents later.
 * Method: the tree as such a process leaves it, and a move in the other direction.
 */
import { putAccount } from '../../helpers/store-changes.js'
import t from 'tap'
import type { Account } from '../../../src/accounts/account.js'
import { openStore } from '../../../src/store/open-store.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { anAccount } from '../contract/sample-records.js'

const skip = redisMissing()

void t.test('a move that was interrupted is finished by the next one', { skip }, async (t) => {
  const redis = await startRedis(t)
  const store = await openStore(`${redis.url()}?timeout_ms=5000`)
  t.teardown(() => store.close())
  const top = anAccount()
  const low: Account = { ...anAccount(), parentId: top.id }
  await putAccount(store, top)
  await putAccount(store, low)
  // A process has taken the child from its parent in the tree and was killed before it wrote the record.
  await redis.ask('hdel', 'sluice:{accounts}:parents', low.id)
  await redis.ask('srem', `sluice:{accounts}:children:${top.id}`, low.id)

  const moved = await store.transact({
    accountId: top.id,
    nowMs: 1,
    decide: ({ account }) =>
      account === null
        ? { refuse: 'absent' }
        : { write: { account: { ...account, parentId: low.id }, audit: [] } },
  })
  t.equal(moved.kind, 'written')
  t.equal((await store.accountById(low.id))?.parentId, undefined, 'the move is finished')
  t.equal((await store.accountById(top.id))?.parentId, low.id)
  const above = await store.ancestorsOf({ id: top.id, parentId: low.id })
  t.same(
    above.map(({ id }) => id),
    [low.id],
  )
})
