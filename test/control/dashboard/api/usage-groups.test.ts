/**
 * Goal: usage by every grouping has all groups, sorted, searched and in pages, exact to the nano-dollar
 * against SQL; its files are complete and end with the total; days are those of the viewer's zone.
 * Method: entries of three accounts in a gateway's store, compared with sums that SQL makes of them.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createAccount } from '../../../../src/accounts/changes/change-accounts.js'
import type { Account } from '../../../../src/accounts/account.js'
import { ensureUser, setMember } from '../../../../src/accounts/members.js'
import { createKey } from '../../../helpers/keys.js'
import {
  usageGroupsReply,
  usageReply,
  type GroupRow,
} from '../../../../src/control/dashboard/schema/schema.js'
import { connect, numberIn, textIn } from '../../../../src/store/sqlite/driver.js'
import { aRow, startStage, type Browser, type Stage } from '../../../dashboard/fixtures/stage.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS
const [FROM, TO] = [TODAY - 5 * DAY_MS, TODAY - DAY_MS]
const PLAN = { priceUsd: 200, maxKeys: null }
const PLANS = { starter: PLAN, pro: PLAN, max: PLAN }

/** SQL for the group of an entry. */
const GROUPINGS = {
  model: 'model',
  key: 'key_id',
  upstream: "coalesce(upstream, '(none)')",
  client_format: "coalesce(ingress, '(none)')",
  'label:team': "coalesce(substr(labels, 6), '(none)')",
  program: "coalesce(program, '(none)')",
  user: "coalesce(user, '(none)')",
  'dimension:run': "coalesce(replace(substr(dimensions, 5), '%20', ' '), '(none)')",
  account: "substr(account_path, instr(account_path, '/') + 1)",
  parent:
    "CASE WHEN instr(account_path, '/') THEN substr(account_path, 1, instr(account_path, '/') - 1) ELSE account_path END",
  root: "CASE WHEN instr(account_path, '/') THEN substr(account_path, 1, instr(account_path, '/') - 1) ELSE account_path END",
} as const

interface Filled extends Stage {
  readonly admin: Browser
  readonly owner: Browser
  readonly ownerId: string
}

async function filled(t: Test): Promise<Filled> {
  const stage = await startStage(t)
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const owner = await stage.signedIn('ada@example.com', 'max')
  const { store } = stage
  const accounts = [await store.accountByEmail('ada@example.com')]
  for (const name of ['bob', 'eve']) {
    const login = { email: `${name}@example.com`, plan: 'pro', password: { none: true } } as const
    accounts.push((await createAccount(store, login)).account)
  }
  let seed = 7
  const chance = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  for (const account of accounts) {
    if (account === null) throw new Error('no account')
    const keys: string[] = []
    for (let at = 0; at < 4; at += 1) {
      const createdBy = `maker${at % 2}@example.com`
      const { key } = await createKey(store, { plans: PLANS, account, name: `k-${at}`, createdBy })
      keys.push(key.id)
    }
    for (let at = 0; at < 150; at += 1) {
      const labels = [null, 'team=web', 'team=other'][chance(3)] ?? null
      await store.ledger.settle(
        aRow(account.id, {
          atMs: FROM + chance(4 * DAY_MS),
          keyId: keys[chance(4)] ?? '',
          model: ['gpt-5.4', 'gpt-5.4-mini', 'other', 'claude-haiku-4-5'][chance(4)] ?? '',
          upstream: [null, 'openai', 'anthropic'][chance(3)] ?? null,
          ingress: [null, 'chat', 'messages'][chance(3)] ?? null,
          labels,
          program: [null, 'codex', 'other'][chance(3)] ?? null,
          user: [null, 'bo@example.com'][chance(2)] ?? null,
          dimensions: [null, 'run=r%2017', 'run=other'][chance(3)] ?? null,
          accountPath: chance(2) === 0 ? `acme/${account.name}` : account.name,
          costNanoUsd: 2 ** 40 + chance(1_000_000),
          outcome: chance(10) === 0 ? 'upstream_failed' : 'ok',
        }),
      )
    }
  }
  return { ...stage, admin, owner, ownerId: accounts[0]?.id ?? '' }
}

/** `GROUP REQUESTS ERRORS INPUT OUTPUT NANO` of each group, by SQL. */
function expected(stage: Stage, group: string, where = 'true'): string[] {
  const db = connect(join(stage.gateway.folder, 'data', 'sluice.db'))
  try {
    return db
      .prepare(
        `SELECT ${group} AS name, count(*) AS n, count(*) FILTER (WHERE outcome <> 'ok') AS failed,
           sum(input_tokens) AS i, sum(output_tokens) AS o, sum(CAST(cost_nano_usd AS INTEGER)) AS nano
         FROM ledger_entries WHERE at_ms >= ${FROM} AND at_ms < ${TO} AND ${where} GROUP BY 1`,
      )
      .all()
      .map((row) => {
        const name = textIn(row, 'name')
        const figures = ['n', 'failed', 'i', 'o', 'nano'].map((column) => numberIn(row, column))
        // Only models are called so if they are unknown; a label or program may be `other`.
        return [name === 'other' && group === 'model' ? '(unknown)' : name, ...figures].join(' ')
      })
      .sort()
  } finally {
    db.close()
  }
}

