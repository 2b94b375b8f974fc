/**
 * Goal: the section `identity` is read as documented, claims are no environment variables, and each error
 * names its setting.
 * Method: files with different sections, loaded from disk.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createSnapshot } from '../../../src/config/create-snapshot.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { maskedConfig } from '../../../src/config/masked-config.js'

function load(t: Test, section: string) {
  const folder = t.testdir({
    'models.yaml': 'as_of: 2026-11-20\nmodels: [{ id: m, family: openai }]\n',
    'keys.json': '{"keys":[]}',
    'wrong.json': '[]',
  })
  const file = join(folder, 'gateway.yaml')
  writeFileSync(
    file,
    `upstreams: { a: { dialect: openai, base_url: 'https://api.example.com/v1' } }
routes: [{ prefix: m, upstream: a }]
identity:
${section}
`,
  )
  return { folder, loaded: loadConfig(file, { TEAM: 'blue' }) }
}

const LEAST = "issuer: 'https://id.example.com', audience: [sluice], account: x"

void t.test('every setting of the section is read', (t) => {
  const { loaded, folder } = load(
    t,
    `  - name: kubernetes
    issuer: https://kubernetes.default.svc
    audience: [sluice]
    account: '\${claims.kubernetes.io/namespace}'
    key_name: '\${claims.sub}-\${TEAM}'
    models: [gpt-*, claude-*]
    labels: { app: '\${claims.app}' }
    limits: { requests_per_minute: 300, usd_per_day: 20 }
    require: { 'claims.env': prod, 'claims.a/b': [x, 'y'] }
  - { name: ci, ${LEAST}, jwks_file: keys.json, label: a=b=c, jwks: { max_age_seconds: 10, cooldown_seconds: 0, stale_seconds: 60 } }
  - { name: table, issuer: 'any text', audience: [a], jwks_uri: 'http://127.0.0.1:1/keys', account: { from: '\${claims.team}', map: { team-a: research } } }`,
  )
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const { identity } = loaded.config
  t.same(identity[0], {
    name: 'kubernetes',
    issuer: 'https://kubernetes.default.svc',
    audience: ['sluice'],
    account: '${claims.kubernetes.io/namespace}',
    key_name: '${claims.sub}-blue',
    models: ['gpt-*', 'claude-*'],
    labels: { app: '${claims.app}' },
    limits: { requestsPerMinute: 300, nanoUsdPerDay: 20e9 },
    require: { 'claims.env': 'prod', 'claims.a/b': ['x', 'y'] },
    jwks: { max_age_seconds: 300, cooldown_seconds: 5, stale_seconds: 86_400 },
  })
  t.match(identity[1], { label: 'a=b=c', key_name: '${claims.sub}', jwks_file: join(folder, 'keys.json') })
  t.match(identity[1]?.jwks, { max_age_seconds: 10, cooldown_seconds: 0, stale_seconds: 60 })
  t.same(identity[2]?.account, { from: '${claims.team}', map: { 'team-a': 'research' } })
  const snapshot = createSnapshot(loaded, { generation: 1, loadedAtMs: 0 })
  t.match(maskedConfig(snapshot)['identity'], [{ name: 'kubernetes' }, {}, {}])
  t.end()
})

void t.test('mistakes are named with their place', (t) => {
  const entry = (more: string): string => `  - { name: a, ${more} }`
  const wrong: [section: string, path: string, message: RegExp][] = [
    [entry(`${LEAST}, aud: x`), 'identity[0].aud', /Unknown key/],
    [entry("issuer: 'https://a', account: x"), 'identity[0].audience', /./],
    [entry("issuer: 'https://a', account: x, audience: []"), 'identity[0].audience', /./],
    [entry(LEAST.replace('https', 'http')), 'identity[0].issuer', /https/],
    [entry(LEAST.replace('https://id.example.com', 'text')), 'identity[0].issuer', /jwks_uri/],
    [entry(`${LEAST}, jwks_uri: 'http://a/keys'`), 'identity[0].jwks_uri', /loopback/],
    [entry(`${LEAST}, jwks_uri: 'https://u:p@a/k'`), 'identity[0].jwks_uri', /https/],
    [entry(`${LEAST}, jwks_file: none.json`), 'identity[0].jwks_file', /does not exist/],
    [entry(`${LEAST}, jwks_file: wrong.json`), 'identity[0].jwks_file', /keys/],
    [entry(`${LEAST}, jwks_file: keys.json, jwks_uri: 'https://a/k'`), 'identity[0].jwks_file', /together/],
    [entry(`${LEAST}, key_name: '\${claims.}'`), 'identity[0].key_name', /claims/],
    [entry(`${LEAST}, key_name: '\${claims.a'`), 'identity[0].key_name', /brace/],
    [entry(`${LEAST}, labels: { Team: x }`), 'identity[0].labels.Team', /./],
    [entry(`${LEAST}, label: workloads`), 'identity[0].label', /NAME=VALUE/],
    [entry(`${LEAST}, require: { env: prod }`), 'identity[0].require.env', /claims\.env/],
    [entry(`${LEAST}, limits: { rpm: 3 }`), 'identity[0].limits.rpm', /Unknown key/],
    [entry(`${LEAST}, key_name: '\${UNSET}'`), 'identity[0].key_name', /UNSET/],
    [`${entry(LEAST)}\n${entry(LEAST)}`, 'identity[1].name', /duplicate/],
    [
      `${entry(LEAST)}\n${entry(LEAST.replace('[sluice]', '[x, sluice]')).replace('name: a', 'name: b')}`,
      'identity[1].audience[1]',
      /"a"/,
    ],
  ]
  for (const [section, path, message] of wrong) {
    const { loaded } = load(t, section)
    const [error] = loaded.ok ? [] : loaded.errors
    t.match(error, { path, message }, section)
    t.ok(error === undefined || error.line >= 4)
  }
  t.ok(load(t, entry(LEAST.replace('https', 'http').replace('id.example.com', 'localhost:1'))).loaded.ok)
  t.end()
})
