/**
 * Goal: accounts, limits, members and keys of the admin API keep the rules of its reference.
 * Method: requests to a whole gateway on both stores; keys are also used on the data plane.
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import { newSecret } from '../../../src/accounts/key-secret.js'
import { onBothStores, startAdmin, textOf, type AdminStage } from './admin-stage.js'
import { eventually } from '../../helpers/requests.js'

async function chatStatus({ gateway }: AdminStage, secret: string): Promise<number> {
  const messages = [{ role: 'user', content: 'Name a colour.' }]
  const headers = { authorization: `Bearer ${secret}` }
  const response = await gateway.chat({ model: 'gpt-5.4-mini', messages }, { headers })
  await response.arrayBuffer()
  return response.status
}

onBothStores(t, 'accounts', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const { ask } = stage
  const made = await ask('PUT', '/accounts/acme', { body: {} })
  t.equal(made.status, 201)
  t.equal(made.headers.get('location'), '/admin/v1/accounts/acme')
  t.equal(made.headers.get('cache-control'), 'no-store')
  t.match(made.headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
  t.match(made.json, {
    ...{ name: 'acme', display_name: 'acme', plan: 'starter', parent: null, disabled: false },
    ...{ labels: {}, limits: {} },
  })
  t.match(made.json['etag'], /^"[\w-]{22}"$/)
  t.equal(made.json['etag'], made.headers.get('etag'))
  t.equal(made.json['created_at'], made.json['updated_at'])

  const again = await ask('PUT', '/accounts/acme', { body: {} })
  t.equal(again.status, 200)
  t.same(again.json, made.json, 'an equal object changes nothing')
  t.equal((await ask('PUT', '/accounts/acme', { body: made.json })).status, 200, 'the object that was read')
  const read = await ask('GET', '/accounts/acme')
  t.same(read.json, made.json)
  const tag = textOf(made, 'etag')
  t.equal((await ask('GET', '/accounts/acme', { headers: { 'if-none-match': tag } })).status, 304)

  const body = {
    ...{ display_name: 'Research', plan: 'pro', parent: 'acme', labels: { 'cost-center': '4711' } },
    limits: { usd_per_day: 50, requests_per_minute: null },
  }
  const child = await ask('PUT', '/accounts/research', { body })
  t.equal(child.status, 201)
  t.match(child.json, { ...body, limits: { usd_per_day: 50 } })
  const patched = await ask('PATCH', '/accounts/research', {
    body: { labels: { app: 'ci', 'cost-center': null }, limits: { concurrent: 3 }, plan: null },
  })
  t.match(patched, { status: 200, json: { labels: { app: 'ci' }, plan: 'starter' } })
  t.same(patched.json['limits'], { concurrent: 3, usd_per_day: 50 })
  t.not(patched.json['etag'], child.json['etag'])

  const headers = { 'if-match': textOf(child, 'etag') }
  const stale = await ask('PATCH', '/accounts/research', { body: { plan: 'max' }, headers })
  t.match(stale, { status: 412, json: { kind: 'precondition_failed', etag: patched.json['etag'] } })
  t.equal(stale.headers.get('content-type'), 'application/problem+json')
  const exists = { 'if-none-match': '*' }
  t.equal((await ask('PUT', '/accounts/acme', { body: {}, headers: exists })).status, 412)
  t.match(await ask('PUT', '/accounts/none', { body: {}, headers: { 'if-match': '*' } }), {
    status: 412,
    json: { etag: null },
  })
  t.equal((await ask('GET', '/accounts/none')).status, 404, 'and nothing was made')

  for (const [parent, detail] of [
    ['research', /below this account/],
    ['acme', /below this account/],
    ['missing', /does not exist/],
  ] as const) {
    t.match(await ask('PATCH', '/accounts/acme', { body: { parent } }), {
      status: 400,
      json: { kind: 'invalid_field', field: 'parent', detail },
    })
  }
  await ask('PUT', '/accounts/third', { body: { parent: 'research' } })
  await ask('PUT', '/accounts/fourth', { body: { parent: 'third' } })
  t.match(await ask('PUT', '/accounts/fifth', { body: { parent: 'fourth' } }), {
    status: 400,
    json: { field: 'parent', detail: /4 levels/ },
  })

  const limits = await ask('GET', '/accounts/research/limits')
  t.match(limits, { status: 200, json: { account: 'research', concurrent: 3, usd_per_day: 50 } })
  t.equal((await ask('PUT', '/accounts/research/limits', { body: limits.json })).status, 200)
  t.match(await ask('PATCH', '/accounts/research/limits', { body: { concurrent: null } }), {
    status: 200,
    json: { usd_per_day: 50, concurrent: undefined },
  })
  t.equal((await ask('DELETE', '/accounts/research/limits')).status, 204)
  t.equal((await ask('DELETE', '/accounts/research/limits')).status, 204)
  t.same((await ask('GET', '/accounts/research')).json['limits'], {})

  const page = await ask('GET', '/accounts?limit=2')
  t.match(page.json, { items: [{ name: 'acme' }, { name: 'fourth' }] })
  const next = textOf(page, 'next_cursor')
  t.match((await ask('GET', `/accounts?limit=2&cursor=${next}`)).json, {
    items: [{ name: 'research' }, { name: 'test' }],
  })
  t.match(await ask('GET', '/accounts?label=app%3Dci&parent=acme'), {
    json: { items: [{ name: 'research' }], next_cursor: null },
  })
  t.same((await ask('GET', '/accounts?label=app%3Dother')).json['items'], [])
  t.match(await ask('GET', '/accounts?cursor=!'), { status: 400, json: { field: 'cursor' } })

  const disabled = await ask('DELETE', '/accounts/fourth')
  t.match(disabled, { status: 200, json: { disabled: true } })
  t.equal((await ask('DELETE', '/accounts/fourth')).json['etag'], disabled.json['etag'])
  t.match((await ask('GET', '/accounts?disabled=true')).json, { items: [{ name: 'fourth' }] })
  t.match(await ask('DELETE', '/accounts/third?purge=true'), {
    status: 409,
    json: { kind: 'has_children' },
  })
  t.equal((await ask('DELETE', '/accounts/fourth?purge=true')).status, 204)
  t.match(await ask('GET', '/accounts/fourth'), { status: 404, json: { kind: 'not_found' } })
  t.equal((await ask('DELETE', '/accounts/fourth?purge=true')).status, 404)
  t.equal((await ask('PUT', '/accounts/fourth', { body: {} })).status, 201, 'the name is free')

  const audit = await ask('GET', '/audit?account=research')
  const items = audit.json['items']
  t.match(Array.isArray(items) ? items.at(-1) : null, {
    ...{ actor: 'token:robot', action: 'account.create', account: 'research', before: null },
    after: { name: 'research', plan: 'pro', limits: { usd_per_day: 50 } },
  })
  t.match(await ask('GET', '/audit?action=account.purge'), {
    json: { items: [{ account: 'fourth', after: null }] },
  })
  await ask('PUT', '/accounts/gone', { body: {} })
  await ask('DELETE', '/accounts/gone?purge=true')
  t.match(await ask('GET', '/audit?account=gone'), {
    json: { items: [{ action: 'account.purge' }, { action: 'account.create', account: 'gone' }] },
  })
  t.match(await ask('GET', '/usage?account=gone&tree=true'), { status: 200, json: { rows: [] } })
  t.match(await ask('GET', '/requests?account=gone'), { status: 200, json: { items: [] } })
  t.equal((await ask('GET', '/usage?account=never')).status, 404)
  const own = await stage.makeToken(['audit:read'], textOf(made, 'id'))
  t.equal((await ask('GET', '/audit?account=gone', { token: own })).status, 404)
})

onBothStores(t, 'fields and bodies', async (t, settings) => {
  const { ask } = await startAdmin(t, settings)
  const put = (body: unknown, headers = {}) => ask('PUT', '/accounts/acme', { body, headers })
  t.match(await put({ limit: {} }), {
    status: 400,
    json: { kind: 'unknown_field', field: 'limit', fix: /limits/, status: 400 },
  })
  t.match(await put({ limits: { usd_per_dya: 1 } }), {
    json: { kind: 'unknown_field', field: 'limits.usd_per_dya', fix: /usd_per_day/ },
  })
  t.match(await put({ plan: 'gold', disabled: 'no', limits: { usd_per_day: -1 } }), {
    status: 400,
    json: {
      kind: 'invalid_field',
      errors: [{ field: 'plan' }, { field: 'limits.usd_per_day' }, { field: 'disabled' }],
    },
  })
  t.match(await put({ id: 'acc_other' }), { json: { kind: 'read_only_field', field: 'id' } })
  t.match(await put({ name: 'other' }), { json: { kind: 'read_only_field', field: 'name' } })
  t.equal((await put({ name: 'acme' })).status, 201, 'the name of the path may be sent')
  t.match(await put('{"plan":"pro","plan":"max"}'), { json: { kind: 'malformed_request' } })
  t.match(await put('[]'), { status: 400, json: { kind: 'malformed_request' } })
  t.match(await put(`{"labels":${'{"a":'.repeat(8)}1${'}'.repeat(9)}`), {
    json: { kind: 'malformed_request' },
  })
  t.match(await put('x'.repeat(1_048_577)), { status: 413, json: { kind: 'body_too_large' } })
  t.match(await put('{}', { 'content-type': 'text/plain' }), {
    status: 415,
    json: { kind: 'unsupported_media_type' },
  })
  t.match(await ask('GET', '/accounts?limt=3'), {
    status: 400,
    json: { kind: 'unknown_field', field: 'limt', fix: /limit/ },
  })
  t.match(await ask('PUT', '/accounts/-a', { body: {} }), { status: 400, json: { field: 'name' } })
  const wrong = await ask('POST', '/accounts/acme', { body: {} })
  t.match(wrong, { status: 405, json: { kind: 'method_not_allowed' } })
  t.equal(wrong.headers.get('allow'), 'GET, HEAD, PUT, PATCH, DELETE')
  t.match(await ask('GET', '/nothing'), { status: 404, json: { kind: 'unknown_endpoint' } })
  const labels = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`l${at}`, 'x']))
  t.match(await put({ labels }), { status: 400, json: { field: 'labels' } })

  await put({})
  const names = Array.from({ length: 12 }, (_, at) => `l${at}`)
  const all = await Promise.all(
    names.map((name) => ask('PATCH', '/accounts/acme', { body: { labels: { [name]: 'x' } } })),
  )
  t.ok(all.every(({ status }) => status === 200))
  const { labels: merged } = (await ask('GET', '/accounts/acme')).json
  t.same(Object.keys(merged ?? {}).sort(), names.sort(), 'concurrent patches all hold')
  const made = await Promise.all(Array.from({ length: 8 }, () => ask('PUT', '/accounts/race', { body: {} })))
  t.same(made.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 200, 200, 201])
})

onBothStores(t, 'keys', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const { ask } = stage
  await ask('PUT', '/accounts/acme', { body: { plan: 'pro' } })
  const path = '/accounts/acme/keys/ci%2Fa%20b'
  const made = await ask('PUT', path, { body: { models: ['gpt-*'], labels: { app: 'ci' } } })
  t.equal(made.status, 201)
  t.equal(made.headers.get('location'), `/admin/v1${path}`)
  t.match(made.json, {
    ...{ account: 'acme', name: 'ci/a b', models: ['gpt-*'], limits: {}, labels: { app: 'ci' } },
    ...{ state: 'live', created_by: 'token:robot', expires_at: null, last_used_at: null },
  })
  const secret = textOf(made, 'secret')
  t.equal(made.json['last_four'], secret.slice(-4))
  t.equal(await chatStatus(stage, secret), 200)
  const again = await ask('PUT', path, { body: { models: ['gpt-*'], labels: { app: 'ci' } } })
  t.equal(again.status, 200)
  t.equal(again.json['etag'], made.json['etag'])
  t.notOk('secret' in again.json, 'the secret is shown once')
  t.equal((await ask('PUT', path, { body: again.json })).status, 200, 'the object that was read')
  t.match(await ask('PATCH', path, { body: { limits: { requests_per_minute: 9 } } }), {
    json: { limits: { requests_per_minute: 9 }, models: ['gpt-*'] },
  })

  const turned = await ask('POST', `${path}/rotate`, { body: { overlap_seconds: 3600 } })
  t.match(turned, { status: 201, json: { name: 'ci/a b', previous: { id: made.json['id'] } } })
  t.not(turned.json['id'], made.json['id'])
  const second = textOf(turned, 'secret')
  t.equal(await chatStatus(stage, second), 200)
  t.equal(await chatStatus(stage, secret), 200, 'both work')
  t.equal((await ask('GET', path)).json['id'], turned.json['id'], 'the name is the new one')
  const digest = createHash('sha256').update('sk_vault').digest('hex')
  t.match(await ask('POST', `${path}/rotate`, { body: { overlap_seconds: 0, secret_sha256: 'x' } }), {
    status: 400,
    json: { field: 'secret_sha256' },
  })
  const given = newSecret()
  const own = createHash('sha256').update(given).digest('hex')
  const vault = await ask('PUT', '/accounts/acme/keys/vault', { body: { secret_sha256: own } })
  t.match(vault, { status: 201, json: { prefix: null, last_four: null, secret: undefined } })
  t.equal(await chatStatus(stage, given), 200)
  const repeated = await ask('PUT', '/accounts/acme/keys/vault', { body: { secret_sha256: own } })
  t.match(repeated, { status: 200, json: { etag: vault.json['etag'] } })
  t.match(await ask('PUT', '/accounts/acme/keys/other', { body: { secret_sha256: own } }), {
    status: 409,
    json: { kind: 'secret_in_use' },
  })
  const changed = await ask('PUT', '/accounts/acme/keys/vault', { body: { secret_sha256: digest } })
  t.equal(changed.status, 200)
  t.not(changed.json['etag'], vault.json['etag'])
  t.equal(await eventually(() => chatStatus(stage, given), 401), 401, 'a given secret replaces')

  const revoked = await ask('DELETE', path)
  t.match(revoked, { status: 200, json: { state: 'revoked' } })
  t.equal((await ask('DELETE', path)).json['etag'], revoked.json['etag'])
  t.equal(await eventually(() => chatStatus(stage, second), 401), 401)
  t.equal(await eventually(() => chatStatus(stage, secret), 401), 401, 'and what it replaced')
  t.match((await ask('GET', '/accounts/acme/keys')).json, { items: [{ name: 'vault' }] })
  const all = (await ask('GET', '/accounts/acme/keys?state=all')).json['items']
  t.equal(Array.isArray(all) ? all.length : 0, 4)
  t.equal((await ask('PATCH', path, { body: {} })).status, 404)
  t.equal((await ask('PUT', path, { body: {} })).status, 201, 'a put makes a new one')

  t.equal((await ask('POST', `${path}/rotate`, {})).status, 201)
  t.equal((await ask('DELETE', `${path}?purge=true`)).status, 204)
  t.equal((await ask('GET', path)).status, 404, 'nothing of the name is left')
  t.match((await ask('GET', '/accounts/acme/keys')).json, { items: [{ name: 'vault' }] })

  const many = async (name: string, body: object) => {
    const put = () => ask('PUT', `/accounts/acme/keys/${name}`, { body })
    const replies = await Promise.all(Array.from({ length: 8 }, put))
    t.same(replies.map(({ status }) => status).sort(), [...Array<number>(7).fill(200), 201], name)
    return replies
  }
  const raced = await many('race', {})
  t.equal(raced.filter(({ json }) => 'secret' in json).length, 1)
  const secretSha256 = createHash('sha256').update('raced').digest('hex')
  await many('race-2', { secret_sha256: secretSha256 })

  await ask('PUT', '/accounts/small', { body: {} })
  const statuses: number[] = []
  for (let at = 0; at < 6; at += 1) {
    statuses.push((await ask('PUT', `/accounts/small/keys/k${at}`, { body: {} })).status)
  }
  t.same(statuses, [201, 201, 201, 201, 201, 403])
  t.match(await ask('PUT', '/accounts/small/keys/x', { body: { models: ['a*b'] } }), {
    status: 400,
    json: { field: 'models[0]' },
  })
  t.match(await ask('PUT', '/accounts/small/keys/x', { body: { expires_at: '2020-01-01T00:00:00Z' } }), {
    status: 400,
    json: { field: 'expires_at' },
  })
  t.equal((await ask('PATCH', '/accounts/small', { body: { disabled: true } })).status, 200)
  const audit = await ask('GET', '/audit?account=acme&limit=500')
  t.notMatch(audit.text, /"digest"|sk_[A-Za-z0-9]{20}/)
})

onBothStores(t, 'members', async (t, settings) => {
  const { ask, store } = await startAdmin(t, settings)
  await ask('PUT', '/accounts/acme', { body: {} })
  const path = '/accounts/acme/members/Ada@Example.com'
  t.match(await ask('PUT', path, { body: {} }), { status: 400, json: { field: 'role' } })
  const made = await ask('PUT', path, { body: { role: 'owner', labels: { team: 'a' } } })
  t.match(made, {
    status: 201,
    json: {
      ...{ account: 'acme', email: 'ada@example.com', role: 'owner', state: 'invited' },
      invitation: { url: /^http:\/\/127\.0\.0\.1:\d+\/dashboard\/reset#[\w-]{43}$/ },
    },
  })
  const again = await ask('PUT', path, { body: { role: 'owner', labels: { team: 'a' } } })
  t.match(again, { status: 200, json: { etag: made.json['etag'], invitation: undefined } })
  t.match(await ask('PATCH', path, { body: { role: 'viewer', labels: null } }), {
    status: 200,
    json: { role: 'viewer', labels: {} },
  })
  t.match(await ask('PATCH', path, { body: { role: null } }), {
    status: 400,
    json: { field: 'role' },
  })
  const invited = await ask('POST', `${path}/invite`, {})
  t.match(invited, { status: 201, json: { url: /reset#/, expires_at: /Z$/ } })
  await ask('PUT', '/accounts/acme/members/bob@example.com', { body: { role: 'member' } })
  t.match(await ask('GET', '/accounts/acme/members?limit=1'), {
    json: { items: [{ email: 'ada@example.com' }], next_cursor: /./ },
  })
  t.match(await ask('GET', '/accounts?member=bob@example.com'), {
    json: { items: [{ name: 'acme' }] },
  })
  t.equal((await ask('DELETE', path)).status, 204)
  t.equal((await ask('DELETE', path)).status, 404)
  t.equal((await ask('GET', path)).status, 404)
  const put = () => ask('PUT', '/accounts/acme/members/raced@example.com', { body: { role: 'owner' } })
  const raced = await Promise.all(Array.from({ length: 8 }, put))
  t.same(raced.map(({ status }) => status).sort(), [...Array<number>(7).fill(200), 201])
  t.equal(raced.filter(({ json }) => 'invitation' in json).length, 1, 'one link, in one reply')
  t.match(await ask('PUT', '/accounts/acme/members/missing', { body: { role: 'owner' } }), {
    status: 400,
    json: { field: 'email' },
  })
  t.equal((await store.users.byEmail('ada@example.com'))?.email, 'ada@example.com', 'the user stays')
})
