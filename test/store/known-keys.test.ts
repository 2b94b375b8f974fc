/**
 * Goal: processes of a gateway that start at the same time share the keys of each other.
 * Method: two `KnownKeys` over one folder and one store that has no secret yet; one of them is late.
 */
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import t from 'tap'
import { KnownKeys } from '../../src/store/known-keys.js'
import { openStore } from '../../src/store/open-store.js'
import { aKey, anAccount } from './contract/sample-records.js'

const LATE_MS = 300

void t.test('a process that creates the secret late uses the one in the store', async (t) => {
  const folder = t.testdir()
  const store = await openStore(`sqlite:${join(folder, 'sluice.db')}`)
  const { cache, id } = store
  const late: typeof cache = {
    get: (names, nowMs) => cache.get(names, nowMs),
    sweep: (capacity, nowMs) => cache.sweep(capacity, nowMs),
    put: async (...args) => {
      await sleep(LATE_MS)
      await cache.put(...args)
    },
  }
  const open = (of: typeof cache) =>
    KnownKeys.open({
      folder: join(folder, 'spool'),
      gatewayId: 'one gateway',
      store: { cache: of, id },
      warn: (message) => t.fail(message),
    })
  const [first, second] = await Promise.all([open(cache), open(late)])
  t.teardown(async () => {
    first?.close()
    second?.close()
    await store.close()
  })
  const account = anAccount()
  const key = aKey(account.id)
  first?.keep({ key, account })
  await turn()
  await turn()
  t.equal(second?.find(key.digest)?.lookup.key.id, key.id)
})
