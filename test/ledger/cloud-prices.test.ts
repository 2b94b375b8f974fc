/**
 * Goal: replies of clouds have the price of the vendor's model, and the surcharge of geographic profiles;
 * those of a vendor with a preset have the price that the package ships.
 */
import t from 'tap'
import { Prices } from '../../src/ledger/find-price.js'

const MODELS = [
  {
    id: 'claude-sonnet-5',
    family: 'anthropic',
    createdAtSeconds: 0,
    price: { input: 2, output: 10, serviceTiers: { geographic_profile: 1.1 } },
  },
  { id: 'claude-3', family: 'anthropic', createdAtSeconds: 0, price: { input: 1, output: 5 } },
]
const ARN = 'arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc'

function inputOf(requested: string, reported: string | null, own: object = {}): number | null {
  const prices = new Prices(MODELS, [{ name: 'cloud', prices: own as Record<string, never> }], 0)
  const rate = prices.find('cloud', requested, reported)?.usual.input
  return rate === null || rate === undefined ? null : rate / 1e9
}

void t.test('prices by the ids of clouds', (t) => {
  const cases: [string, string | null, number | null, object?][] = [
    ['anthropic.claude-sonnet-5', null, 2],
    ['anthropic.claude-sonnet-5-20260901-v1:0', 'claude-sonnet-5-20260901', 2],
    ['global.anthropic.claude-sonnet-5', 'claude-sonnet-5', 2],
    ['us.anthropic.claude-sonnet-5', 'claude-sonnet-5', 2.2],
    ['apac.anthropic.claude-sonnet-5', null, 2.2],
    ['us.anthropic.claude-3-20240101-v1:0', null, 1],
    ['claude-sonnet-5@20260901', 'claude-sonnet-5', 2],
    [ARN, 'claude-sonnet-5', null],
    [ARN, null, null],
    [ARN, 'claude-sonnet-5', 7, { [ARN]: { input: 7, output: 9 } }],
    ['us.anthropic.claude-sonnet-5', 'claude-sonnet-5', 3, { 'claude-sonnet-5': { input: 3 } }],
    [
      'us.anthropic.claude-sonnet-5',
      'claude-sonnet-5',
      4,
      { 'us.anthropic.claude-sonnet-5': { input: 4 }, 'claude-sonnet-5': { input: 3 } },
    ],
    ['anthropic.claude-unknown', null, null],
  ]
  for (const [requested, reported, expected, own] of cases) {
    t.equal(inputOf(requested, reported, own), expected, `${requested} ${String(reported)}`)
  }
  t.end()
})

void t.test('prices that the package ships for a vendor', (t) => {
  const vendorPrices = { 'open-1': { input: 3 }, 'claude-3': { input: 4 } }
  const cases: [string, string | null, number | null, object?][] = [
    ['open-1', null, 3],
    ['open-1', 'open-1-2026-05-01', 3],
    ['open-1', 'a-name-of-its-own', 3],
    ['open-1', null, 8, { 'open-1': { input: 8 } }],
    ['open-1', null, 0, { '*': { input: 0 } }],
    ['open-1', null, 3, { 'claude-3': { input: 8 } }],
    ['claude-3', null, 4],
    ['claude-sonnet-5', null, 2],
    ['open-2', null, null],
  ]
  for (const [requested, reported, expected, own = {}] of cases) {
    const upstream = { name: 'host', prices: own as Record<string, never>, vendorPrices }
    const rate = new Prices(MODELS, [upstream], 0).find('host', requested, reported)?.usual.input
    t.equal(
      rate === undefined || rate === null ? null : rate / 1e9,
      expected,
      JSON.stringify([requested, own]),
    )
    t.equal(new Prices(MODELS, [upstream], 0).find('other', 'open-1', null), null, 'not of another upstream')
  }
  t.end()
})

void t.test('the deployment that Azure reports is the requested model', (t) => {
  const platform = { deployments: { 'claude-3': 'prod' } }
  const prices = new Prices(MODELS, [{ name: 'azure', prices: {}, platform }], 0)
  const inputOf = (requested: string, reported: string, upstream = 'azure'): number | null =>
    prices.find(upstream, requested, reported)?.usual.input ?? null
  t.equal(inputOf('claude-3', 'prod'), 1e9)
  t.equal(inputOf('claude-3', 'claude-sonnet-5'), 2e9, 'the model that replied')
  t.equal(inputOf('claude-3', 'other'), null)
  t.equal(inputOf('claude-sonnet-5', 'prod'), null)
  t.equal(inputOf('claude-3', 'prod', 'elsewhere'), null)
  t.end()
})
