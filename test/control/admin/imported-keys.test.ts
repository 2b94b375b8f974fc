/**
 * Goal: with `auth.accept_imported_keys`, apps keep the keys of another gateway, which `apply` imports by
 * their SHA-256; without it, such keys are refused without a lookup.
 * Method: documents on both stores, then requests with keys of many forms in every place of a key.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { newAdminSecret, newSecret } from '../../../src/accounts/key-secret.js'
import { onBothStores, startAdmin, type AdminStage } from './admin-stage.js'

const ON = 'auth: { accept_imported_keys: true, fresh_seconds: 0 }'

/** Keys as other gateways make them. */
const FOREIGN = [
  'sk-12345',
  `sk-${'a1B2'.repeat(6)}`,
  'sk_live_my-own-key',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln',
  'team/alpha:key=+~!',
  'x'.repeat(512),
]

function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

function documentsOf(secrets: readonly string[], imported: boolean): object[] {
  const keys = secrets.map((secret, at) => ({
    kind: 'Key',
    metadata: { name: `key ${at}`, account: 'apps' },
    spec: { secret_sha256: digest(secret), ...(imported ? { imported } : {}) },
  }))
  return [{ kind: 'Account', metadata: { name: 'apps' }, spec: { plan: 'max' } }, ...keys]
}

async function status({ gateway }: AdminStage, headers: Record<string, string>): Promise<number> {
  const reply = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'gpt-5.4', messages: [{ role: 'user', content: 'Hi' }] }),
  })
  await reply.arrayBuffer()
  return reply.status
}

onBothStores(t, 'keys of another gateway', async (t, settings) => {
  const stage = await startAdmin(t, { ...settings, more: ON, server: 'bare_paths: true' })
  const applied = await stage.ask('POST', '/apply', { body: { documents: documentsOf(FOREIGN, true) } })
  t.equal(applied.status, 200, applied.text)
  t.equal(applied.json['warnings'], undefined)
  const object = await stage.ask('GET', '/accounts/apps/keys/key%200')
  t.match(object.json, { imported: true, prefix: null, last_four: null, state: 'live' })
  for (const key of FOREIGN) {
    for (const headers of [
      { authorization: `Bearer ${key}` },
      { 'x-api-key': key },
      { 'x-goog-api-key': key },
      { 'api-key': key },
      { 'x-litellm-api-key': `Bearer ${key}` },
    ]) {
      t.equal(await status(stage, headers), 200, `${Object.keys(headers)[0]}: ${key.slice(0, 20)}`)
    }
  }
  const again = await stage.ask('POST', '/apply', {
    body: { documents: documentsOf(FOREIGN, true), dry_run: true },
  })
  t.match(again.json, { create: [], change: [], unchanged: FOREIGN.length + 1 })
  const unmarked = await stage.ask('POST', '/apply', { body: { documents: documentsOf(FOREIGN, false) } })
  t.match(unmarked.json, { change: FOREIGN.map(() => ({ changes: { imported: [true, false] } })) })
  t.equal(await status(stage, { 'x-api-key': FOREIGN[0] ?? '' }), 401, 'not marked')
  const own = newSecret()
  const ownKey = { kind: 'Key', metadata: { name: 'own', account: 'apps' } }
  const spec = { secret_sha256: digest(own), imported: true }
  await stage.ask('POST', '/apply', { body: { documents: [{ ...ownKey, spec }] } })
  t.equal(await status(stage, { 'x-api-key': own }), 200, 'a key of this form may be marked, too')
  const rotated = await stage.ask('POST', '/accounts/apps/keys/own/rotate')
  t.match(rotated.json, { imported: false }, 'its successor has a secret of this gateway')
})

onBothStores(t, 'without the setting', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const [key = ''] = FOREIGN
  const applied = await stage.ask('POST', '/apply', { body: { documents: documentsOf(FOREIGN, true) } })
  t.match(applied.json, { warnings: [/^auth\.accept_imported_keys is off: /], errors: [] })
  t.equal(await status(stage, { 'x-api-key': key }), 401)
  const { configFile } = stage.gateway
  const off = readFileSync(configFile, 'utf8')
  writeFileSync(configFile, `${off}\n${ON}\n`)
  stage.gateway.reload()
  t.equal(await status(stage, { authorization: `Bearer ${key}` }), 200, 'from the next generation on')
  writeFileSync(configFile, off)
  stage.gateway.reload()
  t.equal(await status(stage, { authorization: `Bearer ${key}` }), 401, 'a known header, too')
})

void t.test('forms', async (t) => {
  const stage = await startAdmin(t, { more: ON })
  const others = ['short-7', 'x'.repeat(513), newAdminSecret(), 'sk-unknown-key']
  await stage.ask('POST', '/apply', { body: { documents: documentsOf(others.slice(0, 3), true) } })
  for (const key of others) {
    t.equal(await status(stage, { 'x-api-key': key }), 401, `${key.slice(0, 12)} of ${key.length}`)
  }
  const bad = async (spec: object) => {
    const document = { kind: 'Key', metadata: { name: 'k', account: 'apps' }, spec }
    const reply = await stage.ask('POST', '/apply', { body: { documents: [document] } })
    return reply.text
  }
  t.match(await bad({ imported: true }), /imported: needs secret_sha256/)
  t.match(await bad({ imported: 'yes', secret_sha256: digest('x') }), /imported: must be true or false/)
  const put = await stage.ask('PUT', '/accounts/apps/keys/k', { body: { imported: true } })
  t.equal(put.status, 400, put.text)
})

void t.test('unknown keys are throttled', async (t) => {
  const stage = await startAdmin(t, { more: ON })
  let last = 401
  for (let at = 0; at < 200 && last === 401; at += 1) {
    last = await status(stage, { 'x-api-key': `sk-guess-${at}` })
  }
  t.equal(last, 429)
  t.equal(await status(stage, { 'x-api-key': stage.gateway.secret }), 200, 'a good key still works')
})
