/**
 * Goal: an excerpt has the line of the file with a caret below the column, and no secrets.
 * Method: lines with errors, and lines with secrets in every possible place.
 */
import t from 'tap'
import { excerpt } from '../../src/config/config-problem.js'

void t.test('the caret is below the column', (t) => {
  const text = 'upstreams:\r\n  a: { connect_ms: 3s }\r\n'
  t.equal(excerpt(text, 2, 20), '   2 |   a: { connect_ms: 3s }\n     |                    ^')
  t.equal(excerpt(text, 3, 1), null, 'an empty line')
  t.equal(excerpt(text, 9, 1), null, 'no such line')
  const long = `a: [${'x, '.repeat(100)}WRONG: 1, ${'y, '.repeat(100)}]`
  const [line = '', caret = ''] = (excerpt(long, 1, 305) ?? '').split('\n')
  t.ok(line.length < 180)
  t.equal(line.indexOf('WRONG'), caret.indexOf('^'))
  const shown = excerpt('a: \u001B[2J\u202Ex', 1, 1) ?? ''
  t.notOk(/[^ -~\n]/.test(shown), 'no control characters')
  t.end()
})

void t.test('possible secrets are masked, and the rest of the line is shown', (t) => {
  const canary = 'canary-4b'
  for (const line of [
    `    api_key: ${canary}`,
    `    "api_key" : "${canary}"`,
    `    api_keys: [x, '${canary}']`,
    `  a: { api_key: ${canary}, dialct: openai }`,
    `  a: { headers: { x-auth: ${canary}, 'x-b': '${canary}: b' } }`,
    `  proxy: http://user:${canary}@proxy:3128`,
    `store: rediss://:${canary}/x@redis:6379`,
    `      - ${canary}`,
    canary,
    `escrow: { key: ${canary} }`,
  ]) {
    t.notMatch(excerpt(line, 1, 1), /canary|4b/, line)
  }
  const lines = ['headers:', '', '  # a note', `  x-auth: ${canary}`, `  x-b: |`, `    a: ${canary}`]
  t.notMatch(excerpt(lines.join('\n'), 4, 1), /canary/, 'in a map of headers')
  t.notMatch(excerpt(lines.join('\n'), 6, 1), /canary/, 'in a block text within it')
  for (const key of ['sk-abcdefghijklmnopqrstuvwx', 'Bearer abc-def', 'a8f5f167f44f4964e6c998dee827110c'])
    t.notMatch(excerpt(`wrong: ${key}`, 1, 1), /abc|8f5/, key)
  t.match(excerpt('  a: { api_key: ${KEY}, dialct: openai }', 1, 1), /\$\{KEY\}, dialct: \*{3} \}/)
  t.match(excerpt('  - { prefix: gpt-, upstream: opnai }', 1, 1), 'upstream: opnai }')
  t.end()
})

void t.test('keys, comments, names of models and what follows words like max_keys are shown', (t) => {
  for (const [line, expected = line] of [
    ['  # two providers, one key each'],
    ['  api_key: ${KEY} # from the vault'],
    ['    - ${A} # the first one'],
    ['plans: { pro: { price_usd: 1, max_keys: ten } }'],
    ['  - { prefix: claude-sonnet-4-5-20250929, upstrem: one }'],
    ['  eu-upstream-for-research-2: { dialct: openai }'],
    ['  a: { dialct: groq, base_url: https://api.groq.com/openai/v1/beta }'],
    ['  a: { tls: { ca_fil: /etc/ssl/certs/own-ca-2026.pem } }'],
    [
      '  url: https://hooks.example.com/services/T0A1B2C3/abcdefGHIJKLmnopqrst/v1, evnts: []',
      '  url: https://hooks.example.com/services/***/***/v1, evnts: []',
    ],
    ['  api_key: abc, max_wait_2: x', '  api_key: ***, max_wait_2: ***'],
    ['"api_key": "abc", "dialct": "x"', '"api_key": "***", "dialct": "***"'],
    ['escrow: { ttl_seconds: 2592000, key: ab }', 'escrow: { ttl_seconds: 2592000, key: *** }'],
    ['  a: { api_key: ab, timeouts: { idle_ms: 30 } }', '  a: { api_key: ***, timeouts: { idle_ms: 30 } }'],
    ['headers: { X-Title: abc, x-b: d }', 'headers: { X-Title: ***, x-b: *** }'],
  ] as const) {
    t.equal(excerpt(line, 1, 1)?.split('\n')[0], `   1 | ${expected}`)
  }
  t.end()
})

void t.test(
  'a mask does not show the length or the marks of a secret, and the caret stays below its place',
  (t) => {
    const lines = [
      'q',
      'sk-ab',
      'sk-proj-abcdefgh1234567890-abcd',
      'Bearer:abc:def',
      '550e8400-e29b-41d4-a716-446655440000',
    ]
    for (const secret of lines) {
      const line = `  a: { api_key: ${secret}, dialct: openai }`
      const [source = '', caret = ''] = (excerpt(line, 1, line.indexOf('dialct') + 1) ?? '').split('\n')
      t.equal(source, '   1 |   a: { api_key: ***, dialct: *** }', secret)
      t.equal(caret.indexOf('^'), source.indexOf('dialct'), 'behind the secret')
      for (const column of [line.indexOf(secret) + 1, line.indexOf(secret) + secret.length]) {
        const [shown = '', inside = ''] = (excerpt(line, 1, column) ?? '').split('\n')
        t.equal(inside.indexOf('^'), shown.indexOf('***'), 'within it: at its start')
      }
    }
    const own = 'routes: [{ model: "****", upstrem: a }]'
    t.equal(excerpt(own, 1, 1)?.split('\n')[0], `   1 | ${own}`, 'asterisks of the file stay')
    t.end()
  },
)

void t.test('secrets in comments, in values with colons and marks, and in other words are masked', (t) => {
  for (const line of [
    '  # api_key: canary',
    '  max_tokens: 5 # password: canary',
    'x: 1 # sk-canary-abcdefgh1234',
    'x: 1 # a8f5f167f44f4964e6c998dee827110c',
    'password: some #canary',
    'password: "some # canary"',
    "  password: it's # canary",
    '    api_key: canary: b',
    'passwords: canary',
    'tokens: [canary]',
    'x: 550e8400-e29b-41d4-a716-446655440000',
  ]) {
    t.notMatch(excerpt(line, 1, 1), /canary|8f5|550e/, line)
  }
  t.end()
})

void t.test('a line of any length is masked in linear time', (t) => {
  for (const part of ['key', 'a1', 'key:', '{', '://', 'key "', '-', '${a', ' ']) {
    const line = `a: ${part.repeat(1_000_000 / part.length)}`
    // The CPU time: on a busy machine the process waits for its turn.
    const before = process.cpuUsage()
    excerpt(line, 1, 500_000)
    t.ok(process.cpuUsage(before).user < 1_500_000, part)
  }
  t.end()
})
