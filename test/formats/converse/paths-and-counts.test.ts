/**
 * Goal: requests have the paths that Bedrock expects, tokens are counted for foundation models, and a
 * demanded call is requested again.
 * Method: ids of models, inference profiles and ARNs; bodies of requests and of those that follow them.
 */
import t from 'tap'
import type { Tool } from '../../../src/formats/chat/request.js'
import { refusalOf } from '../collect-events.js'
import { CLAUDE, upstreamCodec, encode, NEW_CLAUDE, NOVA, request } from './driver.js'

const FIND: Tool = { name: 'find' }
const HELLO = [{ role: 'user', content: [{ text: 'Hello' }] }]

void t.test('the model id is one segment of the path', (t) => {
  const arn = 'arn:aws:bedrock:eu-west-1:111122223333:application-inference-profile/ab12'
  t.equal(
    upstreamCodec.target('us.amazon.nova-lite-v1:0', false).path,
    '/model/us.amazon.nova-lite-v1%3A0/converse',
  )
  t.equal(
    upstreamCodec.target(arn, true).path,
    '/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A111122223333%3Aapplication-inference-profile%2Fab12/converse-stream',
  )
  for (const id of ['', '.', '..', '../a', 'a b', 'a?b', 'a%2Fb']) {
    t.equal(refusalOf(() => upstreamCodec.target(id, false)).kind, 'unknown_model', id)
  }
  t.end()
})

void t.test('tokens are counted for the model itself', (t) => {
  const { tokenCounter: counter } = upstreamCodec
  const chat = upstreamCodec.encodeRequest(request({ maxOutputTokens: 5 }), NOVA, {
    drop: () => undefined,
  })
  t.equal(
    counter?.path('us.anthropic.claude-sonnet-4-20250514-v1:0'),
    '/model/anthropic.claude-sonnet-4-20250514-v1%3A0/count-tokens',
  )
  t.same(counter?.body(chat, 'm'), { input: { converse: { messages: HELLO } } })
  t.equal(counter?.read({ inputTokens: 11 }), 11)
  t.equal(counter?.read({}), null)
  const arn = 'arn:aws:bedrock:us-east-1:111122223333:inference-profile/global.amazon.nova-2-lite-v1:0'
  t.equal(counter?.path(arn), '/model/amazon.nova-2-lite-v1%3A0/count-tokens')
  t.equal(counter?.path('usual.model'), '/model/usual.model/count-tokens')
  t.end()
})

void t.test('a request to a model that cannot be forced is repeated', (t) => {
  const over = { tools: [FIND], toolChoice: { mode: 'required' as const } }
  const forced = encode(over, CLAUDE).body
  const free = encode(over, NEW_CLAUDE).body
  t.notOk(upstreamCodec.mayOmitCall?.(forced, request(over)))
  t.ok(upstreamCodec.mayOmitCall?.(free, request(over)))
  const next = upstreamCodec.continuation?.next(free, {})
  t.match(JSON.stringify(next?.messages), /Hello.*Call one of the tools now/)
  t.end()
})
