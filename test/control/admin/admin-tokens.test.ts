/**
 * Goal: admin tokens open what their scopes and their account allow, and nothing after their end.
 * Method: requests to a whole gateway on both stores, and the command beside it.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { SCOPES } from '../../../src/accounts/admin-tokens.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { digestOf } from '../../../src/accounts/key-secret.js'
import { command } from '../../../src/cli/admin-tokens.js'
import { adminRoutes } from '../../../src/control/admin/routes.js'
import type { AdminServices } from '../../../src/control/admin/services.js'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import { GATEWAY, runOn } from '../../cli/session.js'
import { onBothStores, startAdmin, textOf, type AdminStage } from './admin-stage.js'

function actorIn(entry: unknown): string {
  const { actor } = objectOf(entry)
  return typeof actor === 'string' ? actor : ''
}

function itemsOf(json: JsonObject): unknown[] {
  return Array.isArray(json['items']) ? json['items'] : []
}

onBothStores(t, 'tokens', async (t, settings) => {
  const { ask } = await startAdmin(t, settings)
  for (const token of ['', 'sat_wrong', 'sk_' + '0'.repeat(44), 'sat_' + '0'.repeat(44)]) {
    const refused = await ask('GET', '/accounts', { token })
    t.match(refused, {
      status: 401,
      json: { kind: 'unauthenticated', detail: /"Authorization: Bearer <token>"\.$/ },
    })
    t.equal(refused.headers.get('www-authenticate'), 'Bearer')
  }
  const cookie = { cookie: 'x=y', origin: 'https://evil.example' }
  const other = await ask('GET', '/accounts', { token: '', headers: cookie })
  t.equal(other.status, 401)
  t.equal(other.headers.get('access-control-allow-origin'), null)

  const made = await ask('POST', '/tokens', { body: { name: 'ci', scopes: ['usage:read'] } })
  t.match(made, {
    status: 201,
    json: { name: 'ci', scopes: ['usage:read'], account: null, state: 'live', last_used_at: null },
  })
  const secret = textOf(made, 'token')
  t.match(secret, /^sat_[0-9A-Za-z]{44}$/)
  t.equal(made.json['last_four'], secret.slice(-4))
  t.equal(made.json['created_by'], 'token:robot')
  const days = (Date.parse(textOf(made, 'expires_at')) - Date.now()) / 86_400_000
  t.ok(Math.abs(days - 90) < 0.01, 'ninety days')
  const path = `/tokens/${textOf(made, 'id')}`
  t.equal(made.headers.get('location'), `/admin/v1${path}`)

  t.equal((await ask('GET', '/usage', { token: secret })).status, 200)
  const lacking = await ask('GET', '/accounts', { token: secret })
  t.match(lacking, {
    status: 403,
    json: { kind: 'insufficient_scope', required_scope: 'accounts:read' },
  })
  t.equal(lacking.headers.get('www-authenticate'), 'Bearer error="insufficient_scope"')
  const read = await ask('GET', path)
  t.match(read.json, { etag: made.json['etag'], token: undefined, last_used_at: /Z$/ })

  for (const [body, field] of [
    [{ name: 'x', scopes: ['all'] }, 'scopes[0]'],
    [{ name: 'x', scopes: [] }, 'scopes'],
    [{ scopes: ['usage:read'] }, 'name'],
    [{ name: 'x', scopes: ['usage:read'], expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ name: 'x', scopes: ['usage:read'], expires_at: '2999-01-01T00:00:00Z' }, 'expires_at'],
    [{ name: 'x', scopes: ['usage:read'], account: 'missing' }, 'account'],
    [{ name: 'x', scopes: ['config:read'], account: 'test' }, 'scopes'],
  ] as const) {
    t.match(await ask('POST', '/tokens', { body }), { status: 400, json: { field } })
  }
  const list = itemsOf((await ask('GET', '/tokens?limit=1')).json)
  t.match(list, [{ name: 'ci' }], 'newest first')
  t.match(await ask('DELETE', path, { headers: { 'if-match': '"x"' } }), { status: 412 })
  t.equal((await ask('DELETE', path)).status, 204)
  t.equal((await ask('DELETE', path)).status, 404)
  t.equal((await ask('GET', '/usage', { token: secret })).status, 401, 'at once')
  t.match(itemsOf((await ask('GET', '/tokens')).json), [{ state: 'revoked' }, { name: 'robot' }])
  const audit = await ask('GET', '/audit?actor=token:robot')
  t.match(itemsOf(audit.json), [{ action: 'token.revoke' }, { action: 'token.create' }])
  t.notMatch(audit.text, secret)
})

onBothStores(t, 'the audit trail tells tokens of one name apart', async (t, settings) => {
  const { ask, store, makeToken } = await startAdmin(t, settings)
  const second = await makeToken(['accounts:write', 'audit:read'])
  await ask('PUT', '/accounts/one', { body: {} })
  await ask('PUT', '/accounts/two', { body: {}, token: second })
  await ask('PUT', '/accounts/two/keys/app', { body: {} })
  const actors: string[] = []
  for (const name of ['one', 'two']) {
    const audit = await ask('GET', `/audit?actor=token:robot&action=account.create&account=${name}`)
    const [entry] = itemsOf(audit.json)
    actors.push(actorIn(entry))
  }
  const ids = (await store.adminTokens.page(null, 10)).items.map(({ id }) => `token:robot (${id})`)
  t.same([...actors].sort(), ids.sort())
  const [first = ''] = actors
  const own = await ask('GET', `/audit?actor=${encodeURIComponent(first)}`)
  t.equal(itemsOf(own.json).length, 2, 'an account and a key')
  t.match(await ask('GET', '/audit?actor=token:rob'), { json: { items: [] } })
  t.match(await ask('GET', '/accounts/two/keys/app'), { json: { created_by: 'token:robot' } })
})

onBothStores(t, 'a token of an account', async (t, settings) => {
  const { ask, store, makeToken } = await startAdmin(t, settings)
  for (const [name, parent] of [
    ['acme', null],
    ['research', 'acme'],
    ['ml', 'research'],
    ['other', null],
  ]) {
    await ask('PUT', `/accounts/${String(name)}`, { body: { parent, limits: { usd_per_day: 9 } } })
  }
  const acme = await store.accountByName('research')
  const token = await makeToken(['accounts:write', 'keys:write', 'tokens:write'], acme?.id)
  const own = (method: string, path: string, body?: unknown) => ask(method, path, { token, body })
  t.match(itemsOf((await own('GET', '/accounts')).json), [{ name: 'ml' }, { name: 'research' }])
  t.equal((await own('GET', '/accounts/acme')).status, 404)
  t.equal((await own('GET', '/accounts/other')).status, 404)
  t.match(await own('PATCH', '/accounts/research', { plan: 'max' }), {
    status: 403,
    json: { kind: 'forbidden' },
  })
  t.equal((await own('DELETE', '/accounts/research')).status, 403)
  t.equal((await own('PUT', '/accounts/research/limits', {})).status, 403)
  t.match(await own('PATCH', '/accounts/ml', { plan: 'max' }), { status: 403, json: { field: 'plan' } })
  t.equal((await own('PATCH', '/accounts/ml', { parent: 'other' })).status, 403)
  t.equal((await own('PATCH', '/accounts/ml', { parent: null })).status, 403)
  t.match(await own('PUT', '/accounts/other', { parent: 'ml' }), {
    status: 409,
    json: { kind: 'name_taken' },
  })
  t.equal((await own('PUT', '/accounts/top', {})).status, 403)
  t.equal((await own('PUT', '/accounts/top', { parent: 'acme' })).status, 403)
  t.match(await own('PUT', '/accounts/new', { parent: 'research' }), {
    status: 400,
    json: { field: 'name', fix: /"research--new"/ },
  })
  t.equal((await own('PUT', '/accounts/research--', { parent: 'research' })).status, 400)
  t.equal((await own('PUT', '/accounts/research--new', { parent: 'research' })).status, 201)
  t.equal((await ask('PUT', '/accounts/new', { body: {} })).status, 201, 'the name stays free')
  const labels = { 'managed-by': 'apply' }
  t.match(await own('PATCH', '/accounts/research--new', { labels }), {
    status: 403,
    json: { field: 'labels.managed-by' },
  })
  t.equal((await own('PUT', '/accounts/research/keys/ci', {})).status, 201)
  t.equal((await own('PUT', '/accounts/acme/keys/ci', {})).status, 404)
  t.match(await own('PUT', '/accounts/ml/keys/ci', { limits: { usd_per_day: 10 } }), {
    status: 403,
    json: { field: 'limits.usd_per_day' },
  })
  t.match(await own('POST', '/tokens', { name: 'x', scopes: ['usage:read'], account: 'ml' }), {
    status: 403,
    json: { field: 'scopes' },
  })
  const wish = { name: 'x', scopes: ['accounts:read'] }
  t.match(await own('POST', '/tokens', wish), { status: 403, json: { field: 'account' } })
  t.equal((await own('POST', '/tokens', { ...wish, account: 'other' })).status, 400)
  const made = await own('POST', '/tokens', { ...wish, account: 'research--new' })
  t.equal(made.status, 201)
  t.match(itemsOf((await own('GET', '/tokens')).json), [{ name: 'x' }, { name: 'robot' }])
  t.equal((await ask('DELETE', '/accounts/research--new?purge=true')).status, 204)
  const ended = textOf(made, 'token')
  t.equal((await ask('GET', '/accounts', { token: ended })).status, 401, 'it ends with its account')
})

onBothStores(t, 'rate', async (t, settings) => {
  const { ask, store, makeToken } = await startAdmin(t, settings)
  const token = await makeToken(['usage:read'])
  t.equal((await ask('GET', '/usage', { token })).status, 200)
  const [own] = itemsOf((await ask('GET', '/tokens')).json)
  const id = typeof own === 'object' && own !== null && 'id' in own ? String(own.id) : ''
  // As much as fifty a second take in a minute.
  await store.throttle.take([{ name: `admin:${id}`, burst: 1_000, everyMs: 60_000 }], Date.now())
  const refused = await ask('GET', '/usage', { token })
  t.match(refused, { status: 429, json: { kind: 'rate_limited' } })
  t.match(refused.headers.get('retry-after'), /^[1-9]\d?$/)
  t.equal((await ask('GET', '/usage')).status, 200, 'another token is not limited')
})

void t.test('the command', async (t) => {
  const stage = await startAdmin(t)
  const out: string[] = []
  const err: string[] = []
  const run = async (...argv: string[]): Promise<number> => {
    out.splice(0)
    err.splice(0)
    return runOn(sessionOf(stage, out, err), command, argv)
  }
  t.equal(await run('create', '--name', 'ops', '--scopes', 'all', '--expires', '30d'), 0)
  t.match(out, [/^sat_[0-9A-Za-z]{44}$/], 'prints only the token')
  const [token = ''] = out
  t.equal(out.length, 1)
  t.equal((await stage.ask('GET', '/config', { token })).status, 200)
  t.equal(await run('list', '--json'), 0)
  const listed = JSON.parse(out.join('')) as { id: string; name: string }[]
  t.match(listed, [{ name: 'ops', scopes: [...SCOPES], state: 'live' }, { name: 'robot' }])
  t.equal(await run('revoke', '--token', listed[0]?.id ?? ''), 0)
  t.equal((await stage.ask('GET', '/config', { token })).status, 401)
  await t.rejects(run('revoke', '--token', listed[0]?.id ?? ''), /no live token/)
  const unknown = /The value of "--scopes" is not valid/
  await t.rejects(run('create', '--name', 'ops', '--scopes', 'usage'), unknown)
  const audit = await stage.ask('GET', '/audit?actor=command%20line&action=token.revoke')
  t.match(itemsOf(audit.json), [{ actor: 'command line', action: 'token.revoke' }])
})

function sessionOf({ store, gateway }: AdminStage, out: string[], err: string[]) {
  return {
    ...{
      store,
      plans: gateway.plans,
      upstreams: [],
      companies: { providerOf: (name: string) => name, publisherOf: () => null },
      models: [],
      identities: [],
      acceptsImported: false,
      gateway: GATEWAY,
    },
    terminal: {
      out: (line: string) => void out.push(line),
      err: (line: string) => void err.push(line),
      ready: () => Promise.resolve(),
      input: () => Promise.resolve(''),
    },
  }
}

interface Row {
  readonly method: string
  readonly path: string
  /** `yes`, `no` or `both` for each scope. */
  readonly may: ReadonlyMap<string, string>
}

