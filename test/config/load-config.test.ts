/**
 * Goal: the loader reads every setting, applies defaults, resolves paths and placeholders, and hides secrets.
 * Method: texts through the loader.
 */
import { writeFileSync } from 'node:fs'
import { availableParallelism, hostname } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { isConfigured, type Config } from '../../src/config/config.js'
import { loadConfig, type Env } from '../../src/config/load-config.js'
import { PLAIN } from '../../src/config/quirks.js'
import { changed, GOOD, loadText, MODELS, problemsOf } from './sample.js'

function configOf(text: string, env?: Env, files?: Record<string, string>): Config {
  const loaded = loadText(text, env, files)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  return loaded.config
}

void t.test('without a models.yaml next to the file, the shipped catalogue is used', (t) => {
  const file = join(t.testdir({ 'gateway.yaml': GOOD }), 'gateway.yaml')
  const shipped = loadConfig(file, { KEY: 'k' })
  t.ok(shipped.ok)
  t.ok(shipped.ok && shipped.catalogue.find('claude-sonnet-4-5') !== null)
  writeFileSync(join(file, '..', 'models.yaml'), MODELS)
  const own = loadConfig(file, { KEY: 'k' })
  t.ok(own.ok && shipped.ok && own.catalogue.models.length < shipped.catalogue.models.length)
  writeFileSync(file, `${GOOD}models: missing.yaml\n`)
  t.equal(loadConfig(file, { KEY: 'k' }).ok, false, 'a configured file must exist')
  t.end()
})

