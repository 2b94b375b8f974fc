/**
 * Goal: replies of the admin API stay the same, to the byte, apart from ids, secrets and times.
 * Method: a fixed sequence of requests on both stores; status, headers and bodies are compared with
 * `replies/admin-replies.json`, with placeholders for what differs from run to run. The OpenAPI document is
 * compared with `replies/openapi.json`. `UPDATE=1` rewrites the files; review the difference.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import t from 'tap'
import { SCOPES } from '../../../src/accounts/admin-tokens.js'
import { isObject, objectOf } from '../../../src/base/json.js'
import { openapiDocument } from '../../../src/control/admin/openapi.js'
import type { GatewaySettings } from '../../helpers/gateway.js'
import { onBothStores, ROUTES, startAdmin, type AdminStage } from './admin-stage.js'

const RECORD = recordAt('admin-replies.json')
const DIGEST = 'ab'.repeat(32)
const LABELS = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`l${at}`, 'x']))

function recordAt(name: string): string {
  return fileURLToPath(new URL(`../../../../test/control/admin/replies/${name}`, import.meta.url))
}

/** Compares the text of a JSON value with the one on record. */
function compare(t: Test, file: string, text: string): void {
  if (process.env['UPDATE'] === '1') writeFileSync(file, text)
  t.ok(existsSync(file), 'is on record; UPDATE=1 writes it')
  t.same(JSON.parse(text), JSON.parse(readFileSync(file, 'utf8')))
}

type Step = readonly [method: string, path: string, body?: unknown, headers?: Record<string, string>]

const ACCOUNTS: readonly Step[] = [
  ['PUT', '/accounts/acme', { plan: 'pro', limits: { usd_per_day: 10 }, labels: { team: 'a' } }],
  ['PUT', '/accounts/acme', { plan: 'pro', limits: { usd_per_day: 10 }, labels: { team: 'a' } }],
  ['PUT', '/accounts/shop', { display_name: 'The shop', parent: 'acme' }],
  ['GET', '/accounts'],
  ['PATCH', '/accounts/shop', { plan: 'pro', labels: { tier: 'gold' }, limits: { usd_per_day: 5 } }],
  ['PATCH', '/accounts/shop', { disabled: true }],
  ['PATCH', '/accounts/shop', { disabled: false, labels: { tier: null } }],
  ['GET', '/accounts/shop/limits'],
  ['PUT', '/accounts/shop/limits', { concurrent: 3, usd_per_month: 100 }],
  ['PATCH', '/accounts/shop/limits', { concurrent: null }],
  ['DELETE', '/accounts/shop/limits'],
  ['PUT', '/accounts/Acme', {}],
  ['PUT', '/accounts/acme-', {}],
  ['PATCH', '/accounts/none', { plan: 'pro' }],
  ['PATCH', '/accounts/shop', { plan: 'gold' }],
  ['PATCH', '/accounts/shop', { parent: 'missing' }],
  ['PATCH', '/accounts/acme', { parent: 'shop' }],
  ['PATCH', '/accounts/shop', { display_name: ' spaces ' }],
  ['PATCH', '/accounts/shop', { display_name: 'x'.repeat(101) }],
  ['PATCH', '/accounts/shop', { labels: { Team: 'x', team: 'a b' } }],
  ['PATCH', '/accounts/shop', { labels: LABELS }],
  ['PATCH', '/accounts/shop', { limits: { requests_per_minute: 0, usd_per_day: -1, concurrent: 2.5 } }],
  ['PATCH', '/accounts/shop', { limits: { usd_per_week: 1_000_001 } }],
  ['PATCH', '/accounts/shop', { limit: {} }],
  ['PATCH', '/accounts/shop', { id: 'acc_other' }],
  ['PATCH', '/accounts/shop', { disabled: 'yes' }],
  ['PATCH', '/accounts/shop', { plan: 'pro' }, { 'if-match': '"stale"' }],
  ['DELETE', '/accounts/acme?purge=true'],
]

