/**
 * Goal: `sluice doctor` tells for each feature of an upstream whether it works, prints the vendor's own words
 * for a refusal, and the quirks that fix it: with them in the file, nothing fixable is refused any more.
 * Method: a strict vendor on a socket, the emulator in each dialect, and the command in this process.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { startEmulator } from '../../../src/emulator/server.js'
import { CANARY } from '../../process/program.js'
import { sluiceHere } from '../session.js'

const USAGE = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }

/** The vendor's words for a member that it does not know. */
const FORBIDDEN = {
  max_completion_tokens: 'Unrecognized request argument supplied: max_completion_tokens',
  stream_options: 'stream_options: extra inputs are not permitted',
  parallel_tool_calls: "property 'parallel_tool_calls' is unsupported",
  reasoning_effort: 'this model does not think',
}

function refusalOf(body: JsonObject): string | null {
  for (const [key, words] of Object.entries(FORBIDDEN)) if (key in body) return words
  const roles = arrayOf(body['messages']).map((message) => objectOf(message)['role'])
  if (roles.includes('developer')) return 'unknown variant `developer`, expected one of `system`, `user`'
  const [tool] = arrayOf(body['tools'])
  const name = objectOf(objectOf(tool)['function'])['name']
  if (typeof name === 'string' && name.length > 48) return 'tools[0].function.name is too long (at most 48)'
  return null
}

function choiceOf(body: JsonObject): JsonObject {
  const calls = arrayOf(body['tools']).map((tool, index) => {
    const { name = null } = objectOf(objectOf(tool)['function'])
    return { index, id: `call_${index}`, type: 'function', function: { name, arguments: '{"city":"Paris"}' } }
  })
  if (calls.length > 0) return { content: null, tool_calls: calls }
  if (isObject(body['response_format'])) return { content: '{"city":"Paris"}' }
  return { content: 'Hello. It is red.' }
}

/** A vendor of the chat-completions format that refuses what it does not know, and a file with it. */
async function openVendor(t: Test, quirks = '') {
  const requests: JsonObject[] = []
  const server = createServer((request, response) => {
    const send = (status: number, value: JsonObject): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(value))
    }
    if (request.method === 'GET') {
      send(200, {
        object: 'list',
        data: [
          { id: 'strict-embed', object: 'model' },
          { id: 'strict-1', object: 'model' },
        ],
      })
      return
    }
    void json(request).then((value) => {
      const body = objectOf(value)
      requests.push(body)
      if (request.url?.endsWith('/embeddings') === true) {
        const data = [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }]
        send(200, {
          object: 'list',
          model: 'strict-embed',
          data,
          usage: { prompt_tokens: 1, total_tokens: 1 },
        })
        return
      }
      const refusal = refusalOf(body)
      if (refusal !== null) {
        send(400, { error: { message: refusal, type: 'invalid_request_error' } })
        return
      }
      const message = { role: 'assistant', ...choiceOf(body) }
      const finish = 'tool_calls' in message ? 'tool_calls' : 'stop'
      const head = { id: 'chatcmpl-1', created: 1, model: 'strict-1' }
      if (body['stream'] !== true) {
        const choices = [{ index: 0, message, finish_reason: finish }]
        send(200, { ...head, object: 'chat.completion', choices, usage: USAGE })
        return
      }
      const chunk = { ...head, object: 'chat.completion.chunk' }
      const frames = [
        { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] },
        { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
      ]
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const frame of frames) response.write(`data: ${JSON.stringify(frame)}\n\n`)
      response.end('data: [DONE]\n\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(
    file,
    `store: sqlite:./data/sluice.db
models: ${resolve('config/models.yaml')}
upstreams:
  strict:
    dialect: openai-chat
    base_url: http://127.0.0.1:${port}/v1
    api_key: ${CANARY}
${quirks}routes:
  - { prefix: strict-, upstream: strict }
`,
  )
  const doctor = async (...args: string[]) => {
    const ran = await sluiceHere(['doctor', 'strict', '--config', file, ...args])
    const made = args.includes('--json') && ran.out !== '' ? objectOf(JSON.parse(ran.out)) : {}
    const features = arrayOf(made['features']).map(objectOf)
    const outcomes: Record<string, JsonObject> = {}
    for (const each of features) outcomes[stringOf(each['feature']) ?? ''] = each
    return { ...ran, made, outcomes }
  }
  return { requests, doctor }
}