void t.test('omitted settings have the documented defaults', (t) => {
  const config = configOf(GOOD)
  t.strictSame(config, {
    server: {
      name: hostname(),
      host: '0.0.0.0',
      barePaths: false,
      cors: { origins: [] },
      overload: {
        enabled: true,
        maxInflight: 10_000,
        delayMs: [100, 250, 500],
        heapShare: [0.8, 0.88, 0.93],
        openFilesShare: [0.8, 0.9, 0.95],
        riseMs: 1_000,
        holdMs: 5_000,
      },
      port: 8080,
      opsHost: '127.0.0.1',
      opsPort: 9464,
      opsHosts: [],
      workers: availableParallelism(),
      drainMs: 30_000,
      maxBodyBytes: 33_554_432,
      maxUploadBytes: 2_147_483_648,
      uploadHoldBytes: 26_214_400,
      maxConnections: 10_000,
      headersTimeoutMs: 10_000,
      keepAliveMs: 65_000,
      clientStallMs: 60_000,
      trustedProxies: [],
      tls: null,
      adminToken: null,
    },
    store: 'sqlite:/etc/sluice/data/sluice.db',
    auth: { acceptImportedKeys: false, freshSeconds: 30, staleSeconds: 300 },
    identity: [],
    login: null,
    adminApi: { enabled: false, listen: 'data' },
    smtp: null,
    responses: { storeSeconds: 3600, websocket: true },
    escrow: {
      enabled: true,
      key: null,
      ttlSeconds: 14_400,
      maxEntries: 100_000,
      maxBytes: 268_435_456,
      memoryBytes: 16_777_216,
    },
    dashboard: {
      enabled: true,
      publicUrl: null,
      selfSignUp: false,
      grafanaUrl: null,
      groupSessionHours: 12,
      oidc: null,
    },
    log: { level: 'info', sampleSuccess: 1, slowMs: 10_000, file: null },
    metrics: { labels: [] },
    telemetry: { otlp: null, captureContent: false },
    notify: [],
    docUrl: null,
    onLoss: 'report',
    afterDisconnect: { maxStreams: 100, maxStreamsPerKey: 10, maxMs: 120_000 },
    ledger: {
      keepDays: 30,
      hoursDays: 90,
      daysDays: 1_100,
      maxMemory: 0.5,
      spool: '/etc/sluice/data/spool',
      spoolMaxBytes: 268_435_456,
      errorMessages: true,
      whenFull: 'refuse',
    },
    allowSyntheticUser: false,
    fetchMedia: {
      enabled: false,
      maxBytes: 10_485_760,
      maxPerRequest: 16,
      timeoutMs: 10_000,
      concurrency: 8,
      allowPrivateAddress: false,
    },
    record: null,
    files: null,
    batches: { pollMs: 15_000, maxOpenPerAccount: 50, queue: { concurrency: 4, upstreams: {} } },
    cache: { memoryBytes: 67_108_864, store: false },
    archive: null,
    dimensions: [],
    upstreams: {
      openai: {
        name: 'openai',
        preset: null,
        dialect: 'openai',
        platform: null,
        auth: null,
        anthropicVersion: null,
        baseUrl: 'https://api.openai.com/v1',
        path: null,
        query: {},
        keyHeader: null,
        apiKeys: ['secret'],
        apiKeySource: 'KEY',
        unsetKeyVariables: [],
        headers: {},
        timeouts: {
          connectMs: 3_000,
          firstByteMs: 60_000,
          firstByteWholeMs: 300_000,
          idleMs: 60_000,
          totalMs: 900_000,
        },
        maxConnections: 1_024,
        allowPrivateAddress: false,
        tls: null,
        http2: false,
        proxy: 'env',
        native: { rules: [], nanoUsdPerRequest: null, sharing: 'account', guardrails: null },
        quirks: PLAIN,
        models: [],
        discover: false,
        embeddingQuirks: PLAIN,
        completions: false,
        operations: {
          rerank: 'none',
          moderations: 'openai',
          images: 'openai',
          image_edits: 'openai',
          transcriptions: 'openai',
          translations: 'openai',
          speech: 'openai',
        },
        batch: 'openai',
        prices: {},
        vendorPrices: {},
        vendorLimits: {},
        onDisconnect: null,
        breaker: { failures: 5, errorRate: 0.5, minRequests: 20, windowMs: 10_000, openMs: 30_000 },
        probe: null,
        allowBetas: null,
        allowBuckets: [],
        allowTools: null,
      },
    },
    routes: [
      {
        match: { prefix: 'gpt-' },
        strip: '',
        when: null,
        targets: [{ upstream: 'openai', model: null, weight: 1, abort: null }],
        sticky: 'none',
        balance: 'weighted',
        fallback: [],
        retry: { attempts: 1, budget: 0, maxWaitMs: 0, nonIdempotent: false },
        hedge: null,
        shadow: null,
        cache: null,
        cacheControl: null,
        guardrails: [],
      },
    ],
    guardrails: [],
    plugins: [],
    plans: {
      starter: { priceUsd: 20, maxKeys: 5, limits: {} },
      pro: { priceUsd: 50, maxKeys: 20, limits: {} },
      max: { priceUsd: 100, maxKeys: null, limits: {} },
    },
    limits: [],
    limiting: {
      unknownPrice: 'assume',
      assumedPrice: { input: 10, output: 50, call: 0.05 },
      unseenInput: 'reserve',
      unseenInputTokens: {},
      childPlans: null,
      unknownLength: 8192,
      unknownAudioSeconds: 14_400,
      assumedOutputTokens: 4_096,
      budgetStatus: 402,
      away: {
        processes: availableParallelism(),
        budgetShare: 0.01,
        budgetNanoUsd: 1_000_000_000,
      },
    },
  })
  t.end()
})

