/**
 * Goal: a program gets tokens when its user has approved it, once for each device code; errors, intervals and
 * limits are those of RFC 8628; refresh tokens work once; tokens are credentials of the data plane alone.
 * Method: gateways on both stores with a real identity provider; programs and browsers as HTTP clients.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { ensureUser, setMember } from '../../../src/accounts/members.js'
import { objectOf } from '../../../src/base/json.js'
import { deviceReply } from '../../../src/control/dashboard/schema/schema.js'
import { onBothStores } from '../admin/admin-stage.js'
import { DEVICE_GRANT, pairOf, request, startLogin, textIn, untilStatus } from './login-stage.js'

onBothStores(t, 'a program signs in, renews its token and signs out', async (t, settings) => {
  const stage = await startLogin(t, settings)
  const { origin, post } = stage
  await stage.account('ada@example.com')
  const found = await fetch(`${origin}/.well-known/oauth-authorization-server`)
  t.equal(found.status, 200)
  t.match(await found.json(), {
    issuer: origin,
    device_authorization_endpoint: `${origin}/auth/device/code`,
    token_endpoint: `${origin}/auth/device/token`,
    revocation_endpoint: `${origin}/auth/device/revoke`,
    grant_types_supported: [DEVICE_GRANT, 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
  })
  const began = await post(
    '/auth/device/code',
    { client_id: 'any', surface: 'claude_code' },
    {
      headers: { 'user-agent': 'claude-code/2.1.332' },
    },
  )
  t.equal(began.status, 200)
  const deviceCode = textIn(began.json, 'device_code')
  const userCode = textIn(began.json, 'user_code')
  t.match(userCode, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  t.match(began.json, {
    verification_uri: `${origin}/auth/device`,
    verification_uri_complete: `${origin}/auth/device?user_code=${userCode}`,
    expires_in: 600,
    interval: 5,
  })
  const poll = () => post('/oauth/token', { grant_type: DEVICE_GRANT, device_code: deviceCode })
  const first = await poll()
  t.match({ status: first.status, ...first.json }, { status: 400, error: 'authorization_pending' })
  t.match((await poll()).json, { error: 'slow_down' }, 'the second request is early')

  const browser = await stage.person('ada@example.com')
  const shown = await browser.get(`/device/${userCode.toLowerCase()}`)
  t.equal(shown.status, 200)
  t.ok(deviceReply.safeParse(shown.json).success)
  t.match(shown.json, { program: 'claude-code', address: '127.0.0.1', accounts: [{ name: 'ada' }] })
  t.match(textIn(shown.json, 'expires_at'), /^\d{4}-\d\d-\d\dT/)
  const body = { approve: true, account: 'ada' }
  const unsigned = await stage.browser().ask('POST', `/device/${userCode}`, { body })
  t.equal(unsigned.status, 401)
  const foreign = await browser.ask('POST', `/device/${userCode}`, {
    body,
    headers: { 'x-sluice-csrf': 'x' },
  })
  t.equal(foreign.status, 403, 'needs the CSRF token')
  t.equal((await browser.ask('POST', `/device/${userCode}`, { body })).status, 200)
  t.equal((await browser.ask('POST', `/device/${userCode}`, { body })).status, 404, 'is decided once')

  const [one, two] = await Promise.all([poll(), poll()])
  const given = [one, two].filter(({ status }) => status === 200)
  t.equal(given.length, 1, 'a device code yields tokens once')
  const [reply = one] = given
  t.match(reply.json, { token_type: 'Bearer', expires_in: 3_600, email: 'ada@example.com' })
  t.equal(reply.headers.get('cache-control'), 'no-store')
  const pair = pairOf(reply)
  t.match(pair.access, /^slt_[0-9A-Za-z]{43}$/)
  t.match(pair.refresh, /^slr_[0-9A-Za-z]{43}$/)
  t.match((await poll()).json, { error: 'invalid_grant' }, 'the code is used up')

  t.equal(await request(origin, pair.access), 200)
  t.equal(await request(origin, pair.refresh), 401, 'a refresh token is no credential')
  for (const headers of [{ 'x-api-key': pair.access }, { 'x-goog-api-key': pair.access }]) {
    t.equal((await fetch(`${origin}/v1/models`, { headers: { ...headers } })).status, 200)
  }
  const both = { authorization: `Bearer ${pair.access}`, 'x-api-key': pair.access }
  t.equal((await fetch(`${origin}/v1/models`, { headers: both })).status, 200, 'the same token twice')
  t.equal((await fetch(`${origin}/dashboard/api/keys`, { headers: both })).status, 401)

  const renewed = await post('/auth/device/token', {
    grant_type: 'refresh_token',
    refresh_token: pair.refresh,
  })
  const next = pairOf(renewed)
  t.equal(await request(origin, next.access), 200)
  t.equal(await request(origin, pair.access), 200, 'the former access token lives until it expires')
  const again = await post('/auth/device/token', { grant_type: 'refresh_token', refresh_token: pair.refresh })
  t.match({ status: again.status, ...again.json }, { status: 401, error: 'invalid_grant' })
  t.equal(await request(origin, next.access), 401, 'a used refresh token ends the sign-in')
  t.equal(await request(origin, pair.access), 401)
  const ended = await post('/auth/device/token', { grant_type: 'refresh_token', refresh_token: next.refresh })
  t.equal(ended.status, 401)

  const other = await stage.program(browser)
  t.equal((await post('/auth/device/revoke', { token: other.refresh })).status, 200)
  t.equal(await request(origin, other.access), 401)
  for (const nothing of [{ token: 'unknown' }, { token: '' }, {}]) {
    t.equal((await post('/auth/device/revoke', nothing)).status, 200)
  }
  const log = JSON.stringify(stage.gateway.lines)
  for (const secret of [pair.access, pair.refresh, next.access, deviceCode]) t.notOk(log.includes(secret))
})

onBothStores(t, 'errors of the device flow', async (t, settings) => {
  const stage = await startLogin(t, settings, { login: 'token_seconds: 1' })
  const { origin, post } = stage
  await stage.account('ada@example.com')
  const token = (form: Record<string, string>) => post('/auth/device/token', form)
  t.match((await token({})).json, { error: 'invalid_request' })
  t.match((await token({ grant_type: 'password' })).json, { error: 'unsupported_grant_type' })
  t.match((await token({ grant_type: DEVICE_GRANT })).json, { error: 'invalid_request' })
  const unknown = await token({ grant_type: DEVICE_GRANT, device_code: 'x' })
  t.match({ status: unknown.status, ...unknown.json }, { status: 400, error: 'invalid_grant' })
  t.equal((await fetch(`${origin}/auth/device/token`)).status, 405)

  const browser = await stage.person('ada@example.com')
  const { json } = await post('/auth/device/code', {})
  const code = { grant_type: DEVICE_GRANT, device_code: textIn(json, 'device_code') }
  const denied = await browser.ask('POST', `/device/${textIn(json, 'user_code')}`, {
    body: { approve: false },
  })
  t.equal(denied.status, 200)
  t.match((await token(code)).json, { error: 'access_denied' })
  t.match((await token(code)).json, { error: 'access_denied' })

  const { access } = await stage.program(browser)
  t.ok((await untilStatus(401, () => request(origin, access))) < 2_500, 'an access token expires')

  for (let wrong = 0; wrong < 5; wrong += 1) {
    t.equal((await browser.get(`/device/BCDF-BCD${'FGHJK'.charAt(wrong)}`)).status, 404)
  }
  const refused = await browser.get('/device/BCDF-BCDL')
  t.equal(refused.status, 429)
  t.ok(Number(refused.headers.get('retry-after')) > 50)
  const waits = await post('/auth/device/code', {})
  t.equal(
    (await browser.get(`/device/${textIn(waits.json, 'user_code')}`)).status,
    429,
    'also for a right code',
  )

  const statuses: number[] = []
  for (let at = 0; at < 32; at += 1) statuses.push((await post('/auth/device/code', {})).status)
  t.ok(statuses.includes(429), 'codes of an address are limited')
  const limited = await post('/oauth/device_authorization', {})
  t.match({ status: limited.status, ...limited.json }, { status: 429, error: 'slow_down' })
  t.ok(Number(limited.headers.get('retry-after')) >= 1)
})

onBothStores(t, 'who may let a program act, and for which account', async (t, settings) => {
  const stage = await startLogin(t, settings, {
    login: 'models: [gpt-5.4-mini], limits: { requests_total: 2 }',
  })
  const { store, origin, post } = stage
  const shop = await stage.account('shop@example.com')
  const ada = await stage.account('ada@example.com')
  const { user } = await ensureUser(store, { email: 'ada@example.com' })
  const member = { account: shop, user, nowMs: Date.now(), audit: () => [] }
  await setMember(store, { ...member, role: 'viewer' })
  const browser = await stage.person('ada@example.com')
  const { json } = await post('/auth/device/code', {})
  const userCode = textIn(json, 'user_code')
  t.match((await browser.get(`/device/${userCode}`)).json, { accounts: [{ id: ada.id, name: 'ada' }] })
  const refused = await browser.ask('POST', `/device/${userCode}`, {
    body: { approve: true, account: shop.id },
  })
  t.equal(refused.status, 403, 'a viewer makes no requests')
  await setMember(store, { ...member, role: 'member' })
  const pair = await stage.program(browser, 'shop')
  t.equal(await request(origin, pair.access), 200)
  const models = await fetch(`${origin}/v1/models`, { headers: { authorization: `Bearer ${pair.access}` } })
  const listed = objectOf(await models.json())['data']
  t.ok(Array.isArray(listed) && listed.every((model) => objectOf(model)['id'] === 'gpt-5.4-mini'))
  const body = JSON.stringify({ model: 'gpt-5.4', messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(await request(origin, pair.access, { body }), 403, 'the models of the section')
  t.equal(await request(origin, pair.access), 200)
  t.equal(await request(origin, pair.access), 429, 'the limits of the section')
  await setMember(store, { ...member, role: 'viewer' })
  t.ok((await untilStatus(401, () => request(origin, pair.access))) < 1_000, 'a lower role ends it')
})

onBothStores(t, 'the gateway protocol of Claude Code', async (t, settings) => {
  const login = 'models: [claude-sonnet-5-5], limits: { usd_per_day: 0.006 }'
  const claude = "claude_code_settings: { env: { DISABLE_TELEMETRY: '1' } }"
  const stage = await startLogin(t, settings, { login: `${login}, ${claude}` })
  const { origin } = stage
  await stage.account('ada@example.com')
  const { access } = await stage.program(await stage.person('ada@example.com'))
  const headers = { authorization: `Bearer ${access}`, 'content-type': 'application/json' }
  const send = (model: string) => {
    const messages = [{ role: 'user', content: 'Hi' }]
    const body = JSON.stringify({ model, max_tokens: 500, messages })
    return fetch(`${origin}/v1/messages?beta=true`, { method: 'POST', headers, body })
  }
  const denied = await send('claude-opus-5-5')
  t.equal(denied.status, 400)
  t.match(await denied.json(), { error: { type: 'invalid_request_error' } })
  const counted = await fetch(`${origin}/v1/messages/count_tokens?beta=true`, {
    ...{ method: 'POST', headers },
    body: JSON.stringify({ model: 'claude-opus-5-5', messages: [{ role: 'user', content: 'Hi' }] }),
  })
  t.equal(counted.status, 400, 'a denied model')
  t.match(await counted.json(), { type: 'error', error: { type: 'invalid_request_error' } })
  const name = 'anthropic-ratelimit-unified'
  const first = await send('claude-sonnet-5-5')
  t.equal(first.status, 200)
  await first.text()
  t.equal(first.headers.get(`${name}-status`), 'allowed')
  t.equal(first.headers.get(`${name}-representative-claim`), 'overage')
  t.match(first.headers.get(`${name}-overage-utilization`), /^0(?:\.\d+)?$/)
  let last = first
  for (let at = 0; at < 60 && last.status === 200; at += 1) {
    last = await send('claude-sonnet-5-5')
    if (last.status === 200) await last.text()
  }
  t.equal(last.status, 429)
  t.match(await last.json(), { error: { type: 'billing_error' } })
  t.equal(last.headers.get('x-should-retry'), 'false')
  t.ok(Number(last.headers.get('retry-after')) > 0)
  t.equal(last.headers.get(`${name}-status`), 'rejected')
  t.equal(last.headers.get(`${name}-representative-claim`), null)

  const usage = await fetch(`${origin}/api/oauth/usage`, { headers })
  const { extra_usage: extra } = (await usage.json()) as { extra_usage: Record<string, number> }
  t.match(extra, { is_enabled: true, monthly_limit: 0.6, currency: 'USD' }, 'in cents')
  const { used_credits: used = 0, utilization = 0 } = extra
  t.ok(used > 0 && used <= 0.6, `${used} cents`)
  t.ok(Math.abs(utilization - (used / 0.6) * 100) < 2, `${utilization} %`)

  const managed = await fetch(`${origin}/managed/settings`, { headers })
  t.match(await managed.json(), { settings: { env: { DISABLE_TELEMETRY: '1' } } })
  const etag = managed.headers.get('etag') ?? ''
  const same = await fetch(`${origin}/managed/settings`, { headers: { ...headers, 'if-none-match': etag } })
  t.equal(same.status, 304)
  for (const path of ['/v1/metrics', '/v1/logs', '/v1/traces']) {
    const post = { method: 'POST', body: '{}' }
    t.equal((await fetch(`${origin}${path}`, { ...post, headers })).status, 200, path)
    const refused = await fetch(`${origin}${path}`, post)
    t.equal(refused.status, 401, path)
    t.match(await refused.json(), { type: 'error', error: { type: 'authentication_error' } })
  }
  for (const path of ['/auth/usage', '/api/oauth/usage', '/managed/settings']) {
    const own = await fetch(`${origin}${path}`, { headers: { 'x-api-key': access } })
    t.equal(own.status, 200, `${path} takes a token in every place of a key`)
    const basic = await fetch(`${origin}${path}`, { headers: { authorization: 'Basic SECRET' } })
    t.equal(basic.status, 401)
    t.match(await basic.json(), { error: { message: /scheme Basic, which is not accepted/ } })
  }
  const metrics = await stage.gateway.metrics.text()
  for (const signal of ['metrics', 'logs', 'traces']) {
    t.match(metrics, `sluice_client_telemetry_total{signal="${signal}"} 1`)
  }
  t.match((await fetch(`${origin}/protocol`)).headers.get('content-type'), 'text/markdown')
})

void t.test('telemetry of programs takes no memory', async (t) => {
  const stage = await startLogin(t)
  await stage.account('ada@example.com')
  const { access } = await stage.program(await stage.person('ada@example.com'))
  const { hostname, port } = new URL(stage.origin)
  const bytes = Buffer.alloc(8 * 1024 * 1024, 'x')
  const head = `POST /v1/logs HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${access}\r\ncontent-length: ${bytes.length + 1}\r\n\r\n`
  const sockets = Array.from({ length: 16 }, () => connect(Number(port), hostname))
  t.teardown(() => sockets.map((socket) => socket.destroy()))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const before = process.memoryUsage().arrayBuffers
  // All but the last byte.
  await Promise.all(
    sockets.map((socket) => {
      socket.write(head)
      return new Promise((resolve) => socket.write(bytes, resolve))
    }),
  )
  const taken = process.memoryUsage().arrayBuffers - before
  t.ok(taken < 4 * bytes.length, `${Math.round(taken / 1024 / 1024)} MiB`)
  const replies = sockets.map((socket) => once(socket, 'data'))
  for (const socket of sockets) socket.write('x')
  for (const [reply] of await Promise.all(replies)) t.match(String(reply), /^HTTP\/1\.1 200 /)
})

void t.test('without the section there are no such paths', async (t) => {
  const { origin } = await (await import('../../dashboard/fixtures/stage.js')).startStage(t)
  for (const path of ['/.well-known/oauth-authorization-server', '/auth/device', '/protocol']) {
    t.equal((await fetch(`${origin}${path}`)).status, 404, path)
  }
})
