/**
 * Goal: the loader validates the proxy and TLS settings of an upstream, and the ops port shows them
 * without secrets.
 * Method: real certificates as files of the loader; the whole printed line is compared.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { createSnapshot } from '../../../src/config/create-snapshot.js'
import { masked, maskedConfig } from '../../../src/config/masked-config.js'
import { settingsOf } from '../../../src/gateway/upstreams/connection-pool.js'
import { newAuthority, newPair } from '../../helpers/certificates.js'
import { changed, loadText, problemsOf } from '../sample.js'

const LINE = 'base_url: https://api.openai.com/v1'
const folder = t.testdir()
const authority = newAuthority(folder, 'ca')
const client = newPair(folder, 'client', { authority })
const pem = (path: string): string => readFileSync(path, 'utf8')
const FILES = {
  '/etc/sluice/ca.pem': pem(authority.cert),
  '/etc/sluice/cert.pem': pem(client.cert),
  '/etc/sluice/key.pem': pem(client.key),
  '/etc/sluice/other.key': pem(authority.key),
  '/etc/sluice/text.pem': 'no certificate',
}

function problems(options: string, url = LINE): string[] {
  return problemsOf(changed(LINE, `${url}\n    ${options}`), { KEY: 'secret' }, FILES)
}

const AT = '/etc/sluice/gateway.yaml:5'

void t.test('each invalid setting is reported with its position', (t) => {
  t.same(problems('tls: { ca: ca.pem, cert: cert.pem, key: key.pem, server_name: api.internal }'), [])
  const cases: [string, string][] = [
    [
      'proxy: proxy.corp:3128',
      `:12: upstreams.openai.proxy: must be env, none or a URL, as in http://proxy.corp:3128`,
    ],
    [
      'proxy: socks5://proxy.corp',
      `:12: upstreams.openai.proxy: must be env, none or a URL, as in http://proxy.corp:3128`,
    ],
    ['http2: maybe', ':12: upstreams.openai.http2: must be true or false'],
    ['tls: { ca: gone.pem }', `:16: upstreams.openai.tls.ca: the file "gone.pem" does not exist`],
    ['tls: { ca: text.pem }', ':16: upstreams.openai.tls.ca: the file contains no PEM certificate'],
    ['tls: { cert: cert.pem }', ':10: upstreams.openai.tls: must have both cert and key, or neither'],
    [
      'tls: { cert: text.pem, key: key.pem }',
      ':18: upstreams.openai.tls.cert: the file contains no PEM certificate',
    ],
    [
      'tls: { cert: cert.pem, key: other.key }',
      ':33: upstreams.openai.tls.key: the file does not contain the PEM private key of cert',
    ],
    ['tls: { server_name: "a b" }', ':25: upstreams.openai.tls.server_name: must be a host name'],
    [
      'tls: { sni: a }',
      `:12: upstreams.openai.tls.sni: Unknown key "sni": use one of ca, cert, key, server_name`,
    ],
  ]
  for (const [options, line] of cases) t.same(problems(options), [AT + line], options)
  const plain = 'base_url: http://api.openai.com/v1'
  const needsTls = 'needs a base_url that starts with https://'
  t.same(problems('http2: true', plain), [`${AT}:12: upstreams.openai.http2: ${needsTls}`])
  t.same(problems('tls: { server_name: a }', plain), [`${AT}:10: upstreams.openai.tls: ${needsTls}`])
  t.end()
})

void t.test('the password of a proxy and a private key are not shown', (t) => {
  const options = 'tls: { cert: cert.pem, key: key.pem }\n    proxy: http://user:canary@proxy.corp:3128'
  const loaded = loadText(changed(LINE, `${LINE}\n    ${options}`), { KEY: 'secret' }, FILES)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const shown = maskedConfig(createSnapshot(loaded, { generation: 1, loadedAtMs: 0 }))
  t.notMatch(JSON.stringify(shown), /canary|PRIVATE/)
  t.match(shown, {
    upstreams: {
      openai: {
        proxy: `http://${masked('user:canary')}@proxy.corp:3128`,
        tls: { ca: null, key: masked(pem(client.key)), server_name: null },
        http2: false,
      },
    },
  })
  t.end()
})

void t.test('connections are kept while their settings do not change', (t) => {
  const settings = (options: string, files = FILES): string => {
    const loaded = loadText(changed(LINE, `${LINE}\n    ${options}`), { KEY: 'secret' }, files)
    const upstream = loaded.ok ? loaded.config.upstreams['openai'] : undefined
    if (upstream === undefined) throw new Error(`not loaded: ${options}`)
    return settingsOf(upstream)
  }
  const before = settings('tls: { ca: ca.pem }')
  t.equal(settings('tls: { ca: ca.pem }\n    headers: { a: b }'), before, 'another header')
  const renewed = { ...FILES, '/etc/sluice/ca.pem': pem(client.cert) }
  const others = [
    settings('tls: { ca: ca.pem }', renewed),
    settings('tls: { ca: ca.pem, server_name: a }'),
    settings('tls: { ca: ca.pem }\n    http2: true'),
    settings('tls: { ca: ca.pem }\n    proxy: none'),
    settings('tls: { ca: ca.pem }\n    max_connections: 3'),
  ]
  t.equal(new Set([before, ...others]).size, 6, 'each of these opens connections anew')
  t.end()
})
