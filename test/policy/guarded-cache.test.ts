/**
 * Goal: on a route with guardrails and a cache, requests are looked up after masking, a stored
 * reply was judged by the same guardrails, and what is blocked or unjudged is never stored or shared.
 * Method: gateways on both stores before a scripted provider, with keys and accounts of one gateway.
 */
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { openStore } from '../../src/store/open-store.js'
import { eventually } from '../faults/scene.js'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { freshDatabases, redisMissing, startRedis } from '../helpers/redis.js'
import { startProvider } from './provider.js'
import { anotherDay } from '../helpers/long-suite.js'
import { listen } from '../helpers/listen.js'

const GUARDRAILS = `
guardrails:
  pii: { detect: [email], action: mask, window_chars: 16 }
  strict: { patterns: ['forbidden'], action: block, window_chars: 16 }
  labelled: { patterns: ['wombat'], on: [response], action: mask, apply_to: { labels: { team: research } } }
  named: { patterns: ['wombat'], on: [response], action: mask, apply_to: { accounts: [other] } }
`

const ROUTES = `
  - { model: own, targets: [{ upstream: openai, model: gpt-4o-mini }], guardrails: [pii, strict], cache: {} }
  - { model: everyone, targets: [{ upstream: openai, model: gpt-4o-mini }], guardrails: [pii, strict], cache: { scope: shared } }
  - { model: together, targets: [{ upstream: openai, model: gpt-4o-mini }], guardrails: [pii, strict], cache: { collapse: true } }
`

interface Answer {
  readonly status: number
  readonly cache: string | null
  readonly guardrails: string | null
  readonly text: string
}

type Ask = (content: string, more?: object) => Promise<Answer>

