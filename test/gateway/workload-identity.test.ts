/**
 * Goal: a request with a token of a configured issuer runs like one with a key, every wrong token is 401 with
 * its own kind, and a denial is in force within a second, also for running requests, on both stores.
 * Method: an issuer and a gateway in this process, and tokens signed with `jose`.
 */
import { editAccount } from '../helpers/store-changes.js'
import { createPublicKey, createSecretKey } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { denyIdentity } from '../../src/accounts/denials.js'
import { openStore } from '../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import {
  newSigningKey,
  rawToken,
  startIssuer,
  type Claims,
  type Issuer,
  type SigningKey,
} from '../helpers/issuer.js'
import { rowsOf } from '../helpers/ledger.js'
import { freshDatabases, redisMissing, startRedis, until } from '../helpers/redis.js'
import { stopwatch } from '../helpers/stopwatch.js'
import { onBothStores, startAdmin } from '../control/admin/admin-stage.js'
import { anotherDay } from '../helpers/long-suite.js'
import { listen } from '../helpers/listen.js'

interface Scene {
  readonly gateway: TestGateway
  readonly issuer: Issuer
  readonly key: SigningKey
  readonly accountId: string
}

async function scene(t: Test, more = '', store?: string): Promise<Scene> {
  const issuer = await startIssuer(t)
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const gateway = await startGateway(t, {
    ...(store === undefined ? {} : { store }),
    more: `identity:
  - name: kubernetes
    issuer: ${issuer.url}
    audience: [sluice, other]
    account: { from: '\${claims.kubernetes.io/namespace}', map: { research: research, off: off, gone: gone } }
    models: [gpt-*, claude-*, gemini-*]
    labels: { app: '\${claims.app}', class: workload }
    require: { claims.env: [prod, staging] }
    jwks: { cooldown_seconds: 0 }
    ${more}
metrics: { labels: { app: 5, class: 5 } }
`,
  })
  const opened = await openStore(gateway.store)
  t.teardown(() => opened.close())
  const research = { email: 'research@example.com', plan: 'pro', role: 'owner' } as const
  const { account } = await createAccount(opened, { ...research, password: null })
  const { account: off } = await createAccount(opened, {
    ...research,
    email: 'off@example.com',
    password: null,
  })
  await editAccount(opened, off.id, { disabled: true })
  return { gateway, issuer, key, accountId: account.id }
}

function claimsOf({ issuer }: Pick<Scene, 'issuer'>, more: Claims = {}): Claims {
  return issuer.claims({
    'kubernetes.io': { namespace: 'research' },
    app: 'batch',
    env: 'prod',
    ...more,
  })
}

const CHAT = { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'hi' }] }

async function send(
  { gateway }: Pick<Scene, 'gateway'>,
  token: string,
  init: RequestInit = {},
): Promise<{ status: number; kind: string; headers: Headers; body: unknown }> {
  const headers = { authorization: `Bearer ${token}`, ...(init.headers as object | undefined) }
  const reply = await gateway.chat(CHAT, { ...init, headers })
  const body: unknown = await reply.json()
  const kind = String((body as { error?: { kind?: string } }).error?.kind)
  return { status: reply.status, kind, headers: reply.headers, body }
}