void t.test('every setting of the file is read', (t) => {
  const config = configOf(`
server: { port: 0, workers: 3, drain_ms: 0 }
store: sqlite:/var/lib/sluice/sluice.db
auth: { fresh_seconds: 1, stale_seconds: 0 }
escrow: { enabled: false, key: \${KEY}-and-twenty-six-characters, ttl_seconds: 3600, memory_bytes: 0 }
log: { level: debug }
on_loss: reject
upstreams:
  local:
    dialect: openai-chat
    base_url: http://127.0.0.1:11434/v1//
    headers: { x-team: a }
    timeouts: { idle_ms: 5 }
    quirks: { drop: [store], rename: { a: b }, set: { c: [1, { d: null }] } }
routes:
  - { model: o1, targets: [{ upstream: local, weight: 3, model: llama }] }
plans: { pro: { price_usd: 49.5, max_keys: unlimited, limits: { usd_per_day: 0.1 } } }
limits:
  - { scope: key, plan: pro, prefix: claude-, requests_per_minute: 60, usd_per_month: 12.5 }
limiting: { unknown_price: allow, away: { budget_usd: 0 } }
`)
  t.match(config, {
    server: { port: 0, workers: 3, drainMs: 0, opsPort: 9464 },
    store: 'sqlite:/var/lib/sluice/sluice.db',
    auth: { acceptImportedKeys: false, freshSeconds: 1, staleSeconds: 0 },
    escrow: {
      enabled: false,
      key: 'secret-and-twenty-six-characters',
      ttlSeconds: 3_600,
      memoryBytes: 0,
    },
    log: { level: 'debug' },
    onLoss: 'reject',
    routes: [{ match: { model: 'o1' }, targets: [{ upstream: 'local', weight: 3, model: 'llama' }] }],
    plans: {
      pro: { priceUsd: 49.5, maxKeys: null, limits: { nanoUsdPerDay: 100_000_000 } },
      starter: { priceUsd: 20 },
    },
    limiting: { unknownPrice: 'allow', away: { processes: 3, budgetNanoUsd: 0 } },
  })
  t.same(config.limits, [
    {
      scope: 'key',
      plan: 'pro',
      account: null,
      key: null,
      value: null,
      model: null,
      prefix: 'claude-',
      upstream: null,
      amounts: { requestsPerMinute: 60, nanoUsdPerMonth: 12_500_000_000 },
    },
  ])
  t.match(config.upstreams['local'], {
    baseUrl: 'http://127.0.0.1:11434/v1',
    apiKeys: [],
    apiKeySource: null,
    headers: { 'x-team': 'a' },
    timeouts: { idleMs: 5, connectMs: 3_000 },
    quirks: { drop: ['store'], rename: { a: 'b' }, set: { c: [1, { d: null }] } },
  })
  t.end()
})

void t.test('allow_private_address defaults to true for private addresses only', (t) => {
  const allowed = (url: string, more = ''): boolean | undefined => {
    const text = changed('https://api.openai.com/v1', `"${url}"${more}`)
    return configOf(text).upstreams['openai']?.allowPrivateAddress
  }
  const own = ['localhost', 'a.localhost', '127.0.0.1', '127.9.9.9', '10.0.0.1', '192.168.1.1']
  const others = ['172.16.0.1', '172.31.9.9', '169.254.1.1', '100.64.0.1', '0.0.0.0', '2130706433']
  const six = ['[::1]', '[::]', '[fd00::1]', '[fe80::1]', '[::ffff:10.0.0.1]']
  for (const host of [...own, ...others, ...six]) t.equal(allowed(`http://${host}:80/v1`), true, host)
  const far = ['8.8.8.8', '172.15.0.1', '172.32.0.1', '100.128.0.1', '192.169.0.1', 'example.com']
  for (const host of [...far, 'localhost.com', '[2606:4700::1]', '[::ffff:8.8.8.8]']) {
    t.equal(allowed(`http://${host}/v1`), false, host)
  }
  t.equal(allowed('http://10.0.0.1/', '\n    allow_private_address: false'), false)
  t.equal(allowed('http://intern/', '\n    allow_private_address: true'), true)
  t.end()
})

void t.test('an upstream is unconfigured only if the variable of its key is not set', (t) => {
  const upstream = (text: string, env: Env) => configOf(text, env).upstreams['openai']
  for (const env of [{}, { KEY: '' }, { KEY: ' ' }, { KEY: undefined }]) {
    const unset = upstream(GOOD, env)
    t.match(unset, { apiKeys: [], apiKeySource: 'KEY', unsetKeyVariables: ['KEY'] })
    t.equal(unset !== undefined && isConfigured(unset), false)
  }
  const without = upstream(changed('    api_key: ${KEY}\n', ''), {})
  t.match(without, { apiKeys: [], apiKeySource: null })
  t.equal(without !== undefined && isConfigured(without), true)
  t.match(upstream(changed('${KEY}', 'in-the-file'), {}), {
    apiKeys: ['in-the-file'],
    apiKeySource: null,
  })
  t.end()
})

