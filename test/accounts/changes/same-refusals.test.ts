/**
 * Goal: the same wrong value of a key or an account is refused at every door, with the same kind and the same
 * sentence; only the name of the field is the door's.
 * Method: a table of wrong values, tried in the dashboard, on the command line, in the admin API and with
 * `sluice apply`, on both stores. The sentence of the admin API is the one to compare with.
 */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { changeAccount, createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser } from '../../../src/accounts/members.js'
import { isObject, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { yamlText } from '../../../src/config/yaml.js'
import type { GatewaySettings } from '../../helpers/gateway.js'
import { createKey } from '../../helpers/keys.js'
import { sluiceHere } from '../../cli/session.js'
import {
  onBothStores,
  startAdmin,
  textOf,
  type AdminStage,
  type Reply,
} from '../../control/admin/admin-stage.js'
import { Browser, PASSWORD } from '../../dashboard/fixtures/stage.js'

const MORE_LABELS = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`l${at}`, 'x']))

/** Wrong values of a key, in the spelling of the admin API. */
const KEYS: readonly JsonObject[] = [
  ...[0, -1, 1.5, 1_000_000_001].map((value) => ({ limits: { requests_per_minute: value } })),
  ...[0, 2.5, 1_000_000_000_001].map((value) => ({ limits: { tokens_per_minute: value } })),
  ...[0, 1_000_001].map((value) => ({ limits: { concurrent: value } })),
  ...[0, 1.5].map((value) => ({ limits: { units_per_minute: { image: value } } })),
  ...['usd_per_day', 'usd_per_week', 'usd_per_month'].map((name) => ({ limits: { [name]: 1_000_001 } })),
  { limits: { usd_per_day: -1 } },
  { limits: { usd_total: 1_000_000_001 } },
  ...['tokens_per_day', 'tokens_per_week', 'tokens_per_month', 'tokens_total', 'requests_total'].flatMap(
    (name) => [0, -1, 1.5, 1e16].map((value) => ({ limits: { [name]: value } })),
  ),
  // Above those of the account, of its plan and of its parent.
  { limits: { usd_per_day: 6 } },
  { limits: { requests_per_minute: 101 } },
  { limits: { tokens_per_minute: 1_001 } },
  { limits: { concurrent: 11 } },
  { limits: { units_per_minute: { audio_second: 601 } } },
  { expires_at: '2020-01-31T00:00:00Z' },
  { models: ['gp*t'] },
  { models: ['a  b'] },
  { models: ['gpt-5.5', ''] },
  { models: Array.from({ length: 101 }, (_, at) => `m-${at}`) },
  { labels: { Team: 'x' } },
  { labels: { [`l${'x'.repeat(32)}`]: 'x' } },
  { labels: { team: 'a b' } },
  { labels: { team: 'x'.repeat(65) } },
  { labels: { '': 'x' } },
  { labels: { 'a b': 'x' } },
  { labels: { team: 'a,b' } },
  { labels: { team: 'é' } },
  { labels: MORE_LABELS },
  { models: ['*a'] },
  { models: ['a\u0007b'] },
  { models: ['x'.repeat(257)] },
  ...['2030-02-30T00:00:00Z', '2030-01-31T25:00:00Z', '2030-01-31T00:00:00', 'soon', '9999999d'].map(
    (end) => ({
      expires_at: end,
    }),
  ),
  ...['-1', '1e3', 'NaN', 'many', '0x10', ' 5'].map((value) => ({ limits: { requests_per_minute: value } })),
  ...['NaN', '-0.5', '1.2.3'].map((value) => ({ limits: { usd_per_day: value } })),
  { limits: { units_per_minute: { image: 'many' } } },
  { limits: { units_per_minute: { audio_second: -1 } } },
  { limits: { units_per_minute: { pages: 1 } } },
]

/** Values of a wrong type, which no option has. */
const TYPES: readonly JsonObject[] = [
  ...[5, true, 'x', []].map((limits) => ({ limits })),
  ...[true, []].map((value) => ({ limits: { concurrent: value } })),
  ...[5, true, 'x', ['team=x']].map((labels) => ({ labels })),
  ...[5, null, true, {}].map((value) => ({ labels: { team: value === null ? [] : value } })),
  ...[5, true, 'gpt-5.5', {}].map((models) => ({ models })),
  { models: [5] },
  { models: [] },
  ...[true, [], {}].map((end) => ({ expires_at: end })),
]

