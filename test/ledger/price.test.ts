/**
 * Goal: a cost is exact to the nano-dollar, is that of the model that replied, and is null if a needed price
 * is unknown.
 * Method: vendors' examples calculated by hand; random sums compared with big rational arithmetic.
 */
import t from 'tap'
import type { Usage } from '../../src/formats/chat/usage.js'
import { costNanoUsd, higherPrice, maxCostNanoUsd, priceOf, tierPrice } from '../../src/ledger/price.js'
import { Prices } from '../../src/ledger/find-price.js'
import { PriceSchedule } from '../../src/ledger/price-schedule.js'

const SONNET = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75, cacheWrite1h: 6 }

void t.test('each kind of token at its own rate', (t) => {
  const price = priceOf({ ...SONNET, reasoning: 20 })
  const cost = (usage: Usage) => costNanoUsd(price, usage)
  t.equal(cost({ input: 1000, output: 500 }), 1000 * 3000 + 500 * 15_000)
  t.equal(cost({ input: 1000, cacheRead: 400 }), 600 * 3000 + 400 * 300)
  t.equal(cost({ input: 1000, cacheWrite: 400 }), 600 * 3000 + 400 * 3750)
  t.equal(cost({ input: 1000, cacheWrite: 400, cacheWrite1h: 100 }), 600 * 3000 + 300 * 3750 + 100 * 6000)
  t.equal(cost({ output: 500, reasoning: 200 }), 300 * 15_000 + 200 * 20_000)
  t.equal(costNanoUsd(priceOf(SONNET), { output: 500, reasoning: 200 }), 500 * 15_000)
  t.equal(cost({}), 0)
  t.end()
})

void t.test(
  'sound, pictures and videos, new and cached, at their own rates or those that stand for them',
  (t) => {
    const media = { inputAudio: 10, inputImage: 4, outputImage: 30 }
    const plain = priceOf({ ...SONNET, ...media })
    const own = priceOf({ ...SONNET, ...media, cachedAudio: 1, cachedImage: 2, inputVideo: 6 })
    const usage = { input: 1000, inputAudio: 100, inputImage: 200, inputVideo: 300 }
    const text = 400 * 3000 + 100 * 10_000 + 200 * 4000
    t.equal(costNanoUsd(plain, usage), text + 300 * 3000, 'a video without a rate costs as text')
    t.equal(costNanoUsd(own, usage), text + 300 * 6000)
    const cached = {
      input: 1000,
      inputAudio: 100,
      inputImage: 200,
      cacheRead: 90,
      cachedAudio: 40,
      cachedImage: 50,
    }
    const rest = 700 * 3000 + 60 * 10_000 + 150 * 4000
    t.equal(costNanoUsd(plain, cached), rest + 40 * 10_000 + 50 * 4000, 'never less than the vendor charges')
    t.equal(costNanoUsd(own, cached), rest + 40 * 1000 + 50 * 2000)
    const asText = priceOf(SONNET)
    t.equal(costNanoUsd(asText, { input: 100, inputImage: 100, cacheRead: 100, cachedImage: 100 }), 100 * 300)
    t.equal(costNanoUsd(plain, { input: 100, inputAudio: 100, cacheRead: 100 }), 100 * 10_000)
    t.equal(maxCostNanoUsd(own, { input: 10, output: 0, media: ['inputVideo'] }), 10 * 6000)
    t.end()
  },
)

void t.test('long prompts have their own rates, and the cache keeps its share', (t) => {
  const longContext = { aboveInputTokens: 200_000, input: 6, output: 22.5 }
  const price = priceOf({ ...SONNET, longContext })
  t.equal(costNanoUsd(price, { input: 200_000, output: 1 }), 200_000 * 3000 + 15_000)
  t.equal(costNanoUsd(price, { input: 200_001, output: 1 }), 200_001 * 6000 + 22_500)
  const usage = { input: 300_000, cacheRead: 100_000, cacheWrite: 50_000 }
  t.equal(costNanoUsd(price, usage), 150_000 * 6000 + 100_000 * 600 + 50_000 * 7500)
  const own = priceOf({ ...SONNET, longContext: { ...longContext, cacheRead: 1, cacheWrite: 2 } })
  t.equal(costNanoUsd(own, usage), 150_000 * 6000 + 100_000 * 1000 + 50_000 * 2000)
  t.end()
})