void t.test('a token runs as its account', async (t) => {
  const all = await scene(t, 'limits: { requests_per_minute: 3 }')
  const { gateway, issuer, key, accountId } = all
  const token = await issuer.sign(key, claimsOf(all, { jti: 'one' }))
  for (const name of ['authorization', 'x-api-key', 'x-goog-api-key']) {
    const value = name === 'authorization' ? `bearer ${token}` : token
    const reply = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { [name]: value, 'content-type': 'application/json' },
      body: JSON.stringify(CHAT),
    })
    t.equal(reply.status, 200, name)
    await reply.arrayBuffer()
  }
  const limited = await send(all, token)
  t.match([limited.status, limited.kind], [429, 'rate_limited'], 'the limits of its key name')
  const again = await issuer.sign(key, claimsOf(all, { jti: 'two' }))
  t.equal((await send(all, again)).status, 429, 'all tokens of one name together')
  const other = await issuer.sign(key, claimsOf(all, { sub: 'another one' }))
  t.equal((await send(all, other)).status, 200, 'another name by itself')
  const forbidden = await gateway.chat(
    { ...CHAT, model: 'o3' },
    { headers: { authorization: `Bearer ${other}` } },
  )
  t.equal(forbidden.status, 403, 'a model that is not in its list')
  await forbidden.arrayBuffer()
  const rows = await rowsOf(gateway)
  const [row] = rows
  const keyId = 'kubernetes/system:serviceaccount:research:batch'
  t.match(row, {
    accountId,
    keyId,
    identity: 'kubernetes',
    labels: 'app=batch class=workload',
    outcome: 'ok',
  })
  t.match(rows.at(-1), { keyId: 'kubernetes/another%20one' }, 'spaces are escaped')
  const [, , signature = ''] = token.split('.')
  t.notOk(JSON.stringify(gateway.lines).includes(signature), 'nor logged')
  const metrics = JSON.stringify(await gateway.metrics.collect())
  t.notOk(/serviceaccount|"batch"/.test(metrics), 'no claim in metrics')
  t.ok(metrics.includes('"workload"'), 'a label without a claim')
  const key2 = await gateway.chat(CHAT)
  t.equal(key2.status, 200, 'keys keep working')
  await key2.arrayBuffer()
})