/** The endpoints of the page, with the scopes that open them. */
function tableOf(page: string): Row[] {
  const lines = page.split('\n').filter((line) => /^\| `[A-Z]+ \//.test(line))
  const head = page.split('\n').find((line) => /^\| endpoint +\| `/.test(line)) ?? ''
  const scopes = [...head.matchAll(/`([^`]+)`/g)].map(([, scope = '']) => scope)
  return lines.flatMap((line) => {
    const [, names = '', ...cells] = line.split('|').map((cell) => cell.trim())
    const may = new Map(scopes.map((scope, at) => [scope, cells[at] ?? '']))
    let method = ''
    return [...names.matchAll(/`(?:([A-Z]+) )?([^`]+)`/g)].map(([, verb, path = '']) => {
      method = verb ?? method
      return { method, path, may }
    })
  })
}

onBothStores(t, 'scopes × endpoints: allowed and refused as in the page', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const services = {
    snapshot: () => ({ config: { plans: stage.gateway.plans } }),
  } as unknown as AdminServices
  const routes = adminRoutes(services)
  const table = tableOf(readFileSync('docs/reference/admin-api.md', 'utf8'))
  t.same(
    table.map(({ method, path }) => `${method} ${path}`).sort(),
    routes.map(({ method, path }) => `${method} ${path}`).sort(),
    'the page has every endpoint',
  )
  t.same([...(table[0]?.may.keys() ?? [])], SCOPES)
  const tokens = new Map<string, string>()
  for (const scope of SCOPES) tokens.set(scope, await stage.makeToken([scope]))
  const both = await stage.makeToken(['accounts:write', 'keys:write'])
  for (const { method, path, may } of table) {
    const real = path.replaceAll(/\{\w+\}/g, 'x')
    const ask = (token: string, headers = {}) => {
      const hasBody = !['GET', 'DELETE'].includes(method)
      return stage.ask(method, real, { token, headers, ...(hasBody ? { body: {} } : {}) })
    }
    const name = `${method} ${path}`
    t.equal((await ask('')).status, 401, name)
    t.equal((await ask(stage.gateway.secret)).status, 401, `${name} with a key`)
    for (const [scope, cell] of may) {
      const { status, json } = await ask(tokens.get(scope) ?? '')
      if (cell === 'yes') t.notOk([401, 403, 429].includes(status), `${name}: ${scope} ${status}`)
      else t.match({ status, json }, { status: 403, json: { kind: 'insufficient_scope' } }, name)
    }
    if ([...may.values()].includes('both')) t.not((await ask(both)).status, 403, name)
  }
})

