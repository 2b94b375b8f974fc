/**
 * Goal: the store works with a password or an ACL user. Wrong credentials are refused with the reason, which
 * does not contain them.
 * Method: a real redis-server with `requirepass` and an ACL user that only reaches the keys and channels of
 * the store.
 */
import { putAccount, putKey } from '../../helpers/store-changes.js'
import t from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { aKey, anAccount } from '../contract/sample-records.js'

const PASSWORD = 'open:se/same@%25'
const missing = redisMissing()
t.setTimeout(120_000)

void t.test('credentials', missing === false ? {} : { skip: missing }, async (t) => {
  const server = await startRedis(t)
  await server.ask('acl', 'setuser', 'sluice', 'on', '>hunter2hunter2', '~sluice:*', '&*', '+@all')
  await server.ask('config', 'set', 'requirepass', 'open:se/same@%')
  const place = new URL(server.url()).host

  for (const credentials of [`:${PASSWORD}`, 'sluice:hunter2hunter2']) {
    const store = await openStore(`redis://${credentials}@${place}`)
    const account = anAccount()
    const key = aKey(account.id)
    t.equal(await putAccount(store, account), 'created')
    t.equal(await putKey(store, key, 5), 'created')
    t.match(await store.findKey(key.digest), { key: { id: key.id } })
    await store.probe()
    await store.close()
  }
  for (const [credentials, why] of [
    ['', /NOAUTH/],
    [':wrong-password@', /WRONGPASS/],
    ['sluice:wrong-password@', /WRONGPASS/],
  ] as const) {
    const error: unknown = await openStore(`redis://${credentials}${place}`).catch((e: unknown) => e)
    t.match(error, { kind: 'store_unavailable', cause: { message: why } }, credentials)
    t.notMatch(JSON.stringify([error, String(error)]), /wrong-password/)
  }
})
