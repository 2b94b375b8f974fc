/**
 * Goal (I-138): `sluice check` reports the same errors as loading, with the matching exit status, and
 * creates no files.
 * Method: the built program on a valid and an invalid file, and the command in this process on more of them.
 */
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/load-config.js'
import { changed, GOOD, MODELS } from '../config/sample.js'
import { sluiceHere } from './session.js'

interface Answer {
  status: number
  out: string
  err: string
}

function sluice(args: string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<Answer> {
  const program = join(process.cwd(), 'dist/main.js')
  const path = process.env['PATH']
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [program, ...args],
      { cwd, env: { PATH: path, ...env } },
      (_error, out, err) => resolve({ status: child.exitCode ?? -1, out, err }),
    )
  })
}

/** The same in this process. */
function here(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
  return sluiceHere(args, { cwd, env })
}

void t.test('I-138: check exits with 0 for a valid file and creates no files', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': GOOD, 'models.yaml': MODELS })
  const answer = await sluice(['check', '--config', 'gateway.yaml'], folder)
  t.match(answer, { status: 0, err: '' })
  t.match(answer.out, /^gateway\.yaml: valid \(1 upstream, 1 route, 1 model\)\n/)
  t.match(answer.out, /upstream openai has no key: KEY is not set/)
  const set = await sluice(['check', '--config', 'gateway.yaml'], folder, { KEY: 'canary-4b' })
  t.notMatch(set.out, /KEY|canary/)
  t.same(readdirSync(folder).sort(), ['gateway.yaml', 'models.yaml'])
})

void t.test(
  'I-138: check exits with 1 for an invalid file and prints the position and a suggestion',
  async (t) => {
    const bad = changed('upstream: openai', 'upstream: opnai')
    const folder = t.testdir({ 'gateway.yaml': bad, 'models.yaml': MODELS })
    const answer = await sluice(['check', '--config', 'gateway.yaml'], folder)
    t.strictSame(answer, {
      status: 1,
      out: [
        'gateway.yaml:7:31: routes[0].upstream: is not an upstream of this file (did you mean "openai"?)',
        '   7 |   - { prefix: gpt-, upstream: opnai }',
        '     |                               ^\n',
      ].join('\n'),
      err: '',
    })
  },
)

void t.test('check --strict exits with 1 if there are notes', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': GOOD, 'models.yaml': MODELS })
  const check = (args: string[], env = {}) =>
    here(['check', '--config', 'gateway.yaml', ...args], folder, env)
  t.equal((await check([])).status, 0)
  t.equal((await check(['--strict'])).status, 1)
  const { status, out } = await check(['--strict'], { KEY: 'k' })
  t.equal(status, 0)
  t.match(out, /^gateway\.yaml: valid/, 'without notes')
})

void t.test('check reports an error of the catalogue with its position there', async (t) => {
  const models = MODELS.replace('family: openai', 'family: open ai')
  const folder = t.testdir({ conf: { 'gateway.yaml': GOOD, 'models.yaml': models } })
  const answer = await here(['check', '--config', 'conf/gateway.yaml'], folder)
  t.equal(answer.status, 1)
  t.match(answer.out, /^conf\/models\.yaml:3:28: models\[0\]\.family: must be 1 to 64 letters/)
  t.match(answer.out, /\n {3}3 \| .*family: open ai.*\n {5}\| {28}\^\n$/)
})

void t.test('check lists the models that a budget cannot bound, and exits with 0', async (t) => {
  const local = [
    '  local:',
    '    dialect: openai-chat',
    '    base_url: http://127.0.0.1:9000/v1',
    '    models: [llama-3, { id: llama-free, price: { input: 0, output: 0 } }, unrouted]',
    'routes:',
    '  - { prefix: llama, upstream: local }',
  ].join('\n')
  const limits = 'limits: [{ scope: account, plan: starter, usd_per_month: 20 }]\n'
  const text = `${changed('routes:', local)}${limits}`
  const folder = t.testdir({ 'gateway.yaml': text, 'models.yaml': MODELS })
  const answer = await here(['check', '--config', 'gateway.yaml'], folder)
  t.equal(answer.status, 0)
  t.match(
    answer.out,
    /cannot bound llama-3 of upstream local: its price is not known: .*limiting\.assumed_price.*limiting\.unknown_length/,
  )
  t.notMatch(answer.out, /cannot bound llama-free/)
  t.match(answer.out, /no route leads to upstream local for its model unrouted/)
  const json = await here(['check', '--json', '--config', 'gateway.yaml'], folder)
  const { unbounded } = JSON.parse(json.out) as { unbounded: { model: string }[] }
  t.ok(unbounded.some(({ model }) => model === 'llama-3'))
  const args = ['explain', 'llama-3', '--json', '--config', 'gateway.yaml']
  const explained = JSON.parse((await here(args, folder)).out) as object
  t.match(explained, {
    budget: {
      price: 'assume',
      reply_tokens: null,
      unseen_tokens: null,
      free_replies: false,
      bounded: false,
    },
  })
})

