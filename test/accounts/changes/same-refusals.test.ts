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
  { labels: MORE_LABELS },
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

const BAD_NAMES = ['Acme', 'a-', '-a', 'a_b', 'x'.repeat(64)]
const BAD_KEY_NAMES = ['x'.repeat(101), 'a\u0007b']

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

async function scene(t: Test, settings: GatewaySettings): Promise<Scene> {
  const more = `\n  shop: { price_usd: 9, max_keys: 20, limits: { tokens_per_minute: 1000, units_per_minute: { audio_second: 600 } } }`
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
        return [MEMBERS[name] ?? name, name.startsWith('usd') ? Number(value) * 1e9 : value] as const
      })
    : []
  return {
    ...others,
    ...(typeof end === 'string' ? { expiresAtMs: Date.parse(end) } : {}),
    ...(own.length === 0 ? {} : { limits: Object.fromEntries<JsonValue | undefined>(own) }),
  }
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

    const dashboard = await on.page.ask('PATCH', `/keys/${on.keyId}?account=${on.shopId}`, {
      body: bodyOf(patch),
    })
    const { field, message } = dashboard.error
    t.equal(dashboard.error['kind'], kind, `${name}: dashboard`)
    t.equal(message, sentenceOf(refusal, typeof field === 'string' ? field : undefined), name)

    const edit = ['keys', 'edit', '--account', 'shop', '--key', on.keyId, ...optionsOf(patch), ...config]
    const { status, err } = await sluiceHere(edit)
    t.not(status, 0, `${name}: command line`)
    t.ok(plain(err).includes(plain(sentenceOf(refusal))), `${name}: ${err}`)

    const { labels, ...spec } = patch
    const metadata: JsonObject = { name: 'ci', account: 'shop', ...(labels === undefined ? {} : { labels }) }
    const text = await applied(on, { kind: 'Key', metadata, spec })
    t.ok(plain(text).includes(plain(textOf(refusal, 'detail'))), `${name}: apply: ${text}`)
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
  for (const name of BAD_NAMES) {
    const refusal = await on.ask('PUT', `/accounts/${name}`, { body: { plan: 'pro' } })
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
  ...['eve', '@example.com', 'eve@', 'a,b@example.com'].map((email) => ({
    ...{ email, role: 'viewer' },
  })),
]

const SOON = new Date(Date.now() + 3_600_000).toISOString()
const RAISE = { budget: 'usd_per_month', usd: 900, until: SOON, reason: 'launch' }

/** Wrong raises of the budget of an account, whose parent allows $1,000 a month. */
const RAISES: readonly JsonObject[] = [
  ...['usd_total', 'tokens_per_day', 'day'].map((budget) => ({ ...RAISE, budget })),
  ...[0, 0.001, 1_000_001].map((usd) => ({ ...RAISE, usd })),
  ...['usd_per_week', 'usd_per_day'].map((budget) => ({ ...RAISE, budget, usd: 1 })),
  { ...RAISE, usd: 1_001 },
  ...['x'.repeat(201), ' ', 'a\u0007b'].map((reason) => ({ ...RAISE, reason })),
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
    const body = { ...others, untilMs: Date.parse(shown(until)) }
    const { error } = await on.page.ask('POST', `/accounts/${on.shopId}/limits/raise`, { body })
    const options = Object.entries(raise).map(([option, value]) => `--${option}=${shown(value)}`)
    await check(name, refusal, { page: error, words: ['accounts', 'raise', '--account=shop', ...options] })
  }
  for (const scopes of ['keys', 'keys:write,all', 'usage:write']) {
    const refusal = await on.ask('POST', '/tokens', { body: { name: 'x', scopes: scopes.split(',') } })
    const { err } = await sluiceHere(['admin-tokens', 'create', '--name=x', `--scopes=${scopes}`, ...config])
    t.ok(plain(err).includes(plain(sentenceOf(refusal))), `${scopes}: ${err} ${refusal.text}`)
  }
})