void t.test('wrong tokens have a kind each, in the order of the checks', async (t) => {
  const all = await scene(t)
  const { issuer, key, gateway } = all
  const nowSeconds = Math.floor(Date.now() / 1_000)
  const sign = (claims: Claims, header = {}) => issuer.sign(key, claimsOf(all, claims), header)
  const forger = await newSigningKey('ES256', key.kid)
  const unknown = await newSigningKey()
  const rsa = await newSigningKey('RS256', 'rsa')
  const enc = await newSigningKey('ES256', 'enc', { use: 'enc' })
  const pinned = await newSigningKey('RS256', 'pinned', { alg: 'RS256' })
  const small = { ...rsa.jwk, kid: 'small', n: Buffer.alloc(128, 0xff).toString('base64url') }
  issuer.keys = [key.jwk, rsa.jwk, enc.jwk, pinned.jwk, small]
  const good = claimsOf(all)
  const rsaPublic = createPublicKey({ key: { ...rsa.jwk }, format: 'jwk' })
  const publicPem = rsaPublic.export({ type: 'spki', format: 'pem' })
  const confused = await new SignJWT(good)
    .setProtectedHeader({ alg: 'HS256', kid: 'rsa' })
    .sign(createSecretKey(Buffer.from(publicPem)))
  const [head = '', body = '', signature = ''] = (await sign({})).split('.')
  const forged = Buffer.from(JSON.stringify({ ...good, sub: 'admin' })).toString('base64url')
  const ps = { ...pinned, alg: 'PS256' }
  const cases: [name: string, kind: string, token: string][] = [
    ['alg none', 'jwt_invalid', rawToken({ alg: 'none' }, good, '')],
    ['algorithm confusion', 'jwt_invalid', confused],
    ['another type of key', 'jwt_invalid', await issuer.sign({ ...key, kid: 'rsa' }, good)],
    ['another alg than the key', 'jwt_invalid', rawToken({ alg: ps.alg, kid: 'pinned' }, good)],
    ['an embedded key', 'jwt_invalid', await issuer.sign(forger, good, { jwk: forger.jwk })],
    [
      'an embedded key without kid',
      'jwt_invalid',
      await issuer.sign({ ...forger, kid: undefined }, good, { jwk: forger.jwk, kid: key.kid }),
    ],
    ['a key by URL', 'jwt_unknown_key', await issuer.sign(unknown, good, { jku: `${issuer.url}/x` })],
    ['a key for encryption', 'jwt_invalid', await issuer.sign(enc, good)],
    ['a short RSA key', 'jwt_invalid', rawToken({ alg: 'RS256', kid: 'small' }, good, 'A'.repeat(172))],
    ['changed claims', 'jwt_invalid', `${head}.${forged}.${signature}`],
    ['critical headers', 'jwt_invalid', rawToken({ alg: 'ES256', kid: key.kid, crit: ['x'] }, good)],
    ['a duplicate claim', 'jwt_invalid', rawToken({ alg: 'ES256' }, '{"exp":1,"exp":2}')],
    ['a huge token', 'jwt_invalid', rawToken({ alg: 'ES256' }, 'x'.repeat(13_000))],
    ['an encrypted token', 'jwt_invalid', `${head}.${body}.${signature}.YQ.YQ`],
    ['no exp', 'jwt_invalid', await sign({ exp: undefined })],
    ['another issuer', 'jwt_issuer', await sign({ iss: `${issuer.url}/` })],
    ['no issuer', 'jwt_issuer', await sign({ iss: undefined })],
    ['another issuer, wrong signature', 'jwt_issuer', await issuer.sign(forger, { ...good, iss: 'x' })],
    ['an unknown kid', 'jwt_unknown_key', await issuer.sign(unknown, good)],
    ['no kid, two fitting keys', 'jwt_unknown_key', rawToken({ alg: 'RS256' }, good)],
    ['expired', 'jwt_expired', await sign({ exp: nowSeconds - 40, aud: 'x' })],
    ['not valid yet', 'jwt_expired', await sign({ nbf: nowSeconds + 90 })],
    ['another audience', 'jwt_audience', await sign({ aud: ['x', 'y'], env: 'test' })],
    ['no audience', 'jwt_audience', await sign({ aud: undefined })],
    ['require not met', 'jwt_claims', await sign({ env: 'test' })],
    ['require missing', 'jwt_claims', await sign({ env: undefined })],
    ['require of another type', 'jwt_claims', await sign({ env: ['prod'] })],
    ['a missing claim', 'jwt_claims', await sign({ app: undefined })],
    ['a label with spaces', 'jwt_claims', await sign({ app: 'a b' })],
    ['a value that the table lacks', 'jwt_claims', await sign({ 'kubernetes.io': { namespace: 'x' } })],
    ['no account', 'jwt_claims', await sign({ 'kubernetes.io': { namespace: 'gone' } })],
    ['a disabled account', 'jwt_claims', await sign({ 'kubernetes.io': { namespace: 'off' } })],
  ]
  for (const [name, kind, token] of cases) {
    const reply = await send(all, token)
    t.match([reply.status, reply.kind], [401, kind], name)
    t.match(reply.headers.get('www-authenticate'), /^Bearer/, name)
    t.match(reply.body, { error: { type: 'authentication_error', code: 401 } })
  }
  t.equal((await send(all, await sign({ exp: nowSeconds - 20 }))).status, 200, 'clock tolerance')
  t.equal((await send(all, await sign({ nbf: nowSeconds + 20 }))).status, 200, 'clock tolerance')
  t.equal((await send(all, await sign({ aud: ['x', 'other'] }))).status, 200, 'one of the list')
  const claude = await fetch(`${gateway.origin}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': await sign({ env: 'x' }), 'content-type': 'application/json' },
    body: '{}',
  })
  t.match(await claude.json(), {
    type: 'error',
    error: { type: 'authentication_error', kind: 'jwt_claims' },
  })
  const path = '/v1beta/models/gemini-2.5-flash:generateContent'
  const google = { 'x-goog-api-key': await sign({ env: 'x' }), 'content-type': 'application/json' }
  const gemini = await fetch(`${gateway.origin}${path}`, {
    method: 'POST',
    headers: google,
    body: '{}',
  })
  t.match(await gemini.json(), {
    error: { status: 'UNAUTHENTICATED', details: [{ reason: 'jwt_claims' }] },
  })
  const token = await sign({})
  const twice = await send(all, token, { headers: { 'x-api-key': gateway.secret } })
  t.match([twice.status, twice.kind], [400, 'malformed_request'], 'two credentials')
  const same = await send(all, token, { headers: { 'x-api-key': token } })
  t.equal(same.status, 200, 'one credential in two headers')
  for (const at of [path, '/v1/chat/completions']) {
    const reply = await fetch(`${gateway.origin}${at}?key=${token}`, { method: 'POST', body: '{}' })
    t.equal(reply.status, 400, `in the query of ${at}`)
    await reply.arrayBuffer()
  }
})

void t.test('algorithms', async (t) => {
  const all = await scene(t)
  const { issuer } = all
  const algorithms = ['RS256', 'PS384', 'ES384', 'ES512', 'EdDSA']
  const keys = await Promise.all(algorithms.map((alg) => newSigningKey(alg)))
  issuer.keys = keys.map(({ jwk }) => jwk)
  for (const key of keys) {
    t.equal((await send(all, await issuer.sign(key, claimsOf(all)))).status, 200, key.alg)
  }
  const [only] = keys.filter(({ alg }) => alg === 'EdDSA')
  if (only === undefined) throw new Error('no key')
  const token = await issuer.sign({ ...only, kid: undefined }, claimsOf(all))
  t.equal((await send(all, token)).status, 200, 'without kid, exactly one key fits')
})

/** A stream that stops after its second event. */
function running({ gateway }: Scene, token: string): Promise<Response> {
  gateway.emulator.script({ times: 1, fault: { kind: 'stall', event: 2 } })
  const headers = { authorization: `Bearer ${token}` }
  return gateway.chat({ ...CHAT, stream: true }, { headers })
}

void t.test('the token stays in the gateway', async (t) => {
  const received: string[] = []
  const upstream = createServer((req, res) => {
    received.push(`${req.url ?? ''} ${JSON.stringify(req.rawHeaders)}`)
    req.resume()
    const reply = { id: 'x', object: 'chat.completion', model: 'gpt-5.4-mini', created: 1 }
    const message = { role: 'assistant', content: 'hi' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    const answer = (): void => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ ...reply, choices, usage }))
    }
    setTimeout(answer, 150)
  })
  const origin = `http://127.0.0.1:${await listen(t, upstream)}`
  const issuer = await startIssuer(t)
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const gateway = await startGateway(t, {
    upstreams: { openai: `${origin}/v1` },
    upstreamOptions: "native: [ 'GET /v1/files' ], native_sharing: shared",
    routes: `  - model: hedged
    targets: [{ upstream: openai, model: gpt-5.4-mini }]
    fallback: [{ upstream: openai, model: gpt-5.5 }]
    hedge: { after_ms: 30, extra_spend: 1 }
    shadow: { upstream: openai, model: gpt-5.5, percent: 100 }`,
    more: `identity: [{ name: ci, issuer: '${issuer.url}', audience: [sluice], account: test }]`,
  })
  const token = await issuer.sign(key, issuer.claims())
  for (const name of ['authorization', 'x-api-key', 'x-goog-api-key']) {
    const headers = { [name]: name === 'authorization' ? `Bearer ${token}` : token }
    const native = await fetch(`${gateway.origin}/native/openai/v1/files`, { headers })
    t.equal(native.status, 200, await native.text())
  }
  const headers = { authorization: `Bearer ${token}` }
  const reply = await gateway.chat({ ...CHAT, model: 'hedged' }, { headers })
  t.equal(reply.status, 200, await reply.text())
  for (let tries = 0; tries < 100 && received.length < 6; tries += 1) await sleep(20)
  t.ok(received.length >= 5, `native, hedge and shadow: ${received.length} requests`)
  const [, claims = '', signature = ''] = token.split('.')
  for (const request of received) {
    t.notOk(request.includes(signature) || request.includes(claims), 'without the token')
  }
  t.notOk(JSON.stringify(gateway.lines).includes(signature), 'not logged')
})

function denials(what: string, options: object, newStore: (t: Test) => Promise<string | undefined>): void {
  void t.test(`denials on ${what}`, options, async (t) => {
    const all = await scene(t, '', await newStore(t))
    const { issuer, key, gateway } = all
    const store = await openStore(gateway.store)
    t.teardown(() => store.close())
    const bySub = await issuer.sign(key, claimsOf(all, { sub: 'a', jti: 'j1' }))
    const byJti = await issuer.sign(key, claimsOf(all, { sub: 'b', jti: 'j2' }))
    for (const token of [bySub, byJti]) t.equal((await send(all, token)).status, 200)
    const stream = await running(all, bySub)
    t.equal(stream.status, 200)
    // `fetch` drops what it has not read when the connection is closed.
    const streaming = untilClosed(stream)
    const settings = { identity: 'kubernetes', reason: '', expiresAtMs: null }
    const watch = stopwatch()
    const denial = await denyIdentity(store, { ...settings, sub: 'a', jti: null })
    await denyIdentity(store, { ...settings, sub: null, jti: 'j2' })
    await denyIdentity(store, { ...settings, identity: 'another', sub: 'c', jti: null })
    const past = { ...settings, expiresAtMs: Date.now() - 1 }
    await denyIdentity(store, { ...past, sub: 'c', jti: null })
    t.match(await streaming, /jwt_revoked/, 'a running request ends with the error')
    t.ok(watch() < 5_000, 'soon')
    for (const token of [bySub, byJti]) {
      const reply = await until401(all, token)
      t.equal(reply.kind, 'jwt_revoked')
    }
    const other = await issuer.sign(key, claimsOf(all, { sub: 'c', jti: 'j3' }))
    t.equal((await send(all, other)).status, 200, 'neither another identity nor an expired denial')
    t.match(await store.denials.remove(denial.id), { sub: 'a' })
    const allowed = await send(all, bySub)
    t.equal(allowed.status, 200, 'allowed again at once: refusals are not cached')
  })
}

/** What arrives until the connection is closed. */
async function untilClosed({ body }: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  try {
    for await (const chunk of body ?? []) text += decoder.decode(chunk as Uint8Array)
  } catch {
    // A stream that ends with an error has no terminator.
  }
  return text
}

async function until401(all: Scene, token: string) {
  for (let tries = 0; ; tries += 1) {
    const reply = await send(all, token)
    if (reply.status === 401 || tries === 400) return reply
    await sleep(50)
  }
}

denials('SQLite', { skip: anotherDay(0, 2) }, () => Promise.resolve(undefined))
denials('Redis', { skip: anotherDay(1, 2) || redisMissing() }, async (t) =>
  freshDatabases(await startRedis(t))(),
)

void t.test('the issuer rotates its keys under load', async (t) => {
  const all = await scene(t)
  const { issuer } = all
  const keys = await Promise.all(Array.from({ length: 6 }, () => newSigningKey()))
  const statuses = new Map<number, number>()
  for (const [round, current] of keys.entries()) {
    const former = keys[round - 1]
    if (former === undefined) continue
    issuer.keys = [former.jwk, current.jwk]
    const tokens = await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        issuer.sign(at % 2 === 0 ? former : current, claimsOf(all, { jti: `${round}-${at}` })),
      ),
    )
    const replies = await Promise.all(tokens.map((token) => send(all, token)))
    for (const { status } of replies) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  t.same([...statuses], [[200, 200]], '200 requests, all with 200')
  t.ok(issuer.fetches <= 30, `few fetches: ${issuer.fetches}`)
})