/** Wrong values of an account; the command line sets the plan alone. */
const ACCOUNTS: readonly JsonObject[] = [
  { plan: 'gold' },
  { limits: { requests_per_minute: 0 } },
  { limits: { usd_per_month: 1_000_001 } },
  // Above the parent's.
  { limits: { concurrent: 11 } },
  { limits: { usd_per_month: 1_001 } },
]

/** Wrong values of an account that only the APIs and documents set. */
const ACCOUNT_TYPES: readonly JsonObject[] = [
  ...['', ' x', 'a\u0007b', 'x'.repeat(101), 5, true].map((name) => ({ display_name: name })),
  ...[5, true, '', 'x'.repeat(100)].map((plan) => ({ plan })),
  ...[5, true, ['acme']].map((parent) => ({ parent })),
  { parent: 'nothing-here' },
  ...['yes', 1, []].map((disabled) => ({ disabled })),
  ...[5, 'x', { Team: 'x' }, { team: '' }, MORE_LABELS].map((labels) => ({ labels })),
  { limits: { concurrent: 'x' } },
  { limits: { concurrent: -1 } },
  { limits: { usd_per_week: [] } },
  { limits: { units_per_minute: { image: 0.5 } } },
]

const BAD_NAMES = ['Acme', 'a-', '-a', 'a_b', 'x'.repeat(64), 'x'.repeat(200), 'a b', ' ']
const BAD_KEY_NAMES = ['x'.repeat(101), 'x'.repeat(1_001), 'a\u0007b', 'a\nb', '\u202ea']

const OPTIONS: Readonly<Record<string, string>> = {
  requests_per_minute: '--rpm',
  tokens_per_minute: '--tpm',
  concurrent: '--concurrent',
  usd_per_day: '--usd-per-day',
  usd_per_week: '--usd-per-week',
  usd_per_month: '--usd-per-month',
  usd_total: '--usd-total',
  tokens_per_day: '--tokens-per-day',
  tokens_per_week: '--tokens-per-week',
  tokens_per_month: '--tokens-per-month',
  tokens_total: '--tokens-total',
  requests_total: '--requests-total',
}

const MEMBERS: Readonly<Record<string, string>> = {
  requests_per_minute: 'requestsPerMinute',
  tokens_per_minute: 'tokensPerMinute',
  concurrent: 'concurrent',
  usd_per_day: 'nanoUsdPerDay',
  usd_per_week: 'nanoUsdPerWeek',
  usd_per_month: 'nanoUsdPerMonth',
  usd_total: 'nanoUsdTotal',
  tokens_per_day: 'tokensPerDay',
  tokens_per_week: 'tokensPerWeek',
  tokens_per_month: 'tokensPerMonth',
  tokens_total: 'tokensTotal',
  requests_total: 'requestsTotal',
}

const UNITS: Readonly<Record<string, string>> = {
  image: 'imagesPerMinute',
  audio_second: 'audioSecondsPerMinute',
}

interface Scene extends AdminStage {
  readonly page: Browser
  readonly keyId: string
  readonly shopId: string
  readonly folder: string
}

async function scene(t: Test, settings: GatewaySettings, others = ''): Promise<Scene> {
  const more = `\n  shop: { price_usd: 9, max_keys: 20, limits: { tokens_per_minute: 1000, units_per_minute: { audio_second: 600 } } }
${others}`
  const stage = await startAdmin(t, { ...settings, more })
  const { store, gateway } = stage
  const { plans } = gateway
  const changing = { store, plans, nowMs: Date.now(), actor: { actor: 'test', address: null } }
  const admin = { email: 'root@example.com', plan: 'max', password: PASSWORD, role: 'admin' } as const
  await createAccount(store, admin)
  const acme = await createAccount(store, { name: 'acme', plan: 'max', password: null })
  await changeAccount(changing, acme.account, { limits: { concurrent: 10, usd_per_month: 1_000 } })
  const wanted = { name: 'shop', plan: 'shop', password: null, parentId: acme.account.id }
  const made = await createAccount(store, wanted)
  const limits = { usd_per_day: 5, requests_per_minute: 100 }
  const shop = await changeAccount(changing, made.account, { limits, labels: { 'managed-by': 'apply' } })
  const { key } = await createKey(store, { plans, account: shop, name: 'ci' })
  const page = new Browser(gateway.origin)
  await page.signIn('root@example.com', PASSWORD)
  return { ...stage, page, keyId: key.id, shopId: shop.id, folder: dirname(gateway.configFile) }
}

