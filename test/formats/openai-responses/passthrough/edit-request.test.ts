/**
 * Goal: a Responses client's own body is forwarded unchanged, except for the model, gateway ids and forbidden
 * fields.
 */
import t from 'tap'
import { objectOf, type JsonObject, type JsonValue } from '../../../../src/base/json.js'
import { openaiResponses } from '../../../../src/formats/openai-responses/index.js'
import { writeReasoningToken } from '../../../../src/formats/wire/reasoning-token.js'

const OWN = '0192f0c1-2345-7abc-8def-0123456789ab'

/** The changed members with their new values, and the losses. */
function edited(body: JsonObject): { changed: Record<string, JsonValue>; lost: string[] } {
  const lost: string[] = []
  const { upstreamCodec } = openaiResponses
  const facts = { id: 'm', family: 'openai' as const, createdAtSeconds: 0 }
  const losses = { drop: (path: string): unknown => lost.push(path) }
  const edits = upstreamCodec?.edits(body, 'm', { model: facts, losses }) ?? []
  const changed = edits.map(({ key, json }): [string, JsonValue] => {
    return [key, json === null ? null : (JSON.parse(json.toString()) as JsonValue)]
  })
  return { changed: Object.fromEntries(changed), lost }
}

void t.test('only the model changes', (t) => {
  const body = {
    model: 'm',
    input: [{ role: 'user', content: 'x' }],
    store: true,
    max_output_tokens: 5,
    tools: [{ type: 'web_search' }],
    prompt: { id: 'pmpt_1' },
    client_metadata: { a: 'b' },
    temperature: null,
  }
  t.same(edited(body), { changed: {}, lost: [] })
  t.same(edited({ ...body, model: 'alias' }), { changed: { model: 'm' }, lost: [] })
  t.end()
})

void t.test('fields that choose another model, provider or length are removed', (t) => {
  const { changed, lost } = edited({
    model: 'm',
    input: 'x',
    models: ['dearer'],
    MODEL: 'dearer',
    max_tokens: 1_000_000,
    provider: { order: ['a'], zdr: true },
    plugins: [],
  })
  t.same(changed, {
    models: null,
    MODEL: null,
    max_tokens: null,
    provider: { zdr: true },
    plugins: null,
  })
  t.same(lost.sort(), ['MODEL', 'max_tokens', 'models', 'plugins', 'provider.order'])
  t.end()
})

void t.test('ids and tokens of a gateway are not sent to an upstream', (t) => {
  const token = (origin: string, signature: string): JsonObject => ({
    type: 'reasoning',
    id: `rs_${OWN}_0`,
    summary: [{ type: 'summary_text', text: 'Hm.' }],
    encrypted_content: writeReasoningToken({ origin, thoughts: [{ signature }] }),
  })
  const message = {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'x' }],
  }
  const theirs = { type: 'reasoning', id: 'rs_abc', summary: [], encrypted_content: 'sealed' }
  const { changed, lost } = edited({
    model: 'm',
    input: [
      { role: 'user', content: 'x' },
      token('anthropic', 'sig'),
      token('openai-responses', 'rs_abc:sealed'),
      { type: 'reasoning', id: `rs_${OWN}_1`, summary: [] },
      theirs,
      { ...message, id: `msg_${OWN}_2` },
      { ...message, id: 'msg_theirs' },
    ],
  })
  t.same(changed['input'], [
    { role: 'user', content: 'x' },
    { ...theirs, summary: [{ type: 'summary_text', text: 'Hm.' }] },
    theirs,
    message,
    { ...message, id: 'msg_theirs' },
  ])
  t.same(lost, ['input.reasoning'])
  t.equal(objectOf(changed)['model'], undefined)
  t.end()
})
