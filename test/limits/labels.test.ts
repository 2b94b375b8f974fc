/**
 * Goal: labels of a key are in its ledger entries, choose a route, and are limited by `scope: label:NAME`:
 * each value separately, for all keys that have it, on both engines.
 * Method: a gateway over an emulator, on SQLite and on Redis; keys with and without labels.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { createKey } from '../helpers/keys.js'
import type { Labels } from '../../src/accounts/labels.js'
import { loadConfig } from '../../src/config/load-config.js'
import { openStore } from '../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { startRedis } from '../helpers/redis.js'
import { anotherDay } from '../helpers/long-suite.js'

const RULES = `
limits:
  - { scope: 'label:team', prefix: gpt-5.4-mini, requests_per_minute: 4 }
  - { scope: 'label:team', prefix: gpt-5.4-nano, concurrent: 1, usd_per_day: 0.001 }
  - { scope: 'label:team', value: research, prefix: gpt-5.4-mini, requests_per_minute: 2 }
  - { scope: account, account: Test@Example.com, prefix: gpt-4o, usd_per_week: 0.001 }
`

async function keyWith(gateway: TestGateway, labels: Labels): Promise<string> {
  const loaded = loadConfig(gateway.configFile, process.env)
  if (!loaded.ok) throw new Error('the configuration is not good')
  const { config } = loaded
  const store = await openStore(config.store)
  const account = await store.accountByEmail('test@example.com')
  if (account === null) throw new Error('there is no account')
  const { secret } = await createKey(store, {
    plans: config.plans,
    account,
    name: 'labelled',
    labels,
  })
  await store.close()
  return secret
}

async function ask(
  gateway: TestGateway,
  secret: string,
  body: { model: string; max_tokens?: number },
): Promise<Response> {
  const messages = [{ role: 'user', content: 'Hi' }]
  const headers = { authorization: `Bearer ${secret}` }
  return gateway.chat({ messages, max_tokens: 5, ...body }, { headers })
}

async function labelled(t: Test, store: string | undefined): Promise<void> {
  const gateway = await startGateway(t, { more: RULES, ...(store === undefined ? {} : { store }) })
  const one = await keyWith(gateway, { team: 'a', env: 'ci' })
  const two = await keyWith(gateway, { team: 'a' })
  const other = await keyWith(gateway, { team: 'b' })
  const free = await keyWith(gateway, {})
  const statuses = async (secret: string, times: number): Promise<number[]> => {
    const found = []
    for (let index = 0; index < times; index += 1) {
      found.push((await ask(gateway, secret, { model: 'gpt-5.4-mini' })).status)
    }
    return found
  }
  t.same(await statuses(one, 3), [200, 200, 200])
  t.same(await statuses(two, 2), [200, 429], 'the keys of a value share its limit')
  t.same(await statuses(other, 2), [200, 200], 'another value has its own')
  t.same(await statuses(free, 6), [200, 200, 200, 200, 200, 200], 'without the label: no limit')
  const refused = await ask(gateway, two, { model: 'gpt-5.4-mini' })
  const { error } = (await refused.json()) as { error: { message: string } }
  t.match(error.message, /^The limit of 4 requests a minute for the label 'team=a' is reached/)
  const rows = await rowsOf(gateway)
  const labels = new Set(rows.map((row) => row.labels))
  t.same(labels, new Set(['env=ci team=a', 'team=a', 'team=b', null]))
  t.match(rows.at(-1), { outcome: 'rate_limited', limit: /^label:team=a.* requests_per_minute$/ })
  const budget = await ask(gateway, one, { model: 'gpt-5.4-nano', max_tokens: 5_000 })
  t.equal(budget.status, 402, 'a budget of a label')
  t.equal((await ask(gateway, free, { model: 'gpt-5.4-nano', max_tokens: 5_000 })).status, 200)

  const research = await keyWith(gateway, { team: 'research' })
  t.same(await statuses(research, 3), [200, 200, 429], 'one value has its own amount')
  const week = await ask(gateway, free, { model: 'gpt-4o', max_tokens: 5_000 })
  t.equal(week.status, 402, 'a budget of an account by its e-mail address')
  const { error: spent } = (await week.json()) as { error: { message: string } }
  t.match(spent.message, /^The budget of \$0.001 a week for this account is too small/)
  t.match((await rowsOf(gateway)).slice(-2), [
    { limit: /^label:team=research;value;prefix=gpt-5.4-mini requests_per_minute$/ },
    { limit: /^account:acc_\w+;account=test@example.com;prefix=gpt-4o usd_per_week$/ },
  ])
}

/** Name, status and error of a request that a budget refuses, in each format. */
async function refusedByBudget(t: Test, more: string): Promise<[number, string | null, string][]> {
  const gateway = await startGateway(t, { more })
  const free = await keyWith(gateway, {})
  const post = async (path: string, body: object): Promise<[number, string | null, string]> => {
    const reply = await fetch(`${gateway.origin}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${free}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    t.equal(reply.headers.get('retry-after'), null)
    return [reply.status, reply.headers.get('x-should-retry'), await reply.text()]
  }
  const messages = [{ role: 'user', content: 'Hi' }]
  const model = 'gpt-4o'
  return [
    await post('/v1/chat/completions', { model, messages, max_tokens: 5_000 }),
    await post('/v1/responses', { model, input: 'Hi', max_output_tokens: 5_000 }),
    await post('/v1/messages', { model, messages, max_tokens: 5_000 }),
    await post('/v1beta/models/gpt-4o:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      generationConfig: { maxOutputTokens: 5_000 },
    }),
  ]
}

void t.test('a spent budget tells clients of every format to stop', async (t) => {
  for (const status of [402, 429]) {
    const more = status === 402 ? RULES : `${RULES}limiting: { budget_status: 429 }\n`
    const replies = await refusedByBudget(t, more)
    const names = [
      '"type":"insufficient_quota","code":"insufficient_quota","kind":"budget_exceeded"',
      '"type":"insufficient_quota","code":"insufficient_quota","kind":"budget_exceeded"',
      '"type":"billing_error"',
      '"status":"RESOURCE_EXHAUSTED"',
    ]
    for (const [at, [got, shouldRetry, text]] of replies.entries()) {
      t.equal(got, status)
      t.equal(shouldRetry, 'false')
      t.match(text, names[at] ?? '')
      t.notMatch(text, /try again|rate_limited|RetryInfo/)
    }
  }
})

void t.test('errors that another attempt does not help say so', async (t) => {
  const gateway = await startGateway(t, { more: RULES })
  const wrong = await gateway.chat({ messages: [] }, { headers: { authorization: 'Bearer sk_none' } })
  t.equal(wrong.status, 401)
  t.equal(wrong.headers.get('x-should-retry'), 'false')
  const free = await keyWith(gateway, {})
  const unknown = await ask(gateway, free, { model: 'not-listed' })
  t.equal(unknown.status, 404)
  t.equal(unknown.headers.get('x-should-retry'), 'false')
  const limited = await keyWith(gateway, { team: 'a' })
  let last = await ask(gateway, limited, { model: 'gpt-5.4-mini' })
  while (last.status === 200) last = await ask(gateway, limited, { model: 'gpt-5.4-mini' })
  t.equal(last.status, 429)
  t.equal(last.headers.get('x-should-retry'), null, 'a limit of rate resets')
  t.not(last.headers.get('retry-after'), null)
})

void t.test('labels on SQLite', { skip: anotherDay(0, 2) }, (t) => labelled(t, undefined))

void t.test('labels on Redis', { skip: anotherDay(1, 2) }, async (t) => {
  const redis = await startRedis(t)
  await labelled(t, redis.url())
})

void t.test('a label chooses the route', async (t) => {
  const gateway = await startGateway(t)
  const text = readFileSync(gateway.configFile, 'utf8')
  const route =
    'routes:\n  - { prefix: gpt-, when: { labels: { team: research } }, targets: [{ upstream: google, model: gemini-2.5-flash }] }'
  writeFileSync(gateway.configFile, text.replace('routes:', route))
  gateway.reload()
  const research = await keyWith(gateway, { team: 'research' })
  const sales = await keyWith(gateway, { team: 'sales' })
  const upstreamOf = async (secret: string): Promise<string | null> =>
    (await ask(gateway, secret, { model: 'gpt-5.4-mini' })).headers.get('x-sluice-upstream')
  t.equal(await upstreamOf(research), 'google')
  t.equal(await upstreamOf(sales), 'openai')
})