const KEYS: readonly Step[] = [
  ['PUT', '/accounts/shop/keys/ci', { models: ['gpt-*'], limits: { usd_per_day: 2 }, labels: { a: 'b' } }],
  ['PUT', '/accounts/shop/keys/ci', { models: ['gpt-*'], limits: { usd_per_day: 2 }, labels: { a: 'b' } }],
  ['PATCH', '/accounts/shop/keys/ci', { expires_at: '2099-01-31T00:00:00Z', limits: { concurrent: 4 } }],
  ['PUT', '/accounts/shop/keys/given', { secret_sha256: DIGEST }],
  ['PUT', '/accounts/shop/keys/other', { secret_sha256: DIGEST }],
  ['POST', '/accounts/shop/keys/ci/rotate', { overlap_seconds: 0 }],
  ['POST', '/accounts/shop/keys/given/rotate', { secret_sha256: 'cd'.repeat(32) }],
  ['POST', '/accounts/shop/keys/ci/rotate', { overlap_seconds: 2_592_001 }],
  ['PATCH', '/accounts/shop/keys/ci', { expires_at: '2020-01-31T00:00:00Z' }],
  ['PATCH', '/accounts/shop/keys/ci', { expires_at: 'soon' }],
  ['PATCH', '/accounts/shop/keys/ci', { expires_at: '2027-02-30T00:00:00Z' }],
  ['PATCH', '/accounts/shop/keys/ci', { models: [] }],
  ['PATCH', '/accounts/shop/keys/ci', { models: ['gp*t', 'a  b'] }],
  ['PATCH', '/accounts/shop/keys/ci', { labels: { priority: '' } }],
  ['PATCH', '/accounts/shop/keys/ci', { labels: LABELS }],
  ['PATCH', '/accounts/shop/keys/ci', { limits: { tokens_per_minute: 1.5 } }],
  ['PATCH', '/accounts/shop/keys/ci', { secret_sha256: 'xyz' }],
  ['PUT', `/accounts/shop/keys/${'n'.repeat(101)}`, {}],
  ['PUT', '/accounts/shop/keys/%20ci', {}],
  ['POST', '/accounts/shop/keys/none/rotate', {}],
  ['DELETE', '/accounts/shop/keys/ci'],
  ['DELETE', '/accounts/shop/keys/ci'],
  ['PATCH', '/accounts/shop/keys/ci', { models: null }],
  ['POST', '/accounts/shop/keys/ci/rotate', {}],
  ['GET', '/accounts/shop/keys?state=all'],
  ['PATCH', '/accounts/shop', { plan: 'starter' }],
  ['PUT', '/accounts/shop/keys/one', {}],
  ['PUT', '/accounts/shop/keys/two', {}],
  ['PUT', '/accounts/shop/keys/three', {}],
  ['PUT', '/accounts/shop/keys/four', {}],
  ['PUT', '/accounts/shop/keys/five', {}],
  ['POST', '/accounts/shop/keys/one/rotate', {}],
  ['POST', '/accounts/shop/keys/two/rotate', {}],
]

const MEMBERS: readonly Step[] = [
  ['PUT', '/accounts/shop/members/ada@example.com', { role: 'owner', labels: { desk: '4' } }],
  ['PATCH', '/accounts/shop/members/ada@example.com', { role: 'viewer' }],
  ['PUT', '/accounts/shop/members/ada@example.com', { role: 'boss' }],
  ['PUT', '/accounts/shop/members/ada@example.com', {}],
  ['PUT', '/accounts/shop/members/missing', { role: 'owner' }],
  ['DELETE', '/accounts/shop/members/ada@example.com'],
  ['DELETE', '/accounts/shop/members/ada@example.com'],
  ['POST', '/tokens', { name: 'robot-2', scopes: ['accounts:read'] }],
  ['POST', '/tokens', { name: '', scopes: ['accounts:read'] }],
  ['POST', '/tokens', { name: 'x', scopes: ['accounts:all'] }],
  ['POST', '/tokens', { name: 'x', scopes: [] }],
  ['POST', '/tokens', { name: 'x', scopes: ['keys:write'], expires_at: '2020-01-31T00:00:00Z' }],
  ['POST', '/tokens', { name: 'x', scopes: ['config:read'], account: 'shop' }],
  ['POST', '/tokens', { name: 'x', scopes: ['keys:write'], account: 'missing' }],
  ['GET', '/audit?limit=100'],
  ['DELETE', '/accounts/shop'],
  ['DELETE', '/accounts/shop?purge=true'],
]

