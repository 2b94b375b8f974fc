/**
 * Goal: prompt_cache_retention, prompt_cache_options and breakpoints are sent only to models that support
 * them.
 * Method: one request for models with, without and of unknown support.
 */
import t from 'tap'
import { arrayOf } from '../../../../src/base/json.js'
import type { ModelFacts } from '../../../../src/formats/chat/model-facts.js'
import type { Message } from '../../../../src/formats/chat/request.js'
import { encode } from '../driver.js'

const UNLISTED: ModelFacts = { id: 'gpt-test', family: 'openai', createdAtSeconds: 0 }
const rest = { prompt_cache_retention: '24h', prompt_cache_options: { mode: 'implicit' } }

function sent(facts: Partial<ModelFacts>): string[] {
  const { body, lost } = encode({ rest }, { ...UNLISTED, ...facts })
  t.same(lost, [], 'neither changes the reply')
  return Object.keys(rest).filter((key) => key in body)
}

void t.test('each model gets the fields of its catalogue entry', (t) => {
  const listed = { endpoints: ['responses' as const] }
  t.same(sent({ ...listed, promptCacheBreakpoints: true, promptCacheRetention: false }), [
    'prompt_cache_options',
  ])
  t.same(sent(listed), ['prompt_cache_retention'])
  t.same(sent({}), ['prompt_cache_retention', 'prompt_cache_options'])
  t.end()
})

void t.test('a breakpoint stays on its part', (t) => {
  const mark = { ttl: '1h', breakpoint: { ttl: '12h' } } as const
  const text = { type: 'text', text: 'Look.', cache: mark } as const
  const other = { type: 'text', text: "Claude's.", cache: { ttl: '5m' } } as const
  const call = { id: 'call_1', name: 'f', arguments: '{}' }
  const messages: Message[] = [
    { role: 'user', index: 0, parts: [text, other] },
    { role: 'assistant', index: 1, parts: [], toolCalls: [call] },
    { role: 'tool', index: 2, callId: 'call_1', parts: [text] },
  ]
  const written = (facts: Partial<ModelFacts>): unknown => {
    const { body, lost } = encode({ messages }, { ...UNLISTED, ...facts })
    t.same(lost, [])
    return body['input']
  }
  const bare = { type: 'input_text', text: 'Look.' }
  const marked = { ...bare, prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } }
  const second = { type: 'input_text', text: "Claude's." }
  t.match(written({ endpoints: ['responses'], promptCacheBreakpoints: true }), [
    { content: [marked, second] },
    {},
    { output: [marked] },
  ])
  t.strictSame(arrayOf(written({ endpoints: ['responses'] }))[0], {
    role: 'user',
    content: [bare, second],
  })
  t.end()
})
