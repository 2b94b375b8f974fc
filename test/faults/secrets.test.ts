/**
 * Goal: no configured secret leaves the gateway in an error, a log line or a ledger entry, for any text of an
 * upstream, in any dialect, whole or shortened, encoded or not.
 * Method: upstreams that quote the credential that they were sent, in each field that may contain a message.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load-config.js'
import { passwordsIn, secretsOf } from '../../src/config/secret-settings.js'
import { createSnapshot } from '../../src/config/create-snapshot.js'
import { maskedConfig } from '../../src/config/masked-config.js'
import { hideSecrets, SecretFinder } from '../../src/hide-secrets.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { ask, question, UPSTREAMS } from './scene.js'
import { httpReply, startSocketUpstream } from './socket-upstream.js'

/** It resembles no vendor's key, so that only the configuration identifies it. */
const KEY = 'corp/Token+77"q=XyZzY-0123456789'
const HEADER = 'tenant:4711:Geheimnis'

/** The first 12 characters of each form that is searched for. */
const HEADS = [
  KEY,
  HEADER,
  encodeURIComponent(KEY),
  Buffer.from(KEY).toString('base64'),
  Buffer.from(`a${KEY}`).toString('base64').slice(2),
  Buffer.from(`ab${KEY}`).toString('base64').slice(3),
].map((form) => form.slice(0, 12))

const FORMS: Readonly<Record<string, string>> = {
  whole: KEY,
  'a beginning': KEY.slice(0, 15),
  'in a URL': `https://example.com/v1?x=${encodeURIComponent(KEY)}`,
  'in base64': `Basic ${Buffer.from(`user:${KEY}`).toString('base64')}`,
  'a header': `the header x-tenant: ${HEADER} is unknown`,
}

/** Error bodies of each upstream's format. */
const ERRORS: Readonly<Record<string, (message: string) => object>> = {
  openai: (message) => ({ error: { message, type: 'invalid', code: message, param: message } }),
  anthropic: (message) => ({ type: 'error', error: { type: message, message } }),
  google: (message) => ({ error: { code: 400, message, status: message } }),
}
/** The same inside a stream that has begun. */
const STREAMS: Readonly<Record<string, (message: string) => string>> = {
  openai: (message) =>
    `data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\ndata: ${json(ERRORS['openai']?.(message))}\n\n`,
  anthropic: (message) =>
    'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"c","usage":{"input_tokens":1,"output_tokens":1}}}\n\n' +
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n' +
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n' +
    `event: error\ndata: ${json(ERRORS['anthropic']?.(message))}\n\n`,
  google: (message) =>
    `data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}]}\n\ndata: ${json(ERRORS['google']?.(message))}\n\n`,
}

function json(value: unknown): string {
  return JSON.stringify(value)
}

interface Stage {
  readonly gateway: TestGateway
  /** The reply of the upstreams. */
  reply: string
}

async function staged(t: Test): Promise<Stage> {
  const stage = { reply: '' }
  const upstream = await startSocketUpstream(t, ({ socket }) => socket.end(stage.reply))
  const url = upstream.url
  const gateway = await startGateway(t, {
    upstreams: { openai: url, anthropic: url, gemini: url },
    upstreamOptions: `headers: { x-tenant: '${HEADER}' }`,
  })
  const text = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(gateway.configFile, text.replaceAll('api_key: emulated', `api_key: '${KEY}'`))
  gateway.reload()
  return Object.assign(stage, { gateway })
}

function assertClean(t: Test, text: string, name: string): void {
  for (const head of HEADS) t.notOk(text.includes(head), `${name}: ${head}`)
}

void t.test('an error of an upstream does not reveal its credential', async (t) => {
  const stage = await staged(t)
  const { gateway } = stage
  for (const [form, message] of Object.entries(FORMS)) {
    for (const { name, model } of UPSTREAMS) {
      const body = json(ERRORS[name]?.(`Bad: ${message}!`))
      for (const status of [400, 404, 429, 500]) {
        const lines = [`x-request-id: ${message}`, 'content-type: application/json']
        stage.reply = httpReply(status, lines, body)
        const seen = await ask(gateway, question(model, false))
        assertClean(t, json(seen), `${name} ${status}, ${form}`)
      }
      stage.reply = httpReply(200, ['content-type: application/json'], body)
      assertClean(t, json(await ask(gateway, question(model, false))), `${name} 200, ${form}`)
      const events = STREAMS[name]?.(`Bad: ${message}!`) ?? ''
      stage.reply = httpReply(200, ['content-type: text/event-stream'], events)
      const streamed = await ask(gateway, question(model, true))
      t.match(streamed.body, /Hi/, 'the stream has begun')
      t.match(streamed.body, /Bad: /, 'and tells the rest of the message')
      assertClean(t, json(streamed), `${name} stream, ${form}`)
    }
  }
  assertClean(t, json(gateway.lines), 'the log')
})

