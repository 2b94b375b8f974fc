/** The lists of an account's rows, many to a record, against a plain set of names. */
import t from 'tap'
import { dropName, namesBelow, namesMissing, putNames } from '../../src/store/lmdb-account-rows.js'
import { ledgerTables, timeName, type LedgerTables } from '../../src/store/lmdb-ledger-tables.js'
import { open } from 'lmdb'
import { noTransaction } from '../../src/store/lmdb-transaction.js'
import { dice } from '../helpers/dice.js'

const NOON = Date.UTC(2026, 6, 1, 12)
const ALL = '\u{10ffff}'

async function opened(path: string): Promise<LedgerTables> {
  await noTransaction()
  const root = open<Buffer, string>({
    path,
    noSubdir: false,
    encoding: 'binary',
    noSync: true,
    maxDbs: 16,
  })
  return ledgerTables(root)
}

void t.test('lists say what was put, in order, whatever overlaps', async (t) => {
  const { root, byAccount } = await opened(t.testdir())
  t.teardown(() => root.close())
  const chance = dice(11)
  const upTo = (most: number) => Math.floor(chance() * most)
  const put: Record<string, Set<string>> = { acc_a: new Set(), acc_ab: new Set() }
  for (let round = 0; round < 60; round += 1) {
    const accountId = chance() < 0.7 ? 'acc_a' : 'acc_ab'
    const known = put[accountId] ?? new Set()
    const reach = [5, 900, 20_000][upTo(3)] ?? 5
    const aroundMs = NOON + upTo(60_000)
    const names = Array.from({ length: 1 + upTo(40) }, (_, at) => {
      const id = chance() < 0.1 ? `${'x'.repeat(upTo(400))}-${round}-${at}` : `id-${round}-${at}`
      return timeName(aroundMs + upTo(reach)) + id
    })
    const again = [...known].filter(() => chance() < 0.05)
    t.same(
      [...namesMissing(byAccount, accountId, [...names, ...again])].sort(),
      [...names].sort(),
      'those that are there are told from those that are not',
    )
    await root.transaction(() => putNames(byAccount, accountId, names))
    for (const name of names) known.add(name)
    const [from, oldest] = [timeName(NOON + upTo(80_000)), timeName(NOON + upTo(30_000))]
    const some = [...known].filter((name) => name < from && name >= oldest)
    const expected = some.sort().reverse()
    t.same([...namesBelow(byAccount, accountId, from, oldest)], expected)
    const [cursor = ''] = expected.slice(3)
    t.same([...namesBelow(byAccount, accountId, cursor, oldest)], expected.slice(4), 'from a name')
  }
  const all = [...(put.acc_a ?? [])].sort()
  t.same([...namesBelow(byAccount, 'acc_a', ALL, '')], [...all].reverse())
  t.ok(byAccount.getCount() < all.length / 2, 'many share a record')

  const [gone, kept] = [all.slice(0, all.length / 2), all.slice(all.length / 2)]
  await root.transaction(() => {
    for (const name of gone) dropName(byAccount, 'acc_a', name)
  })
  const left = [...namesBelow(byAccount, 'acc_a', ALL, '')]
  t.same(
    left.filter((name) => kept.includes(name)),
    [...kept].reverse(),
    'what is young stays',
  )
  const lastOfRecord = Array.from(byAccount.getKeys(), (key) => key.split(' '))
  t.notOk(
    lastOfRecord.some(([account, last]) => account === 'acc_a' && gone.includes(last ?? '')),
    'and no record of the others does',
  )
})

void t.test('records of before, one to a row, are read as they are', async (t) => {
  const { root, byAccount } = await opened(t.testdir())
  t.teardown(() => root.close())
  const names = [0, 1, 5_000].map((ms) => `${timeName(NOON + ms)}id-${ms}`)
  const [first = '', second = '', third = ''] = names
  await byAccount.put(`acc_a ${first}`, '')
  await byAccount.put(`acc_a ${third}`, '')
  t.same(namesMissing(byAccount, 'acc_a', names), [second])
  t.same([...namesBelow(byAccount, 'acc_a', ALL, '')], [third, first])
  await root.transaction(() => dropName(byAccount, 'acc_a', first))
  t.same([...namesBelow(byAccount, 'acc_a', ALL, '')], [third])
})
