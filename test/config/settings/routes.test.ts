/**
 * Goal: routes, their targets and their failure handling have the values of the file, and each invalid
 * setting of a route is reported with its position.
 * Method: texts through the loader.
 */
import t from 'tap'
import { isConfigured, type Config } from '../../../src/config/config.js'
import type { Env } from '../../../src/config/load-config.js'
import { changed, loadText, problemsOf } from '../sample.js'

const ROUTE = '  - { prefix: gpt-, upstream: openai }'

function configOf(text: string, env?: Env): Config {
  const loaded = loadText(text, env)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  return loaded.config
}

void t.test('of several keys, duplicates and those with an unset variable are omitted', (t) => {
  const keys = "api_keys: ['${KEY}', '${KEY_2}', '${KEY_3}', in-the-file]"
  const upstream = (env: Env) => {
    const found = configOf(changed('api_key: ${KEY}', keys), env).upstreams['openai']
    if (found === undefined) throw new Error('no upstream')
    return found
  }
  t.match(upstream({ KEY: 'a', KEY_2: 'b', KEY_3: 'a' }), {
    apiKeys: ['a', 'b', 'in-the-file'],
    apiKeySource: 'KEY, KEY_2, KEY_3',
    unsetKeyVariables: [],
  })
  const some = upstream({ KEY_2: 'b' })
  t.match(some, { apiKeys: ['b', 'in-the-file'], unsetKeyVariables: ['KEY', 'KEY_3'] })
  t.equal(isConfigured(some), true)
  const none = configOf(changed('api_key: ${KEY}', "api_keys: ['${KEY}', '${KEY_2}']"), {})
  t.match(none.upstreams['openai'], { apiKeys: [], apiKeySource: 'KEY, KEY_2' })
  t.equal(none.upstreams['openai'] && isConfigured(none.upstreams['openai']), false)
  t.match(
    problemsOf(changed('api_key: ${KEY}', "api_keys: ['${KEY}', 'a b']"))[0],
    /:5:26: upstreams.openai.api_keys\[1\]: must be printable ASCII/,
  )
  t.end()
})

void t.test('a route has its conditions, targets and failure handling', (t) => {
  const config = configOf(`
upstreams:
  a: { dialect: openai, base_url: https://a.example/v1, breaker: { failures: 2, window_seconds: 5 }, probe: { interval_ms: 500 } }
  b: { dialect: anthropic, base_url: https://b.example/v1 }
routes:
  - prefix: claude-
    when: { labels: { team: research, area: eu }, images: true, tools: false, min_prompt_tokens: 100000 }
    upstream: b
  - prefix: claude-
    targets: [{ upstream: b, weight: 9 }, { upstream: a, weight: 0.5, model: gpt-5.4, abort: { min_requests: 20 } }]
    sticky: conversation
    balance: least_latency
    fallback: [{ upstream: a, model: gpt-5.5 }, { upstream: a }]
    retry: { max_wait_ms: 0, non_idempotent: true }
    hedge: {}
    shadow: { upstream: a, model: gpt-5.4, usd_per_day: 2.5 }
`)
  t.match(config.upstreams['a'], {
    breaker: { failures: 2, errorRate: 0.5, minRequests: 20, windowMs: 5_000, openMs: 30_000 },
    probe: { path: '/models', intervalMs: 500 },
  })
  t.match(config.routes[0], {
    when: {
      labels: { area: 'eu', team: 'research' },
      images: true,
      tools: false,
      minPromptTokens: 100_000,
    },
    targets: [{ upstream: 'b', model: null, weight: 1 }],
  })
  t.strictSame(config.routes[1], {
    match: { prefix: 'claude-' },
    strip: '',
    when: null,
    cache: null,
    cacheControl: null,
    targets: [
      { upstream: 'b', model: null, weight: 9, abort: null },
      {
        ...{ upstream: 'a', model: 'gpt-5.4', weight: 0.5 },
        abort: { errorRate: 0.05, minRequests: 20, windowMs: 3_600_000 },
      },
    ],
    sticky: 'conversation',
    balance: 'least_latency',
    fallback: [
      { upstream: 'a', model: 'gpt-5.5' },
      { upstream: 'a', model: null },
    ],
    retry: { attempts: 3, budget: 0.2, maxWaitMs: 0, nonIdempotent: true },
    hedge: { afterMs: 1_500, extraSpend: 0.02 },
    shadow: {
      upstream: 'a',
      model: 'gpt-5.4',

      percent: 1,
      nanoUsdPerDay: 2_500_000_000,
      concurrent: 16,
    },
    guardrails: [],
  })
  t.end()
})

