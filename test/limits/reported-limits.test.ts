/**
 * Goal: clients get refusals with their reasons, and limit headers on every reply; refused requests never
 * reach an upstream; every end of a request frees its reservation.
 * Method: a gateway over an emulator; each test has its own model, and rules for that model only.
 */
import { writeFileSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { numberOf } from '../../src/base/json.js'
import { rowsOf } from '../helpers/ledger.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { until } from '../helpers/upstream.js'

const RULES = `
limits:
  - { scope: key, model: gpt-4o, requests_per_minute: 3 }
  - { scope: key, prefix: gpt-4o, requests_per_minute: 1000, tokens_per_minute: 5000 }
  - { scope: account, model: gpt-4.1-mini, concurrent: 2 }
  - { scope: account, model: gpt-5.4-nano, usd_per_day: 0.01 }
  - { scope: model, model: claude-sonnet-4-6, usd_per_month: 0.03 }
  - { scope: key, model: o3, tokens_per_minute: 2000 }
  - { scope: key, prefix: gpt-unpriced, usd_per_day: 1 }
  - { scope: upstream, upstream: google, requests_per_minute: 1 }
  - { scope: key, model: gpt-4.1-nano, tokens_per_day: 2000, requests_total: 3 }
  - { scope: account, model: gpt-5.4-mini, usd_total: 0.05 }
`

void t.test('limits as a client sees them', async (t) => {
  const gateway = await startGateway(t, { more: RULES })
  for (const [name, test] of Object.entries(TESTS)) {
    await t.test(name, async (t) => {
      gateway.emulator.reset()
      await test(t, gateway)
    })
  }
})

const TESTS: Record<string, (t: Test, gateway: TestGateway) => Promise<void>> = {
  'requests a minute': requests,
  'tokens a minute': tokens,
  'F-100: requests at the same time': slots,
  'a budget': budget,
  'a budget and a request without a maximum': shortened,
  'tokens of a day, and requests in all': windows,
  'a budget that never resets': total,
  'an unknown price': unpriced,
  'a limit of an upstream': ofUpstream,
  'a reload': reloaded,
}

interface LimitedReply {
  readonly status: number
  readonly headers: Record<string, string>
  readonly error?: { message: string; type: string; code: number; kind: string; param?: string }
  readonly choices?: readonly { finish_reason: string }[]
}

/** Sends a request and returns the reply. */
async function ask(gateway: TestGateway, model: string, more: object = {}): Promise<LimitedReply> {
  const messages = [{ role: 'user', content: 'Hi' }]
  const res = await gateway.chat({ model, messages, ...more })
  const headers = Object.fromEntries(
    [...res.headers].filter(([name]) => /^(x-ratelimit-|retry-|x-should-)/.test(name)),
  )
  return { status: res.status, headers, ...((await res.json()) as object) }
}

async function rejections(gateway: TestGateway, kind: string): Promise<number> {
  const text = await gateway.metrics.text()
  const found = new RegExp(`^sluice_limit_rejections_total{kind="${kind}"} (\\d+)`, 'm').exec(text)
  return Number(found?.[1] ?? 0)
}

async function requests(t: Test, gateway: TestGateway): Promise<void> {
  for (const remaining of ['2', '1', '0']) {
    const { status, headers } = await ask(gateway, 'gpt-4o', { max_tokens: 10 })
    t.equal(status, 200)
    t.match(headers, {
      'x-ratelimit-limit-requests': '3',
      'x-ratelimit-remaining-requests': remaining,
      'x-ratelimit-reset-requests': /^[1-6]?\d+s$/,
      'x-ratelimit-limit-tokens': '5000',
    })
    t.notOk(headers['retry-after'])
  }
  const refused = await ask(gateway, 'gpt-4o', { max_tokens: 10, stream: true })
  t.equal(refused.status, 429)
  t.match(refused.headers, {
    'x-ratelimit-limit-requests': '3',
    'x-ratelimit-remaining-requests': '0',
    'retry-after': /^(1?\d|20)$/,
  })
  t.notOk(refused.headers['x-should-retry'])
  t.match(refused.error, {
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    kind: 'rate_limited',
  })
  t.match(refused.error?.message, /^The limit of 3 requests a minute for this key is reached; try/)
  t.equal(gateway.emulator.ledger.length, 3, 'the upstream did not receive it')
  t.equal(await rejections(gateway, 'requests'), 1)
  t.match(gateway.lines.at(-1), { outcome: 'rate_limited', status: 429 })
  t.match((await rowsOf(gateway)).at(-1), {
    outcome: 'rate_limited',
    limit: /^key:.* requests_per_minute$/,
    errorMessage: /^The limit of 3 requests a minute for this key is reached; try/,
  })
  t.match(await gateway.metrics.text(), /sluice_hop_duration_seconds_count{hop="admit"} [1-9]/)
}

async function tokens(t: Test, gateway: TestGateway): Promise<void> {
  const large = await ask(gateway, 'o3', { max_completion_tokens: 2_000 })
  t.equal(large.status, 429)
  t.equal(large.headers['x-should-retry'], 'false', 'it will never fit')
  t.match(large.error?.message, /^The limit is 2000 tokens a minute .* may need up to 20\d\d at once/)
  t.equal(gateway.emulator.ledger.length, 0)
  const hanging = gateway.emulator.script({ fault: { kind: 'hang' }, times: 1 })
  const held = new AbortController()
  const first = gateway.chat(
    { model: 'o3', messages: [{ role: 'user', content: 'Hi' }], max_completion_tokens: 1_500 },
    { signal: held.signal },
  )
  await until(() => gateway.emulator.open() === 1)
  const second = await ask(gateway, 'o3', { max_completion_tokens: 1_000 })
  t.equal(second.status, 429, 'the maximum of the first is reserved')
  t.match(second.headers, { 'x-ratelimit-limit-tokens': '2000', 'retry-after': /^\d+$/ })
  const remaining = Number(second.headers['x-ratelimit-remaining-tokens'])
  t.ok(remaining > 400 && remaining < 600, `${remaining} left of 2,000`)
  held.abort()
  await t.rejects(first)
  hanging()
  await until(() => gateway.emulator.open() === 0)
  let third = await ask(gateway, 'o3', { max_completion_tokens: 1_000 })
  for (let tries = 0; third.status === 429 && tries < 50; tries += 1) {
    third = await ask(gateway, 'o3', { max_completion_tokens: 1_000 })
  }
  t.equal(third.status, 200, 'the unused part of the first is released')
  t.equal((await ask(gateway, 'o3')).status, 429, 'a reply without a maximum is assumed to be long')
}

async function slots(t: Test, gateway: TestGateway): Promise<void> {
  const { emulator } = gateway
  const model = 'gpt-4.1-mini'
  const hang = emulator.script({ fault: { kind: 'hang' } })
  const leaving = [new AbortController(), new AbortController()]
  const messages = [{ role: 'user', content: 'Hi' }]
  const held = leaving.map(({ signal }) => gateway.chat({ model, messages }, { signal }).catch(() => null))
  await until(() => emulator.open() === 2)
  const third = await ask(gateway, model)
  t.match(third, { status: 429, headers: { 'retry-after': '1' } })
  t.match(third.error?.message, /^The limit of 2 requests at the same time for this account/)
  t.same(Object.keys(third.headers), ['retry-after'], 'it is no limit of requests or tokens')
  for (const each of leaving) each.abort()
  await Promise.all(held)
  hang()
  await until(() => emulator.open() === 0)
  const faults = [{ kind: 'drop' }, { kind: 'cut', bytes: 9 }, { kind: 'status', code: 500 }] as const
  for (const fault of faults) {
    for (let index = 0; index < 4; index += 1) {
      emulator.script({ times: 1, fault })
      const { status } = await eventuallyAdmitted(gateway, model)
      t.ok(status >= 500, `${fault.kind}: ${status}`)
    }
  }
  for (let index = 0; index < 4; index += 1) {
    const refused = await eventuallyAdmitted(gateway, model, { temperature: 'warm' })
    t.equal(refused.status, 400)
  }
  t.equal((await eventuallyAdmitted(gateway, model)).status, 200)
}

/** Retries, because a slot becomes free a moment after the reply of its request. */
async function eventuallyAdmitted(gateway: TestGateway, model: string, more = {}): Promise<LimitedReply> {
  const endMs = Date.now() + 20_000
  for (;;) {
    const reply = await ask(gateway, model, more)
    if (reply.error?.kind !== 'rate_limited' || Date.now() > endMs) return reply
  }
}

async function budget(t: Test, gateway: TestGateway): Promise<void> {
  const model = 'gpt-5.4-nano'
  const large = await ask(gateway, model, { max_tokens: 30_000 })
  t.match(large, { status: 402, headers: { 'x-should-retry': 'false' } })
  t.match(large.error, { type: 'insufficient_quota', code: 'insufficient_quota' })
  t.match(large.error?.message, /^The budget of \$0\.01 a day for this account is too small for this request/)
  t.equal(gateway.emulator.ledger.length, 0)
  const { status } = await ask(gateway, model, { max_tokens: 5_000 })
  t.equal(status, 200)
  t.equal(await rejections(gateway, 'usd_day'), 1)
  await ask(gateway, model, { max_tokens: 5_000 })
  const text = await gateway.metrics.text()
  const used = /^sluice_budget_used_ratio\{scope="account",kind="usd_day"\} ([\d.e-]+)$/m.exec(text)
  t.ok(Number(used?.[1]) > 0 && Number(used?.[1]) < 0.5, `${used?.[1] ?? 'no'} share of the budget`)
}

async function shortened(t: Test, gateway: TestGateway): Promise<void> {
  const model = 'claude-sonnet-4-6'
  const { emulator } = gateway
  t.equal((await ask(gateway, model)).status, 200)
  const maxTokens = numberOf(emulator.ledger.at(-1)?.body?.['max_tokens']) ?? 0
  // 0.03 dollars at 15 dollars per million tokens are 2,000 tokens, minus the prompt.
  t.ok(maxTokens > 1_800 && maxTokens < 2_000, `requested ${maxTokens}`)
  const own = await ask(gateway, 'gpt-5.4-nano')
  t.equal(own.status, 200)
  const passed = numberOf(emulator.ledger.at(-1)?.body?.['max_completion_tokens']) ?? 0
  t.ok(passed > 5_000 && passed < 10_000, `passed ${passed}`)
}

async function windows(t: Test, gateway: TestGateway): Promise<void> {
  const model = 'gpt-4.1-nano'
  const { emulator } = gateway
  const large = await ask(gateway, model, { max_tokens: 2_000 })
  t.match(large, { status: 429, headers: { 'x-should-retry': 'false' }, error: { kind: 'rate_limited' } })
  t.notOk(large.headers['retry-after'])
  t.match(large.error?.message, /^The limit of 2000 tokens a day for this key is too small for this request/)
  t.equal(emulator.ledger.length, 0)
  t.equal((await ask(gateway, model)).status, 200)
  const maxTokens = numberOf(emulator.ledger.at(-1)?.body?.['max_completion_tokens']) ?? 0
  t.ok(maxTokens > 1_700 && maxTokens < 2_000, `a reply of at most ${maxTokens} tokens fits`)
  t.equal((await ask(gateway, model, { max_tokens: 20 })).status, 200)
  const near = await ask(gateway, model, { max_tokens: 1_760 })
  t.match(near, { status: 429, headers: { 'x-should-retry': 'false', 'retry-after': /^\d+$/ } })
  t.match(
    near.error?.message,
    /leaves \d+, and this request may need up to \d+; it renews in \d+ s, or shorten/,
  )
  t.equal((await ask(gateway, model, { max_tokens: 20 })).status, 200)
  const last = await ask(gateway, model, { max_tokens: 20 })
  t.match(last, { status: 429, headers: { 'x-should-retry': 'false' } })
  t.notOk(last.headers['retry-after'], 'no wait helps')
  t.match(last.error?.message, /^The limit of 3 requests in all for this key is reached; it does not reset/)
  t.match((await rowsOf(gateway)).at(-1), { limit: /^key:.* requests_total$/ })
  t.match(await gateway.metrics.text(), 'sluice_limit_rejections_total{kind="requests_total"} 1')
}

async function total(t: Test, gateway: TestGateway): Promise<void> {
  const model = 'gpt-5.4-mini'
  const large = await ask(gateway, model, { max_completion_tokens: 30_000 })
  t.match(large, { status: 402, headers: { 'x-should-retry': 'false' } })
  t.match(large.error?.message, /^The budget of \$0\.05 in all for this account is too small/)
  t.equal((await ask(gateway, model, { max_completion_tokens: 1_000 })).status, 200)
}

async function unpriced(t: Test, gateway: TestGateway): Promise<void> {
  const model = 'gpt-unpriced'
  rewrite(gateway, (text) => `${text}limiting: { unknown_price: refuse }\n`)
  const refused = await ask(gateway, model, { max_tokens: 5 })
  t.match(refused, { status: 403, error: { kind: 'forbidden', param: 'model' } })
  t.match(
    refused.error?.message,
    /the price of 'gpt-unpriced', .* limiting\.unknown_price/,
    'it names the settings to change',
  )
  const tier = await ask(gateway, 'gpt-5.4-nano', { max_tokens: 5, service_tier: 'priority' })
  t.match(tier, { status: 403, error: { kind: 'forbidden' } })
  t.match(tier.error?.message, 'service_tier')
  t.equal(gateway.emulator.ledger.length, 0)
  rewrite(gateway, (text) => text.replace('unknown_price: refuse', 'unknown_price: allow'))
  t.equal((await ask(gateway, model, { max_tokens: 5 })).status, 200)
}

async function ofUpstream(t: Test, gateway: TestGateway): Promise<void> {
  t.equal((await ask(gateway, 'gemini-2.5-flash')).status, 200)
  const refused = await ask(gateway, 'gemini-2.5-pro')
  t.equal(refused.status, 429)
  t.match(refused.error?.message, /^The limit of 1 request a minute for the upstream 'google'/)
}

async function reloaded(t: Test, gateway: TestGateway): Promise<void> {
  const model = 'gpt-4.1'
  const rule = (count: number): string =>
    `limits: [{ scope: key, model: ${model}, requests_per_minute: ${count} }]`
  rewrite(gateway, (text) => text.replace(/limits:[^]*?\n(?=limiting)/, `${rule(10)}\n`))
  for (let index = 0; index < 4; index += 1) t.equal((await ask(gateway, model)).status, 200)
  rewrite(gateway, (text) => text.replace(rule(10), rule(4)))
  const refused = await ask(gateway, model)
  t.equal(refused.status, 429, 'four requests were sent, and the limit is four now')
  t.match(refused.headers, { 'x-ratelimit-limit-requests': '4' })
  rewrite(gateway, (text) => text.replace(rule(4), rule(100)))
  t.match(await ask(gateway, model), {
    status: 200,
    headers: { 'x-ratelimit-limit-requests': '100' },
  })
  rewrite(gateway, (text) => text.replace(rule(100), 'limits: []'))
  const free = await ask(gateway, model)
  t.match(free, { status: 200, headers: {} })
  t.same(free.headers, {})
}

function rewrite(gateway: TestGateway, change: (text: string) => string): void {
  const { configFile } = gateway
  writeFileSync(configFile, change(readFileSync(configFile, 'utf8')))
  gateway.reload()
}
