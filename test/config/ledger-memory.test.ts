/**
 * Goal: `ledger.max_memory` is a share or a size, in numbers or words.
 * Method: the values of a file, resolved.
 */
import t from 'tap'
import { ledgerOf, ledgerSchema } from '../../src/config/schema/ledger-schema.js'

const memoryOf = (max_memory?: string | number) =>
  ledgerOf(ledgerSchema.parse({ ...(max_memory === undefined ? {} : { max_memory }) }), '/etc', 'redis://a')
    .maxMemory

void t.test('shares and sizes', (t) => {
  t.equal(memoryOf(), 0.5)
  t.equal(memoryOf(0.25), 0.25)
  t.equal(memoryOf('40%'), 0.4)
  t.equal(memoryOf('1.5 GB'), 1_500_000_000)
  t.equal(memoryOf('512MiB'), 512 * 1_024 * 1_024)
  t.equal(memoryOf(4_000_000_000), 4_000_000_000)
  for (const wrong of ['much', '101%', '10', '-1GB', 2, 1_000, -1]) {
    t.throws(() => memoryOf(wrong), String(wrong))
  }
  t.end()
})