void t.test("a client's own key in an error is hidden", async (t) => {
  const gateway = await startGateway(t)
  const seen = await ask(gateway, question(`no-${gateway.secret}`, false))
  t.equal(seen.status, 404)
  t.notMatch(json(seen), gateway.secret)
  t.notMatch(json(gateway.lines), gateway.secret)
})

void t.test('/config shows no secret of any setting', async (t) => {
  const { gateway } = await staged(t)
  const text = readFileSync(gateway.configFile, 'utf8')
  // The operator has put a key into a setting that is shown.
  const file = text.replace('routes:\n', `routes:\n  - { model: '${KEY}', upstream: openai }\n`)
  writeFileSync(gateway.configFile, file)
  const snapshot = gateway.reload()
  assertClean(t, json(maskedConfig(snapshot)), '/config')
})

void t.test('every kind of secret of a configuration is found', (t) => {
  const folder = t.testdir({
    'gateway.yaml': `
server: { host: 127.0.0.1, port: 0 }
store: rediss://user:pa:ss%40word-redis@127.0.0.1:6379/0
escrow: { key: escrow-key-0123456789-0123456789-0123 }
upstreams:
  one:
    dialect: openai-chat
    base_url: https://example.com/v1
    api_key: the-api-key
    headers: { authorization: 'Basic dXNlcjpiYXNpYy1wYXNz', x-secret: header-secret, x-title: Our App }
    query: { code: query-secret }
routes: [ { prefix: gpt-, upstream: one } ]
plans:
  starter: { price_usd: 20, max_keys: 5 }
  pro: { price_usd: 50, max_keys: 20 }
  max: { price_usd: 100, max_keys: unlimited }
models: models.yaml
`,
    'models.yaml': readFileSync('config/models.yaml', 'utf8'),
  })
  const loaded = loadConfig(`${folder}/gateway.yaml`, {})
  if (!loaded.ok) throw new Error(json(loaded.errors))
  createSnapshot(loaded, { generation: 1, loadedAtMs: 0 })
  const secrets = [
    'pa:ss%40word-redis',
    'pa:ss@word-redis',
    'escrow-key-0123456789-0123456789-0123',
    'the-api-key',
    'basic-pass',
    'dXNlcjpiYXNpYy1wYXNz',
    'header-secret',
    'query-secret',
  ]
  t.same(secretsOf(loaded.config).sort(), secrets.sort())
  for (const secret of secrets) t.equal(hideSecrets(`a ${secret} b`), 'a [redacted] b')
  const sentinels = passwordsIn('redis+sentinel://s1,s2/main?sentinel_password=p%20q&db=1')
  t.same(sentinels, ['p%20q', 'p q'])
  t.end()
})

void t.test('what is hidden does not tell how a secret goes on after its beginning', (t) => {
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2lnbmF0dXJl'
  const finder = new SecretFinder([jwt, KEY, 'https://hooks.example.com/services/T0/B0/xyz'])
  const goals: readonly (readonly [string, number])[] = [
    [jwt, 21],
    [KEY, 15],
    ['https://hooks.example.com/services/T0/B0/xyz', 35],
  ]
  for (const [secret, known] of goals) {
    for (const hide of [finder.hide.bind(finder), finder.hideParts.bind(finder)]) {
      const seen = new Set<string>()
      for (const guess of `${secret[known] ?? ''}aZ09-_.~+/=%&:;,@!?#$*|^`) {
        for (const more of ['', 'a', '@', secret.slice(known + 1, known + 2), secret.slice(known + 1, -1)]) {
          seen.add(hide(`The model '${secret.slice(0, known)}${guess}${more}' is not available`, '*'))
        }
      }
      // Fifteen characters are no part of a secret yet.
      if (known < 16 && seen.size > 2) continue
      t.same([...seen], ["The model '*' is not available"], `${secret.slice(0, 5)}: ${String(known)} known`)
    }
  }
  t.equal(
    finder.hide(`redis://:${jwt}@host:6379`, '*'),
    'redis://:*@host:6379',
    'nothing goes with a whole one',
  )
  t.end()
})

void t.test('secrets are found in time linear in the text', (t) => {
  const finder = new SecretFinder(['aaaaaaaaaaaaaaaaaaaaaaaab', `${'ab'.repeat(2_000)}c`])
  const timeOf = (length: number): number => {
    const texts = ['a'.repeat(length), 'ab'.repeat(length / 2), 'aaaaaaaaaaa '.repeat(length / 12)]
    const began = performance.now()
    for (const text of texts) finder.hide(text, '*')
    return performance.now() - began
  }
  timeOf(100_000)
  t.ok(timeOf(4_000_000) < 2_000, 'twelve million characters')
  t.equal(finder.hide('x aaaaaaaaaaaa y', '*'), 'x * y', 'a beginning of 12')
  t.equal(finder.hide('x aaaaaaaaaaa y', '*'), 'x aaaaaaaaaaa y', 'a beginning of 11')
  t.equal(new SecretFinder(['short']).hide('short', '*'), 'short')
  t.end()
})
