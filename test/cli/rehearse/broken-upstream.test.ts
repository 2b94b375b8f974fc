/**
 * Goal: each check of `sluice rehearse` fails for an upstream that violates it, and prints the reason.
 * Method: the emulator has one defect, or sends a wrong recorded reply; the command runs in this process.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import { CHECKS } from '../../../src/cli/rehearse/checks.js'
import type { Fault } from '../../../src/emulator/faults/fault-table.js'
import { openRehearsal } from './scene.js'

const { emulator, report } = await openRehearsal(t)

const USAGE = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }

/** A complete chat completion with this message. */
function completion(message: JsonObject, finish = 'stop') {
  const body = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-5.4',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
    usage: USAGE,
  }
  const headers = { 'content-type': 'application/json' }
  return { status: 200, headers, body: JSON.stringify(body) }
}

/** A chat completion as a stream. */
function streamed(delta: JsonObject, finish = 'stop') {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-5.4' }
  const first = { index: 0, delta: { role: 'assistant', ...delta }, finish_reason: null }
  const chunks = [
    { ...head, choices: [first] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    { ...head, choices: [], usage: USAGE },
  ]
  const frames = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]']
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: frames.map((data) => `data: ${data}\n\n`).join(''),
  }
}

function callOf(json: string): JsonObject {
  const call = { name: 'get_weather', arguments: json }
  return { index: 0, id: 'call_1', type: 'function', function: call }
}

type Broken = Fault | ReturnType<typeof completion>

/** For each check: the defect of the upstream and the reported detail. */
const BROKEN: Readonly<Record<string, readonly (readonly [Broken, RegExp])[]>> = {
  text: [
    [{ kind: 'status', code: 500 }, /502 upstream_failed/],
    [{ kind: 'html' }, /502/],
    [completion({ content: '' }), /no text/],
    [completion({ content: 'Hello.' }, 'length'), /ends with length, not with stop/],
  ],
  stream: [
    [{ kind: 'cut', event: 4, mode: 'eof' }, /end|broke/],
    [{ kind: 'garbage', event: 3 }, /./],
  ],
  stop: [[completion({ content: 'alpha bravo |END| charlie' }), /continues after the stop sequence/]],
  tools: [
    [completion({ content: 'It is sunny.' }), /no tool call/],
    [
      completion({ tool_calls: [callOf('{"town":1}')] }, 'tool_calls'),
      /arguments of get_weather do not match/,
    ],
  ],
  'parallel tools': [
    [streamed({ tool_calls: [callOf('{"city":"Paris"}')] }, 'tool_calls'), /1 tool calls instead of two/],
  ],
  image: [[completion({ content: 'Blue.' }), /does not name the colour/]],
  'JSON schema': [
    [completion({ content: 'A parrot.' }), /not a JSON object/],
    [completion({ content: '{"name":"Polly"}' }), /does not match the schema/],
  ],
  reasoning: [[streamed({ content: 'Five.' }), /lists reasoning for the model/]],
  usage: [[{ kind: 'usage', mode: 'missing' }, /no token counts/]],
  errors: [[{ kind: 'status', code: 500, mode: 'html' }, /status 502/]],
  cancellation: [[{ kind: 'error', event: 0 }, /./]],
}

void t.test('every check has a defect in this file', (t) => {
  t.same(Object.keys(BROKEN).sort(), CHECKS.map(({ name }) => name).sort())
  t.end()
})

for (const [check, cases] of Object.entries(BROKEN)) {
  for (const [broken, detail] of cases) {
    void t.test(`${check} fails: ${String(detail)}`, async (t) => {
      if ('kind' in broken) emulator.script({ fault: broken })
      else emulator.replay(broken, { times: 10 })
      t.teardown(() => emulator.reset())
      const asked = ['--upstream', 'chat', '--model', 'gpt-5.4']
      const { status, results } = await report([...asked, '--format', 'chat', '--check', check])
      t.equal(status, 1)
      t.match(results, [{ check, result: 'fail', detail }])
    })
  }
}
