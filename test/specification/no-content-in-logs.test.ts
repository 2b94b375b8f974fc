/**
 * Goal: prompts, replies and keys are in no log line, metric or error body, however a request ends.
 * Method: sends unique words through successes and every kind of failure, then searches all output of the
 * gateway.
 */
import t from 'tap'
import { newSecret } from '../../src/accounts/key-secret.js'
import type { Fault } from '../../src/emulator/faults/fault-table.js'
import { startGateway } from '../helpers/gateway.js'
import { ask, body, FAMILIES, post } from './exchange.js'

const PROMPT = 'canaryprompt7f3a'
const ANSWER = 'canaryanswer91bc'
const USER = 'canaryuser55e0'
const TOOL = 'canarytool28d4'
const PROVIDER_KEY = 'sk-canaryproviderkeyd00dfeed0123'
const WRONG_KEY = newSecret()

const FAULTS: readonly Fault[] = [
  { kind: 'status', code: 400 },
  { kind: 'status', code: 401 },
  { kind: 'status', code: 404 },
  { kind: 'status', code: 429 },
  { kind: 'status', code: 500, mode: 'html' },
  { kind: 'status', code: 529 },
  { kind: 'cut', bytes: 40, mode: 'reset' },
  { kind: 'cut', event: 3, mode: 'eof' },
  { kind: 'error', event: 3 },
  { kind: 'garbage', event: 2, mode: 'json' },
  { kind: 'garbage', event: 2, mode: 'bytes' },
  { kind: 'drop' },
  { kind: 'html' },
  { kind: 'gzip' },
  { kind: 'empty' },
]

function asked(model: string, stream: boolean) {
  return body({
    model,
    stream,
    messages: [
      { role: 'system', content: `${PROMPT} system` },
      { role: 'user', content: `Say ${PROMPT}. [[words: 30]]` },
    ],
    user: USER,
    tools: [{ type: 'function', function: { name: 'tool', description: TOOL } }],
  })
}

void t.test('no log line, metric or error has a part of a conversation or a key', async (t) => {
  const gateway = await startGateway(t, {
    upstreamOptions: `headers: { x-extra: ${PROVIDER_KEY} }`,
  })
  const errors: string[] = []
  const note = (status: number, text: string): void => {
    if (status !== 200) errors.push(text)
    else errors.push(...text.split('\n').filter((line) => line.startsWith('data: {"error"')))
  }
  for (const { model } of FAMILIES) {
    for (const stream of [false, true]) {
      t.equal((await ask(gateway, asked(model, stream))).status, 200)
      for (const fault of FAULTS) {
        gateway.emulator.script({ fault, times: 1 })
        const response = await gateway.chat(asked(model, stream))
        const text = await response.text().catch(() => '')
        note(response.status, text)
      }
      // A provider that repeats the request with its key.
      const echo = { error: { message: `bad key ${PROVIDER_KEY} for it`, type: 'x', code: 1 } }
      gateway.emulator.replay({
        status: 401,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(echo),
      })
      const { status, text } = await ask(gateway, asked(model, stream))
      t.equal(status, 502, "our key's failure is not the client's")
      note(status, text)
    }
  }
  for (const [bytes, headers] of [
    [`{"model":"gpt-4o","messages":[{"role":"user","content":"${PROMPT}`, {}],
    [`{"${PROMPT}":1,"${PROMPT}":2}`, {}],
    [JSON.stringify({ ...asked('gpt-4o', false), stop: 7 }), {}],
    [JSON.stringify(asked('unknown', false)), {}],
    [JSON.stringify(asked('gpt-4o', false)), { authorization: `Bearer ${WRONG_KEY}` }],
    [JSON.stringify(asked('gpt-4o', false)), { authorization: `Bearer ${gateway.secret}x` }],
  ] as const) {
    const length = { 'content-length': String(Buffer.byteLength(bytes)) }
    const { status, text } = await post(gateway, { ...length, ...headers }, [bytes])
    t.ok(status >= 400)
    if (!bytes.startsWith(`{"${PROMPT}`)) note(status, text)
  }
  t.ok(errors.length > 60, `${errors.length} errors`)
  const log = JSON.stringify(gateway.lines)
  const metrics = await gateway.metrics.text()
  t.ok(gateway.lines.length > 60 && metrics.length > 1_000)
  for (const word of [PROMPT, USER, TOOL, PROVIDER_KEY, WRONG_KEY, gateway.secret]) {
    t.notOk(log.includes(word), `${word.slice(0, 10)} is in no log line`)
    t.notOk(metrics.includes(word), 'nor in a metric')
    t.notOk(
      errors.some((text) => text.includes(word)),
      'nor in an error',
    )
  }
})

void t.test('no log line, metric or error has a part of a reply', async (t) => {
  const gateway = await startGateway(t)
  const chunk = (delta: object, finish: string | null): string =>
    `data: ${JSON.stringify({ id: 'c', model: 'gpt-4o', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  const headers = { 'content-type': 'text/event-stream' }
  const good = chunk({ content: ANSWER }, null)
  for (const stream of [
    good + chunk({}, 'stop') + 'data: [DONE]\n\n',
    good,
    `${good}data: {"choices":[{"delta":{"content":"${ANSWER}\n\n`,
    `${good}data: ${ANSWER}\n\n`,
    `data: ${ANSWER}\n\n`,
    ANSWER,
  ]) {
    gateway.emulator.replay({ status: 200, headers, body: stream })
    const response = await gateway.chat(body({ stream: true }))
    const text = await response.text().catch(() => '')
    const errors = text.split('\n').filter((line) => line.includes('"error"'))
    t.notOk(errors.some((line) => line.includes(ANSWER)))
  }
  gateway.emulator.replay({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: `{"choices": ${ANSWER}`,
  })
  const { status, text } = await ask(gateway, body())
  t.equal(status, 502)
  t.notOk(text.includes(ANSWER))
  t.notOk(JSON.stringify(gateway.lines).includes(ANSWER))
  t.notOk((await gateway.metrics.text()).includes(ANSWER))
})