void t.test('the issuer is away', async (t) => {
  const issuer = await startIssuer(t)
  issuer.isUp = false
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const gateway = await startGateway(t, {
    more: `identity: [{ name: ci, issuer: '${issuer.url}', audience: [sluice], account: test }]`,
  })
  const token = await issuer.sign(key, issuer.claims())
  const refused = await send({ gateway }, token)
  t.match([refused.status, refused.kind], [503, 'identity_unavailable'])
  t.ok(refused.headers.get('retry-after'))
  t.ok(
    gateway.lines.some(({ msg }) => String(msg).includes('issuer')),
    'logged',
  )
  issuer.isUp = true
  await sleep(1_050)
  t.equal((await send({ gateway }, token)).status, 200, 'it is back')
  issuer.isUp = false
  const next = await issuer.sign(key, issuer.claims({ jti: 'next' }))
  t.equal((await send({ gateway }, next)).status, 200, 'known keys are used')
})

void t.test('verified tokens outlast the keys of an issuer that is away', async (t) => {
  const issuer = await startIssuer(t)
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const gateway = await startGateway(t, {
    more: `identity:
  - name: ci
    issuer: '${issuer.url}'
    audience: [sluice]
    account: test
    jwks: { max_age_seconds: 1, stale_seconds: 1, cooldown_seconds: 0 }
`,
  })
  const token = await issuer.sign(key, issuer.claims())
  const short = await issuer.sign(
    key,
    issuer.claims({ jti: 'short', exp: Math.floor(Date.now() / 1_000) - 28 }),
  )
  t.equal((await send({ gateway }, token)).status, 200)
  t.equal((await send({ gateway }, short)).status, 200, 'within the tolerance')
  issuer.isUp = false
  await sleep(3_100)
  for (const name of ['authorization', 'x-api-key']) {
    const value = name === 'authorization' ? `Bearer ${token}` : token
    const reply = await gateway.chat(CHAT, { headers: { authorization: '', [name]: value } })
    t.equal(reply.status, 200, `verified before, in ${name}`)
    await reply.arrayBuffer()
  }
  const next = await issuer.sign(key, issuer.claims({ jti: 'next' }))
  t.match(await send({ gateway }, next), { status: 503, kind: 'identity_unavailable' }, 'a new one')
  t.not((await send({ gateway }, short)).status, 200, 'one that has expired')
  issuer.isUp = true
  await sleep(1_050)
  t.equal((await send({ gateway }, next)).status, 200, 'the issuer is back')
  issuer.keys = []
  const isEnded = async () => (await send({ gateway }, token)).status === 401
  await until(isEnded, 'the end of a token whose key has left the set')
})