void t.test('a tier may have rates of its own; others keep their share', (t) => {
  const longContext = { aboveInputTokens: 100, input: 6, output: 30 }
  const serviceTiers = { priority: { input: 9, output: 30 }, batch: { cacheRead: 1 }, inference_geo: 1.1 }
  const price = priceOf({ ...SONNET, longContext, serviceTiers })
  const cost = (tier: string, usage: Usage) => costNanoUsd(tierPrice(price, tier) ?? price, usage)
  const usage = { input: 100, cacheRead: 40, output: 10 }
  t.equal(cost('priority', usage), 60 * 9000 + 40 * 900 + 10 * 30_000, 'the cache costs a tenth of input')
  t.equal(cost('priority', { input: 101, output: 1 }), 101 * 18_000 + 60_000, 'long prompts twice as much')
  t.equal(cost('batch', usage), 60 * 3000 + 40 * 1000 + 10 * 15_000)
  t.equal(cost('priority+inference_geo', { input: 100, output: 10 }), (100 * 9000 + 10 * 30_000) * 1.1)
  const own = { input: 9, output: 30, longContext: { aboveInputTokens: 50, input: 10, output: 31 } }
  const longer = priceOf({ ...SONNET, longContext, serviceTiers: { priority: own } })
  const served = tierPrice(longer, 'priority')
  t.equal(served && costNanoUsd(served, { input: 51, output: 1 }), 51 * 10_000 + 31_000)
  const most = higherPrice(longer, 'priority')
  t.equal(most && costNanoUsd(most, { input: 1, output: 1 }), 9000 + 30_000)
  t.end()
})

void t.test('of a list of prices, the one that began last holds', (t) => {
  const list = [{ input: 3, from: '2027-02-01' }, { input: 1 }, { input: 2, from: '2027-01-01' }]
  const day = (text: string): number => Date.parse(text)
  const dated = { id: 'dated', price: list, family: 'x', createdAtSeconds: 0 }
  const coming = { id: 'coming', price: [{ input: 5, from: '2027-01-01' }], family: 'x', createdAtSeconds: 0 }
  const schedule = new PriceSchedule([dated, coming], [{ name: 'u', prices: { dated: [{ input: 9 }] } }])
  const costAt = (time: string, upstream = 'other', model = 'dated'): number | null => {
    const price = schedule.at(day(time)).prices.find(upstream, model, null)
    return price === null ? null : costNanoUsd(price, { input: 1 })
  }
  t.equal(costAt('2026-12-31T23:59:59.999Z'), 1000)
  t.equal(costAt('2027-01-01T00:00:00Z'), 2000)
  t.equal(costAt('2027-01-31T23:59:59Z'), 2000)
  t.equal(costAt('2027-02-01T00:00:00Z'), 3000)
  t.equal(costAt('2030-01-01T00:00:00Z'), 3000)
  t.equal(costAt('2027-02-01T00:00:00Z', 'u'), 9000)
  t.equal(costAt('2026-12-31T00:00:00Z', 'other', 'coming'), null, 'no price has begun')
  t.equal(costAt('2027-01-01T00:00:00Z', 'other', 'coming'), 5000)
  const versions = ['2026-01-01', '2026-12-31', '2027-01-01', '2027-01-02', '2027-02-01'].map(
    (time) => schedule.at(day(time)).version,
  )
  t.equal(versions[0], versions[1])
  t.equal(versions[2], versions[3])
  t.equal(new Set(versions).size, 3, 'the version follows the prices')
  t.end()
})

void t.test('a tier costs its factor, and the price of other tiers is unknown', (t) => {
  const longContext = { aboveInputTokens: 100, input: 6, output: 20 }
  const price = priceOf({ ...SONNET, longContext, serviceTiers: { flex: 0.5, priority: 1.75 } })
  const cost = (tier: string | null, usage: Usage) => {
    const served = tierPrice(price, tier)
    return served === null ? null : costNanoUsd(served, usage)
  }
  const usage = { input: 100, cacheRead: 40, output: 10 }
  const usual = 60 * 3000 + 40 * 300 + 10 * 15_000
  for (const tier of [null, 'default', 'standard', 'auto', '']) t.equal(cost(tier, usage), usual)
  t.equal(cost('flex', usage), usual / 2)
  t.equal(cost('priority', usage), usual * 1.75)
  t.equal(cost('priority', { input: 101, output: 1 }), (101 * 6000 + 20_000) * 1.75)
  for (const tier of ['scale', 'toString']) t.equal(cost(tier, usage), null, tier)
  const most = (tier: string | null) => {
    const tierRate = higherPrice(price, tier)
    return tierRate === null ? null : maxCostNanoUsd(tierRate, { input: 10, output: 0 })
  }
  t.equal(most('priority'), 10 * 6000 * 1.75, 'the higher amount is reserved')
  t.equal(most('flex'), 10 * 6000, 'and not the cheaper tier, which may not be served')
  t.equal(most('scale'), null)
  t.end()
})