function textOf(row: GroupRow): string {
  const { id, requests, failed, inputTokens, outputTokens, costNanoUsd } = row
  return [id, requests, failed, inputTokens, outputTokens, costNanoUsd].join(' ')
}

async function every(browser: Browser, path: string): Promise<GroupRow[]> {
  const rows: GroupRow[] = []
  for (let after = ''; ;) {
    const answer = await browser.get(`${path}${after === '' ? '' : `&after=${after}`}`)
    const page = usageGroupsReply.parse(answer.json)
    rows.push(...page.rows)
    if (page.next === null) return rows
    after = page.next
  }
}

void t.test('groups', async (t) => {
  const stage = await filled(t)
  const { admin, owner } = stage
  const range = `fromMs=${FROM}&toMs=${TO}`
  for (const [group, sql] of Object.entries(GROUPINGS)) {
    const rows = await every(admin, `/usage/groups?${range}&account=all&group=${group}&limit=2`)
    t.same(rows.map(textOf).sort(), expected(stage, sql), `${group}, in pages of two`)
    const own = await every(owner, `/usage/groups?${range}&group=${group}`)
    t.same(
      own.map(textOf).sort(),
      expected(stage, sql, `account_id = '${stage.ownerId}'`),
      `${group} of one account`,
    )
    const file = await admin.get(`/usage.csv?${range}&account=all&group=${group}`)
    const period = `${new Date(FROM).toISOString().slice(0, 10)}T0000--${new Date(TO).toISOString().slice(0, 10)}T0000`
    t.equal(
      file.headers.get('content-disposition'),
      `attachment; filename="usage-${period}-by-${group.replace(':', '-')}-UTC.csv"`,
    )
    const lines = file.text.trim().split('\r\n').slice(1)
    const ends = [FROM, TO].map((atMs) => new Date(atMs).toISOString()).join(',')
    t.ok(
      lines.every((line) => line.includes(`,${ends},UTC,USD,`)),
      `${group}: each line has period, zone and currency`,
    )
    const total = lines.pop()?.split(',') ?? []
    t.match([total[0], total[1]], ['total', '450'], `${group}: the last line is the total`)
    const [nano, requests] = [5, 1].map((at) =>
      lines.reduce((sum, line) => sum + Number(line.split(',')[at]), 0),
    )
    t.equal(requests, 450, `${group}: the lines of the file have every request once`)
    t.equal(
      nano,
      rows.reduce((sum, row) => sum + row.costNanoUsd, 0),
      `${group}: exact`,
    )
    t.equal(Number(total[5]), nano, `${group}: the total is the sum of the lines`)
  }
  const members = await every(admin, `/usage/groups?${range}&account=all&group=member`)
  t.same(members.map(({ id }) => id).sort(), ['maker0@example.com', 'maker1@example.com'])
  t.equal(
    members.reduce((sum, { requests }) => sum + requests, 0),
    450,
  )
  await sorted(t, stage)
  await files(t, stage)
  await charts(t, stage)
  await ofMembers(t, stage)
})

/** The keys that a member made, and the period before. */
async function ofMembers(t: Test, { admin }: Filled): Promise<void> {
  const half = (FROM + TO) / 2
  const before = usageReply.parse((await admin.get(`/usage?fromMs=${FROM}&toMs=${half}&account=all`)).json)
  const later = usageReply.parse((await admin.get(`/usage?fromMs=${half}&toMs=${TO}&account=all`)).json)
  t.same(later.previous, { fromMs: FROM, toMs: half, total: before.total })
  const now = `fromMs=${FROM}&toMs=${TO}&account=all`
  const all = usageReply.parse((await admin.get(`/usage?${now}`)).json)
  t.match(all.previous?.total, { requests: 0, costNanoUsd: 0 })
  const totals: number[] = []
  for (const maker of ['maker0', 'maker1']) {
    const of = `${now}&member=${maker}@example.com`
    const { total } = usageReply.parse((await admin.get(`/usage?${of}&group=key`)).json)
    const rows = await every(admin, `/usage/groups?${of}&group=key`)
    const models = await every(admin, `/usage/groups?${of}&group=model`)
    t.match(
      [rows.length, rows.every(({ label }) => label.endsWith(maker.slice(-1)) || label > 'k-1')],
      [6, true],
    )
    for (const each of [rows, models]) {
      t.equal(
        each.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0),
        total.costNanoUsd,
      )
    }
    t.ok(rows.every(({ previousCostNanoUsd }) => previousCostNanoUsd === 0))
    totals.push(total.costNanoUsd)
    const refused = await admin.get(`/usage/groups?${of}&group=upstream`)
    t.match([refused.status, refused.error], [400, { field: 'member' }])
  }
  t.equal(
    totals.reduce((sum, each) => sum + each, 0),
    all.total.costNanoUsd,
  )
}

