/**
 * Goal: `sluice check` prints notes about settings of a valid file that are probably unintended, and
 * `sluice explain` prints the candidates of a model with the settings that select them.
 * Method: the commands in this process on files.
 */
import t, { type Test } from 'tap'
import { sluiceHere } from './session.js'

const MODELS = `as_of: 2026-11-20
models:
  - { id: claude-opus-5-5, family: anthropic }
  - { id: gpt-5.4, family: openai }
`

const CONFIG = `upstreams:
  anthropic: { dialect: anthropic, base_url: https://a.example/v1, api_keys: ['\${A}', '\${A_2}'], breaker: { failures: 3 } }
  eu: { dialect: anthropic, base_url: https://eu.example/v1, api_key: '\${A}', probe: { path: /models, interval_ms: 500 } }
  openai: { dialect: openai-chat, base_url: https://o.example/v1, api_key: '\${O}' }
routes:
  - prefix: claude-
    when: { labels: { team: research }, min_prompt_tokens: 5000 }
    upstream: eu
  - prefix: claude-
    targets: [{ upstream: anthropic, weight: 9 }, { upstream: eu, weight: 1 }]
    sticky: conversation
    balance: least_latency
    fallback: [{ upstream: openai, model: gpt-5.4 }, { upstream: openai }]
    retry: { attempts: 2, budget: 0.1, max_wait_ms: 800 }
    hedge: { after_ms: 700, extra_spend: 0.05 }
  - { model: alone, upstream: openai, hedge: {} }
  - { prefix: gpt-, upstream: openai, fallback: [{ upstream: eu, model: claude-opus-5-5 }] }
`

interface Surroundings {
  /** Files beside the configuration, by name. */
  readonly files?: Record<string, string>
  readonly env?: Readonly<Record<string, string>>
}

async function sluice(
  t: Test,
  args: readonly string[],
  { files = {}, env = { A: 'a', O: 'o' } }: Surroundings = {},
): Promise<string> {
  const cwd = t.testdir({ 'gateway.yaml': CONFIG, 'models.yaml': MODELS, ...files })
  const { out, err } = await sluiceHere([...args, '--config', 'gateway.yaml'], { cwd, env })
  return out + err
}

void t.test('check notes unset keys, settings without effect and translation losses', async (t) => {
  const out = await sluice(t, ['check', '--losses'])
  t.match(out, 'note: upstream anthropic has fewer keys than listed: A_2 is not set')
  t.match(out, 'note: routes[1]: balance has no effect, since sticky decides')
  t.match(out, 'note: routes[2]: hedge has no second target and sends both requests to the same upstream')
  t.match(out, /note: routes\[3\]\.fallback\[0\]: eu \(anthropic\) loses .*logit_bias/)
  t.match(out, /note: routes\[3\]\.fallback\[0\]: eu \(anthropic\) refuses .*n above 1/)
  t.notMatch(out, 'fallback[0]: openai', 'features that the first target lacks too are not noted')
  t.match(
    out,
    "note: routes[1].fallback[1]: openai (openai-chat) receives the client's model name: set its model",
  )
  t.notMatch(out, 'routes[1].targets[1]', 'the same dialect loses nothing')
  const json = JSON.parse(await sluice(t, ['check', '--losses', '--json'])) as { notes: string[] }
  t.equal(json.notes.length, out.trim().split('\n').length - 1)
  t.match(await sluice(t, ['check'], { env: { O: 'o' } }), 'upstream anthropic has no key: A, A_2 is not set')
})

void t.test('check notes names of accounts that different claims can make', async (t) => {
  const identity = (account: string): string =>
    `${CONFIG}identity:\n  - { name: k8s, issuer: 'https://i.example', audience: [sluice], account: ${account} }\n`
  const notes = (account: string): Promise<string> =>
    sluice(t, ['check', '--no-store'], { files: { 'gateway.yaml': identity(account) } })
  const joined = "'${claims.ns}-${claims.app}'"
  t.match(await notes(joined), 'note: identity[0].account: different claims can make the same name')
  t.match(
    await notes(`{ from: ${joined}, map: { a-b: research } }`),
    'note: identity[0].account.from: different',
  )
  t.notMatch(await notes("'team-${claims.ns}'"), 'identity[0]', 'one claim makes a name of its own')
})

