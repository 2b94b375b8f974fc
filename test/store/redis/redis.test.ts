/**
 * Goal: the Redis store passes the suite of every store.
 * Method: the black-box suite, each test in a database of its own.
 */
import t from 'tap'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'
import { storeContract } from '../contract/store-contract.js'

// The killed writers take 10 s on an idle machine.
t.setTimeout(120_000)
const missing = redisMissing()
if (missing === false) {
  const server = await startRedis(t)
  storeContract(t, 'redis', freshDatabases(server))
} else {
  void t.test('redis', { skip: missing }, () => undefined)
}
