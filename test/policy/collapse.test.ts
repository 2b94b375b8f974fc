/**
 * Goal: equal requests that run at the same time share one upstream request until the last client leaves.
 * Method: gateways in this process before an emulated provider that writes slowly.
 */
import { request as httpRequest } from 'node:http'
import t from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { until } from '../helpers/upstream.js'
import { stopwatch } from '../helpers/stopwatch.js'
import { IS_LONG } from '../helpers/long-suite.js'

const ROUTES = `
  - { model: shared, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: { collapse: true } }
  - { model: small, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: { collapse: true, max_bytes: 200 } }
`

interface Reply {
  status: number
  cache: string | undefined
  id: string
  text: string
  isWhole: boolean
}

interface Running {
  readonly ended: Promise<Reply>
  readonly reply: Reply
  leave(): void
}

/** Sends a request on a connection of its own. */
function send(gateway: TestGateway, body: object, path = '/v1/chat/completions'): Running {
  const reply: Reply = { status: 0, cache: undefined, id: '', text: '', isWhole: false }
  const headers = {
    authorization: `Bearer ${gateway.secret}`,
    'content-type': 'application/json',
    connection: 'close',
  }
  const req = httpRequest({ host: '127.0.0.1', port: gateway.port, path, method: 'POST', headers })
  const ended = new Promise<Reply>((resolve) => {
    req.on('error', () => resolve(reply))
    req.on('response', (res) => {
      reply.status = res.statusCode ?? 0
      reply.cache = String(res.headers['x-sluice-cache'])
      reply.id = String(res.headers['x-request-id'])
      res.on('data', (chunk: Buffer) => {
        reply.text += chunk.toString()
      })
      res.on('end', () => (reply.isWhole = true))
      res.on('close', () => resolve(reply))
    })
  })
  req.end(JSON.stringify(body))
  return { ended, reply, leave: () => void req.destroy() }
}

function chat(content: string, more: object = {}): object {
  return { model: 'shared', messages: [{ role: 'user', content }], stream: true, ...more }
}

function contentOf(text: string): string {
  return [...text.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, part]) => part).join('')
}

await t.test('equal requests share one upstream request', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const count = IS_LONG ? 500 : 100
  const prompt = '[[words:30]] [[pace:20]] Shared.'
  const first = send(gateway, chat(prompt))
  await until(() => first.reply.text !== '')
  const others = Array.from({ length: count - 1 }, (_, at) =>
    send(gateway, chat(prompt, at % 3 === 0 ? { stream: false } : {})),
  )
  const replies = await Promise.all([first, ...others].map(({ ended }) => ended))
  t.equal(gateway.emulator.ledger.length, 1, 'one upstream request')
  const content = contentOf(first.reply.text)
  t.ok(content.length > 100)
  t.ok(
    replies.every(({ text }) => contentOf(text) === content),
    'everyone has the whole text',
  )
  t.ok(replies.every(({ status, isWhole }) => status === 200 && isWhole))
  t.equal(replies.filter(({ cache }) => cache === 'miss').length, 1)
  t.equal(replies.filter(({ cache }) => cache === 'hit').length, count - 1)
  const rows = await rowsOf(gateway)
  t.equal(rows.filter(({ attempts }) => attempts === 1).length, 1)
  const [paid, ...free] = rows.sort((a, b) => (b.costNanoUsd ?? 0) - (a.costNanoUsd ?? 0))
  t.ok((paid?.costNanoUsd ?? 0) > 0)
  t.ok(free.every(({ costNanoUsd, cacheHit }) => costNanoUsd === 0 && cacheHit === true))
  t.ok(
    free.every(({ savedNanoUsd }) => savedNanoUsd === paid?.costNanoUsd),
    'what each saved',
  )
  const counted = (await gateway.metrics.text()).matchAll(
    /cache_requests_total\{route="shared",result="(?:hit|shared)"\} (\d+)/g,
  )
  t.equal(
    [...counted].reduce((sum, [, number]) => sum + Number(number), 0),
    count - 1,
  )
})