void t.test('placeholders are variables or files; one text may have several, and escapes', (t) => {
  const files = { '/run/key': ' from file \n', '/etc/sluice/rel': 'near' }
  const header = (text: string, env: Env = {}) => {
    const at = changed('    api_key: ${KEY}\n', `    headers: { x: ${text} }\n`)
    return configOf(at, env, files).upstreams['openai']?.headers['x']
  }
  t.equal(header('"${A}"', { A: 'a' }), 'a')
  t.equal(header('"<${A}-${B}>"', { A: 'a', B: 'b' }), '<a-b>')
  t.equal(header('"${file:/run/key}"'), 'from file')
  t.equal(header('"${file:rel}"'), 'near')
  t.equal(header('"$${A}"'), '${A}')
  t.equal(header('"$A $"'), '$A $')
  t.equal(header('"${A}"', { A: '${B}: [x]' }), '${B}: [x]', 'values are not searched for placeholders')
  t.end()
})

void t.test('a placeholder may supply a number or an enumerated word', (t) => {
  const text = `${GOOD}server: { port: \${PORT}, workers: \${WORKERS} }\n`
  const env = { KEY: '12345', PORT: '8443', WORKERS: 'auto' }
  const config = configOf(text, env)
  t.equal(config.server.port, 8443)
  t.equal(config.server.workers, availableParallelism())
  t.equal(config.upstreams['openai']?.apiKeys[0], '12345', 'a key of digits stays text')
  const messageFor = (port: string) => problemsOf(text, { ...env, PORT: port })[0]
  t.equal(messageFor('http'), '/etc/sluice/gateway.yaml:8:17: server.port: must be a number')
  t.equal(messageFor('99999'), '/etc/sluice/gateway.yaml:8:17: server.port: must be at most 65535')
  t.equal(messageFor('1e308'), '/etc/sluice/gateway.yaml:8:17: server.port: must be at most 9007199254740991')
  t.equal(
    problemsOf(text, { ...env, WORKERS: '2' })[0],
    undefined,
    'a number in a setting that is a word or a number',
  )
  t.end()
})

void t.test('a placeholder without a value is reported by name', (t) => {
  const at = (text: string, files = {}) => problemsOf(`${GOOD}store: ${text}\n`, {}, files)[0]
  const place = '/etc/sluice/gateway.yaml:8:8: store: '
  t.equal(at('sqlite:${DIR}'), `${place}the environment variable DIR is not set or empty`)
  t.equal(problemsOf(`${GOOD}server: { port: "\${P}", host: "\${P}" }\n`, {}).length, 2, 'once each')
  t.equal(at('"${file:/no}"'), `${place}the file "/no" does not exist`)
  t.match(at('"${file:/}"'), /the file "\/" is a folder/)
  t.equal(at('"${file:/e}"', { '/e': ' \n' }), `${place}the file "/e" is empty`)
  t.equal(at('"${A"'), `${place}contains $\{ without a closing brace`)
  t.equal(at('"${}"'), `${place}contains an invalid placeholder: use $\{NAME} or $\{file:PATH}`)
  t.equal(at('"${A:-b}"'), `${place}contains an invalid placeholder: use $\{NAME} or $\{file:PATH}`)
  t.match(
    problemsOf(changed('${KEY}', '${file:/no}'))[0],
    /:5:14: upstreams.openai.api_key: the file "\/no" does not exist/,
    'the file of a key must exist (I-137)',
  )
  t.match(
    problemsOf(changed('api_key: ${KEY}', 'quirks: { set: { a: "${KEY}" } }'))[0],
    /:5:25: upstreams.openai.quirks.set.a: must not contain a placeholder: placeholders are not replaced under quirks/,
  )
  t.end()
})