void t.test('check takes the prices of pictures, sound and rankings for what budgets reserve', async (t) => {
  const models = [
    '  - { id: scribe, family: x, operations: [transcriptions], price: { per_second_audio: 0.0001 } }',
    '  - { id: voice, family: x, operations: [speech], price: { per_character: 0.000015 } }',
    '  - { id: ranker, family: x, operations: [rerank], price: { per_search: 0.002 } }',
    '  - { id: painter, family: x, operations: [images], max_image_tokens: 6240, price: { input: 5, output_image: 30 } }',
    '  - { id: printer, family: x, operations: [images, image_edits], price: { per_image: 0.04 } }',
    '  - { id: talker, family: x, operations: [speech], price: { input: 0.6, output_audio: 12 } }',
    '  - { id: mute, family: x, operations: [speech] }',
  ]
  const routes = ['scribe', 'voice', 'ranker', 'painter', 'printer', 'talker', 'mute']
  const routed = routes.map((model) => `  - { model: ${model}, upstream: openai }`)
  const limits = 'limits: [{ scope: account, plan: starter, usd_per_month: 20 }]\n'
  const text = `${changed('routes:', ['routes:', ...routed].join('\n'))}${limits}`
  const folder = t.testdir({ 'gateway.yaml': text, 'models.yaml': `${MODELS}${models.join('\n')}\n` })
  const json = await here(['check', '--json', '--config', 'gateway.yaml'], folder)
  const { unbounded } = JSON.parse(json.out) as { unbounded: { model: string; terms: object }[] }
  const found = unbounded.filter(({ model }) => routes.includes(model))
  t.match(found, [
    { model: 'talker', terms: { price: 'known' } },
    { model: 'mute', terms: { price: 'assume' } },
  ])
})

void t.test('I-138: check --json prints one object with the errors of the loader', async (t) => {
  const texts = [GOOD, changed('gpt-', '""'), changed('api_key', 'apikey'), '', '{', '[]']
  for (const text of texts) {
    const folder = t.testdir({ 'gateway.yaml': text, 'models.yaml': MODELS })
    const file = join(folder, 'gateway.yaml')
    const answer = await here(['check', '--json', '--config', file], folder)
    const result = JSON.parse(answer.out) as { ok: boolean; errors: unknown[] }
    const loaded = loadConfig(file, {})
    t.equal(answer.status, loaded.ok ? 0 : 1)
    t.equal(result.ok, loaded.ok)
    t.same(result.errors, loaded.ok ? [] : loaded.errors)
  }
})

void t.test('check exits with 2 for wrong usage and prints the problem', async (t) => {
  const folder = t.testdir({})
  for (const args of [['check'], ['check', '--confg', 'x'], ['check', '--config'], ['check', 'x']]) {
    const answer = await here(args, folder)
    t.equal(answer.status, 2, args.join(' '))
    t.match(answer.err, /^sluice: /, args.join(' '))
    t.equal(answer.out, '')
  }
  t.match(await here(['check', '--config', 'none.yaml'], folder), {
    status: 1,
    out: 'none.yaml:1:1: the file does not exist\n',
  })
  t.match(await here(['check', '--help'], folder), { status: 0, out: /--config FILE/ })
})

void t.test('explain prints the route, its reason, the upstream, its key, the model', async (t) => {
  const root = process.cwd()
  const config = ['--config', 'config/gateway.yaml']
  const dated = await here(['explain', 'gpt-5.5-2026-04-23', ...config], root)
  t.equal(dated.status, 0)
  t.match(dated.out, /routes\[0\]: 'gpt-' is the longest prefix/)
  t.match(dated.out, /openai \(https:\/\/api\.openai\.com\/v1\)/)
  t.match(dated.out, /not set: OPENAI_API_KEY: clients get 503/)
  t.match(dated.out, /gpt-5\.5 \(dated variant\)/)
  const set = await here(['explain', 'o1', ...config], root, { OPENAI_API_KEY: 'canary-5c' })
  t.match(set.out, /the id is exactly 'o1'/)
  t.match(set.out, /from OPENAI_API_KEY/)
  t.notMatch(set.out, /canary/)
})

void t.test('explain --json resolves an alias and lists the routes not selected', async (t) => {
  const routes = `  - { prefix: g, upstream: openai }
  - { prefix: gpt-5, upstream: openai }
  - { model: gpt-5-fast, targets: [{ upstream: openai, model: gpt-5.5 }] }
`
  const folder = t.testdir({ 'gateway.yaml': GOOD + routes, 'models.yaml': MODELS })
  const ask = async (model: string) =>
    here(['explain', model, '--json', '--config', 'gateway.yaml'], folder, { KEY: 'k' })
  const alias = await ask('gpt-5-fast')
  t.match(JSON.parse(alias.out), {
    model: 'gpt-5-fast',
    route: 'routes[3]',
    others: ["routes[0] prefix 'gpt-'", "routes[1] prefix 'g'", "routes[2] prefix 'gpt-5'"],
    upstream: 'openai',
    dialect: 'openai',
    configured: true,
    api_key_source: 'KEY',
    upstream_model: 'gpt-5.5',
    catalogue: { match: 'exact', facts: { id: 'gpt-5.5', family: 'openai', variants: [/^gpt/] } },
  })
  t.notMatch(alias.out, /"[a-z]+[A-Z]\w*":/, 'keys are spelled as in the file')
  t.match(JSON.parse((await ask('gpt-5.5-x')).out), {
    route: 'routes[2]',
    catalogue: { match: 'extends gpt-5.5' },
  })
  const none = await ask('llama')
  t.equal(none.status, 1)
  t.match(JSON.parse(none.out), { route: null, upstream: null, catalogue: null })
})

void t.test('explain exits with 2 for wrong usage and with 1 for an invalid file', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': 'x: 1\n', 'models.yaml': MODELS })
  const config = ['--config', 'gateway.yaml']
  t.equal((await here(['explain', ...config], folder)).status, 2)
  t.equal((await here(['explain', 'a', 'b', ...config], folder)).status, 2)
  t.equal((await here(['explain', 'a'], folder)).status, 2)
  const bad = await here(['explain', 'a', ...config], folder)
  t.equal(bad.status, 1)
  t.match(bad.out, /gateway\.yaml:1:1: x: Unknown key "x"/)
})