void t.test('the document and the switch', async (t) => {
  const { ask, gateway } = await startAdmin(t)
  const { json, status } = await ask('GET', '/openapi.json', { token: '' })
  t.equal(status, 200)
  t.match(json, { openapi: '3.1.0', paths: { '/accounts/{name}': { put: {}, patch: {} } } })
  t.equal((await ask('OPTIONS', '/accounts')).status, 405)
  const { default: fs } = await import('node:fs')
  const text = fs.readFileSync(gateway.configFile, 'utf8')
  fs.writeFileSync(gateway.configFile, text.replace('admin_api: { enabled: true }', ''))
  gateway.reload()
  const off = await ask('GET', '/openapi.json', { token: '' })
  t.match(off, { status: 404, text: /unknown_endpoint/ })
})

onBothStores(t, 'a token gives nothing that its account does not have', async (t, settings) => {
  // The plans of the gateway stand before.
  const more = `
  small: { limits: { usd_per_day: 1 } }
  team: { limits: { usd_per_day: 10 } }
  large: { limits: { usd_per_day: 100 } }
`
  const { ask, store, makeToken } = await startAdmin(t, { ...settings, more })
  await ask('PUT', '/accounts/acme', { body: { plan: 'team', limits: { usd_per_month: 50 } } })
  const acme = await store.accountByName('acme')
  const token = await makeToken(['accounts:write', 'keys:write', 'tokens:write'], acme?.id)
  const own = (method: string, path: string, body?: unknown) => ask(method, path, { token, body })
  const refused = async (field: string, method: string, path: string, body: unknown): Promise<void> => {
    t.match(await own(method, path, body), { status: 403, json: { kind: 'forbidden', field } }, path + field)
  }
  const applied = (documents: unknown) => own('POST', '/apply', { documents })
  const account = (spec: unknown, labels = {}) => {
    return { kind: 'Account', metadata: { name: 'acme--child', labels }, spec }
  }
  const key = (spec: unknown, labels = {}) => {
    return { kind: 'Key', metadata: { name: 'ci', account: 'acme--child', labels }, spec }
  }

  // Accounts.
  const parent = 'acme'
  await refused('plan', 'PUT', '/accounts/acme--child', { parent, plan: 'large' })
  await refused('limits.usd_per_day', 'PUT', '/accounts/acme--child', { parent, limits: { usd_per_day: 11 } })
  await refused('limits.usd_per_month', 'PUT', '/accounts/acme--child', {
    parent,
    limits: { usd_per_month: 51 },
  })
  await refused('labels.managed-by', 'PUT', '/accounts/acme--child', {
    parent,
    labels: { 'managed-by': 'apply' },
  })
  for (const document of [
    account({ parent, plan: 'large' }),
    account({ parent, limits: { usd_per_month: 51 } }),
    account({ parent }, { priority: 'high' }),
  ]) {
    t.match(await applied([document]), { status: 400, text: /child/ })
  }
  const secret_sha256 = 'a'.repeat(64)
  for (const document of [
    key({ secret_sha256 }, { priority: 'high' }),
    key({ secret_sha256, limits: { usd_per_month: 51 } }),
    key({ secret_sha256, limits: { usd_per_month: 5 } }),
    key({ secret_sha256, expires_at: '2100-01-01T00:00:00Z' }),
  ]) {
    const both = [account({ parent, limits: { usd_per_month: 4 } }), document]
    t.equal((await applied(both)).status, 400)
  }
  t.equal(await store.accountByName('acme--child'), null)
  t.match(await own('PUT', '/accounts/acme--child', { parent }), { status: 201, json: { plan: 'small' } })
  t.equal((await own('PATCH', '/accounts/acme--child', { plan: 'team' })).status, 200, 'the same plan')
  await refused('plan', 'PATCH', '/accounts/acme--child', { plan: 'large' })
  await refused('limits.usd_per_month', 'PUT', '/accounts/acme--child/limits', { usd_per_month: 51 })
  await refused('limits.usd_per_month', 'PATCH', '/accounts/acme--child/limits', { usd_per_month: 51 })
  await ask('PATCH', '/accounts/acme--child', { body: { plan: 'large' } })
  t.equal(
    (await own('PATCH', '/accounts/acme--child', { display_name: 'x' })).status,
    200,
    'what it has stays',
  )

  // Labels of keys, by value.
  const path = '/accounts/acme--child/keys/low'
  await ask('PUT', path, { body: { labels: { priority: 'low', team: 'a' } } })
  await refused('labels.priority', 'PATCH', path, { labels: { priority: 'high' } })
  await refused('labels.priority', 'PATCH', path, { labels: { priority: null } })
  await refused('labels.priority', 'PATCH', path, { labels: null })
  await refused('labels.priority', 'PUT', path, {})
  await refused('labels.priority', 'PUT', path, { labels: { priority: 'high' } })
  t.equal((await applied([{ ...key({}), metadata: { name: 'low', account: 'acme--child' } }])).status, 400)
  const kept = await own('PATCH', path, { labels: { team: 'b' } })
  t.match(kept, { status: 200, json: { labels: { priority: 'low', team: 'b' }, expires_at: null } })

  // Ends.
  const ends = (await store.adminTokens.byDigest(digestOf(token)))?.expiresAtMs ?? 0
  const end = new Date(ends).toISOString()
  const later = new Date(ends + 1000).toISOString()
  await refused('expires_at', 'PUT', '/accounts/acme--child/keys/x', { expires_at: later })
  t.match(await own('PUT', '/accounts/acme--child/keys/x', {}), { status: 201, json: { expires_at: end } })
  t.match(await own('PUT', '/accounts/acme--child/keys/x', {}), { status: 200, json: { expires_at: end } })
  await refused('expires_at', 'PATCH', '/accounts/acme--child/keys/x', { expires_at: later })
  t.match(await own('PATCH', '/accounts/acme--child/keys/x', { expires_at: null }), {
    json: { expires_at: end },
  })
  t.match(await own('POST', `${path}/rotate`, {}), { status: 201, json: { expires_at: end } })
  t.match(await ask('POST', `${path}/rotate`, { body: {} }), { status: 201, json: { expires_at: end } })
  await ask('PUT', '/accounts/acme--child/keys/own', { body: {} })
  t.match(await own('PUT', '/accounts/acme--child/keys/own', { secret_sha256: 'b'.repeat(64) }), {
    json: { expires_at: end },
  })
  t.equal((await applied([key({ secret_sha256 })])).status, 200)
  t.match(await own('GET', '/accounts/acme--child/keys/ci'), { json: { expires_at: end } })
  t.match(await applied([key({ secret_sha256 })]), { json: { unchanged: 1 } })
  const wish = { name: 'x', scopes: ['keys:write'], account: 'acme--child' }
  await refused('expires_at', 'POST', '/tokens', { ...wish, expires_at: later })
  t.match(await own('POST', '/tokens', { ...wish, expires_at: end }), { status: 201 })
  t.match(await own('POST', '/tokens', wish), { status: 201, json: { expires_at: end } })
})