void t.test('no secret appears in an error', (t) => {
  const canary = 'sk-canary-7d1f'
  const texts = [
    changed('dialect: openai', 'dialect: ${KEY}'),
    changed('upstream: openai', 'upstream: ${KEY}'),
    changed('base_url: https://api.openai.com/v1', 'base_url: ${KEY}'),
    changed('api_key: ${KEY}', 'api_key: "${KEY} x"'),
    changed('api_key: ${KEY}', `api_key: *${canary}`),
    changed('api_key: ${KEY}', `api_key: !${canary} x`),
    changed('api_key: ${KEY}', `api_key: "${canary}\n`),
    changed('api_key: ${KEY}', `api_key: [${canary}\n`),
    changed('api_key: ${KEY}', `api_key: @${canary}`),
    changed('api_key: ${KEY}', `api_key: { ${canary}: 1 }`),
    changed('api_key: ${KEY}', `api_key: "a" ${canary}`),
    changed('api_key: ${KEY}', `api_key: | ${canary}\n`),
    changed('api_key: ${KEY}', canary),
    `${GOOD}server: { port: \${KEY}, workers: \${KEY}, host: [\${KEY}] }\nlog: { level: \${KEY} }\n`,
    `${GOOD}plans: { max: { max_keys: \${KEY} } }\nlimits: \${KEY}\nstore: \${KEY}\n`,
  ]
  for (const text of texts) {
    const problems = problemsOf(text, { KEY: canary })
    t.ok(problems.length > 0, text)
    t.notMatch(problems.join('\n'), canary, text)
  }
  t.end()
})

void t.test('a file that names a plan of its own has exactly the plans that it names', (t) => {
  const { plans } = configOf(`${GOOD}plans: { gold: { price_usd: 9 }, pro: { max_keys: 3 } }\n`)
  t.same(plans, {
    gold: { priceUsd: 9, isPriceSet: true, maxKeys: null, limits: {} },
    pro: { priceUsd: 50, maxKeys: 3, limits: {} },
  })
  t.same(Object.keys(configOf(`${GOOD}plans: { only: {} }\n`).plans), ['only'])
  t.same(Object.keys(configOf(`${GOOD}plans: { max: {} }\n`).plans), ['starter', 'pro', 'max'])
  const many = Array.from({ length: 100 }, (_, at) => `plan-${at}: {}`).join(', ')
  t.equal(Object.keys(configOf(`${GOOD}plans: { ${many} }\n`).plans).length, 100)
  t.end()
})

void t.test('aliases share text; one inside itself is refused', (t) => {
  const text = `${GOOD}  - &r { model: o1, upstream: openai }\n`
  t.equal(configOf(text).routes.length, 2)
  t.match(problemsOf(`${GOOD}limits: &l [*l]\n`)[0], /nested more than 64 levels deep/)
  t.match(problemsOf(`${GOOD}limits: ${'['.repeat(70)}${']'.repeat(70)}\n`)[0], /nested/)
  t.end()
})

void t.test('a byte order mark and CRLF line ends are accepted', (t) => {
  const folder = t.testdir({
    'gateway.yaml': `\uFEFF${GOOD.replaceAll('\n', '\r\n')}`,
    'models.yaml': MODELS,
  })
  const loaded = loadConfig(join(folder, 'gateway.yaml'), {})
  t.equal(loaded.ok, true)
  t.end()
})

void t.test('files that cannot be read or are too large are refused', (t) => {
  const folder = t.testdir({ 'models.yaml': MODELS })
  const file = join(folder, 'gateway.yaml')
  const errors = () => {
    const loaded = loadConfig(file, {})
    return loaded.ok ? [] : loaded.errors
  }
  t.match(errors(), [{ file, line: 1, column: 1, message: /does not exist/ }])
  writeFileSync(file, `${GOOD}#${'x'.repeat(4 * 1024 * 1024)}`)
  t.match(errors(), [{ message: /larger than 4 MiB/ }])
  writeFileSync(file, GOOD)
  t.same(errors(), [])
  writeFileSync(join(folder, 'models.yaml'), `${MODELS}#${'x'.repeat(4 * 1024 * 1024)}`)
  t.match(errors(), [{ path: 'models', message: /larger than 4 MiB/ }])
  t.end()
})
