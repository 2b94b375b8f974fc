/**
 * Goal: a stream has the same shape with every provider.
 * Method: checks the raw text of streams of all three provider families line by line.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { startGateway } from '../helpers/gateway.js'
import { ask, body, FAMILIES } from './exchange.js'

const TOOL = { type: 'function', function: { name: 'tide', parameters: { type: 'object' } } }

/** The same reply, streamed and whole. */
const TRANSCRIPTS = {
  openai: {
    stream: 'openai-chat/plain-text.stream.sse',
    reply: 'openai-chat/plain-text.reply.json',
  },
  anthropic: { stream: 'anthropic/text.stream.sse', reply: 'anthropic/text.reply.json' },
  google: { stream: 'gemini/text.stream.sse', reply: 'gemini/text.reply.json' },
}

/** The chunks of a stream, after its form has been checked: `data: ` lines, blank lines, `[DONE]`. */
function chunksOf(t: { equal: (a: unknown, b: unknown, m: string) => void }, text: string) {
  t.equal(text.endsWith('\n\n'), true, 'the last event has its blank line')
  const events = text.slice(0, -2).split('\n\n')
  t.equal(
    events.every((event) => event.startsWith('data: ') && !event.includes('\n')),
    true,
    'one data line per event',
  )
  t.equal(events.pop(), 'data: [DONE]', 'the terminator is last')
  t.equal(text.match(/\[DONE\]/g)?.length, 1, 'and there once')
  return events.map((event) => objectOf(JSON.parse(event.slice(6))))
}

function deltaOf(chunk: JsonObject): JsonObject {
  return objectOf(objectOf(arrayOf(chunk.choices)[0]).delta)
}

for (const { family, model } of FAMILIES) {
  void t.test(`S3: ${family}: role, content, an empty delta with the reason, [DONE]`, async (t) => {
    const gateway = await startGateway(t)
    const { status, headers, text } = await ask(gateway, body({ model, stream: true }))
    t.equal(status, 200)
    t.match(headers.get('content-type'), /^text\/event-stream/)
    t.equal(headers.get('cache-control'), 'no-cache, no-transform')
    t.equal(headers.get('x-accel-buffering'), 'no')
    t.equal(headers.get('content-encoding'), null)
    const chunks = chunksOf(t, text)
    const ids = new Set(chunks.map(({ id }) => id))
    t.equal(ids.size, 1, 'one id')
    t.match([...ids][0], /^chatcmpl-/)
    for (const chunk of chunks) {
      t.match(chunk, { object: 'chat.completion.chunk', choices: [{ index: 0 }] })
      t.ok(Number.isInteger(chunk.created))
      t.ok(typeof chunk.model === 'string' && chunk.model.startsWith(model))
    }
    const [first, ...rest] = chunks
    const last = rest.pop()
    if (first === undefined || last === undefined) throw new Error('too few chunks')
    t.match(deltaOf(first), { role: 'assistant', content: '' })
    t.match(first, { choices: [{ finish_reason: null }] })
    t.ok(rest.length > 0)
    for (const chunk of rest) {
      t.match(chunk, { choices: [{ finish_reason: null }] })
      t.same(Object.keys(deltaOf(chunk)), ['content'])
    }
    t.same(deltaOf(last), {})
    t.match(last, { choices: [{ finish_reason: 'stop' }] })
  })

  void t.test(`S3: ${family}: the joined fragments are the whole message`, async (t) => {
    const gateway = await startGateway(t)
    const { stream, reply } = TRANSCRIPTS[family]
    const recorded = (file: string, type: string) => ({
      status: 200,
      headers: { 'content-type': type },
      body: readFileSync(join('test/transcripts', file)),
    })
    gateway.emulator.replay(recorded(stream, 'text/event-stream'))
    const streamed = await ask(gateway, body({ model, stream: true }))
    gateway.emulator.replay(recorded(reply, 'application/json'))
    const whole = await ask(gateway, body({ model }))
    const joined = chunksOf(t, streamed.text)
      .map((chunk) => stringOf(deltaOf(chunk).content) ?? '')
      .join('')
    const message = objectOf(objectOf(arrayOf(whole.json.choices)[0]).message)
    t.equal(joined, message.content)
    t.ok(joined.length > 10)
  })

  void t.test(`S3: ${family}: usage is sent only on request`, async (t) => {
    const gateway = await startGateway(t)
    const members = { model, stream: true, stream_options: { include_usage: true } }
    const chunks = chunksOf(t, (await ask(gateway, body(members))).text)
    const last = chunks.pop()
    t.same(last?.choices, [])
    t.ok(Number(objectOf(last?.usage).total_tokens) > 0)
    for (const chunk of chunks) t.equal(chunk.usage ?? null, null)
    for (const options of [{}, { stream_options: { include_usage: false } }]) {
      const { text } = await ask(gateway, body({ model, stream: true, ...options }))
      const without = chunksOf(t, text)
      t.ok(without.every((chunk) => arrayOf(chunk.choices).length === 1))
      t.notMatch(text, /prompt_tokens/)
    }
  })

  void t.test(`S3: ${family}: a call of a tool, streamed`, async (t) => {
    const gateway = await startGateway(t)
    const members = { model, stream: true, tools: [TOOL], tool_choice: 'required' }
    const chunks = chunksOf(t, (await ask(gateway, body(members))).text)
    const fragments = chunks.flatMap((chunk) => arrayOf(deltaOf(chunk).tool_calls).map(objectOf))
    t.match(fragments[0], { index: 0, id: /./, type: 'function', function: { name: 'tide' } })
    const text = fragments
      .filter(({ index }) => index === 0)
      .map((fragment) => stringOf(objectOf(fragment.function).arguments) ?? '')
      .join('')
    t.doesNotThrow(() => void JSON.parse(text))
    t.match(chunks.at(-1), { choices: [{ finish_reason: 'tool_calls' }] })
  })

  void t.test(`S3: ${family}: a failed stream has an error event and no terminator`, async (t) => {
    const gateway = await startGateway(t)
    const messages = [{ role: 'user', content: 'Go on. [[words: 60]]' }]
    gateway.emulator.script({ fault: { kind: 'cut', event: 12, mode: 'eof' }, times: 1 })
    const response = await gateway.chat(body({ model, messages, stream: true }))
    t.equal(response.status, 200)
    let text = ''
    const decoder = new TextDecoder()
    const read = async (): Promise<void> => {
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk as Uint8Array, { stream: true })
      }
    }
    await t.rejects(read(), 'the connection is cut')
    const last = text.trimEnd().split('\n\n').at(-1) ?? ''
    t.match(objectOf(JSON.parse(last.slice(6))), {
      error: { type: 'api_error', code: null, kind: 'upstream_truncated' },
    })
    t.notMatch(text, /\[DONE\]|"finish_reason":"/)
  })
}
