/**
 * Goal: for every fault of the shadow target, clients get the same bytes as early as without it, and the
 * breaker and keys of their upstream are not affected; limits of copies apply; a drain does not wait for
 * copies.
 * Method: a whole gateway; the main emulator replays fixed bytes while the shadow's emulator fails as the
 * test sets.
 */
import t, { type Test } from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import type { Fault } from '../../../src/emulator/faults/fault-table.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startStage, until, type Stage, type UpstreamSettings } from '../routes/fixtures.js'

const STREAM = [
  { delta: { role: 'assistant', content: '' }, finish_reason: null },
  { delta: { content: 'One ' }, finish_reason: null },
  { delta: { content: 'two.' }, finish_reason: null },
  { delta: {}, finish_reason: 'stop' },
]
  .map((choice) => {
    const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm-1' }
    return `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, ...choice }] })}\n\n`
  })
  .concat('data: [DONE]\n\n')
  .join('')

const WHOLE = JSON.stringify({
  ...{ id: 'chatcmpl-2', object: 'chat.completion', created: 1, model: 'm-1' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'One two.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
})

const RECORDINGS = {
  stream: {
    status: 200,
    stream: true,
    response_headers: { 'content-type': 'text/event-stream' },
    response_body: STREAM,
  },
  whole: {
    status: 200,
    response_headers: { 'content-type': 'application/json' },
    response_body: WHOLE,
  },
}

const FAULTS: readonly Fault[] = [
  { kind: 'hang' },
  { kind: 'drop' },
  { kind: 'status', code: 429 },
  { kind: 'status', code: 500 },
  { kind: 'cut', event: 2, mode: 'reset' },
  { kind: 'garbage', event: 1, mode: 'json' },
  { kind: 'stall', event: 2 },
  { kind: 'delay', ms: 60_000, mode: 'each' },
]

const OTHER: UpstreamSettings = {
  dialect: 'anthropic',
  options: 'breaker: { failures: 1000, min_requests: 100000 }',
}

async function stageWith(t: Test, shadow: string): Promise<Stage> {
  const upstreams = { main: {}, other: OTHER }
  return startStage(t, upstreams, `  - { prefix: m-, upstream: main, shadow: { ${shadow} } }`)
}

async function dropped({ metric }: Stage, reason: string): Promise<number> {
  return metric(`sluice_shadow_dropped_total{route="m-",reason="${reason}"}`)
}

void t.test('replies are the same bytes, for every fault of the shadow', async (t) => {
  const stage = await stageWith(t, 'upstream: other, percent: 100, concurrent: 1000')
  const { emulators, ask, received } = stage
  for (const fault of FAULTS) {
    const restore = emulators['other']?.script({ fault })
    for (const stream of [false, true]) {
      const before = received()['other'] ?? 0
      emulators['main']?.replay(stream ? RECORDINGS.stream : RECORDINGS.whole)
      const reply = await ask({ stream })
      const { status, upstream, attempts } = reply
      t.strictSame({ status, upstream, attempts }, { status: 200, upstream: 'main', attempts: null })
      t.equal(reply.text, stream ? STREAM : WHOLE, `${fault.kind}, stream: ${stream}`)
      await until(() => (received()['other'] ?? 0) === before + 1)
    }
    restore?.()
  }
  t.ok((emulators['other']?.open() ?? 0) > 0, 'every reply came while copies were still open')
  t.match(stage.gateway.plane.ready(), { ready: true, checks: { upstreams: 'ok' } })
})

void t.test("a shadow on the client's own upstream does not affect its breaker and keys", async (t) => {
  const options = 'api_keys: [one, two], breaker: { failures: 2, error_rate: 0.1, min_requests: 2 }'
  const stage = await startStage(
    t,
    { main: { options } },
    '  - { prefix: m-, upstream: main, shadow: { upstream: main, model: new-1, percent: 100 } }',
  )
  const { emulators, ask, received, gateway, metric } = stage
  const isCopy = (call: { readonly body?: JsonObject | undefined }): boolean =>
    call.body?.['model'] === 'new-1'
  for (const code of [401, 429, 500]) {
    const restore = emulators['main']?.script({ match: isCopy, fault: { kind: 'status', code } })
    for (let index = 0; index < 4; index += 1) t.equal((await ask()).status, 200)
    restore?.()
  }
  await until(async () => {
    const open = await dropped(stage, 'breaker')
    return open > 0 && (received()['main'] ?? 0) + open >= 24
  })
  t.equal(await metric('sluice_breaker_state{upstream="main"}'), 0)
  t.equal(await metric('sluice_credentials_resting{upstream="main"}'), 0)
  t.equal(gateway.plane.ready().checks['upstreams'], 'ok')
})

void t.test('at most `concurrent` copies run at once', async (t) => {
  const stage = await stageWith(t, 'upstream: other, percent: 100, concurrent: 2')
  stage.emulators['other']?.script({ fault: { kind: 'hang' } })
  for (let index = 0; index < 6; index += 1) t.equal((await stage.ask()).status, 200)
  await until(() => stage.received()['other'] === 2)
  t.equal(await dropped(stage, 'concurrent'), 4)
})

void t.test('copies cost no more than usd_per_day, and the rest is dropped', async (t) => {
  const stage = await stageWith(
    t,
    'upstream: other, model: claude-sonnet-4-5, percent: 100, usd_per_day: 0.004',
  )
  const { gateway, ask, received } = stage
  for (let index = 0; index < 40; index += 1) {
    t.equal((await ask({ max_tokens: 32 })).status, 200)
    await until(async () => (received()['other'] ?? 0) + ((await dropped(stage, 'spend')) || 0) > index)
  }
  await until(() => stage.emulators['other']?.open() === 0)
  const copies = (await rowsOf(gateway)).filter(({ shadowOf }) => shadowOf !== null)
  const cost = copies.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  t.ok(copies.length > 3 && copies.length < 40, `${copies.length} copies`)
  t.ok(cost > 0 && cost <= 4_000_000, `${cost} nano-dollars`)
  t.equal(await dropped(stage, 'spend'), 40 - (received()['other'] ?? 0))
})

void t.test('a drain cancels copies at once and writes their usage to the ledger', async (t) => {
  const stage = await stageWith(t, 'upstream: other, percent: 100')
  const { gateway, emulators, ask, received } = stage
  emulators['other']?.script({ fault: { kind: 'hang' } })
  t.equal((await ask()).status, 200)
  await until(() => received()['other'] === 1)
  await gateway.plane.drain()
  await until(() => emulators['other']?.open() === 0)
  const copies = (await rowsOf(gateway)).filter(({ shadowOf }) => shadowOf !== null)
  t.match(copies, [{ outcome: 'draining', source: 'assumed', upstream: 'other' }])
})

void t.test('a copy continues after a reload', async (t) => {
  const stage = await stageWith(t, 'upstream: other, percent: 100')
  const { gateway, emulators, ask, received, reload } = stage
  emulators['other']?.script({ fault: { kind: 'delay', ms: 400 } })
  t.equal((await ask()).status, 200)
  await until(() => received()['other'] === 1)
  reload({ main: {} }, '  - { prefix: m-, upstream: main }')
  let copies: unknown[] = []
  await until(async () => {
    copies = (await rowsOf(gateway)).filter(({ shadowOf }) => shadowOf !== null)
    return copies.length === 1
  })
  t.match(copies, [{ outcome: 'ok', upstream: 'other' }])
})
