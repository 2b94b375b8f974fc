/**
 * Goal: the codecs can be used as a library, typed, in every direction.
 * Method: the functions of `sluice/dialects` are called for all pairs; its exported types check a program.
 */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import {
  GatewayError,
  StreamTranslator,
  decodeReply,
  decodeRequest,
  encodeReply,
  encodeRequest,
  type DialectName,
  type JsonObject,
} from '../../src/formats/codecs.js'
import { objectOf } from '../../src/base/json.js'
import { isToday } from '../helpers/long-suite.js'

type ClientDialect = Exclude<DialectName, 'converse'>

const BODIES: Readonly<Record<ClientDialect, JsonObject>> = {
  'openai-chat': { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  'openai-responses': { model: 'm', input: 'hi' },
  anthropic: { model: 'm', max_tokens: 99, messages: [{ role: 'user', content: 'hi' }] },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
}
const DIALECTS: readonly ClientDialect[] = ['openai-chat', 'openai-responses', 'anthropic', 'gemini']
const SEED = { id: 'id_1', createdAtSeconds: 1, model: 'm' }
const CHAT_REPLY: JsonObject = {
  id: 'c',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
}
const CHAT_STREAM = [
  'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n',
  'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
]

void t.test('a request of each format is written in each format', (t) => {
  for (const from of DIALECTS) {
    const request = decodeRequest({ dialect: from, body: BODIES[from], model: 'm' })
    for (const to of [...DIALECTS, 'converse' as const]) {
      const { path, headers, body, losses } = encodeRequest({ from, to, request })
      t.match(path, /^\/\w/, `${from} to ${to}`)
      t.equal(headers['content-type'], 'application/json')
      t.match(body, '"hi"')
      t.ok(
        losses.every((path) => path === 'max_completion_tokens'),
        'short answers are approximated',
      )
    }
  }
  t.end()
})

void t.test('a whole reply and a stream reach each format', (t) => {
  for (const to of DIALECTS) {
    const request = decodeRequest({ dialect: to, body: BODIES[to], model: 'm', stream: true })
    const reply = decodeReply('openai-chat', CHAT_REPLY, request)
    t.match(encodeReply(to, reply, { request, seed: SEED }), '"hello"', to)
    const stream = new StreamTranslator({ from: 'openai-chat', to, request, seed: SEED })
    const written = CHAT_STREAM.map((chunk) => stream.write(Buffer.from(chunk))).join('')
    t.match(written + stream.end(), 'hello', to)
    t.equal(stream.outcome, 'complete')
    t.equal(stream.hasContent, true)
  }
  t.end()
})

void t.test("a stream without its terminator fails, in the client's format", (t) => {
  const request = decodeRequest({ dialect: 'anthropic', body: BODIES.anthropic })
  const stream = new StreamTranslator({ from: 'openai-chat', to: 'anthropic', request, seed: SEED })
  const text = stream.write(Buffer.from(CHAT_STREAM[0] ?? '')) + stream.end()
  t.equal(stream.outcome, 'failed')
  t.equal(stream.error?.kind, 'upstream_truncated')
  t.match(text, 'event: error')
  t.equal(stream.write(Buffer.from(CHAT_STREAM[1] ?? '')), '', 'nothing follows')
  t.end()
})

void t.test('faults name the field', (t) => {
  t.throws(() => decodeRequest({ dialect: 'anthropic', body: { model: 'm' } }), GatewayError)
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], logit_bias: { 5: 1 } }
  const request = decodeRequest({ dialect: 'openai-chat', body })
  const { losses } = encodeRequest({ from: 'openai-chat', to: 'anthropic', request })
  t.strictSame(losses, ['logit_bias'])
  const refusal = objectOf({ error: { message: 'no', type: 'server_error' } })
  t.throws(() => decodeReply('openai-chat', refusal, request), GatewayError)
  t.end()
})

void t.test('a program that imports the package is type-checked', async (t) => {
  const folder = t.testdir({})
  const file = join(folder, 'program.mts')
  writeFileSync(
    file,
    "import { decodeRequest, encodeRequest, type DialectName } from 'sluice/dialects'\n" +
      "const from: DialectName = 'anthropic'\n" +
      'const request = decodeRequest({ dialect: from, body: {} })\n' +
      "const path: string = encodeRequest({ from, to: 'gemini', request }).path\n" +
      '// @ts-expect-error: no such dialect\n' +
      "encodeRequest({ from: 'morse', to: 'gemini', request })\n" +
      'export { path }\n',
  )
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022']
  const checked = promisify(execFile)(process.execPath, [
    // The compiler of most programs takes four times the CPU time of the newest one.
    `node_modules/${isToday(0, 4) ? 'typescript' : 'typescript-7'}/bin/tsc`,
    ...options,
    '--skipLibCheck',
    file,
  ])
  await t.resolves(checked)
})
