/** Goal: mistakes in the `server` section are named. Method: files that have one mistake each. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load-config.js'
import { formatProblem } from '../../../src/config/config-problem.js'
import { inForce, needsRestart } from '../../../src/config/generations/diff-configs.js'
import { createSnapshot } from '../../../src/config/create-snapshot.js'
import { newAuthority, newPair } from '../../helpers/certificates.js'

const REST = `
models: models.yaml
upstreams: { one: { dialect: openai-chat, base_url: 'https://example.com/v1', api_key: x } }
routes: [ { prefix: gpt-, upstream: one } ]
`

void t.test('invalid certificate files and networks are reported', (t) => {
  const folder = t.testdir({ 'junk.pem': 'junk' })
  copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
  const authority = newAuthority(folder, 'authority')
  newPair(folder, 'one', { authority })
  newPair(folder, 'two', { authority })
  const load = (server: string) => {
    writeFileSync(join(folder, 'gateway.yaml'), `server: { ${server} }${REST}`)
    return loadConfig(join(folder, 'gateway.yaml'), {})
  }
  const wrong: Record<string, RegExp> = {
    'tls: { cert: none.pem, key: one.key }': /server\.tls\.cert.*".*none\.pem" does not exist/,
    'tls: { cert: one.pem, key: junk.pem }': /server\.tls\.key.*junk\.pem" is not a PEM private key/,
    'tls: { cert: junk.pem, key: one.key }': /server\.tls\.cert.*junk\.pem" is not a PEM certificate/,
    'tls: { cert: one.pem, key: two.key }': /two\.key" does not belong to the certificate ".*one\.pem"/,
    'tls: { cert: one.pem, key: one.key, client_ca: junk.pem }':
      /server\.tls\.client_ca.*not a PEM certificate/,
    'tls: { cert: one.pem }': /server\.tls\.key/,
    'trusted_proxies: [10.0.0.0/33]': /server\.trusted_proxies\[0\].*CIDR/,
    'trusted_proxies: [proxy.example.com]': /CIDR/,
    'client_stall_ms: 0': /server\.client_stall_ms/,
    "cors: { origins: ['https://app.example.com/'] }": /server\.cors\.origins\[0\].*origin/,
    'cors: { origins: [app.example.com] }': /server\.cors\.origins\[0\].*origin/,
    "cors: { origin: ['*'] }": /server\.cors.*origin/,
  }
  for (const [server, message] of Object.entries(wrong)) {
    const loaded = load(server)
    t.notOk(loaded.ok, server)
    if (!loaded.ok) t.match(loaded.errors.map(formatProblem).join('\n'), message, server)
  }
  const good = load('tls: { cert: one.pem, key: one.key }, trusted_proxies: [10.0.0.0/8, "::1"]')
  const plain = load('port: 8080')
  if (!good.ok || !plain.ok) throw new Error('the file does not load')
  const [before, after] = [
    createSnapshot(plain, { generation: 1, loadedAtMs: 0 }).config,
    createSnapshot(good, { generation: 2, loadedAtMs: 0 }).config,
  ]
  t.equal(after.server.tls?.cert, join(folder, 'one.pem'), 'relative to the file')
  t.same(needsRestart(before, after), ['server.tls'])
  t.end()
})

void t.test('recordings wait for a restart with the key that seals them', (t) => {
  const folder = t.testdir()
  copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
  const load = (lines: string) => {
    writeFileSync(join(folder, 'gateway.yaml'), `${lines}${REST}`)
    const result = loadConfig(join(folder, 'gateway.yaml'), {})
    if (!result.ok) throw new Error(result.errors.map(formatProblem).join('\n'))
    return createSnapshot(result, { generation: 1, loadedAtMs: 0 }).config
  }
  const record = 'record: { when: { models: [gpt-5.4] } }\n'
  const [none, key] = ['', 'escrow: { key: 0f4c9b1e7d2a85c36f10e9d8b7a6c5f4 }\n']
  const next = load(key + record)
  t.same(needsRestart(load(none), next), ['escrow.key', 'record'])
  t.equal(inForce(load(none), next).record, null)
  t.same(needsRestart(load(key), next), [])
  t.same(inForce(load(key), next).record, next.record)
  t.end()
})
