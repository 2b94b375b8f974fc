/**
 * Goal: every grouping from every door has the same nano-dollars: admin API, page and commands, as JSON, CSV
 * and text, also after the entries are pruned and the days are over. They are above 2^53 nano-dollars ($9.007
 * million), which a number of JavaScript cannot hold.
 * Method: entries of the largest cost in both stores; the digits in the texts of replies.
 */
import t from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { command } from '../../../src/cli/usage.js'
import { newSession, runOn } from '../../cli/session.js'
import { aRow, Browser, PASSWORD } from '../../dashboard/fixtures/stage.js'
import { onBothStores, startAdmin } from './admin-stage.js'

const MS_OF_DAY = 86_400_000
/** Two days ago: older entries are removed. */
const DAY = Math.floor(Date.now() / MS_OF_DAY - 2) * MS_OF_DAY
const MONTH = new Date(DAY).toISOString().slice(0, 7)
const COSTS = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 1, 3]
/** What groups are made by: all requests are one group of each. */
const OF_ONE_GROUP = {
  ...{ accountPath: 'acme', ingress: 'chat', upstream: 'openai', program: 'codex', user: 'bo@example.com' },
  ...{ labels: 'team=web', dimensions: 'run=r-17' },
} as const
/** Groupings of every door. */
const GROUPINGS = [
  ...['account', 'parent', 'root', 'model', 'key', 'month', 'upstream'],
  ...['program', 'user', 'label:team', 'dimension:run'],
]
/** Odd, and no number has it. */
const SUM = String(COSTS.reduce((sum, cost) => sum + BigInt(cost), 0n))
const USD = `${SUM.slice(0, -9)}.${SUM.slice(-9)}`

onBothStores(t, 'sums above nine million dollars', async (t, settings) => {
  // First: it makes the folder of the test anew. Its own store is not used.
  const session = await newSession(t)
  const { ask, store, gateway } = await startAdmin(t, settings)
  await ask('PUT', '/accounts/acme', { body: {} })
  const accountId = (await store.accountByName('acme'))?.id ?? ''
  for (const [at, costNanoUsd] of COSTS.entries()) {
    await store.ledger.settle(aRow(accountId, { ...OF_ONE_GROUP, atMs: DAY + at, costNanoUsd }))
  }
  await createAccount(store, {
    email: 'root@example.com',
    plan: 'starter',
    role: 'admin',
    password: PASSWORD,
  })
  const browser = new Browser(gateway.origin)
  t.equal((await browser.signIn('root@example.com')).status, 200)
  const run = async (...argv: string[]): Promise<string> => {
    t.equal(await runOn({ ...session, store }, (open) => command(open, Date.now), argv), 0, argv.join(' '))
    return session.output().join('\n')
  }
  const span = `from=${new Date(DAY).toISOString()}&to=${new Date(DAY + MS_OF_DAY).toISOString()}`
  const pageSpan = `fromMs=${DAY}&toMs=${DAY + MS_OF_DAY}&account=all`
  const since = ['--since', new Date(DAY).toISOString(), '--until', new Date(DAY + MS_OF_DAY).toISOString()]
  const check = async (when: string) => {
    for (const by of [...GROUPINGS, 'day']) {
      const { text } = await ask('GET', `/usage?by=${by}&${span}`)
      t.equal(
        text.split(`"cost_nano_usd":${SUM},"cost_usd":"${USD}"`).length,
        3,
        `${when}: admin ${by} ${text}`,
      )
      const csv = await ask('GET', `/usage?by=${by}&${span}&format=csv`)
      t.match(csv.text, `,${SUM},${USD},`, `${when}: admin ${by} as CSV`)
    }
    const statement = `/accounts/acme/statements/${MONTH}`
    t.match((await ask('GET', statement)).text, `"cost_nano_usd":${SUM},`, `${when}: statement`)
    t.match((await ask('GET', `${statement}?format=csv`)).text, `,${SUM},${USD}`, `${when}: its CSV`)
    const byRun = await ask('GET', `/usage?by=day&${span}&program=codex&dimension=run%3Dr-17`)
    t.match(byRun.text, `"cost_nano_usd":${SUM},`, `${when}: admin with conditions`)
    for (const group of ['none', ...GROUPINGS, 'client_format']) {
      for (const by of ['hour', 'day']) {
        const { text } = await browser.get(`/usage?by=${by}&group=${group}&${pageSpan}`)
        t.match(text, `"costNanoUsd":${SUM},`, `${when}: page by ${by} and ${group}`)
      }
      if (group === 'none') continue
      const { text } = await browser.get(`/usage/groups?group=${group}&${pageSpan}`)
      t.match(text, `"costNanoUsd":${SUM},`, `${when}: groups by ${group}`)
      const csv = await browser.get(`/usage.csv?group=${group}&${pageSpan}`)
      t.match(csv.text, `,${SUM},${USD},`, `${when}: file by ${group}`)
    }
    t.match((await browser.get(`/statements/${MONTH}?account=all`)).text, `"cost_nano_usd":${SUM},`)
    t.match((await browser.get('/accounts')).text, `"costNanoUsd":${SUM},`, `${when}: list of accounts`)
    const json = await run('statement', '--account', 'acme', '--month', MONTH, '--json')
    t.match(json, `"cost_nano_usd": ${SUM},`, `${when}: statement of the command line`)
    for (const by of GROUPINGS) {
      const report = await run('summary', '--by', by, '--json', ...since)
      t.match(report, `"cost_usd": "${USD}"`, `${when}: summary by ${by}`)
    }
    t.match(await run('summary', '--by', 'model', ...since), USD, `${when}: table`)
  }
  await check('entries')
  await store.ledger.prune({ entriesBeforeMs: DAY + MS_OF_DAY, hoursBeforeMs: 0, daysBeforeMs: 0 })
  t.equal((await store.ledger.entries({ accountId: null, after: null, limit: 10 })).entries.length, 0)
  for (const by of ['account', 'upstream', 'label:team']) {
    t.match(
      (await ask('GET', `/usage?by=${by}&${span}`)).text,
      `"cost_nano_usd":${SUM},`,
      `pruned: admin ${by}`,
    )
    t.match(await run('summary', '--by', by, ...since), USD, `pruned: summary by ${by}`)
  }
  t.match((await browser.get(`/usage?by=day&group=model&${pageSpan}`)).text, `"costNanoUsd":${SUM},`)
  const csv = await run('statement', '--account', 'acme', '--month', MONTH, '--format', 'csv')
  t.match(csv, `,${SUM},${USD}`, 'pruned: statement')
})
