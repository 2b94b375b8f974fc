/**
 * Goal: exactly the rules that match a request apply to it, and each rule has its own counter.
 * Method: rules of loaded configurations, and requests that differ in one property at a time.
 */
import t from 'tap'
import type { Identity, KeyLimits } from '../../src/accounts/account.js'
import {
  limitDemandsOf,
  needsOf,
  NO_LIMITS,
  Rules,
  type LimitedRequest,
} from '../../src/limits/find-limits.js'
import { GOOD, loadText } from '../config/sample.js'

function rulesOf(limits: string, plans = '{}'): Rules {
  const loaded = loadText(`${GOOD}limits: ${limits}\nplans: ${plans}\n`)
  if (!loaded.ok) throw new Error(loaded.errors[0]?.message)
  return new Rules(loaded.config)
}

function requestWith(change: Partial<LimitedRequest> = {}, identity: Partial<Identity> = {}): LimitedRequest {
  return {
    identity: {
      keyId: 'key_1',
      accountId: 'acc_1',
      email: 'ada@example.com',
      accountPath: 'acme/research',
      plan: 'pro',
      digest: '',
      expiresAtMs: null,
      models: null,
      allowTools: null,
      limits: null,
      labels: {},
      ...identity,
    },
    model: 'gpt-5.5-2026-04-23',
    strippedModel: 'gpt-5.5',
    modelName: 'gpt-5.5',
    upstream: 'openai',
    ...change,
  }
}

function subjects(rules: Rules, request: LimitedRequest): string[] {
  return rules.of(request).map(({ subject }) => subject)
}

void t.test('a plan of any name has its limits, and an account needs a plan', (t) => {
  const rules = rulesOf(
    '[{ scope: account, plan: team-xl, concurrent: 9 }]',
    '{ team-xl: { limits: { usd_per_day: 5 } }, free: {} }',
  )
  t.match(rules.of(requestWith({}, { plan: 'team-xl' })), [
    { amounts: { concurrent: 9 } },
    { whose: "the plan 'team-xl'", amounts: { nanoUsdPerDay: 5e9 } },
  ])
  t.equal(rules.of(requestWith({}, { plan: 'free' })), NO_LIMITS)
  t.equal(rules.of(requestWith({}, { plan: 'starter' })), NO_LIMITS, 'a built-in plan stays')
  t.throws(() => rules.of(requestWith({}, { plan: 'gone' })), {
    kind: 'forbidden',
    message: /does not have the plan 'gone'/,
  })
  t.end()
})

void t.test('without rules there are no limits and no allocations', (t) => {
  t.equal(rulesOf('[]').of(requestWith()), NO_LIMITS)
  t.equal(
    rulesOf('[{ scope: key, plan: max, concurrent: 1 }]').of(requestWith()),
    NO_LIMITS,
    'no limit if no rule matches',
  )
  t.end()
})

void t.test('subjects of counters', (t) => {
  const rules = rulesOf(`
  - { scope: key, concurrent: 1 }
  - { scope: account, concurrent: 2 }
  - { scope: model, concurrent: 3 }
  - { scope: upstream, concurrent: 4 }
`)
  t.same(
    rules.of(requestWith()).map(({ subject, shared, whose }) => [subject, shared, whose]),
    [
      ['key:key_1', false, 'this key'],
      ['account:acc_1', false, 'this account'],
      ['model:gpt-5.5', true, "the model 'gpt-5.5'"],
      ['upstream:openai', true, "the upstream 'openai'"],
    ],
  )
  t.end()
})

/** A rule's selector, and a request that it does not match. */
const SELECTORS: [string, LimitedRequest][] = [
  ['plan: pro', requestWith({}, { plan: 'starter' })],
  ['account: acc_1', requestWith({}, { accountId: 'acc_2' })],
  ['account: research', requestWith({}, { accountPath: 'research/ml' })],
  ['account: Ada@example.com', requestWith({}, { email: 'eva@example.com' })],
  ['key: key_1', requestWith({}, { keyId: 'key_2' })],
  ['model: gpt-5.5', requestWith({ model: 'gpt-5.4', strippedModel: 'gpt-5.4', modelName: 'gpt-5.4' })],
  ['model: gpt-5.5-2026-04-23', requestWith({ model: 'gpt-5.5' })],
  ['prefix: gpt-5.5-', requestWith({ model: 'gpt-5.5' })],
  ['upstream: openai', requestWith({ upstream: 'other' })],
]