async function startScene(t: Test, store?: string) {
  const provider = await startProvider(t)
  const gateway = await startGateway(t, {
    upstreams: { openai: `${provider.origin}/v1` },
    routes: ROUTES,
    more: GUARDRAILS,
    ...(store === undefined ? {} : { store }),
  })
  const { plans } = gateway
  const opened = await openStore(gateway.store)
  const account = await opened.accountByEmail('test@example.com')
  if (account === null) throw new Error('no account')
  const { account: other } = await createAccount(opened, {
    email: 'other@example.com',
    plan: 'max',
    password: 'correct horse battery staple',
  })
  const labels = { team: 'research' }
  const labelled = await createKey(opened, { plans, account, name: 'labelled', labels })
  const foreign = await createKey(opened, { plans, account: other, name: 'other' })
  await opened.close()
  const askAs =
    (secret: string): Ask =>
    async (content, more = {}) => {
      const response = await fetch(`${gateway.origin}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'own', messages: [{ role: 'user', content }], ...more }),
      })
      const text = await response.text().catch(() => '')
      return {
        status: response.status,
        cache: response.headers.get('x-sluice-cache'),
        guardrails: response.headers.get('x-sluice-guardrails'),
        text,
      }
    }
  const ask = askAs(gateway.secret)
  return {
    gateway,
    provider,
    ask,
    labelled: askAs(labelled.secret),
    foreign: askAs(foreign.secret),
  }
}

async function exercise(t: Test, store?: string): Promise<void> {
  const { gateway, provider, ask, labelled, foreign } = await startScene(t, store)
  const count = (): number => provider.bodies.length

  await t.test('the key is that of the masked request, and the reply is stored masked', async (t) => {
    provider.reply = { text: 'Write to eve@example.com.' }
    const first = await ask('I am ada@example.com')
    t.match(first, { status: 200, cache: 'miss', guardrails: 'pii:mask' })
    t.match(first.text, 'Write to [email].')
    const asked = count()
    const second = await ask('I am bob@example.com')
    t.match(second, { status: 200, cache: 'hit', guardrails: 'pii:mask' })
    t.match(second.text, 'Write to [email].')
    const streamed = await ask('I am cyd@example.com', { stream: true })
    t.equal(streamed.cache, 'hit')
    t.notMatch(streamed.text, 'eve@')
    t.equal(count(), asked, 'no more upstream requests')
    const rows = await rowsOf(gateway)
    t.match(rows.at(-1), { cacheHit: true, costNanoUsd: 0, guardrails: 'pii:mask' })
  })

  await t.test('what is blocked is not stored, and a blocked request is no hit', async (t) => {
    provider.reply = { text: 'This is forbidden text.' }
    for (const stream of [false, true, false]) {
      const asked = count()
      t.match(await ask('Say it.', { stream }), { status: 400, guardrails: 'strict:block' })
      t.equal(count(), asked + 1)
    }
    provider.reply = { text: 'Fine.' }
    t.match(await ask('Say it.'), { status: 200, cache: 'miss' }, 'nothing was stored')
    t.match(await ask('Say forbidden things.'), { status: 400, cache: null })
  })

  await t.test('replies that other guardrails have judged are not served', async (t) => {
    provider.reply = { text: 'A wombat.' }
    const model = 'everyone'
    t.match(await ask('Animal?', { model }), { cache: 'miss', text: /A wombat/ })
    const masked = /A \[labelled\]/
    t.match(await labelled('Animal?', { model }), { cache: 'miss', text: masked }, 'by label')
    t.match(await labelled('Animal?', { model }), { cache: 'hit', text: masked })
    const named = /A \[named\]/
    t.match(await foreign('Animal?', { model }), { cache: 'miss', text: named }, 'by account')
    t.match(await foreign('Animal?', { model }), { cache: 'hit', text: named })
    t.match(await ask('Animal?', { model }), { cache: 'hit', text: /A wombat/ })
  })

  await t.test('others who share a reply get it judged when its first client leaves', async (t) => {
    let isOpen = false
    provider.reply = {
      text: `${'words '.repeat(300)}of eve@example.com and then forbidden things`,
      split: (text) => text.split(/(?<= )/),
      pace: async () => {
        await eventually(() => isOpen || sent++ < 6, 'both wait')
        await new Promise((resolve) => setImmediate(resolve))
      },
    }
    let sent = 0
    const body = { model: 'together', stream: true }
    const aborter = new AbortController()
    const first = fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.secret}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ ...body, messages: [{ role: 'user', content: 'Together.' }] }),
      signal: aborter.signal,
    })
    const response = await first
    t.equal(response.headers.get('x-sluice-cache'), 'miss')
    const asked = count()
    const second = ask('Together.', body)
    const shared = /cache_requests_total\{route="together",result="shared"\} 1/
    await eventually(async () => shared.test(await gateway.metrics.text()), 'the second joins')
    aborter.abort()
    await response.text().catch(() => '')
    isOpen = true
    const { text, cache } = await second
    t.equal(cache, 'hit')
    t.match(text, /content_filter/)
    t.notMatch(text, /eve|forbidden|things/)
    t.equal(count(), asked)
    provider.reply = { text: 'New.' }
    t.equal((await ask('Together.', body)).cache, 'miss', 'the refused reply is not stored')
  })
}

await t.test('on SQLite', { skip: anotherDay(0, 2) }, (t) => exercise(t))

await t.test('on Redis', { skip: anotherDay(1, 2) || redisMissing() }, async (t) => {
  const server = await startRedis(t)
  await exercise(t, freshDatabases(server)())
})

await t.test('a reply that a failing guard has not judged is not stored', async (t) => {
  let isFailing = true
  const server = createServer((req, res) => {
    req.resume()
    res.writeHead(isFailing ? 500 : 200).end(JSON.stringify({ action: {} }))
  })
  const port = await listen(t, server)
  const gateway = await startGateway(t, {
    routes: `
  - { model: ajar, targets: [{ upstream: openai, model: gpt-4o-mini }], guardrails: [topics], cache: {} }
`,
    more: `guardrails: { topics: { url: 'http://127.0.0.1:${port}', protocol: webhook, on: [response], on_error: open } }`,
  })
  const ask = async (): Promise<(string | null)[]> => {
    const body = { model: 'ajar', messages: [{ role: 'user', content: 'Judge it.' }] }
    const { headers } = await gateway.chat(body)
    return [headers.get('x-sluice-cache'), headers.get('x-sluice-guardrails')]
  }
  t.same(await ask(), ['miss', 'topics:error'])
  isFailing = false
  t.same(await ask(), ['miss', null])
  t.same(await ask(), ['hit', null])
})
