/**
 * Goal: the message of each mistake that users of other programs and formats often make states its cause and
 * its fix.
 * Method: configurations with one mistake each; the message starts with line and column.
 */
import t from 'tap'
import {
  checkMessages,
  GOOD,
  OPENAI,
  ROUTES,
  routeWith,
  UPSTREAMS,
  upstreamWith,
  type Mistake,
} from './mistakes.js'

const MISTAKES: readonly Mistake[] = [
  [
    'a second document',
    `${GOOD}---\nserver: {}\n`,
    '5:1: contains a second YAML document: remove the --- line, or put each document in a file of its own',
  ],
  [
    'a byte order mark before a misspelt key',
    `\ufeff${GOOD}sever: {}\n`,
    '5:1: sever: Unknown key "sever" (did you mean "server"?)',
  ],
  [
    'line ends of Windows',
    `${GOOD}sever: {}\n`.replaceAll('\n', '\r\n'),
    '5:1: sever: Unknown key "sever" (did you mean "server"?)',
  ],
  ['UTF-16', Buffer.from(GOOD, 'utf16le'), '1:1: must be a map (KEY: VALUE)'],
  ['null', `null\n`, '1:1: the file is empty'],
  [
    'a merge key',
    `upstreams:\n  a: &a { ${OPENAI} }\n  b:\n    <<: *a\n${ROUTES}`,
    '4:5: upstreams.b.<<: Unknown key "<<": merge keys are not supported: repeat the keys of the anchor',
  ],
  [
    'an alias to itself',
    `upstreams: &all\n  a: *all\n${ROUTES}`,
    '2:3: upstreams: is nested more than 64 levels deep',
  ],
  [
    'TOML',
    '[server]\nport = 8080\n',
    '2:1: is not valid YAML: a value continues after its end: write KEY: VALUE, and quote a value with brackets or quotes',
  ],
  ['properties', 'server.port=8080\n', '1:1: must be a map (KEY: VALUE)'],
  [
    'a trailing brace',
    `${GOOD}log: { level: info }}\n`,
    '5:21: is not valid YAML: this } or ] closes no bracket: remove it, or add the opening one',
  ],
  [
    'a missing comma',
    upstreamWith('dialect: openai base_url: https://llm.example/v1'),
    '2:22: is not valid YAML: a comma is missing between two entries',
  ],
  [
    'a colon without a space in braces',
    upstreamWith('dialect:openai, base_url: https://llm.example/v1'),
    '2:13: upstreams.openai.(hidden): Unknown key (not shown, because it may contain a secret): write a space after the colon',
  ],
  [
    'a colon without a space on a line',
    `upstreams:\n  openai:\n    dialect:openai\n    base_url: x\n`,
    '3:5: is not valid YAML: a key needs a colon and a space after it, on the same line',
  ],
  [
    'a list entry without a space',
    `${UPSTREAMS}routes:\n  -prefix: gpt-\n`,
    '4:3: routes: must be a list (- VALUE)',
  ],
  [
    'a key of a list entry that is indented too little',
    `${UPSTREAMS}routes:\n  - prefix: gpt-\n   upstream: openai\n`,
    '5:1: is not valid YAML: indent this line like the other keys of its list entry',
  ],
  [
    'a key that is indented too far',
    'upstreams:\n  openai:\n    dialect: openai\n      base_url: x\n',
    '3:14: is not valid YAML: the next line is indented too far: indent it like this one',
  ],
  [
    'a non-breaking space as indentation',
    `${GOOD}log: {}\n\u00a0level: info\n`,
    '6:1: (hidden): Unknown key (not shown, because it may contain a secret): indent with ordinary spaces',
  ],
  [
    'a list as a key',
    `${GOOD}? [a, b]\n: x\n`,
    '1:1: (hidden): Unknown key (not shown, because it may contain a secret)',
  ],
  ['no routes', UPSTREAMS, '1:1: routes: is required'],
  [
    'a map in place of a list',
    `${GOOD}limits: { scope: key, concurrent: 5 }\n`,
    '5:9: limits: must be a list (- VALUE)',
  ],
  ['routes by name', `${UPSTREAMS}routes:\n  gpt-: openai\n`, '4:3: routes: must be a list (- VALUE)'],
  [
    'a model in place of a route',
    `${UPSTREAMS}routes:\n  - gpt-5.5\n`,
    '4:5: routes[0]: must be a map (KEY: VALUE)',
  ],
  [
    'a URL in place of an upstream',
    `upstreams:\n  openai: https://api.openai.com/v1\n${ROUTES}`,
    '2:11: upstreams.openai: must be a map (KEY: VALUE)',
  ],
  ['a number in place of a section', `${GOOD}server: 8080\n`, '5:9: server: must be a map (KEY: VALUE)'],
  ['a negative port', `${GOOD}server: { port: -1 }\n`, '5:17: server.port: must be at least 0'],
  ['not a number', `${GOOD}server: { port: .nan }\n`, '5:17: server.port: must be a number'],
  ['an infinite number', `${GOOD}server: { port: .inf }\n`, '5:17: server.port: must be a number'],
  [
    'a number with underscores',
    `${GOOD}server: { port: 8_080 }\n`,
    '5:17: server.port: must be a number: 8080',
  ],
  [
    'a number with commas',
    `${GOOD}server: { max_body_bytes: 33,554,432 }\n`,
    '5:30: server.554: Unknown key "554": write a number without commas',
  ],
  [
    'a price with a currency',
    `${GOOD}plans: { pro: { price_usd: $20 } }\n`,
    '5:28: plans.pro.price_usd: must be a number: 20',
  ],
  [
    'thousands as k',
    `${GOOD}limits: [ { scope: key, tokens_per_minute: 100k } ]\n`,
    '5:44: limits[0].tokens_per_minute: must be a number: 100000',
  ],
  [
    'a weight in percent',
    routeWith('prefix: gpt-, targets: [ { upstream: openai, weight: 50% } ]'),
    '4:60: routes[0].targets[0].weight: must be a number: 50',
  ],
  [
    'a date in place of a number',
    `${GOOD}ledger: { keep_days: 2027-01-31 }\n`,
    '5:22: ledger.keep_days: must be a number of days',
  ],
  [
    'a host with a port',
    `${GOOD}server: { host: "0.0.0.0:8080" }\n`,
    '5:17: server.host: must be an IP address or a host name without scheme and port, as in 127.0.0.1',
  ],
  [
    'a host with a scheme',
    `${GOOD}server: { ops_host: "http://localhost" }\n`,
    '5:21: server.ops_host: must be an IP address or a host name without scheme and port, as in 127.0.0.1',
  ],
  [
    'camel case',
    upstreamWith(`${OPENAI}, apiKey: x`),
    '2:67: upstreams.openai.apiKey: Unknown key "apiKey" (did you mean "api_key"?)',
  ],
  [
    'a singular key',
    upstreamWith(`${OPENAI}, timeout: 30`),
    '2:67: upstreams.openai.timeout: Unknown key "timeout" (did you mean "timeouts"?)',
  ],
  [
    'a timeout of zero',
    upstreamWith(`${OPENAI}, timeouts: { idle_ms: 0 }`),
    '2:88: upstreams.openai.timeouts.idle_ms: must be at least 1',
  ],
  [
    'a timeout for everything',
    upstreamWith(`${OPENAI}, timeouts: 30000`),
    '2:77: upstreams.openai.timeouts: must be a map (KEY: VALUE)',
  ],
  [
    'headers as a list',
    upstreamWith(`${OPENAI}, headers: [a]`),
    '2:76: upstreams.openai.headers: must be a map (NAME: VALUE)',
  ],
  [
    'an empty API key',
    upstreamWith(`${OPENAI}, api_key: ""`),
    '2:76: upstreams.openai.api_key: must not be empty',
  ],
  [
    'an API key with a line break',
    upstreamWith(`${OPENAI}, api_key: "sk-1\\n"`),
    '2:76: upstreams.openai.api_key: must be printable ASCII without spaces, at most 4,096 characters',
  ],
  [
    'a placeholder of a template',
    upstreamWith(`${OPENAI}, api_key: "{{ OPENAI_API_KEY }}"`),
    '2:76: upstreams.openai.api_key: must be printable ASCII without spaces, at most 4,096 characters',
  ],
  [
    'a placeholder with a default',
    upstreamWith(`${OPENAI}, api_key: "\${KEY:-none}"`),
    '2:76: upstreams.openai.api_key: contains an invalid placeholder: use ${NAME} or ${file:PATH}',
  ],
  [
    'a host and port as the base URL',
    upstreamWith('dialect: openai, base_url: localhost:11434'),
    '2:40: upstreams.openai.base_url: must start with https:// or http://',
  ],
  [
    'a base URL with a space',
    upstreamWith('dialect: openai, base_url: https://llm example/v1'),
    '2:40: upstreams.openai.base_url: must be a URL, as in https://api.openai.com/v1',
  ],
  [
    'a dialect in capitals',
    upstreamWith('dialect: OpenAI, base_url: https://llm.example/v1'),
    '2:22: upstreams.openai.dialect: must be one of openai, openai-chat, openai-responses, anthropic, gemini, converse (did you mean "openai"?)',
  ],
  [
    'a fallback by name',
    routeWith('prefix: gpt-, upstream: openai, fallback: openai'),
    '4:49: routes[0].fallback: must be a list (- VALUE)',
  ],
  [
    'a retry as a number',
    routeWith('prefix: gpt-, upstream: openai, retry: 3'),
    '4:46: routes[0].retry: must be a map (KEY: VALUE)',
  ],
  [
    'a limit under another name',
    `${GOOD}limits: [ { scope: key, rpm: 5 } ]\n`,
    '5:25: limits[0].rpm: Unknown key "rpm" (did you mean "requests_per_minute"?)',
  ],
  ['a limit without a scope', `${GOOD}limits: [ { concurrent: 5 } ]\n`, '5:11: limits[0].scope: is required'],
  [
    'a file as the store',
    `${GOOD}store: ./data/sluice.db\n`,
    '5:8: store: must be sqlite:PATH, as in sqlite:./data/sluice.db, or redis://HOST',
  ],
  [
    'a store with slashes',
    `${GOOD}store: sqlite://data.db\n`,
    '5:8: store: must not have // after sqlite:, as in sqlite:./data/sluice.db',
  ],
  [
    'Redis without a host',
    `${GOOD}store: redis://\n`,
    '5:8: store: must have a valid host and port, as in redis://cache.example.com:6379/0',
  ],
  [
    'Redis with a named database',
    `${GOOD}store: redis://cache/main\n`,
    '5:8: store: has a path that is not the number of a database: write it as in redis://cache.example.com:6379/0',
  ],
  ['TLS as a flag', `${GOOD}server: { tls: true }\n`, '5:16: server.tls: must be a map (KEY: VALUE)'],
  [
    'a certificate without its key',
    `${GOOD}server: { tls: { cert: cert.pem } }\n`,
    '5:16: server.tls.key: is required',
  ],
  [
    'a network that is too long',
    `${GOOD}server: { trusted_proxies: [10.0.0.0/99] }\n`,
    '5:29: server.trusted_proxies[0]: must be an IP address or a network in CIDR notation, as in 10.0.0.0/8',
  ],
  ['no workers', `${GOOD}server: { workers: 0 }\n`, '5:20: server.workers: must be at least 1'],
  [
    'a log level in capitals',
    `${GOOD}log: { level: WARN }\n`,
    '5:15: log.level: must be one of debug, info, warn, error, silent (did you mean "warn"?)',
  ],
  ['a log level in place of the section', `${GOOD}log: info\n`, '5:6: log: must be a map (KEY: VALUE)'],
  ['models as a list', `${GOOD}models: [gpt-5.5]\n`, '5:9: models: must be text'],
  [
    'curly quotes',
    `${GOOD}store: “sqlite:x”\n`,
    '5:8: store: must be sqlite:PATH, as in sqlite:./data/sluice.db, or redis://HOST',
  ],
]

void t.test('each common mistake is named with its fix', (t) => {
  checkMessages(t, {}, MISTAKES)
  t.end()
})
