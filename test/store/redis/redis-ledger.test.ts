/**
 * Goal: the ledger in Redis passes the suite of every ledger.
 * Method: the black-box suite, each test in a database of its own.
 */
import t from 'tap'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'
import { ledgerContract } from '../ledger/ledger-contract.js'

const missing = redisMissing()
if (missing === false) {
  const server = await startRedis(t)
  ledgerContract(t, 'redis', freshDatabases(server))
} else {
  void t.test('redis', { skip: missing }, () => undefined)
}