onBothStores(t, 'a label lets claims select accounts that tokens of accounts make', async (t, settings) => {
  const issuer = await startIssuer(t)
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const { ask, store, makeToken, gateway } = await startAdmin(t, {
    ...settings,
    more: `identity:
  - { name: ci, issuer: '${issuer.url}', audience: [sluice], account: '\${claims.ns}', label: workloads=yes }
`,
  })
  await ask('PUT', '/accounts/team', { body: { plan: 'max' } })
  const own = await makeToken(['accounts:write', 'accounts:read'], (await store.accountByName('team'))?.id)
  const child = '/accounts/team--jobs'
  const put = { parent: 'team', plan: 'max' }
  const forbidden = await ask('PUT', child, { body: { ...put, labels: { workloads: 'yes' } }, token: own })
  t.match(forbidden, { status: 403, json: { field: 'labels.workloads' } })
  t.equal((await ask('PUT', child, { body: { ...put, labels: { team: 'a' } }, token: own })).status, 201)
  const token = await issuer.sign(key, issuer.claims({ ns: 'team--jobs' }))
  t.match(await send({ gateway }, token), { status: 401, kind: 'jwt_claims' }, 'without the label')
  for (const value of ['yes', 'no']) {
    const labels = { workloads: value }
    const changed = await ask('PATCH', child, { body: { labels }, token: own })
    t.equal(changed.status, 403, 'a token of the account cannot give it')
  }
  t.equal((await ask('PATCH', child, { body: { labels: { workloads: 'no' } } })).status, 200)
  t.match(await send({ gateway }, token), { status: 401, kind: 'jwt_claims' }, 'another value')
  t.equal((await ask('PATCH', child, { body: { labels: { workloads: 'yes' } } })).status, 200)
  const isAccepted = async () => (await send({ gateway }, token)).status === 200
  await until(isAccepted, 'a token of an account with the label')
  t.equal(
    (await ask('PUT', child, { body: { ...put, labels: { workloads: 'yes' } }, token: own })).status,
    200,
  )
})

