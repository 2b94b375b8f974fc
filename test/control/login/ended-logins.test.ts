/**
 * Goal: when a person is disabled, unbound from the identity provider, or no member any more, or a sign-in is
 * revoked, its tokens are refused on every gateway within a second; a limit with `scope: user` counts all of
 * a person's tokens exactly.
 * Method: two gateways on Redis, programs at both; one gateway or the store makes the change.
 */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createAdminToken } from '../../../src/accounts/admin-tokens.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { openLogin, renewLogin } from '../../../src/accounts/logins/logins.js'
import { changeUser, ensureUser, removeMember, setMember, unbindUser } from '../../../src/accounts/members.js'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import { oidcStartReply, ownUsageReply } from '../../../src/control/dashboard/schema/schema.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { onBothStores } from '../admin/admin-stage.js'
import type { Browser } from '../../dashboard/fixtures/stage.js'
import { DEVICE_GRANT, request, startLogin, textIn, untilStatus, type Pair } from './login-stage.js'

/** A stream of 20 seconds that has begun; the result reads the rest. */
async function slowStream(
  origin: string,
  token: string,
): Promise<() => Promise<{ readonly text: string; readonly atMs: number }>> {
  const content = 'Count. [[words: 400]] [[pace: 50]]'
  const reply = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', stream: true, messages: [{ role: 'user', content }] }),
  })
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader()
  const first = await reader?.read()
  return async () => {
    let text = first?.value ?? ''
    try {
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read())
        text += next.value
    } catch {
      // The gateway resets the connection, so that the body cannot look complete.
    }
    return { text, atMs: performance.now() }
  }
}

