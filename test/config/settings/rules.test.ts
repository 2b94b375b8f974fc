/**
 * Goal: every violated rule of the file is reported with line, column and path, and with a suggestion for
 * a misspelt word.
 * Method: one text per rule through the loader; the whole printed line is compared.
 */
import t from 'tap'
import { PRESET_NAMES } from '../../../src/config/presets.js'
import { hasAccountOf } from '../../../src/accounts/account.js'
import { changed, GOOD, loadText, problemsOf } from '../sample.js'

const FILE = '/etc/sluice/gateway.yaml'

void t.test('the sample is valid', (t) => {
  t.same(problemsOf(GOOD), [])
  t.end()
})

const ROUTE = '  - { prefix: gpt-, upstream: openai }'
const URL_LINE = 'base_url: https://api.openai.com/v1'

/** Name of the rule, the file's text, the line that is printed after the file's name. */
const RULES: [string, string, string][] = [
  ['empty file', '', ':1:1: the file is empty'],
  ['only a comment', '# nothing\n', ':1:1: the file is empty'],
  ['not a map', '- 1\n', ':1:1: must be a map (KEY: VALUE)'],
  ['no upstreams', 'routes: [{ prefix: a, upstream: b }]\n', ':1:1: upstreams: is required'],
  [
    'no upstream',
    'upstreams: {}\nroutes: [{ prefix: a, upstream: b }]\n',
    ':1:12: upstreams: must have at least one entry',
  ],
  ['no routes', changed(`routes:\n${ROUTE}`, 'routes: []'), ':6:9: routes: must have at least one entry'],
  [
    'unknown key at the top',
    `${GOOD}upstream: {}\n`,
    ':8:1: upstream: Unknown key "upstream" (did you mean "upstreams"?)',
  ],
  [
    'unknown key below',
    changed('api_key', 'api_kye'),
    ':5:5: upstreams.openai.api_kye: Unknown key "api_kye" (did you mean "api_key"?)',
  ],
  [
    'unknown key in a list',
    changed('prefix: gpt-', 'prefx: gpt-'),
    ':7:7: routes[0].prefx: Unknown key "prefx" (did you mean "prefix"?)',
  ],
  ['unknown key without a similar one', `${GOOD}zebra: 1\n`, ':8:1: zebra: Unknown key "zebra"'],
  [
    'unknown key of two words',
    `${GOOD}on loss: reject\n`,
    ':8:1: on loss: Unknown key "on loss" (did you mean "on_loss"?)',
  ],
  ['unknown key in another alphabet', `${GOOD}größe: 1\n`, ':8:1: größe: Unknown key "größe"'],
  [
    'merge key',
    `${GOOD}'<<': 1\n`,
    ':8:1: <<: Unknown key "<<": merge keys are not supported: repeat the keys of the anchor',
  ],
  [
    'unknown key that may be a secret',
    `${GOOD}"ab+/cd==": 1\n`,
    ':8:1: (hidden): Unknown key (not shown, because it may contain a secret)',
  ],
  [
    'no dialect and no preset',
    changed('    dialect: openai\n', ''),
    ':3:5: upstreams.openai.dialect: is required: use one of openai, openai-chat, openai-responses, anthropic, gemini, converse, or set preset',
  ],
  [
    'unknown preset',
    changed('    dialect: openai\n', '    preset: grok\n'),
    `:3:13: upstreams.openai.preset: must be one of ${PRESET_NAMES.join(', ')} (did you mean "groq"?)`,
  ],
  [
    'a preset of another dialect',
    changed('dialect: openai\n', 'dialect: gemini\n    preset: groq\n'),
    ':3:14: upstreams.openai.dialect: must be removed: the preset groq uses openai-chat',
  ],
  [
    'a strip that is no start of the prefix',
    changed('prefix: gpt-,', 'prefix: gpt-, strip: o,'),
    ':7:28: routes[0].strip: needs a prefix that starts with it',
  ],
  [
    'a strip without a prefix',
    changed('prefix: gpt-,', 'model: gpt-5, strip: gpt-,'),
    ':7:28: routes[0].strip: needs a prefix that starts with it',
  ],
  [
    'a second route for every model',
    changed(
      'routes:\n',
      "routes:\n  - { model: '*', upstream: openai }\n  - { model: '*', upstream: openai }\n",
    ),
    ':8:5: routes[1]: matches the same models as routes[0]: add a when, or merge them into one route with targets',
  ],
  [
    'a preset without an address',
    changed('    dialect: openai\n    base_url: https://api.openai.com/v1\n', '    preset: azure\n'),
    ':3:5: upstreams.openai.base_url: is required: use the URL of the service with its version, as in https://HOST/v1',
  ],
  [
    'a path with a query',
    changed(URL_LINE, `${URL_LINE}\n    path: "/chat?x=1"`),
    ':5:11: upstreams.openai.path: must start with / and have no query',
  ],
  [
    'one path for two endpoints',
    changed(URL_LINE, `${URL_LINE}\n    path: /chat`),
    ':5:11: upstreams.openai.path: needs the dialect openai-chat or openai-responses: openai uses two paths',
  ],
  [
    'the key in a header that the gateway sets',
    changed(URL_LINE, `${URL_LINE}\n    key_header: Host`),
    ':5:17: upstreams.openai.key_header: must be removed: the gateway sets this header itself',
  ],
  [
    'unknown dialect',
    changed('dialect: openai', 'dialect: antropic'),
    ':3:14: upstreams.openai.dialect: must be one of openai, openai-chat, openai-responses, anthropic, gemini, converse (did you mean "anthropic"?)',
  ],
  [
    'unknown upstream',
    changed('upstream: openai', 'upstream: opnai'),
    ':7:31: routes[0].upstream: is not an upstream of this file (did you mean "openai"?)',
  ],
  [
    'unknown upstream like a built-in',
    changed('upstream: openai', 'upstream: constructor'),
    ':7:31: routes[0].upstream: is not an upstream of this file: use one of openai',
  ],
  [
    'unknown plan of a limit',
    `${GOOD}plans: { gold: { price_usd: 1 } }\nlimits: [{ scope: key, plan: gld, concurrent: 1 }]\n`,
    ':9:30: limits[0].plan: is not a plan of this file (did you mean "gold"?)',
  ],
  [
    'unknown policy',
    `${GOOD}on_loss: rejct\n`,
    ':8:10: on_loss: must be one of report, reject (did you mean "reject"?)',
  ],
  [
    'unknown log level',
    `${GOOD}log: { level: warning }\n`,
    ':8:15: log.level: must be one of debug, info, warn, error, silent',
  ],
  [
    'bad name',
    changed('  openai:\n', '  "open ai":\n'),
    ':2:3: upstreams.open ai: must be 1 to 64 letters, digits, dots, dashes or underscores, and start with a letter or digit',
  ],
  [
    'a name of a member of all objects',
    changed('  openai:\n', '  __proto__:\n'),
    ':2:3: upstreams.__proto__: must have another name',
  ],
  ['blank value', `${GOOD}server:\n`, ':8:8: server: has no value: set one or remove the key'],
  ['port too high', `${GOOD}server: { port: 65536 }\n`, ':8:17: server.port: must be at most 65535'],
  ['port with a fraction', `${GOOD}server: { port: 80.5 }\n`, ':8:17: server.port: must be a whole number'],
  [
    'port as text',
    `${GOOD}server: { port: "80" }\n`,
    ':8:17: server.port: must be a number: remove the quotes',
  ],
  [
    'ports the same',
    `${GOOD}server: { port: 9464 }\n`,
    ':8:9: server.ops_port: must differ from server.port',
  ],
  [
    'workers',
    `${GOOD}server: { workers: many }\n`,
    ':8:20: server.workers: must be auto or a whole number from 1 to 1,024',
  ],
  [
    'max_keys',
    `${GOOD}plans: { max: { max_keys: lots } }\n`,
    ':8:27: plans.max.max_keys: must be unlimited or a whole number from 0 to 1,000,000',
  ],
  [
    'negative price',
    `${GOOD}plans: { max: { price_usd: -1 } }\n`,
    ':8:28: plans.max.price_usd: must be at least 0',
  ],
  [
    'not a number',
    `${GOOD}plans: { max: { price_usd: .nan } }\n`,
    ':8:28: plans.max.price_usd: must be a number',
  ],
  [
    'not a store',
    `${GOOD}store: mysql://db\n`,
    ':8:8: store: must be sqlite:PATH, as in sqlite:./data/sluice.db, or redis://HOST',
  ],
  [
    'no URL',
    changed(URL_LINE, 'base_url: api.openai.com'),
    ':4:15: upstreams.openai.base_url: must be a URL, as in https://api.openai.com/v1',
  ],
  [
    'URL of another scheme',
    changed(URL_LINE, 'base_url: ftp://api.openai.com/'),
    ':4:15: upstreams.openai.base_url: must start with https:// or http://',
  ],
  [
    'URL with a password',
    changed(URL_LINE, 'base_url: https://me:pw@host/v1'),
    ':4:15: upstreams.openai.base_url: must not contain a user or password: use api_key or headers',
  ],
  [
    'URL with a query',
    changed(URL_LINE, 'base_url: https://host/v1?key=1'),
    ':4:15: upstreams.openai.base_url: must not have a query or a fragment: use query for parameters',
  ],
  [
    'header of the connection',
    changed(URL_LINE, `${URL_LINE}\n    headers: { Host: a }`),
    ':5:22: upstreams.openai.headers.Host: must be removed: the gateway sets this header itself',
  ],
  [
    'header twice',
    changed(URL_LINE, `${URL_LINE}\n    headers: { x-a: a, X-A: b }`),
    ':5:29: upstreams.openai.headers.X-A: is a duplicate: header names are case-insensitive',
  ],
  [
    'header with a line break',
    changed(URL_LINE, `${URL_LINE}\n    headers: { x-a: "a\\r\\nb: c" }`),
    ':5:21: upstreams.openai.headers.x-a: must be printable ASCII, at most 8,192 characters',
  ],
  [
    'header with a bad name',
    changed(URL_LINE, `${URL_LINE}\n    headers: { "x a": b }`),
    ':5:16: upstreams.openai.headers.x a: must be a header name',
  ],
  [
    'empty prefix',
    changed('prefix: gpt-', 'prefix: ""'),
    ':7:15: routes[0].prefix: must not be empty: an empty prefix would match every model',
  ],
  [
    'prefix with a space',
    changed('prefix: gpt-', 'prefix: "gpt 4"'),
    ':7:15: routes[0].prefix: must be 1 to 256 printable ASCII characters without spaces',
  ],
  [
    'model and prefix',
    changed('prefix: gpt-', 'prefix: gpt-, model: o1'),
    ':7:5: routes[0]: must have model or prefix, not both: the model to request from an upstream belongs in targets',
  ],
  ['neither model nor prefix', changed('prefix: gpt-, ', ''), ':7:5: routes[0]: must have model or prefix'],
  ['no target', changed(', upstream: openai }', ' }'), ':7:5: routes[0]: must have upstream or targets'],
  [
    'upstream and targets',
    changed('upstream: openai }', 'upstream: openai, targets: [{ upstream: openai }] }'),
    ':7:5: routes[0]: must have upstream or targets, not both',
  ],
  [
    'targets without an entry',
    changed('upstream: openai }', 'targets: [] }'),
    ':7:30: routes[0].targets: must have at least one entry',
  ],
  [
    'unknown upstream of a target',
    changed('upstream: openai }', 'targets: [{ upstream: opena }] }'),
    ':7:43: routes[0].targets[0].upstream: is not an upstream of this file (did you mean "openai"?)',
  ],
  [
    'duplicate prefix',
    changed(ROUTE, `${ROUTE}\n${ROUTE}`),
    ':8:5: routes[1]: matches the same models as routes[0]: add a when, or merge them into one route with targets',
  ],
  [
    'same key twice',
    `${GOOD}store: sqlite:a\nstore: sqlite:b\n`,
    ':9:1: Duplicate key "store" (lines 8 and 9)',
  ],
  [
    'seconds for milliseconds',
    changed('api_key: ${KEY}', 'timeouts: { connect_ms: 3s }'),
    ':5:29: upstreams.openai.timeouts.connect_ms: must be a number of milliseconds: 3000',
  ],
  [
    'minutes for seconds',
    `${GOOD}auth: { fresh_seconds: 1.5 m }\n`,
    ':8:24: auth.fresh_seconds: must be a number of seconds: 90',
  ],
  [
    'two documents',
    `${GOOD}---\na: 1\n`,
    ':8:1: contains a second YAML document: remove the --- line, or put each document in a file of its own',
  ],
  [
    'unknown tag',
    `${GOOD}store: !secret abc\n`,
    ':8:8: contains a YAML tag (!NAME): quote the value, or remove the tag',
  ],
  ['unknown alias', `${GOOD}store: *nowhere\n`, ':8:8: is an alias without an anchor before it'],
  [
    'missing catalogue',
    `${GOOD}models: other.yaml\n`,
    ':8:9: models: the catalogue "/etc/sluice/other.yaml" does not exist',
  ],
  [
    'a key and keys',
    changed('api_key: ${KEY}', 'api_key: ${KEY}\n    api_keys: [a, b]'),
    ':6:15: upstreams.openai.api_keys: must be removed: api_key is set already',
  ],
  [
    'a limit without an amount',
    `${GOOD}limits: [{ scope: key }]\n`,
    ':8:10: limits[0]: sets no limit: add one of requests_per_minute, tokens_per_minute, concurrent, usd_per_day, usd_per_week, usd_per_month, usd_total, tokens_per_day, tokens_per_week, tokens_per_month, tokens_total, requests_total, units_per_minute',
  ],
  [
    'a limit with an unknown scope',
    `${GOOD}limits: [{ scope: keys, concurrent: 5 }]\n`,
    ':8:19: limits[0].scope: must be one of key, account, user, model, upstream, label:NAME, dimension:NAME',
  ],
  [
    'a sign-in of programs without an identity provider',
    `${GOOD}login: { enabled: true }\n`,
    ':8:19: login.enabled: needs dashboard.oidc: people sign in with an identity provider',
  ],
  [
    'a limit of no requests',
    `${GOOD}limits: [{ scope: key, requests_per_minute: 0 }]\n`,
    ':8:45: limits[0].requests_per_minute: must be at least 1',
  ],
  [
    'a limit of a model and a prefix',
    `${GOOD}limits: [{ scope: key, model: a, prefix: b, concurrent: 5 }]\n`,
    ':8:10: limits[0]: must have model or prefix, not both',
  ],
  [
    'a limit of an unknown upstream',
    `${GOOD}limits: [{ scope: key, upstream: open-ai, concurrent: 5 }]\n`,
    ':8:34: limits[0].upstream: is not an upstream of this file (did you mean "openai"?)',
  ],
  [
    'a limit of an account by another name',
    `${GOOD}limits: [{ scope: account, account: Ada, concurrent: 5 }]\n`,
    ':8:37: limits[0].account: must be the name of an account, its id (acc_…) or its e-mail address',
  ],
  [
    'a limit of a key by its name',
    `${GOOD}limits: [{ scope: key, key: my-app, concurrent: 5 }]\n`,
    ':8:29: limits[0].key: must be the id of a key (key_…), as `sluice keys list` prints it',
  ],
  [
    'a value of no label',
    `${GOOD}limits: [{ scope: key, value: research, concurrent: 5 }]\n`,
    ':8:31: limits[0].value: needs a scope of label:NAME: it is the value of that label',
  ],
  [
    'two limits of the same requests',
    `${GOOD}limits: [{ scope: key, concurrent: 5 }, { scope: key, requests_per_minute: 9, concurrent: 6 }]\n`,
    ':8:91: limits[1].concurrent: is a duplicate: limits[0] limits the same requests',
  ],
  [
    'a budget that is too large',
    `${GOOD}plans: { max: { limits: { usd_per_day: 10000000 } } }\n`,
    ':8:40: plans.max.limits.usd_per_day: must be at most 1000000',
  ],
  [
    'an unknown rule for unknown prices',
    `${GOOD}limiting: { unknown_price: free }\n`,
    ':8:28: limiting.unknown_price: must be one of assume, allow, refuse',
  ],
]