/** Name of the rule, the file's text, the line that is printed after the file's name. */
const RULES: [string, string, string][] = [
  [
    'unknown upstream of a shadow',
    changed('upstream: openai }', 'upstream: openai, shadow: { upstream: opnai } }'),
    ':7:59: routes[0].shadow.upstream: is not an upstream of this file (did you mean "openai"?)',
  ],
  [
    'a route whose targets may all be aborted',
    changed('upstream: openai }', 'targets: [{ upstream: openai, abort: {} }] }'),
    ':7:30: routes[0].targets: must have a target without abort and with a weight above 0, in case the others are aborted',
  ],
  [
    'an error rate of zero',
    changed(
      'upstream: openai }',
      'targets: [{ upstream: openai }, { upstream: openai, model: x, abort: { error_rate: 0 } }] }',
    ),
    ':7:104: routes[0].targets[1].abort.error_rate: must be above 0',
  ],
  [
    'unknown upstream of a fallback',
    changed('upstream: openai }', 'upstream: openai, fallback: [{ upstream: opnai }] }'),
    ':7:62: routes[0].fallback[0].upstream: is not an upstream of this file (did you mean "openai"?)',
  ],
  [
    'a misspelt fallback',
    changed('upstream: openai }', 'upstream: openai, fallbacks: [{ upstream: openai }] }'),
    ':7:39: routes[0].fallbacks: Unknown key "fallbacks" (did you mean "fallback"?)',
  ],
  [
    'the same target twice',
    changed('upstream: openai }', 'targets: [{ upstream: openai, weight: 9 }, { upstream: openai }] }'),
    ':7:64: routes[0].targets[1]: repeats an earlier target: remove it, or set retry.attempts to retry one target',
  ],
  [
    'a target as its own fallback',
    changed('upstream: openai }', 'upstream: openai, fallback: [{ upstream: openai }] }'),
    ':7:50: routes[0].fallback[0]: repeats an earlier target: remove it, or set retry.attempts to retry one target',
  ],
  [
    'weights that are all zero',
    changed('upstream: openai }', 'targets: [{ upstream: openai, weight: 0 }] }'),
    ':7:30: routes[0].targets: must have at least one weight above 0',
  ],
  [
    'a negative weight',
    changed('upstream: openai }', 'targets: [{ upstream: openai, weight: -1 }] }'),
    ':7:59: routes[0].targets[0].weight: must be at least 0',
  ],
  [
    'when without a condition',
    changed('upstream: openai }', 'upstream: openai, when: {} }'),
    ':7:45: routes[0].when: has no condition: add labels, images, tools, min_prompt_tokens or plugin',
  ],
  [
    'the same conditions twice',
    changed(
      ROUTE,
      `${ROUTE}\n  - { prefix: gpt-, upstream: openai, when: { tools: true, labels: { a: b, c: d } } }\n  - { prefix: gpt-, upstream: openai, when: { labels: { c: d, a: b }, tools: true } }`,
    ),
    ':9:5: routes[2]: has the same models and conditions as routes[1]: remove one of them',
  ],
  [
    'an unknown word for sticky',
    changed('upstream: openai }', 'upstream: openai, sticky: conversations }'),
    ':7:47: routes[0].sticky: must be one of none, conversation, key (did you mean "conversation"?)',
  ],
]

for (const [rule, text, expected] of RULES) {
  void t.test(rule, (t) => {
    t.equal(problemsOf(text)[0], `/etc/sluice/gateway.yaml${expected}`)
    t.end()
  })
}

void t.test('a target that does not support the requests of its route is refused', (t) => {
  const models = `as_of: 2026-11-20
models:
  - { id: embed-1, family: openai, embedding: true }
  - { id: embed-2, family: google, embedding: true }
  - { id: chat-1, family: openai }
  - { id: chat-embed, family: openai, embedding: true }
`
  const problems = (routes: string): string[] =>
    problemsOf(
      `upstreams:
  a: { dialect: openai, base_url: https://a.example/v1 }
  b: { dialect: anthropic, base_url: https://b.example/v1 }
  c: { dialect: gemini, base_url: https://c.example/v1 }
routes:
  - { ${routes} }
`,
      {},
      { '/etc/sluice/models.yaml': models },
    )
  const NO_ENDPOINT = /routes\[0\]\.fallback\[0\]: uses the dialect anthropic, which has no embeddings/
  t.match(problems('prefix: embed-, upstream: a, fallback: [{ upstream: b }]')[0], NO_ENDPOINT)
  t.match(problems('model: embed-1, upstream: a, fallback: [{ upstream: b }]')[0], NO_ENDPOINT)
  t.match(
    problems('model: vectors, targets: [{ upstream: a, model: embed-1 }, { upstream: c, model: chat-1 }]')[0],
    /routes\[0\]\.targets\[1\]: names a model without embeddings/,
  )
  t.same(
    problems(
      'model: vectors, targets: [{ upstream: a, model: embed-1 }], fallback: [{ upstream: c, model: embed-2 }]',
    ),
    [],
  )
  t.same(problems('prefix: chat-, upstream: a, fallback: [{ upstream: b }]'), [], 'chat models too')
  t.same(problems('prefix: other-, upstream: a, fallback: [{ upstream: b }]'), [], 'unknown models')
  t.end()
})