await t.test('the upstream request goes on until the last client has left', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const prompt = '[[words:40]] [[pace:20]] Leaving.'
  const first = send(gateway, chat(prompt))
  await until(() => first.reply.text !== '')
  const second = send(gateway, chat(prompt))
  await until(() => second.reply.text !== '')
  first.leave()
  await first.ended
  const third = send(gateway, chat(prompt, { stream: false }))
  const [streamed, whole] = await Promise.all([second.ended, third.ended])
  t.equal(gateway.emulator.ledger.length, 1)
  t.match(streamed.text, /\[DONE\]/)
  t.equal(contentOf(whole.text), contentOf(streamed.text))
  await until(() => gateway.lines.length >= 3)
  const rows = await rowsOf(gateway)
  t.match(
    rows.find(({ requestId }) => requestId === first.reply.id),
    { status: 499, outcome: 'client_gone', source: 'reported', attempts: 1, cacheHit: false },
    'the entry of the first request has the whole usage',
  )
  t.ok((rows.find(({ requestId }) => requestId === first.reply.id)?.costNanoUsd ?? 0) > 0)
  const after = await send(gateway, chat(prompt)).ended
  t.equal(after.cache, 'hit', 'the reply was stored')
  t.equal(gateway.emulator.ledger.length, 1)

  const prompt2 = '[[words:400]] [[pace:20]] All leave.'
  const clients = [send(gateway, chat(prompt2))]
  await until(() => clients[0]?.reply.text !== '')
  clients.push(send(gateway, chat(prompt2)), send(gateway, chat(prompt2, { stream: false })))
  await until(() => clients[1]?.reply.text !== '')
  t.equal(gateway.emulator.open(), 1)
  const watch = stopwatch()
  for (const client of clients) client.leave()
  await until(() => gateway.emulator.open() === 0)
  // The whole reply takes 8 s.
  t.ok(watch() < 4_000, 'the upstream request ended')
})

await t.test('the first client leaves before the reply begins', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  for (const stream of [true, false]) {
    const prompt = `[[fault:delay ms=300 mode=headers]] Early ${stream}.`
    const first = send(gateway, chat(prompt, { stream }))
    const before = gateway.emulator.ledger.length
    await until(() => gateway.emulator.open() === 1)
    const second = send(gateway, chat(prompt))
    const third = send(gateway, chat(prompt, { stream: false }))
    await new Promise((resolve) => setTimeout(resolve, 100))
    first.leave()
    const replies = await Promise.all([second.ended, third.ended])
    t.ok(
      replies.every(({ status }) => status === 200),
      `stream: ${stream}`,
    )
    t.ok(replies.every(({ cache }) => cache === 'hit'))
    t.equal(gateway.emulator.ledger.length - before <= 1, true)
  }
})

await t.test("a failure is everyone's", async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const prompt = '[[fault:status code=400]] [[fault:delay ms=300 mode=headers]] Fails.'
  const all = [1, 2, 3].map(() => send(gateway, chat(prompt)))
  const replies = await Promise.all(all.map(({ ended }) => ended))
  const statuses = new Set(replies.map(({ status }) => status))
  t.equal(statuses.size, 1)
  t.ok([...statuses].every((status) => status >= 400))
  const cut = '[[words:60]] [[pace:20]] [[fault:cut event=20]] Cut.'
  const first = send(gateway, chat(cut))
  await until(() => first.reply.text !== '')
  const others = [send(gateway, chat(cut)), send(gateway, chat(cut, { stream: false }))]
  const [begun, followed, whole] = await Promise.all([first, ...others].map(({ ended }) => ended))
  t.ok(begun !== undefined && !begun.text.includes('[DONE]'))
  t.match(followed?.text, /"error"/)
  t.notMatch(followed?.text, /\[DONE\]/)
  t.equal(whole?.status, 502)
  t.equal((await send(gateway, chat(cut)).ended).cache, 'miss', 'a cut stream is not stored')
})

await t.test('beyond max_bytes no one joins', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const prompt = '[[words:80]] [[pace:10]] Large.'
  const body = chat(prompt, { model: 'small' })
  const first = send(gateway, body)
  await until(() => first.reply.text !== '')
  const second = send(gateway, body)
  await until(() => contentOf(first.reply.text).length > 250)
  const third = send(gateway, body)
  const replies = await Promise.all([first.ended, second.ended, third.ended])
  t.same(
    replies.map(({ cache }) => cache),
    ['miss', 'hit', 'miss'],
  )
  t.equal(contentOf(replies[1].text), contentOf(replies[0].text))
  t.equal(gateway.emulator.ledger.length, 2)
})