onBothStores(t, 'the admin API ends the programs of a user', async (t, settings) => {
  const stage = await startLogin(t, settings, { more: 'admin_api: { enabled: true }' })
  const { store, origin } = stage
  await stage.account('ada@example.com')
  const wish = { name: 'robot', accountId: null, createdBy: 'command line', audit: () => [] }
  const { secret } = await createAdminToken(store, { ...wish, scopes: ['accounts:write'] })
  const { secret: reader } = await createAdminToken(store, { ...wish, scopes: ['accounts:read'] })
  const browser = await stage.person('ada@example.com')
  const pair = await stage.program(browser)
  const waiting = await stage.approved(browser)
  const end = async (token: string, email: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}` }
    const path = `/admin/v1/users/${encodeURIComponent(email)}/logins`
    return (await fetch(`${origin}${path}`, { method: 'DELETE', headers })).status
  }
  t.equal(await end(reader, 'ada@example.com'), 403)
  t.equal(await end(pair.access, 'ada@example.com'), 401, 'a token of a program is no credential there')
  t.equal(await request(origin, pair.access), 200)
  t.equal(await end(secret, 'ada@example.com'), 204)
  t.equal(await request(origin, pair.access), 401)
  const late = await waiting()
  t.match({ status: late.status, ...late.json }, { status: 400, error: 'access_denied' }, 'only approved')
  t.equal((await browser.get('/keys')).status, 200, 'sessions stay')
  t.equal(await request(origin, (await stage.program(browser)).access), 200, 'a new sign-in works')
  t.equal(await end(secret, 'ada@example.com'), 204)
  t.equal(await end(secret, 'ada@example.com'), 204)
  t.equal(await end(secret, 'bob@example.com'), 404)
  const entries = await store.auditTrail.page({ accountId: null, after: null, limit: 20 })
  t.same(
    entries.filter(({ action }) => action === 'login.end').map(({ detail }) => detail),
    ['ada@example.com: 1', 'ada@example.com: 2'],
  )
})

void t.test('what ends a sign-in, on two gateways', { skip: redisMissing() }, async (t) => {
  const redis = await startRedis(t)
  const stage = await startLogin(t, { store: redis.url() })
  const { store, post } = stage
  const other = await stage.second()
  await untilStatus(401, () => request(other.origin, `slt_${'A'.repeat(43)}`))
  const nowMs = Date.now()
  const audit = () => []
  const ways: Record<string, (userId: string, email: string, pair: Pair) => Promise<unknown>> = {
    'a disabled user': (id) => changeUser(store, id, { edit: { disabled: true }, nowMs, audit }),
    'an unbound user': (id) => unbindUser(store, id, { audit }),
    'a revoked refresh token': (_id, _email, { refresh }) => post('/auth/device/revoke', { token: refresh }),
    'a revoked access token': (_id, _email, { access }) => {
      return post('/auth/device/revoke', { token: access }, { origin: other.origin })
    },
    'a lost membership': async (id, email) => {
      const account = await store.accountById(id)
      if (account !== null) await removeMember(store, { account, email, nowMs, audit })
    },
  }
  let count = 0
  for (const [way, end] of Object.entries(ways)) {
    count += 1
    const email = `dev${count}@example.com`
    const { id } = await stage.account(email)
    const browser = await stage.person(email)
    const pair = await stage.program(browser)
    const kept = await stage.program(browser)
    for (const { origin } of [stage, other]) t.equal(await request(origin, pair.access), 200, way)
    const streams = await Promise.all([stage, other].map(({ origin }) => slowStream(origin, pair.access)))
    const endsAt = performance.now()
    await end(id, email, pair)
    for (const ended of await Promise.all(streams.map((read) => read()))) {
      t.ok(ended.atMs - endsAt < 1_000, `${way}: cut after ${Math.round(ended.atMs - endsAt)} ms`)
      t.match(ended.text, /"kind":"unauthenticated"/, way)
      t.notMatch(ended.text, /\[DONE\]/, way)
    }
    const times = [stage, other].map(({ origin }) => untilStatus(401, () => request(origin, pair.access)))
    for (const ms of await Promise.all(times)) t.ok(ms < 1_000, `${way}: refused after ${Math.round(ms)} ms`)
    const renewal = { grant_type: 'refresh_token', refresh_token: pair.refresh }
    const refused = await post('/auth/device/token', renewal)
    t.match({ status: refused.status, ...refused.json }, { status: 401, error: 'invalid_grant' })
    const isRevoked = way.startsWith('a revoked')
    t.equal(await request(stage.origin, kept.access), isRevoked ? 200 : 401, 'other sign-ins of the person')
  }
})

onBothStores(t, 'a sign-in with a role by a group ends as sessions with one do', async (t, settings) => {
  const stage = await startLogin(t, settings)
  const { store, post, origin } = stage
  const { id } = await stage.account('ada@example.com')
  const byHand = await stage.program(await stage.person('ada@example.com'))
  const email = 'ada@example.com'
  const nowMs = Date.now()
  const byGroup = {
    accountId: id,
    userId: id,
    email,
    role: null,
    groupRole: 'member',
    createdAtMs: nowMs,
  } as const
  const changed = await store.transact({
    ...{ accountId: id, reads: {}, nowMs },
    decide: () => ({ write: { members: [byGroup], audit: [] } }),
  })
  t.equal(changed.kind, 'written')
  const renewal = { grant_type: 'refresh_token', refresh_token: byHand.refresh }
  t.equal((await post('/auth/device/token', renewal)).status, 401, 'the role by hand has gone')

  const times = { tokenSeconds: 3_600, refreshSeconds: 2_592_000, groupMs: 7_200_000 }
  const open = async (endsAtMs: number) => {
    const session = { id: randomUUID(), endsAtMs }
    const token = { id: session.id, kind: 'session', accountId: id, text: '' } as const
    await store.signInTokens.add({ ...token, expiresAtMs: nowMs + 60_000 })
    const approval = { id: randomUUID(), kind: 'device_code', accountId: id, text: '' } as const
    await store.signInTokens.add({ ...approval, expiresAtMs: nowMs + 60_000 })
    const login = { userId: id, accountId: id, program: 'codex', session, approvalId: approval.id }
    return openLogin(store, login, times, nowMs)
  }
  t.match(await open(nowMs + 1_800_000), { expiresInSeconds: 1_800 }, 'no longer than the session')
  const opened = await open(nowMs + 43_200_000)
  t.match(opened, { expiresInSeconds: 3_600 })
  const renewed = await renewLogin(store, opened?.refreshToken ?? '', times, nowMs + 5_400_000)
  t.match(renewed, { expiresInSeconds: 1_800 }, 'no longer than the role holds')
  t.equal(await request(origin, renewed?.accessToken ?? ''), 200)
  t.equal(await renewLogin(store, renewed?.refreshToken ?? '', times, nowMs + 7_200_001), null)
})

onBothStores(t, 'a refusal of the provider ends programs with a role by a group', async (t, settings) => {
  const stage = await startLogin(t, settings)
  const { store, origin, provider } = stage
  await createAccount(store, { name: 'team-a', plan: 'max', password: null })
  await stage.account('ada@example.com')
  const roles = ", roles: { accounts: { 'team-*': member } }"
  stage.configure({ more: roles, top: 'login: { enabled: true }' })
  const browser = await stage.person('ada@example.com', ['team-a'])
  const [byGroup, byHand] = [await stage.program(browser, 'team-a'), await stage.program(browser, 'ada')]
  for (const { access } of [byGroup, byHand]) t.equal(await request(origin, access), 200)
  provider.person = { email: 'ada@example.com', verified: false, groups: ['team-a'] }
  const started = await browser.ask('POST', '/oidc/start', { body: {} })
  const query = await provider.visit(oidcStartReply.parse(started.json).url)
  t.equal((await browser.ask('POST', '/oidc/finish', { body: { query } })).status, 403)
  await untilStatus(401, () => request(origin, byGroup.access))
  t.equal(await request(origin, byHand.access), 200, 'a role by hand stays')
})

onBothStores(t, 'a program gets nothing after its approval has ended', async (t, settings) => {
  const stage = await startLogin(t, settings)
  const { store, post } = stage
  const { id } = await stage.account('ada@example.com')
  const [nowMs, audit] = [Date.now(), () => []]
  const ways: Record<string, (browser: Browser) => Promise<unknown>> = {
    'signed out': (browser) => browser.ask('DELETE', '/session'),
    'signed out everywhere': async () => (await stage.person('ada@example.com')).ask('DELETE', '/sessions'),
    'an unbound user': () => unbindUser(store, id, { audit }),
    'disabled, and enabled again': async () => {
      for (const disabled of [true, false]) await changeUser(store, id, { edit: { disabled }, nowMs, audit })
    },
  }
  for (const [way, end] of Object.entries(ways)) {
    const browser = await stage.person('ada@example.com')
    const { json } = await post('/auth/device/code', {})
    const approved = await browser.ask('POST', `/device/${textIn(json, 'user_code')}`, {
      body: { approve: true },
    })
    t.equal(approved.status, 200)
    await end(browser)
    const form = { grant_type: DEVICE_GRANT, device_code: textIn(json, 'device_code') }
    const refused = await post('/auth/device/token', form)
    t.match({ status: refused.status, ...refused.json }, { status: 400, error: 'access_denied' }, way)
    t.same(await store.signInTokens.tokensOf('login', id, nowMs), [], way)
  }
})

onBothStores(t, 'all tokens of a person count for her limit', async (t, settings) => {
  const more = 'limits: [{ scope: user, requests_total: 6 }]'
  const stage = await startLogin(t, settings, { more })
  const { store, origin, gateway } = stage
  const shop = await stage.account('shop@example.com')
  await stage.account('ada@example.com')
  const { user } = await ensureUser(store, { email: 'ada@example.com' })
  await setMember(store, { account: shop, user, role: 'member', nowMs: Date.now(), audit: () => [] })
  const ada = await stage.person('ada@example.com')
  const programs = [
    await stage.program(ada, 'ada'),
    await stage.program(ada, 'ada'),
    await stage.program(ada, 'shop'),
  ]
  const asked = Array.from({ length: 24 }, (_, at) => request(origin, programs[at % 3]?.access ?? ''))
  const statuses = await Promise.all(asked)
  t.equal(statuses.filter((status) => status === 200).length, 6, 'exactly as many as the limit')
  t.equal(statuses.filter((status) => status === 429).length, 18)
  const usage = async (access = '') => {
    const reply = await fetch(`${origin}/auth/usage`, { headers: { authorization: `Bearer ${access}` } })
    return { status: reply.status, json: (await reply.json()) as JsonObject }
  }
  const limits = [{ limit: 'user:ada@example.com requests_total', amount: 6, used: 6, remaining: 0 }]
  const ofShop = await usage(programs[2]?.access)
  t.match(ofShop.json, { email: 'ada@example.com', account: 'shop', limits })
  const [first, third] = [await usage(programs[0]?.access), ofShop].map(({ json }) => objectOf(json['month']))
  t.equal(Number(first?.['requests']) + Number(third?.['requests']), 24)
  t.equal(
    Number(first?.['requests']) - Number(first?.['failed']) + Number(third?.['requests']),
    6 + Number(third?.['failed']),
  )
  const page = ownUsageReply.parse((await ada.get('/own-usage?account=shop')).json)
  t.match(page.usage, { account: 'shop', limits, month: { requests: Number(third?.['requests']) } })
  t.equal((await usage(gateway.secret)).status, 403, 'a key has no person')
  t.equal((await usage('slt_unknown')).status, 401)
  const bob = await stage.program(await stage.person('shop@example.com'))
  t.equal(await request(origin, bob.access), 200, 'another person has a count of her own')
  t.equal(
    (await gateway.chat({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hi' }] })).status,
    200,
  )
  const entries = gateway.lines.filter(({ key_id: id }) => id === 'login/ada@example.com')
  t.equal(entries.length, 24, 'the id of the key in the log')
  t.ok(entries.some(({ limit }) => limit === 'user:ada@example.com requests_total'))
})
