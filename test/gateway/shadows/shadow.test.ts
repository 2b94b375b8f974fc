/**
 * Goal: a copy of a request reaches the shadow target, in its dialect, has a ledger entry of its own that is
 * charged to no account, and both sides are compared in metrics; stored requests are never copied.
 * Method: a whole gateway with an emulator for each upstream, and its ledger.
 */
import t from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startStage, until, type Stage } from '../routes/fixtures.js'

const UPSTREAMS = { main: {}, other: { dialect: 'anthropic' } } as const
const SHADOW = '{ upstream: other, model: claude-sonnet-4-5, percent: 100 }'

function routeWith(shadow: string): string {
  return `  - { prefix: m-, upstream: main, shadow: ${shadow} }
  - { prefix: gpt-, upstream: main, shadow: ${shadow} }`
}

/** The ledger entries of copies, once there are `count` of them. */
async function copiesOf({ gateway }: Stage, count: number): Promise<LedgerEntry[]> {
  let copies: LedgerEntry[] = []
  await until(async () => {
    copies = (await rowsOf(gateway)).filter(({ shadowOf }) => shadowOf !== null)
    return copies.length >= count
  })
  return copies
}

void t.test('every copy has its own ledger entry, in the other dialect', async (t) => {
  const stage = await startStage(t, UPSTREAMS, routeWith(SHADOW))
  const { gateway, received, metric, emulators } = stage
  const ids: (string | null)[] = []
  for (const stream of [false, true]) {
    const reply = await gateway.chat({
      model: 'gpt-4o',
      stream,
      messages: [{ role: 'user', content: 'Hello. [[words: 20]]' }],
    })
    t.equal(reply.status, 200)
    t.equal(reply.headers.get('x-sluice-upstream'), 'main')
    t.match(await reply.text(), stream ? /\[DONE\]/ : /chat\.completion/)
    ids.push(reply.headers.get('x-request-id'))
  }
  const copies = await copiesOf(stage, 2)
  t.strictSame(received(), { main: 2, other: 2 })
  t.ok(emulators['other']?.ledger.every(({ path }) => path.endsWith('/messages')))
  t.strictSame(new Set(copies.map(({ shadowOf }) => shadowOf)), new Set(ids))
  for (const copy of copies) {
    t.match(copy, {
      accountId: 'shadow',
      keyId: 'shadow',
      modelAsked: 'gpt-4o',
      upstream: 'other',
      dialect: 'anthropic',
      outcome: 'ok',
      status: 200,
      source: 'reported',
      attempted: 'other:ok',
      ingress: 'chat',
    })
    t.ok((copy.usage.output ?? 0) > 0)
    t.ok((copy.costNanoUsd ?? 0) > 0)
    t.ok((copy.hops.firstContent ?? 0) > 0)
    t.notOk(ids.includes(copy.requestId))
  }
  const rows = await rowsOf(gateway)
  t.equal(rows.length, 4)
  const side = (name: string) => `route="gpt-",side="${name}"`
  const [main, other] = ['upstream="main"', 'upstream="other"']
  for (const [name, upstream] of [['primary', main] as const, ['shadow', other] as const]) {
    const series = `{${side(name)},${upstream},status="200",outcome="ok"}`
    t.equal(await metric(`sluice_shadow_requests_total${series}`), 2)
    t.equal(await metric(`sluice_shadow_time_to_first_token_seconds_count{${side(name)}}`), 2)
    t.ok((await metric(`sluice_shadow_cost_usd_total{${side(name)}}`)) > 0)
    const output = `{${side(name)},gen_ai_token_type="output"}`
    t.ok((await metric(`sluice_shadow_tokens_total${output}`)) > 0)
  }
  const served = await metric('sluice_requests_total{ingress="chat",route="gpt-",upstream="other"')
  t.ok(Number.isNaN(served), 'no client was served by it')
})

void t.test('percent is a share of the requests', async (t) => {
  const stage = await startStage(
    t,
    UPSTREAMS,
    routeWith('{ upstream: other, percent: 30, concurrent: 1000 }'),
  )
  for (let index = 0; index < 300; index += 1) await stage.ask()
  await until(() => (stage.received()['other'] ?? 0) > 40)
  // Eight standard deviations of the binomial distribution on either side.
  const copies = (await copiesOf(stage, 40)).length
  t.ok(copies > 26 && copies < 154, `${copies} of 300`)
})

void t.test('requests whose replies are stored are not copied', async (t) => {
  const stage = await startStage(t, UPSTREAMS, routeWith(SHADOW))
  const { gateway, received, ask } = stage
  const responses = (body: object) =>
    fetch(`${gateway.baseUrl}/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm-1', input: 'Hello', ...body }),
    })
  const first = await responses({})
  t.equal(first.status, 200)
  const { id } = (await first.json()) as { id: string }
  const second = await responses({ store: false, previous_response_id: id })
  t.equal(second.status, 200)
  await second.text()
  t.equal((await ask({ store: true })).status, 200)
  const third = await responses({ store: false })
  t.equal(third.status, 200)
  await third.text()
  await copiesOf(stage, 1)
  t.strictSame(received(), { main: 4, other: 1 })
})

void t.test('a route without shadow copies nothing', async (t) => {
  const stage = await startStage(t, UPSTREAMS, '  - { prefix: m-, upstream: main }')
  for (let index = 0; index < 5; index += 1) await stage.ask()
  t.strictSame(stage.received(), { main: 5, other: 0 })
})