void t.test('a claim selects no account that a user or a token of an account has made', async (t) => {
  const issuer = await startIssuer(t)
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const entry = (name: string, account: string) => {
    return `{ name: ${name}, issuer: '${issuer.url}', audience: [${name}], account: ${account}, key_name: app }`
  }
  const map = "{ from: '${claims.ns}', map: { visitor: self--visitor } }"
  const entries = [
    entry('claim', "'${claims.ns}'"),
    entry('part', "'self--${claims.ns}'"),
    entry('map', map),
    entry('named', 'self--visitor'),
  ]
  const gateway = await startGateway(t, {
    more: `identity:\n${entries.map((each) => `  - ${each}\n`).join('')}`,
  })
  const store = await openStore(gateway.store)
  t.teardown(() => store.close())
  for (const name of ['visitor', 'payments']) {
    const isSelfMade = name === 'visitor' ? { isSelfMade: true as const } : { name }
    await createAccount(store, {
      email: `${name}@x.example`,
      plan: 'max',
      password: { none: true },
      ...isSelfMade,
    })
  }
  const sent = async (aud: string, ns: string) => {
    const token = await issuer.sign(key, issuer.claims({ aud, ns }))
    return (await send({ gateway }, token)).kind
  }
  t.equal(await sent('claim', 'self--visitor'), 'jwt_claims')
  t.equal(await sent('part', 'visitor'), 'jwt_claims')
  t.equal(await sent('claim', 'payments'), 'undefined', 'one that an administrator has made')
  t.equal(await sent('map', 'visitor'), 'undefined', 'one that the table names')
  t.equal(await sent('named', 'any'), 'undefined', 'one that the file names')
})

