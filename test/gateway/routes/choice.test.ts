/**
 * Goal: requests are shared by weight, conversations and keys stay with their target, the slow target of two
 * is avoided, and `when` chooses the route by labels, images, tools and prompt size.
 * Method: a whole gateway with an emulator for each upstream, which counts the requests that it receives.
 */
import t from 'tap'
import { startStage, type Reply } from './fixtures.js'

const TWO = { a: {}, b: {} }

void t.test('weights: nine of ten requests, within statistics', async (t) => {
  const { ask, received } = await startStage(
    t,
    TWO,
    '  - { prefix: m-, targets: [{ upstream: a, weight: 9 }, { upstream: b, weight: 1 }] }',
  )
  const n = 300
  for (let index = 0; index < n; index += 10) await Promise.all(Array.from({ length: 10 }, () => ask()))
  const { a = 0, b = 0 } = received()
  t.equal(a + b, n)
  // Five standard deviations.
  t.ok(Math.abs(b - n / 10) < 5 * Math.sqrt(n * 0.1 * 0.9), `${a} and ${b}`)
})

void t.test('sticky conversation: all turns reach one upstream, conversations are spread', async (t) => {
  const stage = await startStage(
    t,
    TWO,
    '  - { prefix: m-, targets: [{ upstream: a }, { upstream: b }], sticky: conversation }',
  )
  const turns = async (name: string): Promise<Set<string | null>> => {
    const messages: object[] = [
      { role: 'system', content: 'You are kind.' },
      { role: 'user', content: `I am ${name}.` },
    ]
    const seen = new Set<string | null>()
    for (let turn = 0; turn < 4; turn += 1) {
      const { upstream, status } = await stage.ask({
        messages: [...messages],
        stream: turn % 2 === 1,
      })
      t.equal(status, 200)
      seen.add(upstream)
      messages.push({ role: 'assistant', content: 'Hello.' }, { role: 'user', content: `Turn ${turn}` })
    }
    return seen
  }
  const all = await Promise.all(Array.from({ length: 20 }, (_, index) => turns(`person ${index}`)))
  t.ok(
    all.every((seen) => seen.size === 1),
    'one upstream for each conversation',
  )
  t.same([...new Set(all.flatMap((seen) => [...seen]))].sort(), ['a', 'b'])
})

void t.test('sticky key: each API key has its upstream', async (t) => {
  const { ask, keyWith } = await startStage(
    t,
    TWO,
    '  - { prefix: m-, targets: [{ upstream: a }, { upstream: b }], sticky: key }',
  )
  for (let key = 0; key < 3; key += 1) {
    const secret = await keyWith({})
    const seen = new Set<string | null>()
    for (let index = 0; index < 5; index += 1) {
      seen.add((await ask({ messages: [{ role: 'user', content: `${index}` }] }, secret)).upstream)
    }
    t.equal(seen.size, 1)
  }
})

void t.test('least_latency avoids the slow upstream', async (t) => {
  const { ask, emulators, received } = await startStage(
    t,
    TWO,
    '  - { prefix: m-, targets: [{ upstream: a }, { upstream: b }], balance: least_latency }',
  )
  emulators['b']?.script({ fault: { kind: 'delay', ms: 300 } })
  for (let index = 0; index < 30; index += 1) await ask({ stream: index % 2 === 0 })
  const { a = 0, b = 0 } = received()
  t.ok(b >= 1, 'it was measured')
  t.ok(a >= 25, `${a} and ${b}`)
})

const WHEN = `
  - { prefix: m-, upstream: a }
  - { prefix: m-, when: { labels: { team: research } }, upstream: b }
  - { prefix: m-, when: { images: true }, upstream: c }
  - { prefix: m-, when: { tools: true }, upstream: d }
  - { prefix: m-, when: { min_prompt_tokens: 5000 }, upstream: e }`

void t.test('when: by label, images, tools and prompt size', async (t) => {
  const { ask, keyWith } = await startStage(t, { a: {}, b: {}, c: {}, d: {}, e: {} }, WHEN)
  const png =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }
  const tools = [
    { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } },
  ]
  const research = await keyWith({ team: 'research' })
  const sales = await keyWith({ team: 'sales' })
  const text = { type: 'text', text: 'Look' }
  const went = async (reply: Promise<Reply>): Promise<string | null> => (await reply).upstream
  t.equal(await went(ask()), 'a')
  t.equal(await went(ask({}, sales)), 'a')
  t.equal(await went(ask({}, research)), 'b')
  t.equal(await went(ask({ messages: [{ role: 'user', content: [text, image] }] })), 'c')
  t.equal(await went(ask({ tools })), 'd')
  t.equal(await went(ask({ messages: [{ role: 'user', content: 'word '.repeat(8_000) }] })), 'e')
  t.equal(await went(ask({ messages: [{ role: 'user', content: 'word '.repeat(500) }] })), 'a')
})

void t.test('an alias requests from each target its own model', async (t) => {
  const { ask, emulators, received } = await startStage(
    t,
    { a: {}, b: { dialect: 'anthropic' } },
    '  - { model: fast, targets: [{ upstream: a, model: gpt-5.4-mini }, { upstream: b, model: claude-haiku-5-5 }] }',
  )
  while (Object.values(received()).includes(0)) {
    t.equal((await ask({ model: 'fast' })).status, 200)
  }
  t.equal(emulators['a']?.ledger[0]?.model, 'gpt-5.4-mini')
  t.equal(emulators['b']?.ledger[0]?.model, 'claude-haiku-5-5')
})
