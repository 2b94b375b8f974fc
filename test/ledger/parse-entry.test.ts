/**
 * Goal: entries are read by tests of types that are faster than the schema, and both agree.
 * Method: each member of an entry gets values of every type, and the results are compared.
 */
import { inspect } from 'node:util'
import t from 'tap'
import { EMPTY_ENTRY, entrySchema, parseEntry } from '../../src/ledger/entry.js'

const VALUES = [
  ...[undefined, null, '', 'ok', 'anthropic', 'reported', 0, -1.5, NaN, Infinity, 5n, true, false],
  ...[[], [1], ['a'], [null], {}, { input: 1 }, { input: null }, { relay: 'a' }],
]

void t.test('each member with each value', (t) => {
  for (const member of entrySchema.keyof().options) {
    for (const value of VALUES) {
      const members = { ...EMPTY_ENTRY, [member]: value }
      const [read, wanted] = [parseEntry(members), entrySchema.safeParse(members)]
      const name = `${member}: ${inspect(value)}`
      t.equal(read.success, wanted.success, name)
      if (read.success && value !== undefined) t.strictSame(read.data, wanted.data, name)
      t.strictSame(read.error?.issues, wanted.error?.issues, name)
    }
  }
  t.end()
})

void t.test('a member that is missing', (t) => {
  for (const member of entrySchema.keyof().options) {
    const members = Object.fromEntries(Object.entries(EMPTY_ENTRY).filter(([name]) => name !== member))
    t.strictSame(parseEntry(members), entrySchema.safeParse(members), member)
  }
  t.end()
})
