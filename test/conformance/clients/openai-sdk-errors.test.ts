/**
 * Goal: a failure reaches a program as the matching exception of OpenAI's client.
 * Method: the official SDK against a gateway whose emulated providers fail on demand; each per dialect.
 */
import {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from 'openai'
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { until } from '../../helpers/upstream.js'
import { clientOf, failureOf, MODELS, nothing, read, userMessages } from './sdk.js'

const gateway = await startGateway(t)
const client = clientOf(gateway)
const { completions } = client.chat
const { emulator } = gateway

void t.test('a wrong key is an AuthenticationError with the agreed body', async (t) => {
  for (const key of ['sk_wrong', `sk_${'0'.repeat(43)}`, 'nonsense']) {
    const unauthorized = clientOf(gateway, key)
    const calls = [
      () => unauthorized.chat.completions.create({ model: 'gpt-4o', messages: userMessages('hi') }),
      () => unauthorized.models.list(),
    ]
    for (const call of calls) {
      const error = await failureOf(call())
      t.ok(error instanceof AuthenticationError)
      t.equal(error.status, 401)
      t.match(error.error, { type: 'authentication_error', code: 401 })
      t.notMatch(JSON.stringify(error.error), key, 'the key is not repeated')
    }
  }
})

void t.test('an unknown model is a NotFoundError that names it', async (t) => {
  const error = await failureOf(completions.create({ model: 'llama-9', messages: userMessages('hi') }))
  t.ok(error instanceof NotFoundError)
  t.match(error.error, { type: 'invalid_request_error', code: 'model_not_found', param: 'model' })
  t.match(error.message, 'llama-9')
})

for (const model of MODELS) {
  const ask = { model, messages: userMessages('hi') }

  void t.test(`${model}: a bad field is a BadRequestError that names it`, async (t) => {
    const before = emulator.ledger.length
    const bad: [object, string][] = [
      [{ temperature: 3 }, 'temperature'],
      [{ temperature: 'warm' }, 'temperature'],
      [{ max_tokens: 0 }, 'max_tokens'],
      [{ messages: [] }, 'messages'],
      [{ messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role'],
      [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    ]
    for (const [fields, param] of bad) {
      const body = { ...ask, ...fields }
      const error = await failureOf(client.post('/chat/completions', { body }))
      t.ok(error instanceof BadRequestError, param)
      t.equal(error.param, param)
      t.match(error.message, param)
      t.match(error.error, { type: 'invalid_request_error', code: null })
    }
    t.equal(emulator.ledger.length, before, 'and nothing went upstream')
  })

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole'
    const asked = { ...ask, stream }

    void t.test(`${model}: an upstream limit is a RateLimitError, ${how}`, async (t) => {
      const fault = { kind: 'status', code: 429, 'retry-after': '7' } as const
      const restore = emulator.script({ fault })
      const error = await failureOf(completions.create(asked))
      restore()
      t.ok(error instanceof RateLimitError)
      t.equal(error.headers?.get('retry-after'), '7')
      t.match(error.error, { type: 'rate_limit_error', kind: 'upstream_busy' })
      t.equal(error.code, 'rate_limit_exceeded')
    })

    void t.test(`${model}: an upstream failure is a 502, ${how}`, async (t) => {
      for (const mode of ['json', 'html', 'empty']) {
        const restore = emulator.script({ fault: { kind: 'status', code: 500, mode } })
        const error = await failureOf(completions.create(asked))
        restore()
        t.ok(error instanceof InternalServerError, mode)
        t.equal(error.status, 502, mode)
        t.match(error.error, { type: 'api_error', code: null, kind: 'upstream_failed' })
      }
    })

    void t.test(`${model}: a refused credential is the gateway's own fault, ${how}`, async (t) => {
      const restore = emulator.script({ fault: { kind: 'status', code: 401 } })
      const error = await failureOf(completions.create(asked))
      restore()
      t.equal(error.status, 502)
      t.match(error.error, { kind: 'upstream_denied' })
    })
  }

  void t.test(`${model}: an error before the first content has its status`, async (t) => {
    const restore = emulator.script({ fault: { kind: 'error', event: 0 } })
    const error = await failureOf(completions.create({ ...ask, stream: true }))
    restore()
    t.ok(error instanceof InternalServerError || error instanceof RateLimitError, 'a status, not an event')
    t.ok([null, 'server_error', 'rate_limit_exceeded'].includes(error.code ?? null), error.code ?? '')
  })

  void t.test(`${model}: an error after content throws and no finish was seen`, async (t) => {
    const messages = userMessages('talk [[words: 60]] [[pace: 2]]')
    const restore = emulator.script({ fault: { kind: 'error', event: 8 } })
    const seen = nothing()
    const stream = await completions.create({ model, messages, stream: true })
    const error = await failureOf(read(stream, seen))
    restore()
    t.ok(error instanceof APIError)
    t.ok(seen.text.length > 0, 'content had come')
    t.ok(
      seen.finishes.every((finish) => finish === null),
      'no finish',
    )
    t.match(error.error, { type: /_error$/, kind: /^upstream_/ })
  })

  void t.test(`${model}: a stream cut after content throws and no finish was seen`, async (t) => {
    for (const mode of ['reset', 'eof', 'chunk']) {
      const restore = emulator.script({ fault: { kind: 'cut', event: 8, mode } })
      const seen = nothing()
      const messages = userMessages('talk [[words: 60]] [[pace: 2]]')
      const stream = await completions.create({ model, messages, stream: true })
      const error = await failureOf(read(stream, seen))
      restore()
      t.ok(seen.text.length > 0, mode)
      t.ok(
        seen.finishes.every((finish) => finish === null),
        mode,
      )
      t.match(error.error, { kind: /^upstream_(truncated|failed)$/, code: null }, mode)
    }
  })

  void t.test(`${model}: cancelling closes the upstream connection`, async (t) => {
    const messages = userMessages('talk [[words: 2000]] [[pace: 10]]')
    const stream = await completions.create({ model, messages, stream: true })
    const entry = emulator.ledger.at(-1)
    let chunks = 0
    for await (const chunk of stream) {
      chunks += chunk.choices.length
      if (chunks === 5) break
    }
    const watch = stopwatch()
    await until(() => entry?.outcome === 'client_closed')
    t.ok(watch() < 1000)

    const controller = new AbortController()
    const whole = completions.create(
      { model, messages: userMessages('think [[fault: hang]]') },
      { signal: controller.signal },
    )
    const count = emulator.ledger.length
    await until(() => emulator.ledger.length > count - 1 && emulator.open() > 0)
    controller.abort()
    await t.rejects(whole, 'the caller has its abort')
    await until(() => emulator.open() === 0)
    t.equal(emulator.ledger.at(-1)?.outcome, 'client_closed')
  })
}

void t.test('an upstream that cannot be reached is a 502, not a lost connection', async (t) => {
  const dark = await startGateway(t, { upstreams: { openai: 'http://127.0.0.1:9/v1' } })
  const error = await failureOf(
    clientOf(dark).chat.completions.create({ model: 'gpt-4o', messages: userMessages('hi') }),
  )
  t.notOk(error instanceof APIConnectionError)
  t.equal(error.status, 502)
  t.match(error.error, { kind: 'upstream_unreachable' })
})