const OWN: readonly Step[] = [
  ['PUT', '/accounts/acme--a', { parent: 'acme', limits: { usd_per_day: 11 } }],
  ['PUT', '/accounts/acme--a', { parent: 'acme', plan: 'max' }],
  ['PUT', '/accounts/acme--a', { parent: 'acme', labels: { priority: 'high' } }],
  ['PUT', '/accounts/acme--a', { parent: 'acme', plan: 'pro', limits: { usd_per_day: 9 } }],
  ['PUT', '/accounts/acme--a/keys/ci', { limits: { usd_per_day: 9.5 } }],
  ['PUT', '/accounts/acme--a/keys/ci', { limits: { usd_per_day: 9 } }],
  ['PATCH', '/accounts/acme--a/keys/ci', { expires_at: '2099-01-31T00:00:00Z' }],
  ['PATCH', '/accounts/acme', { plan: 'pro' }],
  ['PUT', '/accounts/elsewhere', { parent: 'acme' }],
]

/** The parts of a reply that are the same in each run. */
async function shownReply(stage: AdminStage, step: Step, token?: string): Promise<unknown> {
  const [method, path, body, headers] = step
  const reply = await stage.ask(method, path, {
    ...(body === undefined ? {} : { body }),
    ...(headers === undefined ? {} : { headers }),
    ...(token === undefined ? {} : { token }),
  })
  const location = reply.headers.get('location')
  return {
    request: `${method} ${path}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`,
    status: reply.status,
    ...(location === null ? {} : { location: steady(location) }),
    body: reply.text === '' ? null : unordered(steady(reply.text)),
  }
}

/** The body; random ids order the keys of one name and the audit entries of one millisecond. */
function unordered(text: string): unknown {
  const body: unknown = JSON.parse(text)
  if (!isObject(body) || !Array.isArray(body['items'])) return body
  return { ...body, items: body['items'].map((item) => JSON.stringify(item)).sort() }
}

/** Without ids, secrets, times and tags. */
function steady(text: string): string {
  return text
    .replaceAll(/(acc|key|tok|usr)_[A-Za-z0-9]{16}/g, '$1_ID')
    .replaceAll(/(sk|sat)_[A-Za-z0-9]{44}/g, '$1_SECRET')
    .replaceAll(/"(prefix|last_four)":"[^"]*"/g, '"$1":"PART"')
    .replaceAll(/"etag":"\\"[^"]*\\""/g, '"etag":"TAG"')
    .replaceAll(/20[23]\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, (time) =>
      time.endsWith('T00:00:00.000Z') ? time : 'TIME',
    )
    .replaceAll(/"request_id":"[^"]*"/g, '"request_id":"REQUEST"')
    .replaceAll(/"id":"(?![a-z]{3}_ID)[^"]*"/g, '"id":"ID"')
    .replaceAll(/"url":"[^"]*"/g, '"url":"URL"')
    .replaceAll(/"next_cursor":"[^"]*"/g, '"next_cursor":"CURSOR"')
}

onBothStores(t, 'replies of the admin API', async (t: Test, settings: GatewaySettings) => {
  const stage = await startAdmin(t, settings)
  const replies: unknown[] = []
  for (const steps of [ACCOUNTS, KEYS, MEMBERS]) {
    // Each token has its own rate limit.
    const token = await stage.makeToken(SCOPES)
    for (const step of steps) replies.push(await shownReply(stage, step, token))
  }
  const acme = await stage.store.accountByName('acme')
  if (acme === null) throw new Error('the account acme was made')
  const token = await stage.makeToken(['accounts:write', 'keys:write'], acme.id)
  for (const step of OWN) replies.push(await shownReply(stage, step, token))
  compare(t, RECORD, `${JSON.stringify(replies, null, 2)}\n`)
})

void t.test('the OpenAPI document of the admin API', (t) => {
  const { components, ...document } = openapiDocument(ROUTES, '0.0.0')
  const { schemas, ...others } = objectOf(components)
  const byName = Object.fromEntries(Object.entries(objectOf(schemas)).sort(([a], [b]) => (a < b ? -1 : 1)))
  const text = JSON.stringify({ ...document, components: { ...others, schemas: byName } }, null, 2)
  compare(t, recordAt('openapi.json'), `${text}\n`)
  t.end()
})
