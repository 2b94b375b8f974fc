/**
 * Goal: the message of each wrong setting states what is wrong, where, and what to do.
 * Method: configurations with one typical mistake each, in a folder with their other files; the message
 * starts with line and column. Placeholders are in capitals, names in straight double quotes.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load-config.js'
import { checkMessages, GOOD, OPENAI, routeWith, upstreamWith, type Mistake } from './mistakes.js'

const MISTAKES: readonly Mistake[] = [
  ['a misspelt key', `${GOOD}sever: {}\n`, '5:1: sever: Unknown key "sever" (did you mean "server"?)'],
  [
    'a key of another map',
    `${GOOD}server: { drain_ms: 1, weight: 1, cors: { allow: x } }\n`,
    '5:24: server.weight: Unknown key "weight"',
  ],
  ['a wrong type', `${GOOD}server: { port: many }\n`, '5:17: server.port: must be a number'],
  [
    'a wrong unit',
    `${GOOD}server: { drain_ms: 30s }\n`,
    '5:21: server.drain_ms: must be a number of milliseconds: 30000',
  ],
  ['a duplicate key', `${GOOD}log: {}\nlog: {}\n`, '6:1: Duplicate key "log" (lines 5 and 6)'],
  ['tabs', 'upstreams:\n\topenai: {}\n', '2:1: is not valid YAML: use spaces instead of tabs as indentation'],
  [
    'an unknown upstream',
    routeWith('prefix: gpt-, upstream: azure'),
    '4:31: routes[0].upstream: is not an upstream of this file: use one of openai',
  ],
  [
    'a route twice',
    `${GOOD}  - { prefix: gpt-, upstream: openai }\n`,
    '5:5: routes[1]: matches the same models as routes[0]: add a when, or merge them into one route with targets',
  ],
  [
    'a variable that is not set',
    `${GOOD}server: { admin_token: "\${NO_TOKEN}" }\n`,
    '5:24: server.admin_token: the environment variable NO_TOKEN is not set or empty',
  ],
  [
    'an invalid placeholder',
    `${GOOD}server: { admin_token: "\${NO-TOKEN}" }\n`,
    '5:24: server.admin_token: contains an invalid placeholder: use ${NAME} or ${file:PATH}',
  ],
  ['a port out of range', `${GOOD}server: { port: 99999 }\n`, '5:17: server.port: must be at most 65535'],
  [
    'a negative limit',
    `${GOOD}limits: [ { scope: key, requests_per_minute: -5 } ]\n`,
    '5:46: limits[0].requests_per_minute: must be at least 1',
  ],
  [
    'an unknown store',
    `${GOOD}store: postgres://db\n`,
    '5:8: store: must be sqlite:PATH, as in sqlite:./data/sluice.db, or redis://HOST',
  ],
  [
    'the former store',
    `${GOOD}store: lmdb:./data\n`,
    '5:8: store: must not be lmdb:, which is no longer supported: use sqlite:PATH, as in sqlite:./data/sluice.db',
  ],
  [
    'a store that is a folder',
    `${GOOD}store: sqlite:./data/\n`,
    '5:8: store: must be a file, not a folder, as in sqlite:./data/sluice.db',
  ],
  [
    'a store with a host',
    `${GOOD}store: sqlite://data/sluice.db\n`,
    '5:8: store: must not have // after sqlite:, as in sqlite:./data/sluice.db',
  ],
  [
    'a certificate that is not one',
    `${GOOD}server: { tls: { cert: garbage, key: garbage } }\n`,
    '5:24: server.tls.cert: the file "FOLDER/garbage" is not a PEM certificate',
  ],
  [
    'a secret file that does not exist',
    upstreamWith(`${OPENAI}, api_key: "\${file:/no/key}"`),
    '2:76: upstreams.openai.api_key: the file "/no/key" does not exist',
  ],
  [
    'a webhook without a scheme',
    `${GOOD}notify: [ { url: example, secret: 0123456789abcdef0123 } ]\n`,
    '5:18: notify[0].url: must be a URL that starts with https:// or http://',
  ],
  [
    'a price that is not a number',
    upstreamWith(`${OPENAI}, prices: { a: { input: cheap } }`),
    '2:89: upstreams.openai.prices.a.input: must be a number',
  ],
  [
    'a share above 100 %',
    routeWith('prefix: gpt-, upstream: openai, shadow: { upstream: openai, percent: 120 }'),
    '4:76: routes[0].shadow.percent: must be at most 100',
  ],
  [
    'a fallback to the target itself',
    routeWith('prefix: gpt-, upstream: openai, fallback: [ { upstream: openai } ]'),
    '4:51: routes[0].fallback[0]: repeats an earlier target: remove it, or set retry.attempts to retry one target',
  ],
  ['an empty file', '', '1:1: the file is empty'],
  ['a file that is not UTF-8', Buffer.from([0x61, 0x3a, 0xff]), '1:1: the file is not UTF-8 text'],
  ['a large file', '#'.repeat(5_000_000), '1:1: the file is larger than 4 MiB'],
  [
    'a base URL without a scheme',
    upstreamWith('dialect: openai, base_url: api.openai.com/v1'),
    '2:40: upstreams.openai.base_url: must be a URL, as in https://api.openai.com/v1',
  ],
  [
    'no dialect',
    upstreamWith('base_url: https://api.openai.com/v1'),
    '2:11: upstreams.openai.dialect: is required: use one of openai, openai-chat, openai-responses, anthropic, gemini, converse, or set preset',
  ],
  [
    'a key without a value',
    `${GOOD}server: { port: }\n`,
    '5:17: server.port: has no value: set one or remove the key',
  ],
  [
    'an origin without a scheme',
    `${GOOD}server: { cors: { origins: [app.example.com] } }\n`,
    '5:29: server.cors.origins[0]: must be * or an origin in lower case without a path, as in https://app.example.com',
  ],
  [
    'an unknown dialect',
    upstreamWith('dialect: opnai, base_url: https://llm.example/v1'),
    '2:22: upstreams.openai.dialect: must be one of openai, openai-chat, openai-responses, anthropic, gemini, converse (did you mean "openai"?)',
  ],
  [
    'a base URL with a password',
    upstreamWith('dialect: openai, base_url: "https://user:password@llm.example/v1"'),
    '2:40: upstreams.openai.base_url: must not contain a user or password: use api_key or headers',
  ],
  [
    'a preset without a URL',
    upstreamWith('preset: azure'),
    '2:11: upstreams.openai.base_url: is required: use the URL of the service with its version, as in https://HOST/v1',
  ],
  [
    'one key and several keys',
    upstreamWith(`${OPENAI}, api_key: one, api_keys: [two]`),
    '2:91: upstreams.openai.api_keys: must be removed: api_key is set already',
  ],
  [
    'a key file that is a folder',
    upstreamWith(`${OPENAI}, api_key: "\${file:folder}"`),
    '2:76: upstreams.openai.api_key: the file "folder" is a folder',
  ],
  [
    'an empty key file',
    upstreamWith(`${OPENAI}, api_key: "\${file:empty}"`),
    '2:76: upstreams.openai.api_key: the file "empty" is empty',
  ],
  [
    'an unclosed placeholder',
    `${GOOD}store: "\${STORE"\n`,
    '5:8: store: contains ${ without a closing brace',
  ],
  [
    'two variables that are not set',
    `${GOOD}store: "\${ENGINE}:\${STORE_PATH}"\n`,
    '5:8: store: the environment variables ENGINE, STORE_PATH are not set or empty',
  ],
  [
    'a proxy without a scheme',
    upstreamWith(`${OPENAI}, proxy: proxy.corp:3128`),
    '2:74: upstreams.openai.proxy: must be env, none or a URL, as in http://proxy.corp:3128',
  ],
  [
    'a native endpoint without a method',
    upstreamWith(`${OPENAI}, native: [/v1/files]`),
    '2:76: upstreams.openai.native[0]: must be METHOD /PATH, as in GET /v1/files/*',
  ],
  [
    'HTTP/2 without TLS',
    upstreamWith('dialect: openai, base_url: http://llm.example/v1, http2: true'),
    '2:70: upstreams.openai.http2: needs a base_url that starts with https://',
  ],
  ['a route without an upstream', routeWith('prefix: gpt-'), '4:5: routes[0]: must have upstream or targets'],
  [
    'an unknown upstream in a fallback',
    routeWith('prefix: gpt-, upstream: openai, fallback: [ { upstream: opneai } ]'),
    '4:63: routes[0].fallback[0].upstream: is not an upstream of this file (did you mean "openai"?)',
  ],
  [
    'weights of zero',
    routeWith('prefix: gpt-, targets: [ { upstream: openai, weight: 0 } ]'),
    '4:30: routes[0].targets: must have at least one weight above 0',
  ],
  [
    'conditions without a condition',
    routeWith('prefix: gpt-, upstream: openai, when: {}'),
    '4:45: routes[0].when: has no condition: add labels, images, tools, min_prompt_tokens or plugin',
  ],
  [
    'the same port twice',
    `${GOOD}server: { port: 8080, ops_port: 8080 }\n`,
    '5:33: server.ops_port: must differ from server.port',
  ],
  [
    'a certificate file that does not exist',
    `${GOOD}server: { tls: { cert: none.pem, key: none.key } }\n`,
    '5:24: server.tls.cert: the file "FOLDER/none.pem" does not exist',
  ],
  [
    'a rule without a limit',
    `${GOOD}limits: [ { scope: key } ]\n`,
    '5:11: limits[0]: sets no limit: add one of requests_per_minute, tokens_per_minute, concurrent, usd_per_day, usd_per_week, usd_per_month, usd_total, tokens_per_day, tokens_per_week, tokens_per_month, tokens_total, requests_total, units_per_minute',
  ],
  [
    'a label without a name',
    `${GOOD}limits: [ { scope: "label:", concurrent: 5 } ]\n`,
    '5:20: limits[0].scope: must be label:NAME, with a NAME of 1 to 32 characters (a-z, 0-9, _ . -)',
  ],
  [
    'a catalogue that does not exist',
    `${GOOD}models: none.yaml\n`,
    '5:9: models: the catalogue "FOLDER/none.yaml" does not exist',
  ],
  [
    'single sign-on without a public URL',
    `${GOOD}dashboard: { oidc: { issuer: https://id.example, client_id: gateway } }\n`,
    '5:12: dashboard.public_url: is required with oidc',
  ],
  [
    'an unknown key of a plan',
    `${GOOD}plans: { free: { keys: 1 } }\n`,
    '5:18: plans.free.keys: Unknown key "keys": use one of price_usd, max_keys, limits',
  ],
]

void t.test('each message states what is wrong, where, and what to do', (t) => {
  checkMessages(t, { garbage: 'garbage', empty: '', folder: {} }, MISTAKES)
  t.end()
})

void t.test('a folder instead of a file is reported', (t) => {
  const folder = join(t.testdir(), 'gateway.yaml')
  mkdirSync(folder)
  const loaded = loadConfig(folder, {})
  t.match(loaded, { ok: false, errors: [{ message: 'the file is a folder' }] })
  t.end()
})