void t.test('each refusal of a strict vendor has its words, and the quirks that fix it', async (t) => {
  const { doctor } = await openVendor(t)
  const { status, made, outcomes, out, err } = await doctor('--model', 'strict-1', '--json')
  t.equal(status, 1, err)
  t.match(made, { upstream: 'strict', model: 'strict-1', usd: Number })
  t.match(outcomes, {
    models: { outcome: 'ok' },
    max_completion_tokens: {
      outcome: 'refused',
      status: 400,
      message: /Unrecognized request argument supplied: max_completion_tokens/,
      quirks: { rename: { max_completion_tokens: 'max_tokens' } },
    },
    developer_role: {
      outcome: 'refused',
      message: /unknown variant `developer`/,
      quirks: { messages: { roles: { developer: 'system' } } },
    },
    stream: { outcome: 'refused', quirks: { drop: ['stream_options'] } },
    stream_usage: { outcome: 'differs', message: /without the counts/ },
    tools: { outcome: 'ok' },
    parallel_tools: { outcome: 'refused', quirks: { drop: ['parallel_tool_calls'] } },
    tool_choice_required: { outcome: 'ok' },
    json_object: { outcome: 'ok' },
    json_schema: { outcome: 'ok' },
    image: { outcome: 'ok' },
    reasoning: { outcome: 'refused', message: /does not think/, quirks: { drop: ['reasoning_effort'] } },
    embeddings: { outcome: 'ok' },
  })
  t.same(made['quirks'], {
    drop: ['stream_options', 'parallel_tool_calls', 'reasoning_effort'],
    rename: { max_completion_tokens: 'max_tokens' },
    messages: { roles: { developer: 'system' } },
  })
  t.notMatch(out + err, CANARY, 'the key is not printed')
})

void t.test('with the printed quirks in the file, what they fix is no longer refused', async (t) => {
  const first = await openVendor(t)
  const printed = await first.doctor('--model', 'strict-1')
  const text = printed.out.slice(printed.out.indexOf('    quirks:'), printed.out.indexOf('\n\nCost'))
  t.match(text, /drop:/)
  const { doctor } = await openVendor(t, `${text}\n`)
  const { outcomes } = await doctor('--model', 'strict-1', '--json')
  const refused = Object.values(outcomes).filter(({ outcome }) => outcome === 'refused')
  t.same(
    refused.map(({ feature }) => feature),
    refused.length === 0 ? [] : ['long_tool_names'],
  )
})

void t.test('only the named features are sent, and nothing above the ceiling', async (t) => {
  const { doctor, requests } = await openVendor(t)
  const one = await doctor('--model', 'strict-1', '--feature', 'chat', '--json')
  t.equal(one.status, 0)
  t.same(Object.keys(one.outcomes), ['chat'])
  t.equal(requests.length, 1)
  const none = await doctor('--model', 'strict-1', '--max-usd', '0.0000001', '--json')
  t.equal(none.status, 0)
  t.match(none.outcomes, { chat: { outcome: 'skipped', message: /raise --max-usd/ } })
  t.equal(requests.length, 1, 'nothing more is sent')
  const wrong = await doctor('--feature', 'chats')
  t.equal(wrong.status, 2)
  t.match(wrong.err, /--feature must be one of models, chat/)
})

void t.test(
  'without --model, the first of the vendor gets the requests if the file names none',
  async (t) => {
    const { doctor } = await openVendor(t)
    const { made } = await doctor('--feature', 'models', '--json')
    t.equal(made['model'], 'strict-embed')
  },
)

void t.test('an emulated upstream of every dialect has nothing to fix', async (t) => {
  const emulator = await startEmulator()
  t.teardown(() => emulator.close())
  const { openai, anthropic, gemini } = emulator.baseUrls
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(
    file,
    `store: sqlite:./data/sluice.db
models: ${resolve('config/models.yaml')}
upstreams:
  chat: { dialect: openai-chat, base_url: ${openai}, api_key: ${CANARY} }
  responses: { dialect: openai-responses, base_url: ${openai}, api_key: ${CANARY} }
  anthropic: { dialect: anthropic, base_url: ${anthropic}, api_key: ${CANARY} }
  google: { dialect: gemini, base_url: ${gemini}, api_key: ${CANARY} }
routes:
  - { prefix: gpt-, upstream: chat }
  - { prefix: claude-, upstream: anthropic }
  - { prefix: gemini-, upstream: google }
`,
  )
  const models = {
    chat: 'gpt-5.4',
    responses: 'gpt-5.5',
    anthropic: 'claude-opus-5-5',
    google: 'gemini-3.5-flash',
  }
  for (const [upstream, model] of Object.entries(models)) {
    const args = ['doctor', upstream, '--model', model, '--max-usd', '2', '--config', file, '--json']
    const { status, out, err } = await sluiceHere(args)
    t.equal(status, 0, `${upstream}: ${err}`)
    const made = objectOf(JSON.parse(out))
    t.equal(made['quirks'], null)
    const outcomes = arrayOf(made['features']).map((each) => objectOf(each)['outcome'])
    t.ok(outcomes.filter((outcome) => outcome === 'ok').length >= 10, `${upstream}: ${err}`)
  }
})
