/**
 * Goal: fields that translation loses in a request or a reply are reported in header, metric and log.
 * Method: a running gateway over all families; requests with fields that a provider lacks, and scripted
 * replies with fields that the client's format lacks, whole and streamed.
 */
import t from 'tap'
import type { JsonObject } from '../../src/base/json.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { ask, body } from './exchange.js'

const LOSSES = /^sluice_translation_losses_total\{(.*)\} (\d+)$/gm

/** The series of the metric as `labels value`. */
async function series(gateway: TestGateway): Promise<string[]> {
  const text = await gateway.metrics.text()
  return [...text.matchAll(LOSSES)].map(([, labels = '', value = '']) => `${labels} ${value}`).sort()
}

const labels = (from: string, to: string, { field, value }: { field: string; value: number }): string =>
  `from="${from}",to="${to}",field="${field}" ${value}`

void t.test("a lost field is counted from the client's dialect to the upstream's", async (t) => {
  const gateway = await startGateway(t)
  const members = { seed: 7, logit_bias: { '5': 1 } }
  for (const stream of [false, true]) {
    const { headers } = await ask(gateway, body({ model: 'claude-haiku-4-5', stream, ...members }))
    t.equal(headers.get('x-sluice-lost'), 'seed, logit_bias', 'the same for the same request')
    t.match(gateway.lines.at(-1), { lost: 'seed,logit_bias' })
  }
  t.same(await series(gateway), [
    labels('openai-chat', 'anthropic', { field: 'logit_bias', value: 2 }),
    labels('openai-chat', 'anthropic', { field: 'seed', value: 2 }),
  ])
})

void t.test("a Gemini client's safetySettings are reported if another dialect drops them", async (t) => {
  const gateway = await startGateway(t)
  const safetySettings = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }]
  const lost = async (model: string): Promise<string | null> => {
    const { status, headers } = await fetch(`${gateway.origin}/v1beta/models/${model}:generateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': gateway.secret, 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ parts: [{ text: 'Hello' }] }], safetySettings }),
    })
    t.equal(status, 200, model)
    return headers.get('x-sluice-lost')
  }
  t.equal(await lost('claude-haiku-4-5'), 'safetySettings')
  t.equal(await lost('gpt-4o'), 'safetySettings')
  t.equal(await lost('gemini-2.5-flash'), null, 'Gemini gets them')
  t.same(await series(gateway), [
    labels('gemini', 'anthropic', { field: 'safetySettings', value: 1 }),
    labels('gemini', 'openai-chat', { field: 'safetySettings', value: 1 }),
  ])
})

void t.test('names that a client chose never become a label', async (t) => {
  const gateway = await startGateway(t)
  const parameters = { type: 'object', properties: { secret_name: { type: 'string' } } }
  const tools = [{ type: 'function', function: { name: 'my_secret_tool', parameters } }]
  for (let at = 0; at < 5; at += 1) {
    const members = { tools, parallel_tool_calls: false, [`client_field_${at}`]: 1 }
    const answer = await ask(gateway, body({ model: 'gemini-2.5-flash', ...members }))
    t.match(answer.headers.get('x-sluice-lost'), new RegExp(`client_field_${at}`))
  }
  t.same(await series(gateway), [
    labels('openai-chat', 'gemini', { field: 'other', value: 5 }),
    labels('openai-chat', 'gemini', { field: 'parallel_tool_calls', value: 5 }),
  ])
})

void t.test('the header is bounded for any request', async (t) => {
  const gateway = await startGateway(t)
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`f${at}${'x'.repeat(70)}`, 1]))
  const { status, headers } = await ask(gateway, body({ model: 'claude-haiku-4-5', ...many }))
  t.equal(status, 200)
  t.ok((headers.get('x-sluice-lost') ?? '').length < 3000)
})

void t.test('on_loss: reject names every field and the dialects that take them', async (t) => {
  const gateway = await startGateway(t, { more: 'on_loss: reject' })
  const lost = body({ model: 'claude-haiku-4-5', seed: 7, frequency_penalty: 1 })
  const { status, error } = await ask(gateway, lost)
  t.equal(status, 400)
  t.match(error, { kind: 'untranslatable', param: 'frequency_penalty' })
  t.match(error['message'], /frequency_penalty, seed/)
  t.match(error['message'], /takes them: openai-chat, (?:openai-responses, )?gemini/)
  const unknown = body({ model: 'claude-haiku-4-5', seed: 7, client_field: 1 })
  t.match((await ask(gateway, unknown)).error['message'], /seed, client_field.*no dialect/)
  t.equal(gateway.emulator.ledger.length, 0, 'nothing went upstream')
  t.same(await series(gateway), [
    labels('openai-chat', 'anthropic', { field: 'frequency_penalty', value: 1 }),
    labels('openai-chat', 'anthropic', { field: 'other', value: 1 }),
    labels('openai-chat', 'anthropic', { field: 'seed', value: 2 }),
  ])
})

/** A reply of Claude with a search, a cited document and a stop sequence. */
const BLOCKS: JsonObject[] = [
  { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'x' } },
  { type: 'web_search_tool_result', tool_use_id: 's1', content: [] },
  { type: 'block_of_next_year', data: 'x' },
  {
    type: 'tool_use',
    id: 'toolu_1',
    name: 'look',
    input: {},
    caller: { type: 'code_execution_20250825', tool_id: 's1' },
  },
  {
    type: 'text',
    text: 'Blue.',
    citations: [{ type: 'char_location', document_title: 'Colours', cited_text: 'blue' }],
  },
]
const MESSAGE: JsonObject = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-haiku-4-5',
  content: BLOCKS,
  stop_reason: 'stop_sequence',
  stop_sequence: 'END',
  usage: { input_tokens: 3, output_tokens: 2 },
}

function claudeStream(): string {
  const delta = { stop_reason: 'stop_sequence', stop_sequence: 'END' }
  const events: JsonObject[] = [
    { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null } },
    ...BLOCKS.flatMap((content_block, index) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ]
  return events.map((it) => `data: ${JSON.stringify(it)}\n\n`).join('')
}

const LOST_REPLY = [
  'reply.server_tool_use',
  'reply.web_search_tool_result',
  'reply.block_of_next_year',
  'reply.caller',
  'reply.citations',
  'reply.stop_sequence',
]

for (const stream of [false, true]) {
  void t.test(`lost parts of a reply are reported, stream: ${stream}`, async (t) => {
    const gateway = await startGateway(t)
    gateway.emulator.replay({
      status: 200,
      response_headers: { 'content-type': stream ? 'text/event-stream' : 'application/json' },
      response_body: stream ? claudeStream() : JSON.stringify(MESSAGE),
    })
    const answer = await ask(gateway, body({ model: 'claude-haiku-4-5', stream }))
    t.match(answer.text, /Blue\./)
    const header = answer.headers.get('x-sluice-lost')
    t.equal(header, stream ? null : LOST_REPLY.join(', '), 'the head of a stream was already sent')
    t.match(gateway.lines.at(-1), { lost_in_reply: LOST_REPLY.join(',') })
    t.same(
      await series(gateway),
      LOST_REPLY.map((path) => path.replace('block_of_next_year', 'other'))
        .map((field) => labels('anthropic', 'openai-chat', { field, value: 1 }))
        .sort(),
    )
  })
}
