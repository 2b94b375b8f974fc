/**
 * Goal: `sluice import litellm` makes a configuration that works unchanged, names every line of the
 * foreign one once, and keeps secrets out of everything but `.env`.
 * Method: ten configurations of common kinds, and the cases of the folder in `SLUICE_LITELLM_CASES` if there
 * is one: import, check, apply, and a request with an imported key for each model over the emulator.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { pathText } from '../../../src/config/config-problem.js'
import { arrayOf, isObject, objectOf, type JsonObject } from '../../../src/base/json.js'
import { textAt } from '../../../src/cli/import/litellm/context.js'
import { leavesOf } from '../../../src/cli/import/report.js'
import { sluiceHere } from '../session.js'
import { ofToday } from '../../helpers/long-suite.js'
import { dotenv, imported, startImported, type Imported } from './imported-gateway.js'

t.setTimeout(180_000)
t.testdir()

const FOLDER = 'test/cli/import/configurations'
const OLD_KEY = 'sk-old-key-of-an-app'

const ENV: Record<string, string> = Object.fromEntries(
  [
    ...['OPENAI', 'ANTHROPIC', 'GEMINI', 'AZURE', 'GROQ', 'MISTRAL', 'XAI', 'OPENROUTER'].map(
      (vendor) => `${vendor}_API_KEY`,
    ),
    ...['COHERE_API_KEY', 'HF_TOKEN', 'FIREWORKS_API_KEY', 'SNOWFLAKE_JWT', 'WATSONX_API_KEY'],
    'SHARED_OPENAI_KEY',
  ].map((name) => [name, `${name.toLowerCase()}-value`]),
)
ENV['TEAM_MODEL_NAME'] = 'house'
ENV['TEAM_MODEL'] = 'openai/house-7b'

/** Configurations, and the models to request. */
const CONFIGURATIONS: Readonly<Record<string, readonly string[]>> = {
  'one-provider': ['gpt-5.4-mini'],
  weights: ['house'],
  fallbacks: ['quick', 'long', 'safe', 'default', 'hidden-one', 'merged', 'merged-too'],
  clouds: ['claude-on-aws', 'claude-on-google', 'azure-responses'],
  wildcards: ['anthropic/claude-haiku-4-5', 'claude-haiku-4-5', 'team-gpt-5.4-mini', 'qwen/qwen3'],
  'own-servers': ['coder', 'small', 'house-special'],
  literals: ['one', 'two', 'three'],
  office: ['assistant'],
  misplaced: ['reasoner', 'coder', 'local', 'usual'],
  'end-users': ['assistant'],
  'effort-names': ['think-hard', 'think-little', 'Team Assistant'],
  includes: ['groq-fast', 'mistral-small'],
  media: ['searcher'],
  cheapest: ['house', 'zephyr'],
  'public-files': [
    ...['house', 'portal-address', 'answers', 'command', 'automatic', 'routed', 'short-name', 'snow'],
    ...['watson', 'groq/llama-3.3-70b-versatile', 'claude-haiku-4-5'],
  ],
}

function keysFile(): string {
  const file = join(t.testdirName, 'keys.jsonl')
  const token = createHash('sha256').update(OLD_KEY).digest('hex')
  writeFileSync(file, `${JSON.stringify({ token, key_alias: 'app', team_id: 'team-1' })}\n`)
  return file
}

function itemsOf({ summary }: Imported): JsonObject[] {
  return arrayOf(summary['items']).filter(isObject)
}

/** Every scalar of the file is named by exactly one item. */
function checkCoverage(t: Test, value: unknown, made: Imported): void {
  const paths = itemsOf(made)
    .filter(({ file }) => typeof file !== 'string' || !file.endsWith('.jsonl'))
    .map((item) => textAt(item, 'path'))
  for (const leaf of leavesOf(value, [])) {
    const text = pathText(leaf)
    const names = paths.filter((path) => {
      return path === text || text.startsWith(`${path}.`) || text.startsWith(`${path}[`)
    })
    t.equal(names.length, 1, `${text} is named by ${names.join(', ')}`)
  }
}

