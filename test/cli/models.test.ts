/**
 * Goal: `sluice models diff` prints the differences between an operator's catalogue and the shipped one,
 * and nothing else.
 * Method: copies of the shipped catalogue with one change each; the command in this process, and the built
 * program for its text and its status.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { objectOf } from '../../src/base/json.js'
import { priceVersionOf } from '../../src/ledger/price-version.js'
import { sluice, sluiceHere } from './session.js'

const SHIPPED = readFileSync('config/models.yaml', 'utf8')
const folder = t.testdir()
let count = 0

/** Writes a configuration with this catalogue. Returns its path. */
function configWith(models: string): string {
  count += 1
  const path = join(folder, String(count))
  mkdirSync(path)
  writeFileSync(join(path, 'models.yaml'), models)
  const file = join(path, 'gateway.yaml')
  writeFileSync(
    file,
    `store: sqlite:./x.db
upstreams:
  one: { dialect: openai-chat, base_url: https://example.com/v1, api_key: x }
routes:
  - { prefix: gpt-, upstream: one }
`,
  )
  return file
}

async function diff(models: string, ...options: string[]) {
  const config = ['--config', configWith(models)]
  const ran = await sluiceHere(['models', 'diff', ...config, '--json', ...options])
  return { ...ran, found: ran.out === '' ? {} : objectOf(JSON.parse(ran.out)) }
}

void t.test('the shipped catalogue has no differences, also with other comments', async (t) => {
  const { status, found } = await diff(`# my own\n${SHIPPED}`, '--exit-code')
  t.equal(status, 0)
  t.match(found, { added: [], removed: [], changed: [], price_version: /^[0-9a-f]{12}$/ })
  const text = await sluice(['models', 'diff', '--config', configWith(SHIPPED)])
  t.match(text.out, 'the same models and facts as the shipped catalogue')
})

void t.test('added, removed and changed models are listed', async (t) => {
  const [first = ''] = SHIPPED.split('\n  - id: ').slice(1)
  const [id = ''] = first.split('\n')
  const changed = SHIPPED.replace('context_window: 1050000', 'context_window: 900000')
    .replace('input: 10\n', 'input: 11\n')
    .replace('vision: true', 'vision: false')
  const own = `${changed}  - { id: house-model, family: house, price: { input: 1, output: 2 } }\n`
  const { status, found } = await diff(own)
  t.equal(status, 0, 'differences are no failure')
  t.match(found, {
    added: ['house-model'],
    removed: [],
    changed: [
      { model: id, kind: 'limit', fact: 'context_window', shipped: 1_050_000, own: 900_000 },
      { model: id, kind: 'fact', fact: 'vision', shipped: true, own: false },
      { model: id, kind: 'price', fact: 'price.input', shipped: 10, own: 11 },
    ],
  })
  const without = SHIPPED.replace(`\n  - id: ${first}`, '')
  t.match((await diff(without)).found, { added: [], removed: [id], changed: [] })
  const differs = ['models', 'diff', '--config', configWith(without), '--json', '--exit-code']
  t.equal((await sluice(differs)).status, 1)

  const text = await sluiceHere(['models', 'diff', '--config', configWith(own)])
  t.match(text.out, 'Only in this catalogue\n  house-model')
  t.match(text.out, `${id} price.input: shipped 10, in this catalogue 11`)
  t.match(text.out, `${id} context_window: shipped 1050000, in this catalogue 900000`)
  t.match(text.out, /Price version [0-9a-f]{12}/)
})

void t.test('an invalid catalogue and wrong usage are refused', async (t) => {
  const { status, found } = await diff(`${SHIPPED}  - { id: x }\n`)
  t.equal(status, 1)
  t.match(found['errors'], [{ path: /models\[\d+\]/ }])
  t.equal((await sluiceHere(['models'])).status, 2)
  t.equal((await sluiceHere(['models', 'list'])).status, 2)
})

void t.test('the price version changes only if a price changes', (t) => {
  const one = { id: 'a', price: { input: 1, output: 2 } }
  const two = { id: 'b', variants: ['b-1'], price: { input: 3 } }
  const upstream = { name: 'u', prices: { '*': { input: 5, output: 6 } } }
  const version = priceVersionOf([one, two], [upstream])
  t.equal(priceVersionOf([two, one, { id: 'free' }], [upstream, { name: 'v', prices: {} }]), version)
  t.equal(priceVersionOf([{ id: 'a', price: { output: 2, input: 1 } }, two], [upstream]), version)
  for (const other of [
    priceVersionOf([one], [upstream]),
    priceVersionOf([{ id: 'a', price: { input: 1, output: 2.5 } }, two], [upstream]),
    priceVersionOf([one, two], []),
    priceVersionOf([one, two], [{ name: 'u', prices: { '*': { input: 5, output: 7 } } }]),
  ]) {
    t.not(other, version)
  }
  t.end()
})
