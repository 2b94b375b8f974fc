/**
 * Goal: a request that is rejected for thinking bound to another conversation is retried without such
 * thinking. Method: the API's error, and others, for bodies with and without a thinking configuration.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import type { WireError } from '../../../../src/errors.js'
import { upstreamCodec } from '../driver.js'

const dropReasoning = (body: JsonObject, error: WireError): JsonObject | null =>
  upstreamCodec.dropReasoning?.(body, error) ?? null

function refusal(message: string, status = 400): WireError {
  const type = status === 400 ? 'invalid_request_error' : 'api_error'
  return upstreamCodec.decodeError(status, {}, JSON.stringify({ type: 'error', error: { type, message } }))
}

const BOUND = refusal(
  'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different ' +
    'conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to ' +
    '"drop_block".',
)
const block_binding = { prefix_mismatch_behavior: 'drop_block' }
const BODY: JsonObject = { model: 'm', max_tokens: 9, messages: [] }

void t.test('the retry requests drop_block with every thinking configuration', (t) => {
  for (const thinking of [
    { type: 'adaptive', display: 'summarized' },
    { type: 'enabled', budget_tokens: 1024 },
    { type: 'disabled' },
  ]) {
    const body = dropReasoning({ ...BODY, thinking }, BOUND)
    t.same(body, { ...BODY, thinking: { ...thinking, block_binding } })
  }
  const body = dropReasoning(BODY, BOUND)
  t.same(body, { ...BODY, thinking: { type: 'adaptive', block_binding } })
  t.match(upstreamCodec.headers(body ?? {}), {
    'anthropic-beta': 'thinking-binding-controls-2026-08-01',
  })
  t.notOk('anthropic-beta' in upstreamCodec.headers(BODY))
  t.end()
})

void t.test('there is one retry, and none for other errors', (t) => {
  const once = dropReasoning(BODY, BOUND)
  t.equal(dropReasoning(once ?? {}, BOUND), null)
  for (const other of [
    refusal('messages.1.content.0: Invalid `signature` in `thinking` block'),
    refusal('max_tokens: Field required'),
    refusal('The block is bound to a different conversation.', 500),
  ]) {
    t.equal(dropReasoning(BODY, other), null, other.message)
  }
  t.end()
})