for (const [rule, text, expected] of RULES) {
  void t.test(rule, (t) => {
    t.same(problemsOf(text)[0], `${FILE}${expected}`)
    t.end()
  })
}

void t.test('a redis store is accepted, and its invalid URLs are reported', (t) => {
  for (const store of ['redis://h', 'rediss://h', 'redis+sentinel://h/m', 'redis+cluster://a,b']) {
    t.same(problemsOf(`${GOOD}store: ${store}\n`), [], store)
  }
  const bad = ['redis+sentinel://u:hunter2@h', 'redis://u:hunter2@', 'redis+x://u:hunter2@h']
  for (const store of bad) {
    const [first] = problemsOf(`${GOOD}store: ${store}\n`)
    t.match(first, `${FILE}:8:8: store: `, store)
    t.notMatch(first, 'hunter2', 'and repeats no password')
  }
  t.end()
})

void t.test('all errors are reported at once, in the order of the file', (t) => {
  const text = changed('dialect: openai', 'dialect: x').replace('gpt-', '"a b"')
  const lines = problemsOf(`${text}on_loss: y\n`).map((line) => line.split(':')[1])
  t.same(lines, ['3', '7', '8'])
  t.end()
})

void t.test('at most 100 errors are reported', (t) => {
  const routes = Array.from({ length: 300 }, () => '  - { model: 1 }').join('\n')
  t.equal(problemsOf(changed(ROUTE, routes)).length, 100)
  t.end()
})