for (const [name, models] of ofToday(Object.entries(CONFIGURATIONS), 4)) {
  void t.test(name, async (t) => {
    const file = join(FOLDER, `${name}.yaml`)
    const made = await imported(t, ['litellm', file, '--keys', keysFile()], ENV)
    t.equal(made.status, 0, made.err)
    const own: unknown = parse(readFileSync(file, 'utf8'), { uniqueKeys: false })
    if (name !== 'includes' && name !== 'fallbacks') checkCoverage(t, own, made)
    const variables = { ...ENV, ...dotenv(made.folder) }
    const config = join(made.folder, 'gateway.yaml')
    const check = await sluiceHere(['check', '--no-store', '--config', config], { env: variables })
    t.equal(check.status, 0, check.err + check.out)
    const again = await imported(t, ['litellm', file, '--keys', keysFile()], ENV)
    for (const each of readdirSync(made.folder)) {
      const [one, other] = [made, again].map(({ folder }) => readFileSync(join(folder, each), 'utf8'))
      t.equal(one, other, `${each} is the same`)
    }
    const gateway = await startImported(t, made, ENV)
    const documents = join(made.folder, 'accounts.yaml')
    const applied = await sluiceHere(['apply', '-f', documents, '--config', gateway.configFile], {
      env: variables,
    })
    t.equal(applied.status, 0, applied.err)
    for (const model of models) {
      const reply = await fetch(`${gateway.origin}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${OLD_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10 }),
      })
      const text = await reply.text()
      t.equal(reply.status, 200, `${model}: ${text.slice(0, 300)}`)
    }
  })
}

/** The outcomes at a path: those of its items and of those below it. */
function outcomesAt(made: Imported, path: string): string[] {
  return itemsOf(made)
    .filter((item) => textAt(item, 'path').startsWith(path) || path.startsWith(`${textAt(item, 'path')}.`))
    .map((item) => textAt(item, 'outcome'))
}

void t.test('outcomes', async (t) => {
  const outcome = async (name: string, expected: Readonly<Record<string, string>>) => {
    const made = await imported(t, ['litellm', join(FOLDER, `${name}.yaml`)], ENV)
    for (const [path, wanted] of Object.entries(expected)) {
      t.ok(outcomesAt(made, path).includes(wanted), `${name}: ${path} is ${outcomesAt(made, path).join()}`)
    }
    return made
  }
  const weights = await outcome('weights', {
    'model_list[0].litellm_params.rpm': 'changed',
    'model_list[2].litellm_params.order': 'carried',
    'router_settings.optional_pre_call_checks[0]': 'carried',
  })
  const gateway: unknown = parse(readFileSync(join(weights.folder, 'gateway.yaml'), 'utf8'))
  t.match(gateway, {
    server: { bare_paths: true },
    upstreams: {
      azure: { deployments: { 'gpt-5.4-mini': 'house-prod' }, api_version: '2025-04-01-preview' },
    },
    routes: [
      {
        model: 'house',
        sticky: 'conversation',
        targets: [
          { upstream: 'openai', weight: 60 },
          { upstream: 'azure', model: 'gpt-5.4-mini', weight: 30 },
        ],
        fallback: [{ upstream: 'anthropic' }],
      },
    ],
    limits: [{ scope: 'upstream', upstream: 'openai', requests_per_minute: 60 }, {}, {}],
  })
  t.match(
    itemsOf(weights).find(({ path }) => path === 'model_list[1].litellm_params.rpm'),
    { line: 11, to: 'routes[0].targets[1].weight', note: /^a share of the requests/ },
  )
  t.match(
    itemsOf(weights).find(({ path }) => path === 'model_list[1].litellm_params.api_key'),
    { to: 'upstreams.azure.api_key' },
  )
  t.equal(isObject(gateway) ? gateway['auth'] : null, undefined, 'only with keys')
  await outcome('fallbacks', {
    'router_settings.model_group_alias.hidden-one': 'changed',
    'router_settings.context_window_fallbacks': 'changed',
    'router_settings.content_policy_fallbacks': 'not_carried',
    'litellm_settings.num_retries': 'ignored',
  })
  const chains = await imported(t, ['litellm', join(FOLDER, 'fallbacks.yaml')], ENV)
  t.ok(outcomesAt(chains, 'router_settings.fallbacks[1].safe[2]').includes('not_carried'))
  const chained: unknown = parse(readFileSync(join(chains.folder, 'gateway.yaml'), 'utf8'))
  const routes = isObject(chained) ? arrayOf(chained['routes']).filter(isObject) : []
  t.match(
    routes.find(({ model }) => model === 'safe'),
    { fallback: [{ upstream: 'anthropic' }, { upstream: 'groq', model: 'llama-3.3-70b-versatile' }] },
    'by an alias, and by a wildcard',
  )
  t.match(
    routes.find(({ model }) => model === 'merged-too'),
    { targets: [{ upstream: 'openai', model: 'gpt-5.4-mini', defaults: { temperature: 0.1 } }] },
    'merge keys',
  )
  const wildcards = await outcome('wildcards', { 'model_list[3]': 'not_carried' })
  t.match(wildcards.summary['models'], [
    { name: 'anthropic/*', match: 'prefix', status: 'ready' },
    { name: 'team-gpt-*', match: 'prefix' },
    { name: '*', match: 'any' },
    { name: 'a*b', status: 'not_carried' },
  ])
  await outcome('office', {
    'model_list[0].litellm_params.max_budget': 'carried',
    'model_list[1]': 'carried',
    'guardrails[2]': 'not_carried',
    'litellm_settings.cache': 'not_carried',
    'general_settings.alerting': 'not_carried',
    'general_settings.health_check_interval': 'carried',
  })
  const own = await outcome('own-settings', {
    'model_list[0].litellm_params.cooldown_time': 'changed',
    'model_list[0].litellm_params.keepalive_seconds': 'not_carried',
    'model_list[0].litellm_params.supports_system_message': 'not_carried',
    'model_list[0].litellm_params.guardrails': 'not_carried',
    'model_list[0].litellm_params.metadata': 'not_carried',
    'model_list[0].litellm_params.top_k': 'changed',
  })
  const made: unknown = parse(readFileSync(join(own.folder, 'gateway.yaml'), 'utf8'))
  const { upstreams, routes: ownRoutes } = isObject(made) ? made : {}
  t.match(upstreams, {
    deepseek: { quirks: { set: { top_k: 20 } }, breaker: { open_seconds: 30 } },
    openai: { breaker: { open_seconds: 10 } },
  })
  t.strictSame(
    objectOf(objectOf(objectOf(upstreams)['deepseek'])['quirks'])['set'],
    { top_k: 20 },
    'the vendor gets nothing of LiteLLM',
  )
  const fallbackOf = (name: string) =>
    arrayOf(ownRoutes)
      .filter(isObject)
      .find((route) => (route['model'] ?? route['prefix']) === name)?.['fallback']
  t.match(fallbackOf('chat'), [{ model: 'gpt-5.4-mini' }], 'the last list for all counts')
  t.match(fallbackOf('gpt-'), [{ model: 'gpt-5.4-mini' }], 'bare names have it too')
  const rest = await imported(t, ['litellm', join(FOLDER, 'wildcards.yaml')], ENV)
  t.notMatch(
    readFileSync(join(rest.folder, 'gateway.yaml'), 'utf8'),
    /prefix: claude-/,
    '`*` takes bare names',
  )
  const none = await imported(t, ['litellm', join(FOLDER, 'one-provider.yaml')], { OPENAI_API_KEY: '' })
  t.match(none.summary['models'], [{ name: 'gpt-5.4-mini', status: 'no_key' }])
})

void t.test('pictures, sound and prices by number', async (t) => {
  const made = await imported(t, ['litellm', join(FOLDER, 'media.yaml')], ENV)
  for (const [path, wanted] of Object.entries({
    'model_list[0].litellm_params.output_cost_per_image': 'carried',
    'model_list[1].model_info.input_cost_per_image': 'carried',
    'model_list[2].model_info.output_cost_per_image_token': 'carried',
    'model_list[2].model_info.output_cost_per_image': 'ignored',
    'model_list[2].model_info.input_cost_per_image': 'not_carried',
    'model_list[3].model_info.output_cost_per_second': 'not_carried',
    'model_list[4].litellm_params.output_cost_per_second': 'carried',
    'model_list[6].litellm_params.search_context_cost_per_query': 'carried',
    'model_list[7]': 'not_carried',
    'model_list[8]': 'not_carried',
    'router_settings.fallbacks[0].painter[0]': 'carried',
    'router_settings.fallbacks[0].painter[1]': 'not_carried',
  })) {
    const items = itemsOf(made).filter((item) => {
      return item['path'] === path || textAt(item, 'path').startsWith(`${path}.`)
    })
    t.strictSame([...new Set(items.map((item) => item['outcome']))], [wanted], path)
  }
  const gateway: unknown = parse(readFileSync(join(made.folder, 'gateway.yaml'), 'utf8'))
  t.notMatch(JSON.stringify(gateway), /cost/, 'no price is a member of requests')
  t.match(gateway, {
    upstreams: {
      openai: {
        prices: {
          'dall-e-3': { per_image: 0.04 },
          'tts-1': { per_character: 0.000015 },
          'gpt-5.4-mini': {
            ...{ input: 0.4, output: 1.6, service_tiers: { batch: 0.5 }, calls: { web_search: 0.02 } },
            long_context: { above_input_tokens: 272_000, input: 0.8, output: 2.4 },
          },
        },
      },
      'openai-chat': { prices: { 'flux-dev': { per_image: 0.002 } } },
      gemini: { prices: { 'gemini-3-pro-image': { input: 2, output: 12, output_image: 120 } } },
      groq: { prices: { 'whisper-large-v3': { per_second_audio: 0.00003083 } } },
      cohere: { prices: { 'rerank-v3.5': { per_search: 0.002 } } },
    },
    routes: [
      { model: 'painter', fallback: [{ upstream: 'openai-chat', model: 'flux-dev' }] },
      ...['sketcher', 'drawer', 'voice', 'ear', 'ranker', 'searcher'].map((model) => ({ model })),
    ],
  })
  const routes = isObject(gateway) ? arrayOf(gateway['routes']).filter(isObject) : []
  t.strictSame(arrayOf(routes[0]?.['fallback']).length, 1, 'no fallback to a model that converses')
})

void t.test('the cheapest deployment is the target, dearer ones follow', async (t) => {
  const made = await imported(t, ['litellm', join(FOLDER, 'cheapest.yaml')], ENV)
  t.match(parse(readFileSync(join(made.folder, 'gateway.yaml'), 'utf8')), {
    upstreams: { huggingface: { base_url: 'https://endpoint.office.example/v1' } },
    routes: [
      {
        model: 'house',
        targets: [{ upstream: 'vllm', model: 'own' }],
        fallback: [{ model: 'gpt-5.4-mini' }, { model: 'gpt-5.4' }],
      },
      { model: 'zephyr' },
    ],
    limits: [
      { model: 'gpt-5.4', requests_per_minute: 60 },
      { model: 'own', requests_per_minute: 30 },
    ],
  })
  for (const [path, wanted] of Object.entries({
    'router_settings.routing_strategy': 'changed',
    'model_list[0].litellm_params.rpm': 'carried',
    'model_list[2].litellm_params.weight': 'ignored',
    'litellm_settings.service_callback': 'carried',
  })) {
    t.strictSame(outcomesAt(made, path), [wanted], path)
  }
})

void t.test('files as the public has them', async (t) => {
  const made = await imported(t, ['litellm', join(FOLDER, 'public-files.yaml')], ENV)
  for (const [path, wanted] of Object.entries({
    'model_list[0].model_name': 'changed',
    'model_list[0].litellm_params.model': 'changed',
    'model_list[0].litellm_params.max_tokens': 'carried',
    'model_list[0].litellm_params.rpm': 'changed',
    'model_list[1]': 'not_carried',
    'model_list[2]': 'not_carried',
    'model_list[3].litellm_params.api_base': 'carried',
    'model_list[5]': 'not_carried',
    'model_list[11].litellm_params.api_key': 'carried',
    'model_list[12].litellm_params.model': 'changed',
    'litellm_settings (line 47)': 'ignored',
    'litellm_settings.num_retries': 'carried',
    'general_settings.max_budget': 'not_carried',
    'general_settings.num_retries': 'not_carried',
    'general_settings.disable_spend_logs': 'ignored',
  })) {
    t.strictSame(outcomesAt(made, path), [wanted], path)
  }
  t.match(parse(readFileSync(join(made.folder, 'gateway.yaml'), 'utf8')), {
    upstreams: {
      azure: { base_url: 'https://office.openai.azure.com', api_version: '2024-10-21' },
      'openai-responses': { dialect: 'openai-responses', base_url: 'https://api.openai.com/v1' },
      snowflake: { base_url: 'https://acc.snowflakecomputing.com/api/v2/cortex/v1' },
      watsonx: {
        base_url: 'https://eu-de.ml.cloud.ibm.com/ml/gateway/v1',
        auth: { ibm: { api_key: '${WATSONX_API_KEY}' } },
      },
    },
    routes: [
      {
        model: 'house',
        targets: [{ model: 'house-7b', defaults: { max_tokens: 4096 } }],
        retry: { attempts: 5 },
      },
      { model: 'portal-address', targets: [{ upstream: 'azure', model: 'prod' }] },
      { model: 'answers', targets: [{ upstream: 'openai-responses', model: 'gpt-5.4' }] },
      { model: 'command', targets: [{ upstream: 'cohere', model: 'command-r-plus' }] },
      { model: 'automatic', targets: [{ upstream: 'openrouter', model: 'openrouter/auto' }] },
      { model: 'routed', targets: [{ model: 'meta-llama/Llama-4-Scout-17B-16E-Instruct:groq' }] },
      { model: 'short-name', targets: [{ model: 'accounts/fireworks/models/kimi-k2-instruct' }] },
    ],
  })
  const models = arrayOf(made.summary['models']).filter(isObject)
  t.match(
    models.find(({ name }) => name === '*'),
    { match: 'any', status: 'ready' },
    'the models of all vendors',
  )
  t.match(
    models.find(({ name }) => name === 'groq/*'),
    { match: 'prefix', targets: [{ upstream: 'groq' }] },
  )
  const alone = await imported(t, ['litellm', join(FOLDER, 'public-files.yaml')], {})
  t.strictSame(outcomesAt(alone, 'model_list[12]'), ['not_carried'], 'no variable of a vendor is set')
})

void t.test('end users have the budget of each in the new configuration', async (t) => {
  const made = await imported(t, ['litellm', join(FOLDER, 'end-users.yaml'), '--keys', keysFile()], ENV)
  t.match(parse(readFileSync(join(made.folder, 'gateway.yaml'), 'utf8')), {
    dimensions: [
      {
        name: 'end_user',
        from: [
          ...['header:x-litellm-end-user-id', 'header:x-litellm-customer-id', 'header:x-portal-user'],
          ...['header:x-portal-customer', 'body:user', 'body:litellm_metadata.user', 'body:metadata.user_id'],
        ],
      },
      { name: 'portal_project', from: ['header:x-portal-project'] },
      { name: 'cost_center', from: ['header:x-cost-center'] },
      { name: 'portal_staff_id', from: ['header:x-portal-staff-id'] },
    ],
    limits: [{ scope: 'dimension:end_user', requests_per_minute: 40, usd_per_week: 0.002 }],
  })
  for (const [path, wanted] of Object.entries({
    'litellm_settings.max_end_user_budget': 'carried',
    'litellm_settings.budget_duration': 'carried',
    'litellm_settings.extra_spend_tag_headers[2]': 'not_carried',
    'litellm_settings.extra_spend_tag_headers[3]': 'not_carried',
    'general_settings.user_header_mappings[0]': 'carried',
  })) {
    t.strictSame(outcomesAt(made, path), [wanted], path)
  }
  const gateway = await startImported(t, made, ENV)
  const args = ['apply', '-f', join(made.folder, 'accounts.yaml'), '--config', gateway.configFile]
  const applied = await sluiceHere(args, { env: { ...ENV, ...dotenv(made.folder) } })
  t.equal(applied.status, 0, applied.err)
  const ask = async (user: string): Promise<number> => {
    const reply = await fetch(`${gateway.origin}/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${OLD_KEY}`,
        'content-type': 'application/json',
        'x-portal-user': user,
      },
      body: JSON.stringify({
        model: 'assistant',
        messages: [{ role: 'user', content: 'Hi' }],
        max_tokens: 300,
      }),
    })
    await reply.arrayBuffer()
    return reply.status
  }
  const statuses: number[] = []
  while (statuses.length < 100 && !statuses.includes(402)) statuses.push(await ask('ada'))
  t.ok(statuses[0] === 200 && statuses.at(-1) === 402, `the budget of one: ${statuses.join()}`)
  t.equal(await ask('grace'), 200, 'another has a budget of her own')
})

void t.test('settings of LiteLLM reach no vendor, and a key goes to its own vendor only', async (t) => {
  const made = await imported(t, ['litellm', join(FOLDER, 'misplaced.yaml')], ENV)
  for (const [path, wanted] of Object.entries({
    'model_list[1].litellm_params.model_info': 'not_carried',
    'model_list[1].litellm_params.stream_options': 'not_carried',
    'model_list[2].litellm_params.stream': 'not_carried',
    'model_list[2].litellm_params.timeout': 'ignored',
    'model_list[3].litellm_params.api_key': 'ignored',
    'model_list[3].litellm_params.cache_control_injection_points': 'not_carried',
    'litellm_settings.context_window_fallbacks[0].reasoner': 'changed',
    'general_settings.provider_budget_config': 'not_carried',
  })) {
    t.strictSame(outcomesAt(made, path), [wanted], path)
  }
  const text = readFileSync(join(made.folder, 'gateway.yaml'), 'utf8')
  t.notMatch(text, 'quirks')
  t.match(parse(text), {
    upstreams: {
      'openai-chat': { api_key: '${OPENAI_API_KEY_2}', timeouts: { first_byte_ms: 30_000 } },
      openai: { api_key: '${OPENAI_API_KEY}' },
    },
  })
  t.match(dotenv(made.folder), { OPENAI_API_KEY: undefined, OPENAI_API_KEY_2: 'sk-literal-of-the-cluster' })
  const literals = await imported(t, ['litellm', join(FOLDER, 'literals.yaml')], ENV)
  const note = itemsOf(literals).find(
    (item) => textAt(item, 'path') === 'model_list[0].litellm_params.api_key',
  )
  t.match(note, { outcome: 'changed', note: /^OPENAI_API_KEY is set to another value now/ })
})

void t.test('secrets', async (t) => {
  const made = await imported(t, ['litellm', join(FOLDER, 'literals.yaml'), '--keys', keysFile()], ENV)
  const all = /literal|token with spaces/
  for (const name of readdirSync(made.folder).filter((each) => each !== '.env')) {
    t.notMatch(readFileSync(join(made.folder, name), 'utf8').replaceAll('literals.yaml', ''), all, name)
  }
  t.notMatch(made.out + made.err, all)
  t.equal(statSync(join(made.folder, '.env')).mode & 0o777, 0o600)
  t.match(dotenv(made.folder), {
    SERVICE_TOKEN: 'token with spaces',
    OPENAI_API_KEY: 'sk-literal-000000000001',
    OPENAI_API_KEY_2: 'sk-literal-000000000002',
    X_GATEWAY_SECRET: 'header-literal-0000003',
  })
  t.match(readFileSync(join(made.folder, 'gateway.yaml'), 'utf8'), /api_key: \$\{OPENAI_API_KEY_2\}/)
})

void t.test('files', async (t) => {
  t.testdir()
  const file = join(FOLDER, 'one-provider.yaml')
  const folder = join(t.testdirName, 'out')
  const plain = await sluiceHere(['import', 'litellm', file, '--out', folder])
  t.match(plain, { status: 0, out: /^Wrote gateway\.yaml, report\.md in / })
  t.notOk(existsSync(join(folder, '.env')), 'nothing is secret')
  const taken = await sluiceHere(['import', 'litellm', file, '--out', folder])
  t.match(taken, { status: 1, out: '', err: /gateway\.yaml:1:1: exists already/ })
  t.equal((await sluiceHere(['import', 'litellm', file, '--out', folder, '--force'])).status, 0)
  const bad = join(t.testdirName, 'bad.yaml')
  writeFileSync(bad, 'model_list:\n  - model_name: [a\n')
  const broken = await sluiceHere(['import', 'litellm', bad, '--out', join(folder, 'b')])
  t.match(broken, { status: 1, err: /bad\.yaml:\d+:\d+: / })
  t.notOk(existsSync(join(folder, 'b')), 'nothing is written')
  const keys = join(t.testdirName, 'raw.jsonl')
  writeFileSync(keys, '{"token":"sk-a-raw-secret-key"}\n')
  const raw = await sluiceHere(['import', 'litellm', file, '--keys', keys, '--out', join(folder, 'c')])
  t.match(raw, { status: 1, err: /raw\.jsonl:1:1: "token" must be the SHA-256/ })
  t.notMatch(raw.err, /raw-secret/)
})

const CASES = process.env['SLUICE_LITELLM_CASES'] ?? ''

void t.test('further cases', { skip: existsSync(CASES) ? false : 'no folder of cases' }, async (t) => {
  for (const name of readdirSync(CASES).filter((each) => existsSync(join(CASES, each, 'config.yaml')))) {
    const folder = join(CASES, name)
    const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as {
      env: Record<string, string>
      secrets?: string[]
      carried?: string[]
      changed?: string[]
      not_carried?: string[]
    }
    const file = join(folder, 'config.yaml')
    const made = await imported(t, ['litellm', file], expected.env)
    t.equal(made.status, 0, made.err)
    checkCoverage(t, parse(readFileSync(file, 'utf8')), made)
    for (const outcome of ['carried', 'changed', 'not_carried'] as const) {
      for (const path of expected[outcome] ?? []) {
        t.ok(outcomesAt(made, path).includes(outcome), `${name}: ${path} is ${outcomesAt(made, path).join()}`)
      }
    }
  }
})