void t.test(
  'explain prints candidates in order with weights, breaker, losses, retry and hedge',
  async (t) => {
    const out = await sluice(t, ['explain', 'claude-opus-5-5'])
    t.match(out, "route      routes[1]: 'claude-' is the longest prefix")
    t.match(
      out,
      "not used: routes[0] prefix 'claude-', when label team=research, prompt of at least 5000 tokens",
    )
    const order = [
      'anthropic, model claude-opus-5-5: 90 %',
      'eu, model claude-opus-5-5: 10 %',
      'openai, model gpt-5.4: fallback',
      'openai, model claude-opus-5-5: fallback',
    ]
    t.same(
      order.map((text) => out.indexOf(text)),
      order.map((text) => out.indexOf(text)).sort((a, b) => a - b),
    )
    for (const text of [
      ...order,
      'breaker opens after 3 failures in a row or 50 % of at least 20 attempts in 10 s, tests after 30 s',
      'probe GET /models every 500 ms',
      'the same for all turns of a conversation, by weight',
      'up to 2 attempts on a target, for at most 10 % of the requests, with waits of at most 800 ms',
      'after 700 ms without content, for at most 5 % extra spend',
      /refuses .*n above 1/,
    ]) {
      t.match(out, text)
    }
    const json = JSON.parse(await sluice(t, ['explain', 'claude-opus-5-5', '--json'])) as object
    t.match(json, {
      routing: {
        when: null,
        sticky: 'conversation',
        retry: { attempts: 2, budget: 0.1, max_wait_ms: 800, non_idempotent: false },
        hedge: { after_ms: 700, extra_spend: 0.05 },
        candidates: [
          { upstream: 'anthropic', weight: 9, percent: 90, fallback: false, api_keys: 1 },
          { upstream: 'eu', percent: 10, probe: { path: '/models' } },
          { upstream: 'openai', model: 'gpt-5.4', fallback: true, weight: null },
          { upstream: 'openai', model: 'claude-opus-5-5' },
        ],
      },
    })
  },
)

void t.test('explain evaluates conditions with its options and the body', async (t) => {
  const research = ['explain', 'claude-opus-5-5', '--label', 'team=research']
  t.match(await sluice(t, research), 'route      routes[1]')
  const out = await sluice(t, [...research, '--prompt-tokens', '5000'])
  t.match(out, 'route      routes[0]')
  t.match(out, 'when       label team=research, prompt of at least 5000 tokens')
  t.match(
    await sluice(t, ['explain', 'claude-opus-5-5', '--label', 'team']),
    '--label must be NAME=VALUE, not "team"',
  )
  t.match(
    await sluice(t, ['explain', 'x', '--prompt-tokens', 'x']),
    '--prompt-tokens must be a whole number, not "x"',
  )
  const messages = [{ role: 'user', content: 'word '.repeat(8_000) }]
  const body = { 'body.json': JSON.stringify({ messages }) }
  t.match(await sluice(t, [...research, '--body', 'body.json'], { files: body }), 'route      routes[0]')
})

const MISTAKES = `store: redis://:canary-6f@redis:6379
upstreams:
  a: { dialect: openai-chat, base_url: https://a.example/v1, api_key: $OPENAI_API_KEY }
  d: { dialect: openai-chat, base_url: https://d.example/v1, api_key: os.environ/LITELLM_KEY }
  b:
    dialect: openai-chat
    base_url: https://b.example/v1
    api_key: sk-canaryabcdefghijklmnop
    headers: { x-auth: Bearer canary-0123456789abc, x-title: canary-0123456789abcdef, x-b: '\${O}' }
  c: { dialect: openai-chat, base_url: http://localhost:9/v1, api_keys: [not-needed, your-api-key-1234567890, none] }
routes:
  - { prefix: gpt-*, upstream: a }
  - { prefix: gpt-, upstream: a, when: { tools: true, min_prompt_tokens: 10 } }
  - { prefix: gpt-, upstream: b, when: { tools: true, images: true, min_prompt_tokens: 20 } }
  - { prefix: gpt-, upstream: b, when: { tools: true } }
  - { prefix: gpt-, upstream: c }
  - { model: '*-x', upstream: c }
`

void t.test(
  'check notes keys in the file, variables without braces and routes that never match',
  async (t) => {
    const files = { 'gateway.yaml': MISTAKES }
    const out = await sluice(t, ['check'], { files })
    const plain = 'contains a secret in plain text: use ${NAME} or ${file:PATH}'
    const never = 'can never match'
    const notes = [
      `store (line 1): ${plain}`,
      "upstreams.a.api_key (line 3): $OPENAI_API_KEY is not replaced: write ${OPENAI_API_KEY} for the variable's value",
      "upstreams.d.api_key (line 4): os.environ/LITELLM_KEY is not replaced: write ${LITELLM_KEY} for the variable's value",
      `upstreams.b.api_key (line 8): ${plain}`,
      `upstreams.b.headers.x-auth (line 9): ${plain}`,
      `routes[0].prefix: "gpt-*" ${never}: it is plain text, not a pattern, and no model id contains "*"; write prefix: gpt-`,
      `routes[5].model: "*-x" ${never}: it is plain text, not a pattern, and no model id contains "*"`,
      `routes[2] ${never}: routes[1] takes all of its requests before it`,
    ]
    for (const note of notes) t.ok(out.includes(`note: ${note}\n`), note)
    t.equal(out.match(/plain text:/g)?.length, 3, 'placeholder values are not noted')
    t.equal(out.match(/can never match/g)?.length, 3)
    t.notMatch(out, /canary/)
    t.match(out, /^gateway\.yaml: valid/)

    const strict = await sluice(t, ['check', '--strict'], { files })
    t.match(strict, /^gateway\.yaml: refused: --strict treats notes as errors/)
    for (const note of notes) t.ok(strict.includes(`error: ${note}\n`), note)
    const json = JSON.parse(await sluice(t, ['check', '--strict', '--json'], { files })) as {
      ok: boolean
      notes: string[]
      errors: { message: string }[]
    }
    t.equal(json.ok, false)
    t.same(
      json.errors.map(({ message }) => message),
      json.notes,
    )
    for (const note of notes) t.ok(json.notes.includes(note), note)
  },
)