void t.test('each selector matches only its own requests', (t) => {
  for (const [selector, other] of SELECTORS) {
    const rules = rulesOf(`[{ scope: account, ${selector}, concurrent: 1 }]`)
    t.equal(rules.of(requestWith()).length, 1, selector)
    t.equal(rules.of(other), NO_LIMITS, selector)
  }
  t.end()
})

void t.test('two rules that both apply never share a counter', (t) => {
  const rules = rulesOf(
    `\n${['', ...SELECTORS.map(([selector]) => `${selector}, `)]
      .flatMap((selector) =>
        ['key', 'account', 'model', 'upstream'].map(
          (scope) => `  - { scope: ${scope}, ${selector}concurrent: 1 }\n`,
        ),
      )
      .join('')}`,
    '{ pro: { limits: { concurrent: 1 } } }',
  )
  const all = subjects(rules, requestWith({}, { limits: { concurrent: 1 } }))
  t.equal(all.length, 4 * (SELECTORS.length + 1) + 2)
  t.equal(new Set(all).size, all.length)
  t.ok(all.every((subject) => /^[!-~]{1,300}$/.test(subject)))
  t.end()
})

void t.test('a counter is kept when rules move and plans change', (t) => {
  const before = rulesOf('[{ scope: key, concurrent: 1 }, { scope: account, requests_per_minute: 5 }]')
  const after = rulesOf('[{ scope: account, requests_per_minute: 9 }, { scope: key, concurrent: 1 }]')
  t.same(subjects(before, requestWith()).sort(), subjects(after, requestWith()).sort())
  const plans = rulesOf('[]', '{ pro: { limits: { usd_per_day: 5 } }, max: { limits: { usd_per_day: 9 } } }')
  t.same(subjects(plans, requestWith()), subjects(plans, requestWith({}, { plan: 'max' })))
  t.equal(plans.of(requestWith({}, { plan: 'starter' })), NO_LIMITS)
  t.end()
})

void t.test('one value of a label has its own count, beside the rule of all values', (t) => {
  const all = { scope: 'label:team', usd_per_day: 5 }
  const research = { ...all, value: 'research', usd_per_day: 50 }
  const rules = rulesOf(JSON.stringify([all, research, { ...research, model: 'gpt-5.5' }]))
  const of = (labels: Identity['labels']) => subjects(rules, requestWith({}, { labels }))
  t.same(of({ team: 'research', env: 'ci' }), [
    'label:team=research',
    'label:team=research;value',
    'label:team=research;value;model=gpt-5.5',
  ])
  t.same(of({ team: 'sales' }), ['label:team=sales'])
  t.same(of({ env: 'research' }), [])
  t.end()
})

void t.test('a name of any length makes a valid subject of the ledger', (t) => {
  const long = 'm'.repeat(256)
  const rules = rulesOf(`[{ scope: model, prefix: ${'m'.repeat(250)}, concurrent: 1 }]`)
  const [one] = subjects(rules, requestWith({ model: long, modelName: long }))
  const [other] = subjects(rules, requestWith({ model: long, modelName: `${long.slice(1)}n` }))
  t.equal(one?.length, 300)
  t.not(one, other)
  t.end()
})

void t.test('demands of a request', (t) => {
  const limits: KeyLimits = {
    requestsPerMinute: 1,
    tokensPerMinute: 2,
    concurrent: 3,
    nanoUsdPerDay: 4,
    nanoUsdPerWeek: 6,
    nanoUsdPerMonth: 5,
  }
  const found = rulesOf('[]').of(requestWith({}, { limits }))
  const subject = 'key:key_1;own'
  t.same(
    limitDemandsOf(found, { tokens: 70, mostTokens: 90, nanoUsd: 80 }).map(({ demand }) => demand),
    [
      { kind: 'requests', subject, shared: false, perMinute: 1, cost: 1 },
      { kind: 'tokens', subject, shared: false, perMinute: 2, cost: 70 },
      { kind: 'concurrent', subject, shared: false, limit: 3 },
      { kind: 'usd_day', subject, shared: false, limitNanoUsd: 4, costNanoUsd: 80 },
      { kind: 'usd_week', subject, shared: false, limitNanoUsd: 6, costNanoUsd: 80 },
      { kind: 'usd_month', subject, shared: false, limitNanoUsd: 5, costNanoUsd: 80 },
    ],
  )
  t.same(needsOf(found), { tokens: true, mostTokens: false, money: true, units: false })
  t.same(needsOf(rulesOf('[{ scope: key, concurrent: 1 }]').of(requestWith())), {
    tokens: false,
    mostTokens: false,
    money: false,
    units: false,
  })
  t.end()
})
