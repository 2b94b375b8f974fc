/**
 * Goal: the message of each YAML mistake and of each wrong type names the cause and the fix, and quotes no
 * value.
 * Method: configurations with one mistake each; the message starts with line and column.
 */
import t from 'tap'
import { checkMessages, GOOD, OPENAI, routeWith, upstreamWith, type Mistake } from './mistakes.js'

const SYNTAX: readonly Mistake[] = [
  ['a list', '- a\n', '1:1: must be a map (KEY: VALUE)'],
  ['only a comment', '# later\n', '1:1: the file is empty'],
  [
    'an unclosed brace',
    `${GOOD}server: { port: 1\n`,
    '6:1: is not valid YAML: a { or [ is not closed before this line',
  ],
  ['an unclosed quote', `${GOOD}store: "sqlite\n`, '6:1: is not valid YAML: a quote is not closed'],
  [
    'wrong indentation',
    'upstreams:\n  openai:\n    dialect: openai\n   base_url: x\n',
    '4:1: is not valid YAML: indent this line like the other entries of its map or list',
  ],
  [
    'a missing colon',
    'upstreams\n  openai: x\n',
    '1:1: is not valid YAML: a key needs a colon and a space after it, on the same line',
  ],
  [
    'a colon in a plain value',
    'upstreams:\n  openai: a: b\n',
    '2:11: is not valid YAML: a value that contains a colon and a space must be in quotes',
  ],
  [
    'an escape in double quotes',
    `${GOOD}store: "C:\\data"\n`,
    '5:11: is not valid YAML: use single quotes, or write \\\\ for a backslash',
  ],
  ['an alias without an anchor', `${GOOD}log: *shared\n`, '5:6: is an alias without an anchor before it'],
  [
    'a value that starts with @',
    `${GOOD}store: @data\n`,
    '5:8: a plain value cannot start with this character: quote it',
  ],
]

const TYPES: readonly Mistake[] = [
  [
    'a number in quotes',
    `${GOOD}server: { port: "8080" }\n`,
    '5:17: server.port: must be a number: remove the quotes',
  ],
  [
    'a flag in quotes',
    `${GOOD}dashboard: { enabled: "true" }\n`,
    '5:23: dashboard.enabled: must be true or false: remove the quotes',
  ],
  [
    'a flag in words',
    `${GOOD}dashboard: { enabled: yes }\n`,
    '5:23: dashboard.enabled: must be true or false',
  ],
  [
    'a text without quotes',
    upstreamWith(`${OPENAI}, api_key: 12345`),
    '2:76: upstreams.openai.api_key: must be text: put it in quotes',
  ],
  ['a fraction', `${GOOD}server: { port: 80.5 }\n`, '5:17: server.port: must be a whole number'],
  ['an empty text', `${GOOD}server: { host: "" }\n`, '5:17: server.host: must not be empty'],
  [
    'a scalar in place of a list',
    `${GOOD}server: { trusted_proxies: 10.0.0.1 }\n`,
    '5:28: server.trusted_proxies: must be a list (- VALUE)',
  ],
  [
    'a list in place of a map',
    `upstreams:\n  - openai\nroutes: []\n`,
    '2:3: upstreams: must be a map (NAME: VALUE)',
  ],
  [
    'a text in place of a target',
    routeWith('prefix: g, targets: [openai]'),
    '4:28: routes[0].targets[0]: must be a map (KEY: VALUE)',
  ],
  [
    'an empty list',
    routeWith('prefix: g, targets: []'),
    '4:27: routes[0].targets: must have at least one entry',
  ],
  [
    'a list that is too short',
    `${GOOD}server: { overload: { delay_ms: [3, 2] } }\n`,
    '5:33: server.overload.delay_ms: must have three numbers, one for each level',
  ],
  [
    'a list that is too long',
    routeWith(
      `prefix: g, targets: [${Array.from({ length: 65 }, (_, index) => `{ upstream: openai, model: m${index} }`).join(', ')}]`,
    ),
    '4:27: routes[0].targets: must have at most 64 entries',
  ],
  [
    'a size with a unit',
    `${GOOD}server: { max_body_bytes: 32MiB }\n`,
    '5:27: server.max_body_bytes: must be a number of bytes: 33554432',
  ],
  [
    'days with a unit',
    `${GOOD}ledger: { keep_days: 30d }\n`,
    '5:22: ledger.keep_days: must be a number of days: 30',
  ],
  [
    'seconds in hours',
    `${GOOD}escrow: { ttl_seconds: 1h }\n`,
    '5:24: escrow.ttl_seconds: must be a number of seconds: 3600',
  ],
  [
    'a duration in words',
    `${GOOD}log: { slow_ms: slow }\n`,
    '5:17: log.slow_ms: must be a number of milliseconds',
  ],
  [
    'an empty name',
    `upstreams:\n  "": { ${OPENAI} }\nroutes: []\n`,
    '2:3: upstreams.(empty): must be 1 to 64 letters, digits, dots, dashes or underscores, and start with a letter or digit',
  ],
]

void t.test('mistakes in YAML are named with their fix', (t) => {
  checkMessages(t, {}, SYNTAX)
  t.end()
})

void t.test('wrong types are named with the expected form', (t) => {
  checkMessages(t, {}, TYPES)
  t.end()
})
