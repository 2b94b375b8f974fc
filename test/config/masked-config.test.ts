/**
 * Goal (M-198): the configuration on the ops port has every setting and no secret.
 * Method: a configuration with a canary for each secret; the output is searched.
 */
import t from 'tap'
import { needsRestart } from '../../src/config/generations/diff-configs.js'
import { createSnapshot } from '../../src/config/create-snapshot.js'
import { masked, maskedConfig } from '../../src/config/masked-config.js'
import { GOOD, loadText } from './sample.js'

const CANARY = 'sk-canary-91c2'

const loaded = loadText(
  `
upstreams:
  a:
    dialect: openai
    base_url: https://a.example/v1
    api_key: \${KEY}
    headers: { x-secret: \${KEY}, x-part: "Bearer \${KEY}" }
    quirks: { drop: [x], rename: { from: to }, set: { user: ${CANARY}, n: 1, deep: [{ s: ${CANARY} }] } }
  b: { dialect: gemini, base_url: https://b.example, api_key: \${NONE} }
escrow: { key: \${KEY}-and-more-to-be-long-enough-for-a-key }
routes:
  - { prefix: gpt-, upstream: a }
  - { model: fast, targets: [{ upstream: b, model: gemini-x }], when: { labels: { someTeam: a }, min_prompt_tokens: 5 } }
`,
  { KEY: CANARY },
)
if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
const shown = maskedConfig(createSnapshot(loaded, { generation: 7, loadedAtMs: 1_800_000_000_000 }))

void t.test('no secret is shown', (t) => {
  t.notMatch(JSON.stringify(shown), CANARY)
  t.end()
})

void t.test('settings have their names of the file', (t) => {
  t.match(shown, {
    generation: 7,
    file_hash: loaded.fileHash,
    loaded_at: '2027-01-15T08:00:00.000Z',
    server: { port: 8080, ops_host: '127.0.0.1', max_body_bytes: 33_554_432 },
    store: 'sqlite:/etc/sluice/data/sluice.db',
    auth: { fresh_seconds: 30 },
    escrow: { enabled: true, key: /^\*\*\*[0-9a-f]{4}$/, ttl_seconds: 14_400 },
    log: { level: 'info' },
    on_loss: 'report',
    allow_synthetic_user: false,
    fetch_media: { enabled: false, allow_private_address: false, max_per_request: 16 },
    upstreams: {
      a: {
        configured: true,
        api_keys: [masked(CANARY)],
        api_key_source: 'KEY',
        headers: { 'x-secret': masked(CANARY) },
        breaker: { failures: 5, error_rate: 0.5, window_seconds: 10, open_seconds: 30 },
        probe: null,
        timeouts: { first_byte_ms: 60_000 },
        quirks: { drop: ['x'], rename: { from: 'to' }, set: { user: masked(CANARY), n: 1 } },
      },
      b: { configured: false, api_keys: [], api_key_source: 'NONE' },
    },
    routes: [
      { prefix: 'gpt-', when: null, targets: [{ upstream: 'a', model: null, weight: 1 }] },
      {
        model: 'fast',
        targets: [{ upstream: 'b', model: 'gemini-x' }],
        when: { labels: { someTeam: 'a' }, images: null, min_prompt_tokens: 5 },
        retry: { attempts: 1, max_wait_ms: 0 },
      },
    ],
    plans: { max: { price_usd: 100, max_keys: 'unlimited' } },
    models: 1,
  })
  t.end()
})

void t.test('a mask is stars and four characters that identify the secret', (t) => {
  t.match(masked(CANARY), /^\*\*\*[0-9a-f]{4}$/)
  t.equal(masked(CANARY), masked(CANARY))
  t.not(masked(CANARY), masked('another'))
  t.end()
})

void t.test('settings that need a restart are listed (I-134)', (t) => {
  const config = (more: string) => {
    const result = loadText(`${GOOD}${more}`)
    if (!result.ok) throw new Error(JSON.stringify(result.errors))
    return result.config
  }
  const running = config('')
  t.same(needsRestart(running, config('on_loss: reject\nserver: { drain_ms: 1 }\n')), [])
  t.same(
    needsRestart(
      running,
      config(
        'store: sqlite:x\nescrow: { key: 0123456789abcdef0123456789abcdef }\nlog: { level: warn }\nserver: { port: 1, ops_host: a, workers: 99 }\n',
      ),
    ),
    ['server.port', 'server.ops_host', 'server.workers', 'log.level', 'store', 'escrow.key', 'ledger.spool'],
  )
  t.end()
})