onBothStores(t, 'a token of the whole gateway gives nothing that it does not have', async (t, settings) => {
  const { ask, store } = await startAdmin(t, settings)
  const end = new Date(Date.now() + 3_600_000).toISOString()
  const short = { name: 'short', scopes: ['tokens:write', 'usage:read'], expires_at: end }
  const token = textOf(await ask('POST', '/tokens', { body: short }), 'token')
  const make = (body: object) => ask('POST', '/tokens', { token, body: { name: 'x', ...body } })
  const later = new Date(Date.parse(end) + 1000).toISOString()
  t.match(await make({ scopes: ['usage:read'], expires_at: later }), {
    status: 403,
    json: { field: 'expires_at' },
  })
  t.match(await make({ scopes: ['usage:read'], expires_at: end }), { status: 201, json: { expires_at: end } })
  const made = await make({ scopes: ['tokens:write'] })
  t.match(made, { status: 201, json: { expires_at: end } }, 'its end is the default')
  const next = { name: 'x', scopes: ['tokens:write'], expires_at: later }
  t.equal((await ask('POST', '/tokens', { token: textOf(made, 'token'), body: next })).status, 403)
  t.match(await make({ scopes: ['audit:read'] }), { status: 403, json: { field: 'scopes' } })
  t.match(await make({ scopes: ['accounts:read'], account: 'test' }), { status: 403 })
  await ask('PUT', '/accounts/acme', { body: {} })
  t.match(await make({ scopes: ['usage:read'], account: 'acme' }), { status: 201, json: { expires_at: end } })
  const ends = (await store.adminTokens.page(null, 20)).items.map(({ expiresAtMs }) => expiresAtMs)
  t.equal(ends.filter((ms) => ms > Date.parse(end)).length, 1, 'only the first token ends later')
})

