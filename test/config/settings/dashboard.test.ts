/**
 * Goal: the section `dashboard` is read as documented, and each error names its setting.
 * Method: files with different sections, loaded from disk.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isLoopback } from '../../../src/http/private-addresses.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { createSnapshot } from '../../../src/config/create-snapshot.js'
import { maskedConfig } from '../../../src/config/masked-config.js'

function load(t: Test, section: string) {
  const folder = t.testdir()
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'models.yaml'), 'as_of: 2026-11-20\nmodels: [{ id: m, family: openai }]\n')
  const file = join(folder, 'gateway.yaml')
  writeFileSync(
    file,
    `upstreams: { a: { dialect: openai, base_url: 'https://api.example.com/v1' } }
routes: [{ prefix: m, upstream: a }]
dashboard: ${section}
`,
  )
  return loadConfig(file, { SECRET: 'hunter-two-hunter-two' })
}

const OIDC = 'oidc: { issuer: "https://id.example.com", client_id: sluice'

void t.test('every setting of the section is read', (t) => {
  const loaded = load(
    t,
    `{ public_url: "https://llm.example.com/", grafana_url: "http://g/d/x", ${OIDC}, client_secret: "\${SECRET}", name: Acme, create_accounts: true } }`,
  )
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  t.strictSame(loaded.config.dashboard, {
    enabled: true,
    publicUrl: 'https://llm.example.com',
    selfSignUp: false,
    grafanaUrl: 'http://g/d/x',
    groupSessionHours: 12,
    oidc: {
      issuer: 'https://id.example.com',
      clientId: 'sluice',
      clientSecret: 'hunter-two-hunter-two',
      name: 'Acme',
      createAccounts: true,
      roles: null,
    },
  })
  const shown = maskedConfig(createSnapshot(loaded, { generation: 1, loadedAtMs: 0 }))
  t.match(shown['dashboard'], {
    public_url: 'https://llm.example.com',
    oidc: { client_id: 'sluice', client_secret: /^\*\*\*[0-9a-f]{4}$/ },
  })
  t.notMatch(JSON.stringify(shown), 'hunter')
  t.end()
})

const REFUSED: readonly [section: string, path: string, message: RegExp][] = [
  ['{ group_session_hours: 0 }', 'dashboard.group_session_hours', /greater|above|0/],
  ['{ group_session_hours: 13 }', 'dashboard.group_session_hours', /12/],
  ['{ public_url: nowhere }', 'dashboard.public_url', /https:\/\/ or http:\/\//],
  ['{ public_url: "ftp://a" }', 'dashboard.public_url', /https:\/\/ or http:\/\//],
  ['{ public_url: "https://u:p@a" }', 'dashboard.public_url', /https:\/\/ or http:\/\//],
  ['{ public_url: "https://a/dashboard" }', 'dashboard.public_url', /no path/],
  ['{ public_url: "https://a/?b" }', 'dashboard.public_url', /no path/],
  ['{ grafana_url: "javascript:alert(1)" }', 'dashboard.grafana_url', /https:\/\/ or http:\/\//],
  [`{ ${OIDC} } }`, 'dashboard.public_url', /required with oidc/],
  [
    '{ public_url: "https://a", oidc: { issuer: "http://id.example.com", client_id: x } }',
    'dashboard.oidc.issuer',
    /https/,
  ],
  ['{ public_url: "https://a", oidc: { client_id: x } }', 'dashboard.oidc.issuer', /required/],
  [
    `{ public_url: "https://a", self_sign_up: true, ${OIDC} } }`,
    'dashboard.self_sign_up',
    /must be false with oidc/,
  ],
  ['{ self_signup: true }', 'dashboard.self_signup', /self_sign_up/],
]

void t.test('each invalid setting is reported by name', (t) => {
  for (const [section, path, message] of REFUSED) {
    const loaded = load(t, section)
    const found = loaded.ok ? [] : loaded.errors
    t.match(JSON.stringify(found), message, section)
    t.match(JSON.stringify(found), path.split('.').at(-1), section)
  }
  const local = load(
    t,
    '{ public_url: "http://127.0.0.1:1", oidc: { issuer: "http://127.0.0.1:2", client_id: x } }',
  )
  t.ok(local.ok, 'http is accepted for loopback addresses')
  t.end()
})

void t.test('loopback addresses are recognized', (t) => {
  for (const host of ['localhost', 'a.LOCALHOST', '127.0.0.1', '127.9.9.9', '[::1]', '::1']) {
    t.ok(isLoopback(host), host)
  }
  for (const host of ['example.com', 'localhost.com', '128.0.0.1', '127.0.0.1.com', '10.0.0.1']) {
    t.notOk(isLoopback(host), host)
  }
  t.end()
})