void t.test('a cost with an unknown rate is unknown, unless no token of that kind was used', (t) => {
  const price = priceOf({ input: 1, output: 2 })
  t.equal(costNanoUsd(price, { input: 10, output: 10 }), 10 * 1000 + 10 * 2000)
  t.equal(costNanoUsd(price, { input: 10, cacheRead: 0 }), 10_000)
  t.equal(costNanoUsd(price, { input: 10, cacheRead: 1 }), null)
  t.equal(costNanoUsd(price, { input: 10, cacheWrite: 1 }), null)
  t.equal(costNanoUsd(priceOf({ input: 1 }), { input: 1, output: 1 }), null)
  t.equal(maxCostNanoUsd(priceOf({ input: 1 }), { input: 1, output: 1 }), null)
  t.end()
})

void t.test('counts that contradict each other never lower a cost', (t) => {
  const price = priceOf(SONNET)
  t.equal(costNanoUsd(price, { input: 10, cacheRead: 100 }), 100 * 300)
  t.equal(costNanoUsd(price, { cacheWrite: 10, cacheWrite1h: 100 }), 10 * 6000)
  t.equal(costNanoUsd(price, { output: 10, reasoning: 100 }), 10 * 15_000)
  t.end()
})

void t.test('no drift: 20,000 random sums equal exact arithmetic', (t) => {
  let seed = 7
  const dice = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  for (let round = 0; round < 20_000; round += 1) {
    const inputFemto = dice(2_000_000_000)
    const outputFemto = dice(2_000_000_000)
    const price = priceOf({ input: inputFemto / 1e9, output: outputFemto / 1e9 })
    const [input, output] = [dice(100_000_000), dice(1_000_000)]
    const femto = BigInt(input) * BigInt(inputFemto) + BigInt(output) * BigInt(outputFemto)
    const exact = Number((femto + 500_000n) / 1_000_000n)
    const cost = costNanoUsd(price, { input, output })
    if (cost !== exact) t.equal(cost, exact, `${input} × ${inputFemto}, ${output} × ${outputFemto}`)
  }
  const dear = priceOf({ input: 1_000_000 })
  t.equal(costNanoUsd(dear, { input: Number.MAX_SAFE_INTEGER }), Number.MAX_SAFE_INTEGER)
  t.end()
})

void t.test('the estimated maximum is never below the actual usage', (t) => {
  const longContext = { aboveInputTokens: 1000, input: 2, output: 40 }
  const price = priceOf({ ...SONNET, longContext })
  for (const input of [1, 1000, 1001, 50_000]) {
    const most = maxCostNanoUsd(price, { input, output: 100 }) ?? 0
    for (const share of [0, 0.5, 1]) {
      const cacheWrite = Math.floor(input * share)
      for (const used of [Math.min(input, 900), input]) {
        const usage = { input: used, output: 100, cacheWrite, cacheWrite1h: cacheWrite }
        t.ok((costNanoUsd(price, usage) ?? Infinity) <= most, `${input} ${share} ${used}`)
      }
    }
  }
  t.end()
})

void t.test('the price is that of the model that replied, of the upstream before the catalogue', (t) => {
  const model = (id: string, input: number, variants: string[] = []) => {
    return { id, family: 'openai' as const, createdAtSeconds: 0, variants, price: { input } }
  }
  const models = [model('gpt-9', 9, ['gpt-9-first']), model('gpt-9-mini', 1)]
  const prices = new Prices(
    models,
    [
      { name: 'plain', prices: {} },
      { name: 'own', prices: { 'gpt-9': { input: 5 }, alias: { input: 6 } } },
      { name: 'free', prices: { '*': { input: 0 } } },
    ],
    0,
  )
  const input = (upstream: string, requested: string, reported: string | null) =>
    prices.find(upstream, requested, reported)?.usual.input ?? null
  const usd = (value: number) => value * 1e9
  t.equal(input('plain', 'gpt-9', null), usd(9))
  t.equal(input('plain', 'gpt-9', 'gpt-9-mini'), usd(1), 'the model that replied')
  t.equal(input('plain', 'gpt-9', 'gpt-9-2026-01-31'), usd(9), 'dated')
  t.equal(input('plain', 'gpt-9', 'gpt-9-first'), usd(9), 'a variant')
  t.equal(input('plain', 'gpt-9', 'gpt-9-mini-20260131'), usd(1))
  t.equal(input('plain', 'gpt-9', 'gpt-9-pro'), null, 'another model, not a variant')
  t.equal(input('plain', 'gpt-9', 'gpt-9-mini-pro'), null)
  t.equal(input('own', 'gpt-9', 'gpt-9-2026-01-31'), usd(5))
  t.equal(input('own', 'gpt-9', 'gpt-9-mini'), usd(1), "the catalogue's price if its own list has none")
  t.equal(input('own', 'alias', 'something-else'), usd(6), 'the requested model, last')
  t.equal(input('own', 'alias', 'gpt-9-mini'), usd(1))
  t.equal(input('free', 'gpt-9', 'gpt-9'), 0)
  t.equal(input('plain', 'unknown', null), null)
  t.end()
})
