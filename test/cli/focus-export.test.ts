/**
 * Goal: the FOCUS export has the columns of the specification, a row for each day, account, key, model,
 * upstream and set of tags, and costs whose sum is the ledger's to the nano-dollar.
 * Method: entries of two days settled in a store with accounts below each other; the lines of the command.
 */
import t from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { command } from '../../src/cli/usage.js'
import { ledgerEntry } from '../ledger/build-entry.js'
import { newSession, runOn } from './session.js'

/** The columns that FOCUS 1.2 calls mandatory. */
const MANDATORY =
  'BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd ChargePeriodStart ContractedCost EffectiveCost InvoiceIssuerName ListCost PricingQuantity PricingUnit ProviderName PublisherName ServiceCategory ServiceName'

/** The cells of a line of RFC 4180. */
function cellsOf(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
  )
}

void t.test('rows by day, account, key, model and upstream', async (t) => {
  const session = await newSession(t)
  const { store } = session
  const root = await createAccount(store, {
    email: 'root@example.com',
    plan: 'pro',
    password: 'correct horse battery staple',
  })
  const { id } = root.account
  const day = Date.parse('2026-11-20T00:00:00Z')
  const entries = [
    ['a', { atMs: day, costNanoUsd: 1 }],
    ['b', { atMs: day + 86_399_999, costNanoUsd: 9_007_199_254_740_000 }],
    ['c', { atMs: day + 86_400_000, costNanoUsd: null }],
    ['d', { atMs: day + 86_400_001, costNanoUsd: 5, model: 'other', labels: 'team=red env=prod' }],
    ['e', { atMs: day + 86_400_002, costNanoUsd: 6, dimensions: 'run=r-1 end_user=Ada%20%26%20co' }],
    ['f', { atMs: day + 86_400_003, costNanoUsd: 7, dimensions: 'run=r-2', labels: 'run=x' }],
    ['h', { atMs: day + 86_400_003, costNanoUsd: 0, upstream: null, model: 'unknown' }],
    ['g', { atMs: day + 86_400_004, costNanoUsd: 8, dimensions: 'run=r-1 end_user=Ada%20%26%20co' }],
  ] as const
  for (const [name, more] of entries) {
    await store.ledger.settle(ledgerEntry(name, { accountId: id, accountPath: 'root/app', ...more }))
  }
  const argv = ['export', '--format', 'focus', '--since', '2026-11-20']
  t.equal(await runOn(session, (open) => command(open, () => day + 5 * 86_400_000), argv), 0)
  const [header = '', ...lines] = session.output().flatMap((text) => text.split('\n'))
  const names = header.split(',')
  for (const name of MANDATORY.split(' ')) t.ok(names.includes(name), name)
  const rows = lines.map((line) => {
    const cells = cellsOf(line)
    t.equal(cells.length, names.length)
    return Object.fromEntries(names.map((name, at) => [name, cells[at] ?? '']))
  })
  t.match(rows, [
    {
      BilledCost: '9007199.254740001',
      ChargePeriodStart: '2026-11-20T00:00:00Z',
      ChargePeriodEnd: '2026-11-21T00:00:00Z',
      BillingPeriodStart: '2026-11-01T00:00:00Z',
      BillingPeriodEnd: '2026-12-01T00:00:00Z',
      BillingAccountId: id,
      SubAccountName: 'app',
      ProviderName: 'OPENAI',
      x_Requests: '2',
      ConsumedQuantity: '60',
    },
    { BilledCost: '0.000000000', x_UnpricedRequests: '1', ChargeCategory: 'Usage' },
    { BilledCost: '0.000000005', ResourceName: 'other', Tags: '{"team":"red","env":"prod"}' },
    { BilledCost: '0.000000014', x_Requests: '2', Tags: '{"run":"r-1","end_user":"Ada & co"}' },
    { BilledCost: '0.000000007', x_Requests: '1', Tags: '{"run":"r-2"}' },
    { BilledCost: '0.000000000', ResourceName: 'unknown', ServiceName: 'Sluice', ProviderName: 'Sluice' },
  ])
  t.equal(rows.length, 6)
  for (const row of rows) {
    const empty = MANDATORY.split(' ').filter((name) => name !== 'ChargeClass' && row[name] === '')
    t.strictSame(empty, [], 'only ChargeClass may be empty')
  }
})