void t.test('identities come and go with the configuration', async (t) => {
  const issuer = await startIssuer(t)
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const gateway = await startGateway(t)
  const token = await issuer.sign(key, issuer.claims())
  const before = await send({ gateway }, token)
  t.match([before.status, before.kind], [401, 'unauthenticated'], 'not configured')
  const file = readFileSync(gateway.configFile, 'utf8')
  const entry = (name: string) =>
    `${file}\nidentity: [{ name: ${name}, issuer: '${issuer.url}', audience: [sluice], account: test }]\n`
  writeFileSync(gateway.configFile, entry('one'))
  gateway.reload()
  for (let tries = 0; tries < 1_000 && (await send({ gateway }, token)).status !== 200; tries += 1) {
    await sleep(20)
  }
  t.equal((await send({ gateway }, token)).status, 200)
  writeFileSync(gateway.configFile, entry('two'))
  gateway.reload()
  t.equal((await send({ gateway }, token)).status, 200)
  const [last] = (await rowsOf(gateway)).slice(-1)
  t.equal(last?.identity, 'two', 'a cached token gets the changed identity')
  writeFileSync(gateway.configFile, file)
  gateway.reload()
  t.equal((await send({ gateway }, token)).status, 401)
})

onBothStores(t, 'a claim in another form selects no account', async (t, settings) => {
  const issuer = await startIssuer(t)
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const more = `identity:
  - { name: kubernetes, issuer: '${issuer.url}', audience: [sluice], account: '\${claims.team}', key_name: ci, jwks: { cooldown_seconds: 0 } }
`
  const { gateway, store, ask } = await startAdmin(t, { ...settings, more })
  const email = 'finance@example.com'
  const { account } = await createAccount(store, { name: 'finance', email, plan: 'pro', password: null })
  await createAccount(store, { name: '7', plan: 'pro', password: null })
  const statusOf = async (team: unknown): Promise<string> => {
    const reply = await send({ gateway }, await issuer.sign(key, issuer.claims({ team })))
    return `${reply.status} ${reply.kind}`
  }
  t.equal(await statusOf('finance'), '200 undefined')
  t.equal(await statusOf(7), '200 undefined', 'a number as text')
  const forms: unknown[] = [
    ...[
      'Finance',
      'FINANCE',
      'finance ',
      ' finance',
      'finance\n',
      'finance\0',
      'finance.',
      'finance/',
      '/finance',
    ],
    ...[
      './finance',
      '../finance',
      'finance/../finance',
      'finan%63e',
      'finance%00',
      'finance%20',
      'finance*',
      '*',
      '?',
    ],
    ...[
      '\ufb01nance',
      'f\u0131nance',
      'finance\u200b',
      '\u202efinance',
      'ﬁnance'.normalize('NFKC') + '\u0301',
      'finance,7',
    ],
    ...[
      email,
      account.id,
      `${account.id} finance`,
      'acc_',
      'constructor',
      '__proto__',
      'x'.repeat(4000),
      '{finance}',
    ],
    ...[['finance'], { finance: true }, null, true, 7.5, 1e21, -7, ''],
  ]
  for (const form of forms) {
    t.match(await statusOf(form), /^(400|401|431) /, JSON.stringify(form).slice(0, 60))
  }
  // The rule for names holds for each request: an account whose owner is gone is no other's.
  t.equal((await ask('DELETE', '/accounts/finance?purge=true')).status, 204)
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  t.equal(await statusOf('finance'), '401 jwt_claims', 'a purged account')
  const team = await ask('PUT', '/accounts/team', { body: {} })
  t.equal(team.status, 201)
  const labels = { x: 'y' }
  t.equal((await ask('PUT', '/accounts/team--finance', { body: { parent: 'team', labels } })).status, 201)
  t.equal(await statusOf('team--finance'), '401 jwt_claims', 'a name that tokens of accounts give')
})
