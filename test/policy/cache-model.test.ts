/**
 * Goal: the cache never answers a request with the reply of another account, key, model or prompt.
 * Method: random requests of several keys, compared with a model of the cache. SLUICE_LONG=1 sends 50,000.
 */
import { createServer } from 'node:http'
import t from 'tap'
import { Client } from 'undici'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { arrayOf, objectOf } from '../../src/base/json.js'
import { openStore } from '../../src/store/open-store.js'
import { startGateway } from '../helpers/gateway.js'
import { dice } from '../helpers/seeded-random.js'
import { IS_LONG } from '../helpers/long-suite.js'
import { listen } from '../helpers/listen.js'

if (IS_LONG) t.setTimeout(0)
const REQUESTS = IS_LONG ? 50_000 : 300
const AT_A_TIME = 8

/** Replies with a number that no other reply has, and the model and prompt of the request. */
async function startProvider(t: { teardown: (end: () => void) => void }): Promise<string> {
  let replies = 0
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', (chunk: Buffer) => (body += chunk.toString()))
    req.on('end', () => {
      const { model, messages } = objectOf(JSON.parse(body))
      replies += 1
      const prompt = JSON.stringify(messages)
      const content = JSON.stringify({ number: replies, model, prompt })
      res.setHeader('content-type', 'application/json')
      const message = { role: 'assistant', content }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 }
      const head = { id: 'c', object: 'chat.completion', created: 1, model }
      res.end(JSON.stringify({ ...head, choices, usage }))
    })
  })
  return `http://127.0.0.1:${await listen(t, server)}/v1`
}

const ROUTES = `
  - { model: a, targets: [{ upstream: openai, model: gpt-4o }], cache: {} }
  - { model: b, targets: [{ upstream: openai, model: gpt-4o }], cache: { scope: key } }
  - { model: c, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: { scope: shared } }
  - { model: plain, targets: [{ upstream: openai, model: gpt-4o }] }
`
const SCOPES = { a: 'account', b: 'key', c: 'shared' } as const

await t.test('random requests get the replies that a model of the cache expects', async (t) => {
  if (IS_LONG) t.setTimeout(0)
  const gateway = await startGateway(t, {
    routes: ROUTES,
    upstreams: { openai: await startProvider(t) },
  })
  const store = await openStore(gateway.store)
  const keys: { secret: string; account: string; key: string }[] = []
  for (const name of ['one@example.com', 'two@example.com']) {
    const password = 'correct horse battery staple'
    const { account } = await createAccount(store, { email: name, plan: 'max', password })
    for (const each of ['x', 'y']) {
      const options = { plans: gateway.plans, account, name: each }
      const { secret, key } = await createKey(store, options)
      keys.push({ secret, account: account.id, key: key.id })
    }
  }
  await store.close()
  const entries = new Map<string, number>()
  let wrong = 0
  let hits = 0
  /** One prompt at a time for each client, so that the order of its requests is known. */
  const client = async (own: number): Promise<void> => {
    // Of its own: the other clients are faster or slower in each run.
    const random = dice(32 + own)
    const pick = <Item>(items: readonly Item[]): Item => {
      const item = items[Math.floor(random() * items.length)]
      if (item === undefined) throw new Error('nothing to pick')
      return item
    }
    // One connection and no `fetch`, which would take most of the time.
    const connection = new Client(gateway.origin)
    for (let at = 0; at < REQUESTS / AT_A_TIME; at += 1) {
      const { secret, account, key } = pick(keys)
      const model = pick(['a', 'b', 'c'] as const)
      const prompt = `prompt ${own} ${Math.floor(random() * 12)}`
      const temperature = pick([0, 1])
      const fresh = random() < 0.1
      const messages = [{ role: 'user', content: prompt }]
      const response = await connection.request({
        path: '/v1/chat/completions',
        method: 'POST',
        headers: {
          authorization: `Bearer ${secret}`,
          'content-type': 'application/json',
          ...(fresh ? { 'cache-control': 'no-cache' } : {}),
        },
        body: JSON.stringify({ model, temperature, messages }),
      })
      const { choices } = objectOf(await response.body.json())
      const { content } = objectOf(objectOf(arrayOf(choices)[0])['message'])
      const reply = objectOf(JSON.parse(typeof content === 'string' ? content : '{}'))
      const scope = { account, key, shared: '' }[SCOPES[model]]
      const entry = JSON.stringify([scope, model, prompt, temperature])
      const known = fresh ? undefined : entries.get(entry)
      const result = response.headers['x-sluice-cache']
      const expected = fresh ? 'stored' : known === undefined ? 'miss' : 'hit'
      const isRight =
        result === expected &&
        JSON.stringify(reply['prompt']).includes(JSON.stringify(`${prompt}"`).slice(1, -1)) &&
        (known === undefined || reply['number'] === known)
      if (!isRight) wrong += 1
      if (result === 'hit') hits += 1
      entries.set(entry, Number(reply['number']))
    }
    await connection.close()
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, (_, own) => client(own)))
  t.equal(wrong, 0)
  t.ok(hits > REQUESTS / 10, `${hits} hits`)
})
