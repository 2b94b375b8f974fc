/**
 * Goal: a changed catalogue takes effect while the gateway runs, for requests that begin afterwards, and each
 * ledger entry names the prices that its cost was computed with.
 * Method: the real program; the price of a model is changed in the middle of a stream, then the entries are
 * exported.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { sluiceHere } from '../cli/session.js'
import { ALONE, startServe, until } from './program.js'

const MODEL = 'gpt-5.4-mini'
/** Of one model, because an edited catalogue is read from its text, by the gateway and by each command. */
const catalogue = `as_of: 2026-11-20
models:
  - id: ${MODEL}
    family: openai
    endpoints: [chat, responses]
    price: { input: 0.75, output: 4.5 }
`
const served = await startServe(t, { ...ALONE, catalogue })
const models = join(served.file, '..', 'models.yaml')

function setPrice(text: string): void {
  const [before = '', after = ''] = readFileSync(models, 'utf8').split(`  - id: ${MODEL}\n`)
  const [own = '', ...others] = after.split('\n  - id: ')
  const priced = own.replace(/(\n {4}price:\n(?: {6}.*\n?)*|\n {4}price: .*)/, `\n    price: ${text}`)
  writeFileSync(`${models}.new`, `${before}  - id: ${MODEL}\n${[priced, ...others].join('\n  - id: ')}`)
  renameSync(`${models}.new`, models)
}

async function generation(): Promise<number> {
  const page = objectOf(JSON.parse((await served.ops('/config')).text))
  return Number(page['generation'])
}

async function entries(): Promise<JsonObject[]> {
  const command = ['usage', 'export', '--config', served.file, '--format', 'jsonl']
  const { out } = await sluiceHere(command)
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => objectOf(JSON.parse(line)))
}

void t.test('a price change applies to requests that begin afterwards', async (t) => {
  setPrice('{ input: 1, output: 2 }')
  await until(async () => (await generation()) === 2)

  const prompt = '[[words: 40]] [[pace: 50]]'
  const body = { model: MODEL, stream: true, messages: [{ role: 'user', content: prompt }] }
  const slow = await served.chat(body)
  t.equal(slow.status, 200)
  setPrice('{ input: 10, output: 20 }')
  await until(async () => (await generation()) === 3)
  const after = await served.chat({ model: MODEL })
  t.equal(after.status, 200)
  await after.text()
  t.match(await slow.text(), '[DONE]')

  await until(async () => (await entries()).length === 2, 20_000, 200)
  const found = await entries()
  const old = objectOf(found.find(({ generation }) => generation === 2))
  const now = objectOf(found.find(({ generation }) => generation === 3))
  const costOf = (entry: JsonObject, input: number, output: number): number =>
    1_000 * (Number(entry['input_tokens']) * input + Number(entry['output_tokens']) * output)
  t.equal(old['stream'], true)
  t.equal(old['cost_nano_usd'], costOf(old, 1, 2))
  t.equal(now['cost_nano_usd'], costOf(now, 10, 20))
  t.match(old['price_version'], /^[0-9a-f]{12}$/)
  t.match(now['price_version'], /^[0-9a-f]{12}$/)
  t.not(old['price_version'], now['price_version'])

  const csv = await sluiceHere(['usage', 'export', '--config', served.file, '--format', 'csv'])
  const [header = '', ...lines] = csv.out.trim().split('\n')
  t.match(header, ',client_request_id,price_version,gateway,generation_hash,')
  t.ok(lines.some((line) => line.includes(`,${stringOf(now['price_version']) ?? ''},`)))
})

void t.test('the same prices have the same version; an entry without a price has no version', async (t) => {
  setPrice('{ output: 20, input: 10 }')
  await until(async () => (await generation()) === 4)
  await (await served.chat({ model: MODEL })).text()
  await (await served.chat({ model: 'gpt-without-a-price' })).text()
  await until(async () => (await entries()).length === 4, 20_000, 200)
  const found = await entries()
  const [again] = found.filter(({ generation, model_asked: asked }) => generation === 4 && asked === MODEL)
  const [before] = found.filter(({ generation }) => generation === 3)
  t.equal(again?.['price_version'], before?.['price_version'])
  const [unpriced] = found.filter(({ model_asked: asked }) => asked === 'gpt-without-a-price')
  t.match(unpriced, { cost_nano_usd: null, price_version: null })
})

void t.test('an invalid catalogue leaves the prices in force', async (t) => {
  const good = readFileSync(models, 'utf8')
  writeFileSync(models, `${good}  - { id: broken, familly: openai }\n`)
  await until(() => served.program.lines().some(({ msg }) => /refused/.test(String(msg))))
  t.equal(await generation(), 4)
  await (await served.chat({ model: MODEL })).text()
  // Commands read the same files.
  writeFileSync(models, good)
  await until(async () => (await entries()).length === 5, 20_000, 200)
  const versions = (await entries()).filter(({ generation }) => generation === 4)
  t.equal(new Set(versions.map((entry) => entry['price_version']).filter(Boolean)).size, 1)
})

void t.test('a plan of prices is applied as a generation, and rolled back', async (t) => {
  const own = await startServe(t, { server: 'workers: 1, admin_token: rollback-of-prices', catalogue })
  const list = join(own.file, '..', 'list.json')
  const price = { litellm_provider: 'openai', mode: 'chat', output_cost_per_token: 0 }
  const priceOf = (usdPerMillion: number) =>
    writeFileSync(
      list,
      JSON.stringify({ 'gpt-of-us': { ...price, input_cost_per_token: usdPerMillion / 1e6 } }),
    )
  const update = (...more: string[]) =>
    sluiceHere(['models', 'update', '--from', list, '--config', own.file, ...more])
  const inForce = async () => Number(objectOf(JSON.parse((await own.ops('/config')).text))['generation'])
  const costs = async () => {
    const { out } = await sluiceHere(['usage', 'export', '--config', own.file, '--format', 'jsonl'])
    const lines = out.split('\n').filter((line) => line !== '')
    return lines.map((line) => {
      const { input_tokens: tokens, cost_nano_usd: cost } = objectOf(JSON.parse(line))
      return cost === null ? null : Number(cost) / Number(tokens)
    })
  }
  const ask = async (count: number) => {
    await (await own.chat({ model: 'gpt-of-us' })).text()
    await until(async () => (await costs()).length === count, 20_000, 200)
  }
  priceOf(1)
  t.equal((await update()).status, 0)
  await until(async () => (await inForce()) === 2)
  await ask(1)
  priceOf(5)
  t.match((await update('--dry-run')).out, /These keys' cost changes by\n {2}key_\S+ \$/)
  t.equal(await inForce(), 2, 'a dry run changes nothing')
  t.match((await update()).out, /Wrote .+'sluice generations rollback' goes back\.\n$/)
  await until(async () => (await inForce()) === 3)
  await ask(2)
  const { status } = await sluiceHere(['generations', 'rollback', '2', '--config', own.file])
  t.equal(status, 0)
  await until(async () => (await inForce()) === 4)
  await ask(3)
  t.same(await costs(), [1000, 5000, 1000], 'nano-dollars per token')
})