void t.test('nesting, aliases and size are limited', (t) => {
  t.match(problemsOf('['.repeat(200_000))[0], /is not valid YAML: too deeply nested/)
  const laughs = ['a: &a0 [x]']
  for (let index = 1; index < 40; index++) {
    laughs.push(`b${index}: &a${index} [*a${index - 1}, *a${index - 1}]`)
  }
  t.match(problemsOf(laughs.join('\n'))[0], /aliases/)
  const many = `a: &a x\nb: [${Array.from({ length: 101 }, () => '*a').join(', ')}]\n`
  t.equal(problemsOf(many)[0], `${FILE}:1:1: contains more than 100 aliases`)
  t.end()
})

void t.test('models of an upstream are unique ids or maps with known keys', (t) => {
  const problem = (models: string): string | undefined =>
    problemsOf(changed('dialect: openai', `dialect: openai\n    models: ${models}`))[0]
  const at = 'upstreams.openai.models'
  t.equal(problem('[llama-3, { id: qwen, family: any, price: { input: 0 } }]'), undefined)
  t.match(problem('[llama-3, { id: llama-3 }]'), `${at}[1]: Duplicate model id "llama-3"`)
  t.match(
    problem('[{ id: a, max_output_token: 5 }]'),
    `${at}[0].max_output_token: Unknown key "max_output_token" (did you mean "max_output_tokens"?)`,
  )
  t.match(problem('[5]'), `${at}[0]: must be a model id, or a map with an id`)
  t.end()
})

