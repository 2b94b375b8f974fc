/**
 * Goal: `sluice models update` shows what a list of prices changes, and changes nothing else: entries of the
 * file's owner, comments and order stay.
 * Method: small catalogues and lists; a gateway with entries for the cost of its keys.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { arrayOf, objectOf } from '../../src/base/json.js'
import { startGateway } from '../helpers/gateway.js'
import { sluiceHere } from './session.js'

const CATALOGUE = `as_of: 2026-11-20
# mine
models:
  - id: house # kept
    family: openai
    system_role: developer
    price: { input: 1, output: 2 }
  - { id: fixed, family: openai, source: own, price: { input: 1, output: 2 } }
  - { id: old, family: openai, source: litellm, price: { input: 1, output: 2 } }
  - { id: moved, family: openai, source: litellm, context_window: 7, price: { input: 1, output: 2 } }
  - { id: other, family: openai, source: genai-prices, price: { input: 1, output: 2 } }
`
const entry = (input: number) => ({
  litellm_provider: 'openai',
  mode: 'chat',
  input_cost_per_token: input / 1e6,
  output_cost_per_token: 4 / 1e6,
})
const LITELLM = JSON.stringify({
  house: entry(9),
  fixed: entry(9),
  moved: entry(3),
  new: entry(5),
})

function place(t: Test, list = LITELLM) {
  const folder = t.testdir({ 'models.yaml': CATALOGUE, 'list.json': list })
  const catalogue = join(folder, 'models.yaml')
  const from = join(folder, 'list.json')
  return {
    catalogue,
    from,
    run: (...args: string[]) =>
      sluiceHere(['models', 'update', '--from', from, ...args], { env: { SLUICE_CONFIG: '' } }),
    text: () => readFileSync(catalogue, 'utf8'),
  }
}

void t.test('a plan, then the file, then nothing to change', async (t) => {
  const { catalogue, run, text } = place(t)
  const dry = await run('--catalogue', catalogue, '--dry-run', '--json')
  t.equal(dry.status, 2)
  t.equal(text(), CATALOGUE, 'a dry run writes nothing')
  t.match(JSON.parse(dry.out), {
    source: 'litellm',
    added: ['new'],
    removed: ['old'],
    changed: [
      { model: 'moved', fact: 'price', before: { input: 1 }, after: { input: 3, output: 4 }, from: null },
    ],
    own: [
      { model: 'house', differs: ['price'] },
      { model: 'fixed', differs: ['price'] },
    ],
    applied: false,
  })
  const done = await run('--catalogue', catalogue)
  t.equal(done.status, 0)
  t.match(done.out, /Added\n {2}new\n/)
  t.match(done.out, /Entries of your own, which stay\n {2}house: price/)
  const after = text()
  t.match(after, '# mine\nmodels:\n  - id: house # kept\n')
  t.match(after, /id: moved[^-]*context_window: 7/, 'a fact that the list lacks stays')
  t.notMatch(after, 'id: old')
  t.match(after, 'id: other', 'entries of another list stay')
  t.match(after, /source: litellm\n +as_of: 20\d\d-/)
  const again = await run('--catalogue', catalogue, '--dry-run')
  t.equal(again.status, 0)
  t.match(again.out, 'Nothing to change.')
})

void t.test('lists of each form, and those of this version', async (t) => {
  const { catalogue, run } = place(
    t,
    'models:\n  - { id: mine, family: x, price: [{ input: 1 }, { from: 2099-01-01, input: 2 }] }\n',
  )
  t.match(JSON.parse((await run('--catalogue', catalogue, '--json')).out), { added: ['mine'], applied: true })
  for (const name of ['litellm', 'genai-prices']) {
    const { out, status } = await sluiceHere(
      ['models', 'update', '--from', name, '--catalogue', catalogue, '--json'],
      { env: { SLUICE_CONFIG: '' } },
    )
    t.equal(status, 0, name)
    t.ok((objectOf(JSON.parse(out))['added'] as unknown[]).length > 20, name)
  }
})

void t.test('the price of a host is not that of every vendor', async (t) => {
  const price = { input_cost_per_token: 1e-6, output_cost_per_token: 2e-6, mode: 'chat' }
  const list = {
    'groq/open-weights-9': { ...price, litellm_provider: 'groq' },
    'cerebras/open-weights-9': { ...price, litellm_provider: 'cerebras' },
    'mistral-9': { ...price, litellm_provider: 'mistral' },
  }
  const { catalogue, run } = place(t, JSON.stringify(list))
  t.match(JSON.parse((await run('--catalogue', catalogue, '--json')).out), { added: ['mistral-9'] })
})

void t.test('faults: no list, a broken catalogue, wrong usage', async (t) => {
  for (const list of ['[]', '{}', 'text', '{"models": []}']) {
    const { catalogue, run, text } = place(t, list)
    const { status, err } = await run('--catalogue', catalogue)
    t.equal(status, 1, list)
    t.match(err, /no list of models/)
    t.equal(text(), CATALOGUE)
  }
  const { catalogue, from, run } = place(t)
  t.equal((await run()).status, 2, 'no catalogue')
  const plain = ['models', 'update', '--from', 'http://127.0.0.1:9/x', '--catalogue', catalogue]
  t.equal((await sluiceHere(plain)).status, 2, 'only https')
  writeFileSync(catalogue, 'models: [')
  t.equal((await run('--catalogue', catalogue)).status, 1)
  t.ok(existsSync(from))
})

void t.test('the cost of keys, and the file of a configuration with the shipped catalogue', async (t) => {
  const gateway = await startGateway(t)
  const body = { model: 'gpt-5.4', messages: [{ role: 'user', content: 'Hi' }] }
  await (await gateway.chat(body)).text()
  const folder = dirname(gateway.configFile)
  const catalogue = join(folder, 'priced.yaml')
  writeFileSync(
    catalogue,
    'as_of: 2026-11-20\nmodels:\n  - { id: gpt-5.4, family: openai, source: litellm, price: { input: 1, output: 1 } }\n',
  )
  const list = join(folder, 'list.json')
  writeFileSync(list, JSON.stringify({ 'gpt-5.4': entry(100) }))
  const args = ['models', 'update', '--from', list, '--catalogue', catalogue, '--config', gateway.configFile]
  const { out, status } = await sluiceHere([...args, '--dry-run', '--json'])
  t.equal(status, 2)
  const { keys } = objectOf(JSON.parse(out))
  t.match(keys, [{ key_id: /^key_/, before_usd: Number, after_usd: Number }])
  t.match((await sluiceHere([...args, '--dry-run'])).out, /These keys' cost changes by\n {2}key_\S+ \$/)
})

void t.test('the cost of keys: models that get their first price, prices of a day to come', async (t) => {
  const gateway = await startGateway(t)
  await (await gateway.chat({ model: 'gpt-5.4', messages: [{ role: 'user', content: 'Hi' }] })).text()
  const folder = dirname(gateway.configFile)
  const [catalogue, list] = [join(folder, 'priced.yaml'), join(folder, 'list.yaml')]
  const update = async (...args: string[]) => {
    const files = ['--from', list, '--catalogue', catalogue, '--config', gateway.configFile]
    return sluiceHere(['models', 'update', ...files, ...args])
  }
  writeFileSync(
    catalogue,
    'as_of: 2026-11-20\nmodels: [{ id: gpt-4o, family: openai, price: { input: 9, output: 9 } }]\n',
  )
  writeFileSync(list, 'models: [{ id: gpt-5.4, family: openai, price: { input: 1, output: 1 } }]\n')
  const { keys } = objectOf(JSON.parse((await update('--dry-run', '--json')).out))
  t.match(keys, [{ from: null, before_usd: 0, before_unpriced: 1, after_unpriced: 0 }])
  t.ok(Number(objectOf(arrayOf(keys)[0])['after_usd']) > 0)
  t.match((await update()).out, /\(\$0\.0000 → \$\S+ in the last 7 days; requests without a price: 1 → 0\)/)

  const dated = 'price: [{ input: 1, output: 1 }, { from: 2099-01-01, input: 3, output: 3 }]'
  writeFileSync(list, `models: [{ id: gpt-5.4, family: openai, ${dated} }]\n`)
  const coming = objectOf(JSON.parse((await update('--dry-run', '--json')).out))
  const [only, ...others] = arrayOf(coming['keys']).map(objectOf)
  t.equal(others.length, 0, 'the cost of now stays')
  t.equal(only?.['from'], '2099-01-01')
  t.equal(Number(only?.['after_usd']), 3 * Number(only?.['before_usd']))
  t.match((await update('--dry-run')).out, /These keys' cost changes by, from 2099-01-01\n {2}key_/)
})

void t.test('a configuration whose store does not exist yet: the plan, with a note', async (t) => {
  const { catalogue, run } = place(t)
  const config = join(dirname(catalogue), 'gateway.yaml')
  const upstreams = 'upstreams: { openai: { preset: openai, api_key: some-key } }\n'
  writeFileSync(config, `${upstreams}routes: [{ prefix: a, upstream: openai }]\nmodels: models.yaml\n`)
  const { status, out, err } = await run('--config', config, '--dry-run')
  t.equal(status, 2)
  t.match(out, /new/)
  t.match(err, /^note: the cost of keys is not compared: .+ does not exist/)
})

void t.test('a new model whose id extends a known one has its facts of use, and not its price', async (t) => {
  const { catalogue, from } = place(t, JSON.stringify({ 'house-2': entry(7) }))
  const { status } = await sluiceHere(['models', 'update', '--from', from, '--catalogue', catalogue])
  t.equal(status, 0)
  const { models } = objectOf(parse(readFileSync(catalogue, 'utf8')))
  t.match(
    arrayOf(models)
      .map(objectOf)
      .find(({ id }) => id === 'house-2'),
    {
      family: 'openai',
      system_role: 'developer',
      price: { input: 7, output: 4 },
      source: 'litellm',
    },
  )
})