async function sorted(t: Test, { admin }: Filled): Promise<void> {
  const path = `/usage/groups?fromMs=${FROM}&toMs=${TO}&account=all&group=key`
  const pick: Record<string, (row: GroupRow) => string | number> = {
    name: ({ label }: GroupRow) => label,
    requests: ({ requests }: GroupRow) => requests,
    failed: ({ failed }: GroupRow) => failed,
    inputTokens: ({ inputTokens }: GroupRow) => inputTokens,
    outputTokens: ({ outputTokens }: GroupRow) => outputTokens,
    cost: ({ costNanoUsd }: GroupRow) => costNanoUsd,
  }
  for (const [column, of] of Object.entries(pick)) {
    for (const sign of ['', '-']) {
      const rows = await every(admin, `${path}&sort=${sign}${column}&limit=5`)
      t.equal(new Set(rows.map(({ id }) => id)).size, 12, `${sign}${column} has each key once`)
      const values = rows.map(of)
      const ordered = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
      t.same(values, sign === '' ? ordered : ordered.reverse(), `${sign}${column}`)
    }
  }
  const found = usageGroupsReply.parse((await admin.get(`${path}&search=K-3`)).json)
  t.same([found.total, ...found.rows.map(({ label }) => label)], [3, 'k-3', 'k-3', 'k-3'])
  t.match(found.rows[0], { accountName: String })
  const wrong = await admin.get(`${path}&sort=colour`)
  t.match([wrong.status, wrong.error], [400, { kind: 'invalid_field', field: 'sort' }])
  t.match(wrong.error['message'], /name, requests, failed, inputTokens, outputTokens, cost/)
  const first = usageGroupsReply.parse((await admin.get(`${path}&limit=1`)).json)
  const other = await admin.get(`${path}&sort=name&after=${first.next ?? ''}`)
  t.match([other.status, other.error], [400, { field: 'after' }], 'the cursor of another order')
}

async function files(t: Test, { admin }: Filled): Promise<void> {
  const range = `fromMs=${FROM}&toMs=${TO}&account=all&group=label:team`
  const file = await admin.get(`/usage.csv?${range}&per=day`)
  t.equal(file.headers.get('content-type'), 'text/csv; charset=utf-8')
  const [head = '', ...lines] = file.text.trim().split('\r\n')
  t.match(head, /^day,group,requests,failed,input_tokens,output_tokens,cost_nano_usd,cost_usd,/)
  t.match(lines.pop(), /^total,,450,/, 'the last line is the total')
  t.equal(new Set(lines.map((line) => line.split(',')[0])).size, 4, 'every day')
  t.equal(
    lines.reduce((sum, line) => sum + Number(line.split(',')[2]), 0),
    450,
  )
  const hours = await admin.get(`/usage.csv?${range}&per=hour`)
  const rows = hours.text.trim().split('\r\n').slice(1, -1)
  t.equal(
    rows.reduce((sum, line) => sum + Number(line.split(',')[2]), 0),
    450,
  )
  t.equal((await admin.get(`/usage.csv?${range}&per=minute`)).status, 400)
}

