/**
 * Goal: `sluice doctor` tells for each feature of an upstream whether it works, prints the vendor's own words
 * for a refusal, and the quirks that fix it: with them in the file, nothing fixable is refused any more.
 * Method: a strict vendor on a socket, the emulator in each dialect, and the command in this process.
 */
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { startEmulator } from '../../../src/emulator/server.js'
import { CANARY } from '../../process/program.js'
import { sluiceHere } from '../session.js'
import { openVendor, type RefusalOf } from './strict-vendor.js'

/** The vendor's words for a member that it does not know. */
const FORBIDDEN = {
  max_completion_tokens: 'Unrecognized request argument supplied: max_completion_tokens',
  stream_options: 'stream_options: extra inputs are not permitted',
  parallel_tool_calls: "property 'parallel_tool_calls' is unsupported",
  reasoning_effort: 'this model does not think',
}

function wordsFor(body: JsonObject): string | null {
  for (const [key, words] of Object.entries(FORBIDDEN)) if (key in body) return words
  const roles = arrayOf(body['messages']).map((message) => objectOf(message)['role'])
  if (roles.includes('developer')) return 'unknown variant `developer`, expected one of `system`, `user`'
  const [tool] = arrayOf(body['tools'])
  const name = objectOf(objectOf(tool)['function'])['name']
  if (typeof name === 'string' && name.length > 48) return 'tools[0].function.name is too long (at most 48)'
  return null
}

const refusalOf: RefusalOf = (body) => {
  const message = wordsFor(body)
  return message === null
    ? null
    : { status: 400, reply: { error: { message, type: 'invalid_request_error' } } }
}

void t.test('each refusal of a strict vendor has its words, and the quirks that fix it', async (t) => {
  const { doctor } = await openVendor(t, refusalOf)
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
  const first = await openVendor(t, refusalOf)
  const printed = await first.doctor('--model', 'strict-1')
  const text = printed.out.slice(printed.out.indexOf('    quirks:'), printed.out.indexOf('\n\nCost'))
  t.match(text, /drop:/)
  const { doctor } = await openVendor(t, refusalOf, `${text}\n`)
  const { outcomes } = await doctor('--model', 'strict-1', '--json')
  const refused = Object.values(outcomes).filter(({ outcome }) => outcome === 'refused')
  t.same(
    refused.map(({ feature }) => feature),
    refused.length === 0 ? [] : ['long_tool_names'],
  )
})

void t.test('only the named features are sent, and nothing above the ceiling', async (t) => {
  const { doctor, requests } = await openVendor(t, refusalOf)
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
    const { doctor } = await openVendor(t, refusalOf)
    const { made } = await doctor('--feature', 'models', '--json')
    t.equal(made['model'], 'strict-embed')
  },
)

void t.test(
  'without --model, a model of pictures, sound, rankings or moderation gets no chats',
  async (t) => {
    const emulator = await startEmulator()
    t.teardown(() => emulator.close())
    const file = join(t.testdir(), 'gateway.yaml')
    const lines = [
      `models: ${resolve('config/models.yaml')}`,
      `upstreams: { one: { dialect: openai, base_url: '${emulator.baseUrls.openai}', api_key: ${CANARY} } }`,
      'routes:',
      '  - { model: judge, targets: [{ upstream: one, model: omni-moderation-latest }] }',
      '  - { model: clerk, targets: [{ upstream: one, model: text-embedding-3-small }] }',
      ...['omni-moderation-', 'whisper-', 'gpt-'].map((prefix) => `  - { prefix: ${prefix}, upstream: one }`),
    ]
    writeFileSync(file, lines.join('\n'))
    const { out, err } = await sluiceHere(['doctor', 'one', '--feature', 'chat', '--config', file, '--json'])
    t.match(JSON.parse(out), { model: /^gpt-\d/, features: [{ feature: 'chat', outcome: 'ok' }] }, err)
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
