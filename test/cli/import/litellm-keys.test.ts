/**
 * Goal: keys, teams, organizations and users of LiteLLM become documents that `apply` takes, and apps keep
 * their keys.
 * Method: rows of its tables, with budgets, ends and lists of models of each kind.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { arrayOf, isObject, type JsonObject } from '../../../src/base/json.js'
import { sluiceHere } from '../session.js'
import { imported, startImported } from './imported-gateway.js'

t.setTimeout(120_000)
t.testdir()

const CONFIG = `
model_list:
  - model_name: gpt-5.4-mini
    litellm_params: { model: openai/gpt-5.4-mini }
    model_info: { access_groups: [cheap] }
  - model_name: claude-haiku-4-5
    litellm_params: { model: anthropic/claude-haiku-4-5 }
  - model_name: team-model
    litellm_params: { model: openai/gpt-5.4-mini }
    model_info: { team_id: t1 }
litellm_settings: { max_budget: 1000, budget_duration: 30d }
general_settings: { master_key: sk-master-literal-1 }
`

const digest = (secret: string): string => createHash('sha256').update(secret).digest('hex')
const FUTURE = '2999-01-01T00:00:00+00:00'

const ROWS = [
  { organization_id: 'o1', organization_alias: 'Acme Inc.', max_budget: 70, budget_duration: '7d' },
  {
    ...{ team_id: 't1', team_alias: 'Data & Search', organization_id: 'o1', models: ['gpt-5.4-mini'] },
    ...{
      tpm_limit: 50_000,
      members_with_roles: [
        { role: 'admin', user_id: 'u1' },
        { role: 'user', user_email: 'bo@example.com' },
      ],
    },
  },
  { team_id: 't2', team_alias: 'Closed', members_with_roles: [], blocked: true },
  { user_id: 'u1', user_email: 'ada@example.com', user_role: 'proxy_admin' },
  { user_id: 'u2', user_email: 'cy@example.com', max_budget: 3, budget_duration: '1d' },
  {
    token: digest('sk-one-aaaaaa'),
    key_alias: 'ci',
    team_id: 't1',
    user_id: 'u1',
    models: [],
    rpm_limit: 10,
  },
  {
    token: digest('sk-two-bbbbbb'),
    key_alias: 'ci',
    team_id: 't1',
    models: ['all-team-models'],
    max_budget: 5,
    budget_duration: '1d',
    spend: 1,
  },
  {
    token: digest('sk-three-cccc'),
    key_name: 'sk-...cccc',
    user_id: 'u2',
    models: ['cheap'],
    expires: FUTURE,
  },
  {
    token: digest('sk-four-ddddd'),
    models: [],
    metadata: { app: 'shop', 'Cost Center': '4 711', nested: { a: 1 } },
  },
  { token: digest('sk-five-eeeee'), expires: '2020-01-01T00:00:00Z', key_alias: 'old' },
  { token: digest('sk-six-ffffff'), blocked: true, key_alias: 'blocked' },
  {
    token: digest('sk-seven-ggg'),
    key_alias: 'hourly',
    max_budget: 2,
    budget_duration: '12h',
    aliases: { a: 'b' },
  },
  { token: digest('sk-eight-hhh'), key_alias: 'none', models: ['no-default-models'] },
  {
    ...{ token: digest('sk-nine-iiii'), key_alias: 'from table' },
    litellm_budget_table: { max_budget: 9, budget_duration: '1mo', rpm_limit: 3 },
  },
  {
    ...{ token: digest('sk-ten-jjjjj'), key_alias: 'above its team', team_id: 't3', rpm_limit: 900 },
    ...{ max_budget: 80, budget_duration: '30d', expires: '2999-01-01T00:00:00', metadata: { tags: ['a'] } },
  },
  { token: digest('sk-eleven-kk'), key_alias: 'zero', rpm_limit: 0 },
  {
    ...{
      team_id: 't3',
      team_alias: 'Rich',
      members_with_roles: [],
      max_budget: 5000,
      budget_duration: '30d',
    },
    rpm_limit: 40,
  },
  { team_id: 't4', team_alias: 'No Requests', members_with_roles: [], tpm_limit: 0 },
  { something: 'else' },
]

void t.test('documents', async (t) => {
  t.testdir()
  const config = join(t.testdirName, 'config.yaml')
  const keys = join(t.testdirName, 'keys.jsonl')
  writeFileSync(config, CONFIG)
  writeFileSync(keys, `${ROWS.map((row) => JSON.stringify(row)).join('\n')}\n`)
  const made = await imported(t, ['litellm', config, '--keys', keys])
  t.equal(made.status, 0, made.err)
  t.match(made.summary['keys'], { read: 11, carried: 7, not_carried: 4 })
  const text = readFileSync(join(made.folder, 'accounts.yaml'), 'utf8')
  const documents = parseAllDocuments(text).map((each) => each.toJS() as JsonObject)
  const named = (kind: string, name: string, account?: string) => {
    return documents.find(({ kind: own, metadata }) => {
      if (own !== kind || !isObject(metadata) || metadata['name'] !== name) return false
      return account === undefined || metadata['account'] === account
    })
  }
  t.match(named('Account', 'litellm'), { spec: { limits: { usd_per_month: 1000 } } })
  t.match(named('Account', 'acme-inc'), {
    spec: { display_name: 'Acme Inc.', parent: 'litellm', limits: { usd_per_week: 70 } },
  })
  t.match(named('Account', 'data-search'), {
    spec: { parent: 'acme-inc', limits: { tokens_per_minute: 50_000 } },
  })
  t.match(named('Account', 'closed'), { spec: { disabled: true } })
  const capped = { limits: { usd_per_month: 1000, requests_per_minute: 40 } }
  t.match(named('Account', 'rich'), { spec: capped }, 'no more than the account above')
  t.match(named('Account', 'no-requests'), { spec: { disabled: true } })
  t.match(named('Key', 'above its team', 'rich'), {
    spec: {
      limits: { usd_per_month: 80, requests_per_minute: 40 },
      expires_at: '2999-01-01T00:00:00.000Z',
    },
  })
  t.match(named('Account', 'cy'), { spec: { limits: { usd_per_day: 3 } } })
  t.match(named('Member', 'ada@example.com', 'data-search'), { spec: { role: 'owner' } })
  t.match(named('Member', 'bo@example.com', 'data-search'), { spec: { role: 'member' } })
  const spec = { imported: true, models: ['gpt-5.4-mini'] }
  t.match(named('Key', 'ci', 'data-search'), { spec: { ...spec, limits: { requests_per_minute: 10 } } })
  t.match(named('Key', 'ci (2)', 'data-search'), { spec: { ...spec, limits: { usd_per_day: 5 } } })
  t.match(named('Key', 'litellm-cccc', 'cy'), {
    spec: { models: ['gpt-5.4-mini'], expires_at: '2999-01-01T00:00:00.000Z' },
  })
  t.match(named('Key', `litellm-${digest('sk-four-ddddd').slice(0, 8)}`, 'litellm'), {
    metadata: { labels: { app: 'shop', cost_center: '4_711' } },
  })
  t.match(named('Key', 'hourly'), { spec: { limits: { usd_per_day: 2 } } })
  t.match(named('Key', 'from table'), { spec: { limits: { usd_per_month: 9, requests_per_minute: 3 } } })
  t.match(named('Key', 'litellm-master', 'litellm'), {
    spec: { secret_sha256: digest('sk-master-literal-1') },
  })
  const items = arrayOf(made.summary['items']).filter(isObject)
  const item = (path: string) => items.find((each) => each['path'] === path)
  t.match(item('keys.old'), { outcome: 'not_carried', note: 'it has expired', line: 10 })
  t.match(item('keys.hourly'), { outcome: 'changed', note: /another window.*aliases/ })
  t.match(item('keys.zero'), { outcome: 'not_carried', note: /no request/ })
  t.match(item('keys.above its team'), { note: /requests_per_minute is that of.*metadata\.tags/ })
  t.match(item('teams.rich'), { outcome: 'changed', note: /usd_per_month is that of the account above/ })
  t.match(item('lines'), { outcome: 'ignored' })
  t.notMatch(text + made.out, /sk-(?:one|master)/)

  const gateway = await startImported(t, made, { OPENAI_API_KEY: 'a', ANTHROPIC_API_KEY: 'b' })
  const applied = await sluiceHere(
    ['apply', '-f', join(made.folder, 'accounts.yaml'), '--config', gateway.configFile],
    { env: { OPENAI_API_KEY: 'a', ANTHROPIC_API_KEY: 'b' } },
  )
  t.equal(applied.status, 0, applied.err)
  const ask = async (key: string, model: string): Promise<number> => {
    const reply = await fetch(`${gateway.origin}/chat/completions`, {
      method: 'POST',
      headers: { 'x-litellm-api-key': `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 }),
    })
    await reply.arrayBuffer()
    return reply.status
  }
  t.equal(await ask('sk-one-aaaaaa', 'gpt-5.4-mini'), 200)
  t.equal(await ask('sk-one-aaaaaa', 'claude-haiku-4-5'), 403, 'not a model of the team')
  t.equal(await ask('sk-four-ddddd', 'claude-haiku-4-5'), 200)
  t.equal(await ask('sk-four-ddddd', 'team-model'), 404, 'a model of a team')
  t.equal(await ask('sk-master-literal-1', 'gpt-5.4-mini'), 200)
  t.equal(await ask('sk-five-eeeee', 'gpt-5.4-mini'), 401)
  t.equal(await ask('sk-unknown-zzz', 'gpt-5.4-mini'), 401)
})