async function charts(t: Test, { admin }: Filled): Promise<void> {
  const range = `fromMs=${FROM}&toMs=${TO}&account=all`
  for (const group of [...Object.keys(GROUPINGS), 'member']) {
    const answer = await admin.get(`/usage?${range}&by=day&group=${group}`)
    const usage = usageReply.parse(answer.json)
    t.equal(usage.total.requests, 450)
    const spend = usage.groups.reduce((sum, { total }) => sum + total.costNanoUsd, 0)
    t.equal(spend, usage.total.costNanoUsd, `the groups by ${group} add up`)
    for (const { id, points, total } of usage.groups) {
      const sum = points.reduce((all, { costNanoUsd }) => all + costNanoUsd, 0)
      t.equal(sum, total.costNanoUsd, `${group} ${id}: its points add up`)
    }
  }
  const models = usageReply.parse((await admin.get(`/usage?${range}&by=day&group=model`)).json)
  t.ok(
    models.groups.some(({ id }) => id === '(unknown)'),
    '"other" is not a model',
  )
  for (const group of ['label:team', 'program', 'dimension:run']) {
    const found = usageReply.parse((await admin.get(`/usage?${range}&by=day&group=${group}`)).json)
    const named = found.groups.filter(({ id }) => id === 'other')
    t.match(named, [{ label: 'other' }], `a group by ${group} may be called so`)
    t.notOk(
      named.some(({ isRest }) => isRest),
      'and is not the rest',
    )
  }
  const unknown = await admin.get(`/usage?${range}&by=day&model=(unknown)`)
  t.ok(usageReply.parse(unknown.json).total.requests > 0)
  const zone = 'America/New_York'
  const day = usageReply.parse((await admin.get(`/usage?${range}&by=day&zone=${zone}&group=upstream`)).json)
  const local = new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeStyle: 'short' })
  t.ok(
    day.starts.every((at) => local.format(at) === '00:00'),
    'days begin at midnight there',
  )
  t.equal(day.zone, zone)
  t.equal(
    day.points.reduce((sum, { requests }) => sum + requests, 0),
    450,
  )
  t.ok(day.points.every(({ startMs }) => day.starts.includes(startMs)))
  const wrong = await admin.get(`/usage?${range}&by=day&zone=Mars/Base`)
  t.match([wrong.status, wrong.error], [400, { field: 'zone' }])
  const key = await admin.get(`/usage?${range}&by=day&group=upstream&keyId=key_x`)
  t.match([key.status, key.error], [400, { field: 'keyId' }])
}

void t.test('an account with all below it', async (t) => {
  const stage = await startStage(t)
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const lead = await stage.signedIn('lead@example.com', 'max')
  const { store } = stage
  const top = await store.accountByEmail('lead@example.com')
  if (top === null) throw new Error('no account')
  const below = async (name: string, parent: Account): Promise<Account> => {
    const made = { name, plan: 'max', parentId: parent.id, password: { none: true } } as const
    return (await createAccount(store, made)).account
  }
  const team = await below('team', top)
  const app = await below('app', team)
  const other = await stage.account('outside@example.com')
  const paths = new Map([
    [top, top.name],
    [team, `${top.name}/team`],
    [app, `${top.name}/team/app`],
    [other, other.name],
  ])
  for (const [at, [account, accountPath]] of [...paths].entries()) {
    const labels = 'team=web'
    await store.ledger.settle(
      aRow(account.id, { atMs: Date.now() - 1_000, accountPath, labels, costNanoUsd: 10 ** (at + 3) }),
    )
    // In hours that are over, from sums.
    await store.ledger.settle(
      aRow(account.id, { atMs: Date.now() - 3 * HOUR_MS, accountPath, labels, costNanoUsd: 10 ** (at + 3) }),
    )
  }
  const read = async (by: Browser, query: string): Promise<string[]> => {
    const rows = await every(by, `/usage/groups?range=24h&${query}`)
    return rows.map(({ id, costNanoUsd }) => `${id} ${costNanoUsd}`).sort()
  }
  const of = `account=${top.id}&tree=true`
  for (const by of [admin, lead]) {
    const usage = usageReply.parse((await by.get(`/usage?range=24h&${of}&group=below`)).json)
    t.match([usage.total.requests, usage.total.costNanoUsd], [6, 222_000])
    t.same(
      usage.groups.map(({ id, total }) => [id, total.costNanoUsd]),
      [
        ['team', 220_000],
        ['(itself)', 2_000],
      ],
    )
    t.same(await read(by, `${of}&group=below`), ['(itself) 2000', 'team 220000'])
    t.same(await read(by, `${of}&group=account`), ['app 200000', `${top.name} 2000`, 'team 20000'].sort())
    t.same(await read(by, `${of}&group=label:team`), ['web 222000'])
    t.same(await read(by, `${of}&group=program`), ['(none) 222000'])
    t.same(await read(by, `account=${team.id}&tree=true&group=below`), ['(itself) 20000', 'app 200000'])
    const models = await read(by, `${of}&group=model`)
    t.same(
      models.map((each) => each.split(' ')[1]),
      ['222000'],
    )
  }
  t.same(await read(admin, 'account=all&group=below'), [`${other.name} 2000000`, `${top.name} 222000`].sort())
  t.same(await read(lead, `account=${top.id}&group=account`), [`${top.name} 2000`], 'only itself')
  const viewer = await stage.signedIn('viewer@example.com', 'max')
  const { user } = await ensureUser(store, { email: 'viewer@example.com' })
  await setMember(store, { account: top, user, role: 'viewer', nowMs: Date.now(), audit: () => [] })
  const refused = await viewer.get(`/usage?range=24h&${of}`)
  t.match([refused.status, refused.error], [403, { field: 'tree' }])
})