void t.test('every setting finds accounts by what the store has', (t) => {
  // Unicode maps the second letter of the Kelvin sign's address to `k`.
  const named = ['\u00c4da@Example.com', '\u212aay@example.com', 'Finance', 'acc_Ab1']
  const stored = ['\u00c4da@example.com', '\u212aay@example.com', 'finance', 'acc_Ab1']
  const list = JSON.stringify(named)
  const rules = `
escrow: { key: 0f4c9b1e7d2a85c36f10e9d8b7a6c5f4 }
record: { when: { accounts: ${list} } }
guardrails: { own: { patterns: [x], action: block, apply_to: { accounts: ${list} } } }
limits: [{ scope: account, account: Ada@Example.com, requests_per_minute: 1 }]
`
  const loaded = loadText(GOOD + rules)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const { record, guardrails, limits } = loaded.config
  t.strictSame(record?.accounts, stored)
  t.match(guardrails, [{ applyTo: { accounts: stored } }])
  t.equal(limits[0]?.account, 'ada@example.com')
  const path = { accountPath: 'x' }
  t.ok(hasAccountOf(stored, { ...path, accountId: 'acc_Ab1' }))
  t.notOk(hasAccountOf(stored, { ...path, accountId: 'acc_ab1', email: 'kay@example.com' }))
  t.end()
})
