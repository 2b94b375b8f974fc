/**
 * Goal: the message of each wrong setting states what is wrong, where, and what to do.
 * Method: configurations with one typical mistake each, in a folder with their other files; the message
 * starts with line and column. Placeholders are in capitals, names in straight double quotes.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load-config.js'
import { formatProblem } from '../../../src/config/problem.js'

const UPSTREAMS = `upstreams:
  openai: { dialect: openai, base_url: https://api.openai.com/v1 }
`
const ROUTES = `routes:
  - { prefix: gpt-, upstream: openai }
`
const GOOD = UPSTREAMS + ROUTES
const upstreamWith = (keys: string): string => `upstreams:\n  openai: { ${keys} }\n${ROUTES}`
const routeWith = (keys: string): string => `${UPSTREAMS}routes:\n  - { ${keys} }\n`
const OPENAI = 'dialect: openai, base_url: https://api.openai.com/v1'

/** A mistake, the text of the file, and the message after the file's name. */
const MESSAGES: readonly (readonly [mistake: string, text: string | Buffer, message: string])[] = [
  [
    'a misspelt key',
    `${GOOD}sever: {}\n`,
    '5:1: sever: Unknown key "sever" (did you mean "server"?)',
  ],
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
  [
    'tabs',
    'upstreams:\n\topenai: {}\n',
    '2:1: is not valid YAML: use spaces instead of tabs as indentation',
  ],
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
  [
    'a port out of range',
    `${GOOD}server: { port: 99999 }\n`,
    '5:17: server.port: must be at most 65535',
  ],
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
    'a certificate that is not one',
    `${GOOD}server: { tls: { cert: garbage, key: garbage } }\n`,
    '5:24: server.tls.cert: "FOLDER/garbage" is not a PEM certificate',
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
    '2:11: upstreams.openai.dialect: is required: use one of openai, openai-chat, openai-responses, anthropic, gemini, or set preset',
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
]

void t.test('each message states what is wrong, where, and what to do', (t) => {
  const folder = t.testdir({ garbage: 'garbage' })
  const file = join(folder, 'gateway.yaml')
  for (const [mistake, text, expected] of MESSAGES) {
    writeFileSync(file, text)
    const loaded = loadConfig(file, {})
    const message = loaded.ok ? 'valid' : loaded.errors.slice(0, 1).map(formatProblem).join()
    t.equal(message.replaceAll(folder, 'FOLDER'), `FOLDER/gateway.yaml:${expected}`, mistake)
    t.notMatch(message, /[‘’“”]/, `${mistake}: straight quotes`)
  }
  t.end()
})

void t.test('a folder instead of a file is reported', (t) => {
  const folder = join(t.testdir(), 'gateway.yaml')
  mkdirSync(folder)
  const loaded = loadConfig(folder, {})
  t.match(loaded, { ok: false, errors: [{ message: 'the file is a folder' }] })
  t.end()
})