/** The sentence of a refusal, with the name of the field that a door has. */
function sentenceOf(refusal: Reply, name?: string): string {
  const { field } = refusal.json
  const detail = textOf(refusal, 'detail')
  const own =
    typeof field === 'string' && name !== undefined ? detail.replaceAll(`"${field}"`, `"${name}"`) : detail
  // The admin API has an advice of its own for the address in its path.
  const fix =
    refusal.json['fix'] === 'Use one in the path.' ? 'Use one such as team@example.com.' : refusal.json['fix']
  return typeof fix === 'string' ? `${own} ${fix}` : own
}

function shown(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A body of the dashboard. */
function bodyOf(patch: JsonObject): JsonObject {
  const { limits, expires_at: end, ...others } = patch
  const own = isObject(limits)
    ? Object.entries(limits).map(([name, value]) => {
        if (isObject(value)) {
          const [[unit, count] = ['', 0]] = Object.entries(value)
          return [UNITS[unit] ?? unit, count] as const
        }
        return [
          MEMBERS[name] ?? name,
          name.startsWith('usd') && typeof value === 'number' ? value * 1e9 : value,
        ] as const
      })
    : []
  return {
    ...others,
    ...(end === undefined ? {} : { expiresAtMs: wrongTime(end) }),
    ...(limits !== undefined && !isObject(limits) ? { limits } : {}),
    ...(own.length === 0 ? {} : { limits: Object.fromEntries<JsonValue | undefined>(own) }),
  }
}

/** A time in ms; what is none unchanged. */
function wrongTime(value: JsonValue): JsonValue {
  const atMs = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (typeof value !== 'string' || Number.isNaN(atMs)) return value
  return new Date(atMs).toISOString().startsWith(value.slice(0, 19)) && /(?:Z|[+-]\d\d:\d\d)$/.test(value)
    ? atMs
    : value
}

/** The options of `sluice keys edit`. */
function optionsOf({ limits, labels, models, expires_at: end }: JsonObject): string[] {
  return [
    ...(isObject(limits)
      ? Object.entries(limits).map(([name, value]) => {
          if (!isObject(value)) return `${OPTIONS[name] ?? ''}=${shown(value)}`
          const [[unit, count] = ['', 0]] = Object.entries(value)
          return `--units-per-minute=${unit}=${shown(count)}`
        })
      : []),
    ...(isObject(labels)
      ? Object.entries(labels).map(([name, value]) => `--label=${name}=${shown(value)}`)
      : []),
    ...(Array.isArray(models) ? [`--models=${models.map(shown).join(',')}`] : []),
    ...(typeof end === 'string' ? [`--expires=${end}`] : []),
  ]
}

/** What is the same in the texts of all doors: without the name of the field, dots and colons. */
function plain(text: string): string {
  return text
    .replaceAll(/"(?:--)?[\w.[\]{}-]*(?: [\w.-]+)?"/g, '"…"')
    .replaceAll(/[.:]/g, '')
    .replaceAll(/\s+/g, ' ')
}

/** The dashboard refuses with the same kind and the same sentence. */
function checkPage(t: Test, name: string, refusal: Reply, { field, message, kind }: Reply['json']): void {
  t.equal(kind, refusal.json['kind'], `${name}: dashboard`)
  const sentence = sentenceOf(refusal, typeof field === 'string' ? field : undefined)
  t.equal(message, sentence, name)
}

async function applied({ gateway, folder }: Scene, document: JsonObject): Promise<string> {
  const file = join(folder, 'wanted.yaml')
  writeFileSync(file, yamlText([document]))
  const { status, err } = await sluiceHere([
    'apply',
    '--file',
    file,
    '--config',
    gateway.configFile,
    '--dry-run',
  ])
  return status === 1 ? err : `exit status ${status}: ${err}`
}

onBothStores(t, 'keys', async (t, settings) => {
  const on = await scene(t, settings)
  const config = ['--config', on.gateway.configFile]
  const before = await on.store.keyById(on.shopId, on.keyId)
  for (const patch of KEYS) {
    const name = JSON.stringify(patch).slice(0, 70)
    const refusal = await on.ask('PATCH', '/accounts/shop/keys/ci', { body: patch })
    t.ok(refusal.status >= 400, `${name}: admin API`)
    const { kind } = refusal.json

    const body = bodyOf(patch)
    const dashboard = await on.page.ask('PATCH', `/keys/${on.keyId}?account=${on.shopId}`, { body })
    // The limits of units have no object of their own there.
    if (!name.includes('pages')) checkPage(t, name, refusal, dashboard.error)
    t.equal(dashboard.error['kind'], kind, `${name}: dashboard`)

    const edit = ['keys', 'edit', '--account', 'shop', '--key', on.keyId, ...optionsOf(patch), ...config]
    const { status, err } = await sluiceHere(edit)
    t.not(status, 0, `${name}: command line`)
    t.ok(plain(err).includes(plain(sentenceOf(refusal))), `${name}: ${err}`)

    const { labels, ...spec } = patch
    const metadata: JsonObject = { name: 'ci', account: 'shop', ...(labels === undefined ? {} : { labels }) }
    const text = await applied(on, { kind: 'Key', metadata, spec })
    const reported = plain(textOf(refusal, 'detail')).replace('There is no field', 'unknown field')
    t.ok(plain(text).includes(reported), `${name}: apply: ${text}`)
  }
  for (const patch of TYPES) {
    const name = JSON.stringify(patch)
    const refusal = await on.ask('PATCH', '/accounts/shop/keys/ci', { body: patch })
    t.equal(refusal.status, 400, `${name}: admin API`)
    const { error } = await on.page.ask('PATCH', `/keys/${on.keyId}?account=${on.shopId}`, {
      body: bodyOf(patch),
    })
    checkPage(t, name, refusal, error)
    const made = await on.page.ask('POST', `/keys?account=${on.shopId}`, {
      body: { name: 'new', ...bodyOf(patch) },
    })
    checkPage(t, `${name}: new`, refusal, made.error)
    const { labels, ...spec } = patch
    const metadata: JsonObject = { name: 'ci', account: 'shop', ...(labels === undefined ? {} : { labels }) }
    const text = await applied(on, { kind: 'Key', metadata, spec })
    t.ok(plain(text).includes(plain(textOf(refusal, 'detail'))), `${name}: apply: ${text}`)
  }
  for (const seconds of [-1, 1.5, 2_592_001, '1 h', 'NaN']) {
    const name = `overlap ${seconds}`
    const refusal = await on.ask('POST', '/accounts/shop/keys/ci/rotate', {
      body: { overlap_seconds: seconds },
    })
    t.equal(refusal.status, 400, `${name}: admin API`)
    const { error } = await on.page.ask('POST', `/keys/${on.keyId}/rotate?account=${on.shopId}`, {
      body: { overlapSeconds: seconds },
    })
    checkPage(t, name, refusal, error)
    const words = [
      'keys',
      'rotate',
      '--account',
      'shop',
      '--key',
      on.keyId,
      `--overlap=${seconds}`,
      ...config,
    ]
    const { status, err } = await sluiceHere(words)
    t.equal(status, 2, name)
    t.ok(plain(err).includes(plain(sentenceOf(refusal))), `${name}: ${err}`)
  }
  t.same(await on.store.keyById(on.shopId, on.keyId), before, 'nothing has changed')
})

onBothStores(t, 'accounts and names', async (t, settings) => {
  const on = await scene(t, settings)
  const config = ['--config', on.gateway.configFile]
  for (const patch of ACCOUNTS) {
    const name = JSON.stringify(patch)
    const refusal = await on.ask('PATCH', '/accounts/shop', { body: patch })
    t.ok(refusal.status >= 400, `${name}: admin API`)
    const { limits } = bodyOf(patch)
    const dashboard =
      limits === undefined
        ? await on.page.ask('PATCH', `/accounts/${on.shopId}`, { body: patch })
        : await on.page.ask('PUT', `/accounts/${on.shopId}/limits`, { body: limits })
    const { field, message, kind } = dashboard.error
    t.equal(kind, refusal.json['kind'], `${name}: dashboard`)
    t.equal(message, sentenceOf(refusal, typeof field === 'string' ? field : undefined), name)
    const spec = { plan: 'shop', parent: 'acme', ...patch }
    const text = await applied(on, { kind: 'Account', metadata: { name: 'shop' }, spec })
    t.ok(plain(text).includes(plain(textOf(refusal, 'detail'))), `${name}: apply: ${text}`)
    if (patch['plan'] === undefined) continue
    const plan = ['accounts', 'set-plan', '--account', 'shop', '--plan', shown(patch['plan'])]
    const { status, err } = await sluiceHere([...plan, ...config])
    t.equal(status, 2, name)
    t.ok(plain(err).includes(plain(sentenceOf(refusal))), err)
  }
  for (const patch of ACCOUNT_TYPES) {
    const name = JSON.stringify(patch)
    const refusal = await on.ask('PATCH', '/accounts/shop', { body: patch })
    t.ok(refusal.status >= 400, `${name}: admin API`)
    const { limits } = bodyOf(patch)
    const { display_name: shownName, ...others } = patch
    const body = shownName === undefined ? others : { displayName: shownName }
    const dashboard =
      limits === undefined
        ? await on.page.ask('PATCH', `/accounts/${on.shopId}`, { body })
        : await on.page.ask('PUT', `/accounts/${on.shopId}/limits`, { body: limits })
    checkPage(t, name, refusal, dashboard.error)
    const { labels, ...spec } = patch
    const metadata = { name: 'shop', ...(labels === undefined ? {} : { labels }) }
    // A document names the account that does not exist.
    if (patch['parent'] === 'nothing-here') continue
    const text = await applied(on, {
      kind: 'Account',
      metadata,
      spec: { plan: 'shop', parent: 'acme', ...spec },
    })
    t.ok(plain(text).includes(plain(textOf(refusal, 'detail'))), `${name}: apply: ${text}`)
  }
  for (const [words, body] of [
    [['accounts', 'set-parent', '--account', 'shop', '--parent', 'nothing-here'], { parent: 'nothing-here' }],
    [['accounts', 'create', '--name', 'new', '--parent', 'nothing-here'], { parent: 'nothing-here' }],
    [['accounts', 'set-parent', '--account', 'acme', '--parent', 'shop'], { parent: 'shop' }],
    [['accounts', 'create', '--name', 'new', '--plan', 'gold'], { plan: 'gold' }],
  ] as const) {
    const at = words.some((word) => word === 'acme') ? 'acme' : 'shop'
    const refusal = await on.ask('PATCH', `/accounts/${at}`, { body })
    const { status, err } = await sluiceHere([...words, ...config])
    t.not(status, 0, words.join(' '))
    t.ok(plain(err).includes(plain(sentenceOf(refusal))), `${words.join(' ')}: ${err}`)
  }
  for (const name of BAD_NAMES) {
    const refusal = await on.ask('PUT', `/accounts/${encodeURIComponent(name)}`, { body: { plan: 'pro' } })
    const dashboard = await on.page.ask('POST', '/accounts', { body: { name, plan: 'pro' } })
    t.equal(dashboard.error['kind'], refusal.json['kind'], name)
    t.equal(dashboard.error['message'], sentenceOf(refusal), name)
    const { err } = await sluiceHere(['accounts', 'create', `--name=${name}`, '--plan', 'pro', ...config])
    t.ok(err.includes(sentenceOf(refusal)), err)
    const text = await applied(on, { kind: 'Account', metadata: { name }, spec: { plan: 'pro' } })
    t.ok(plain(text).includes(plain(textOf(refusal, 'detail'))), text)
  }
  for (const name of BAD_KEY_NAMES) {
    const refusal = await on.ask('PUT', `/accounts/shop/keys/${encodeURIComponent(name)}`, { body: {} })
    const sentence = sentenceOf(refusal)
    const dashboard = await on.page.ask('POST', `/keys?account=${on.shopId}`, { body: { name } })
    t.equal(dashboard.error['message'], sentence)
    const { err } = await sluiceHere(['keys', 'create', '--account', 'shop', '--name', name, ...config])
    t.ok(err.includes(sentence), err)
    const text = await applied(on, { kind: 'Key', metadata: { name, account: 'shop' }, spec: {} })
    t.ok(plain(text).includes(plain(textOf(refusal, 'detail'))), text)
  }
})

onBothStores(t, 'a key of an account with all keys of its plan', async (t, settings) => {
  const on = await scene(t, settings)
  const config = ['--config', on.gateway.configFile]
  const digest: JsonValue = 'ab'.repeat(32)
  await on.ask('PATCH', '/accounts/shop', { body: { plan: 'starter' } })
  for (const name of ['1', '2', '3', '4']) await on.ask('PUT', `/accounts/shop/keys/${name}`, { body: {} })
  const refusal = await on.ask('PUT', '/accounts/shop/keys/more', { body: {} })
  t.match(refusal.json, { status: 403, kind: 'plan_limit' })
  const sentence = sentenceOf(refusal)
  const { error } = await on.page.ask('POST', `/keys?account=${on.shopId}`, { body: { name: 'more' } })
  t.match(error, { kind: 'plan_limit', message: sentence })
  const { err } = await sluiceHere(['keys', 'create', '--account', 'shop', '--name', 'more', ...config])
  t.ok(err.includes(sentence), err)
  const file = join(on.folder, 'more.yaml')
  const metadata = { name: 'more', account: 'shop' }
  writeFileSync(file, yamlText([{ kind: 'Key', metadata, spec: { secret_sha256: digest } }]))
  const { err: failed } = await sluiceHere(['apply', '--file', file, ...config])
  t.ok(failed.includes(sentence), failed)
})

/** Wrong roles of members, and addresses. */
const MEMBERS_GIVEN = [
  ...['admin', 'Owner', 'editor'].map((role) => ({ email: 'eve@example.com', role })),
  ...[
    'eve',
    '@example.com',
    'eve@',
    'a,b@example.com',
    'a b@example.com',
    'eve@exa mple.com',
    'e@x..com',
  ].map((email) => ({
    ...{ email, role: 'viewer' },
  })),
  { email: `${'x'.repeat(65)}@example.com`, role: 'viewer' },
  { email: `eve@${'x'.repeat(260)}.com`, role: 'viewer' },
]

const SOON = new Date(Date.now() + 3_600_000).toISOString()
const RAISE = { budget: 'usd_per_month', usd: 900, until: SOON, reason: 'launch' }

/** Wrong raises of the budget of an account, whose parent allows $1,000 a month. */
const RAISES: readonly JsonObject[] = [
  ...['usd_total', 'tokens_per_day', 'day'].map((budget) => ({ ...RAISE, budget })),
  ...[0, 0.001, 1_000_001, -1, 'NaN', '1e3', 'much'].map((usd) => ({ ...RAISE, usd })),
  ...['soon', '2030-02-30T00:00:00Z', '2030-01-31T00:00:00', '99999999d'].map((until) => ({
    ...RAISE,
    until,
  })),
  ...['usd_per_week', 'usd_per_day'].map((budget) => ({ ...RAISE, budget, usd: 1 })),
  { ...RAISE, usd: 1_001 },
  ...['x'.repeat(201), ' ', 'a\u0007b', 'a\nb', 'a\n'].map((reason) => ({ ...RAISE, reason })),
  ...[-1, 367].map((days) => ({ ...RAISE, until: new Date(Date.now() + days * 86_400_000).toISOString() })),
]

onBothStores(t, 'members, raises and scopes', async (t, settings) => {
  const on = await scene(t, settings)
  const config = ['--config', on.gateway.configFile]
  await on.ask('PATCH', '/accounts/shop', { body: { limits: { usd_per_month: 500 } } })
  const check = async (name: string, refusal: Reply, answers: { page: Reply['json']; words: string[] }) => {
    t.ok(refusal.status >= 400, `${name}: admin API ${refusal.status}`)
    const { field, message, kind } = answers.page
    t.equal(kind, refusal.json['kind'], `${name}: dashboard`)
    t.equal(message, sentenceOf(refusal, typeof field === 'string' ? field : undefined), name)
    const { status, err } = await sluiceHere([...answers.words, ...config])
    t.not(status, 0, `${name}: command line`)
    t.ok(plain(err).includes(plain(sentenceOf(refusal))), `${name}: ${err}`)
  }
  for (const { email, role } of MEMBERS_GIVEN) {
    const name = `${email.slice(0, 40)} ${role}`
    const path = encodeURIComponent(email)
    const refusal = await on.ask('PUT', `/accounts/shop/members/${path}`, { body: { role } })
    const { error } = await on.page.ask('PUT', `/members/${path}?account=shop`, { body: { role } })
    const words = ['members', 'set', '--account', 'shop', `--email=${email}`, `--role=${role}`]
    await check(name, refusal, { page: error, words })
    const metadata = { name: email, account: 'shop' }
    const text = await applied(on, { kind: 'Member', metadata, spec: { role } })
    t.ok(plain(text).includes(plain(textOf(refusal, 'detail'))), `${name}: apply: ${text}`)
  }
  for (const raise of RAISES) {
    const name = JSON.stringify(raise).slice(0, 90)
    const refusal = await on.ask('POST', '/accounts/shop/limits/raise', { body: raise })
    const { until, ...others } = raise
    const body = { ...others, untilMs: wrongTime(until ?? null) }
    const { error } = await on.page.ask('POST', `/accounts/${on.shopId}/limits/raise`, { body })
    const options = Object.entries(raise).map(([option, value]) => `--${option}=${shown(value)}`)
    await check(name, refusal, { page: error, words: ['accounts', 'raise', '--account=shop', ...options] })
  }
  for (const role of [5, null, true, [], '']) {
    const refusal = await on.ask('PUT', '/accounts/shop/members/eve@example.com', { body: { role } })
    const { error } = await on.page.ask('PUT', '/members/eve%40example.com?account=shop', { body: { role } })
    t.equal(refusal.status, 400)
    checkPage(t, `role ${JSON.stringify(role)}`, refusal, error)
  }
  for (const usd of [true, null, []]) {
    const body = { ...RAISE, usd }
    const refusal = await on.ask('POST', '/accounts/shop/limits/raise', { body })
    const { error } = await on.page.ask('POST', `/accounts/${on.shopId}/limits/raise`, {
      body: { ...RAISE, until: undefined, untilMs: Date.parse(SOON), usd },
    })
    checkPage(t, `usd ${JSON.stringify(usd)}`, refusal, error)
  }
})

/** Wrong tokens of the admin API, and their options. */
const TOKENS: readonly JsonObject[] = [
  ...['keys', 'keys:write,all', 'usage:write', ' ', 'usage:read,usage:read,'].map((scopes) => ({ scopes })),
  ...[' x', 'x ', 'x'.repeat(101), 'a\u0007b', 'a\nb'].map((name) => ({ name })),
  ...['2020-01-31T00:00:00Z', '2099-01-31T00:00:00Z', 'soon', '2030-02-30T00:00:00Z', '367d'].map((end) => ({
    expires_at: end,
  })),
  { account: 'nothing-here' },
]

/** Wrong denials of identities, and their options. */
const DENIALS: readonly JsonObject[] = [
  { sub: 'x'.repeat(4_097) },
  { jti: 'x'.repeat(4_097) },
  { sub: 'a', jti: 'b' },
  {},
  { sub: 'a', identity: 'k8' },
  { sub: 'a', identity: 'nothing-like-it' },
  ...['x'.repeat(501), 'a\nb', 'a\u0007b'].map((reason) => ({ sub: 'a', reason })),
  ...['2020-01-31T00:00:00Z', 'soon', '2030-02-30T00:00:00Z'].map((end) => ({ sub: 'a', expires_at: end })),
]

onBothStores(t, 'tokens, denials, roles in the gateway, runs', async (t, settings) => {
  const more = `dimensions: [{ name: run, from: [header:x-run-id] }]
identity: [{ name: k8s, issuer: "https://id.example", audience: [sluice], account: acme, jwks_uri: "https://id.example/keys" }]`
  const on = await scene(t, settings, more)
  const config = ['--config', on.gateway.configFile]
  const check = async (name: string, refusal: Reply, words: readonly string[]) => {
    t.ok(refusal.status >= 400, `${name}: admin API ${refusal.status}`)
    const { status, err } = await sluiceHere([...words, ...config])
    t.not(status, 0, `${name}: command line`)
    t.ok(plain(err).includes(plain(sentenceOf(refusal))), `${name}: ${err}`)
  }
  const optionsFor = (wish: JsonObject) =>
    Object.entries(wish).map(
      ([name, value]) => `--${name === 'expires_at' ? 'expires' : name}=${shown(value)}`,
    )
  for (const wrong of TOKENS) {
    const wish = { name: 'x', scopes: 'usage:read', ...wrong }
    const body = { ...wish, scopes: wish.scopes.split(',').map((scope) => scope.trim()) }
    const refusal = await on.ask('POST', '/tokens', { body: inDays(body) })
    await check(JSON.stringify(wrong).slice(0, 70), refusal, ['admin-tokens', 'create', ...optionsFor(wish)])
  }
  for (const wrong of DENIALS) {
    const wish = { identity: 'k8s', ...wrong }
    const refusal = await on.ask('POST', '/denials', { body: wish })
    await check(JSON.stringify(wrong).slice(0, 70), refusal, ['identity', 'deny', ...optionsFor(wish)])
  }
  t.same((await on.store.denials.list({ order: 'oldest_first', after: null, limit: 9 })).items, [])
  const { user } = await createUser(on.store, { email: 'eve@example.com', password: { none: true } })
  for (const role of ['owner', 'Admin', 'adm', 'x'.repeat(100)]) {
    const changed = await on.page.ask('PATCH', `/users/${user.id}`, { body: { role } })
    const made = await on.page.ask('POST', '/users', { body: { email: 'new@example.com', role } })
    t.match([changed.error['kind'], made.error['kind']], ['invalid_field', 'invalid_field'], role)
    t.equal(changed.error['message'], made.error['message'], role)
    for (const words of [
      ['users', 'set-role', '--email', 'eve@example.com', `--role=${role}`],
      ['users', 'create', '--email', 'new@example.com', `--role=${role}`],
    ]) {
      const { status, err } = await sluiceHere([...words, ...config])
      t.equal(status, 2, words.join(' '))
      t.ok(plain(err).includes(plain(shown(made.error['message']))), err)
    }
  }
  for (const reason of ['x'.repeat(501), 'a\nb', 'a\u0007b', 'a\u001b[31mb']) {
    const name = JSON.stringify(reason).slice(0, 20)
    const refusal = await on.ask('PUT', '/runs/r-1?account=shop', { body: { ended: true, reason } })
    await check(name, refusal, ['runs', 'end', '--account', 'shop', '--run', 'r-1', `--reason=${reason}`])
    for (const [method, path, body] of [
      ['PATCH', `/keys/${on.keyId}?account=${on.shopId}`, { name: 'ci', reason }],
      ['POST', `/keys/${on.keyId}/rotate?account=${on.shopId}`, { reason }],
      ['DELETE', `/keys/${on.keyId}?account=${on.shopId}&reason=${encodeURIComponent(reason)}`, undefined],
      ['POST', '/configuration/1/rollback', { reason }],
    ] as const) {
      const { error } = await on.page.ask(method, path, body === undefined ? {} : { body })
      checkPage(t, `${name}: ${method} ${path}`, refusal, error)
    }
    const rollback = await on.ask('POST', '/generations/1/rollback', { body: { reason } })
    t.equal(sentenceOf(rollback), sentenceOf(refusal), `${name}: rollback`)
  }
})

/** The body with the time that `367d` means. */
function inDays(body: JsonObject): JsonObject {
  if (body['expires_at'] !== '367d') return body
  return { ...body, expires_at: new Date(Date.now() + 367 * 86_400_000).toISOString() }
}