onBothStores(t, 'the plans that a token may give', async (t, settings) => {
  const more = 'limiting: { child_plans: [starter] }'
  const { ask, store, makeToken } = await startAdmin(t, { ...settings, more })
  await ask('PUT', '/accounts/acme', { body: { plan: 'max' } })
  const token = await makeToken(['accounts:write'], (await store.accountByName('acme'))?.id)
  const body = { parent: 'acme', plan: 'pro' }
  t.match(await ask('PUT', '/accounts/acme--child', { token, body }), {
    status: 403,
    json: { field: 'plan' },
  })
  const allowed = await ask('PUT', '/accounts/acme--child', { token, body: { ...body, plan: 'starter' } })
  t.equal(allowed.status, 201)
})

onBothStores(t, 'a token of a purged account has ended with it', async (t, settings) => {
  const { store, ask, makeToken } = await startAdmin(t, settings)
  const { account } = await createAccount(store, { name: 'acme', plan: 'pro', password: null })
  const token = await makeToken(['accounts:read'], account.id)
  t.equal((await ask('GET', '/accounts', { token })).status, 200)
  // As if the gateway had failed right after the removal.
  const removed = await store.transact({
    ...{ accountId: account.id, nowMs: Date.now() },
    decide: () => ({ write: { purge: true, audit: [] } }),
  })
  t.equal(removed.kind, 'written')
  t.equal((await ask('GET', '/accounts', { token })).status, 401)
  const { items } = (await ask('GET', '/tokens')).json
  t.match(items, [{ state: 'revoked' }, { state: 'live' }])
})
