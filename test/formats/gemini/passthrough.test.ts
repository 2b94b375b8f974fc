/**
 * Goal: traffic between a Gemini client and a Gemini upstream is watched correctly, and only the necessary
 * bytes change. Method: hand-written frames and bodies.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import { writeReasoningToken } from '../../../src/formats/wire/reasoning-token.js'
import { edits, GeminiWatcher, replyFacts } from '../../../src/formats/gemini/passthrough.js'

/** The data of a frame as the framer of passing streams delivers it: bytes decoded as Latin-1. */
function fed(...chunks: readonly unknown[]): { watcher: GeminiWatcher; passes: boolean[] } {
  const watcher = new GeminiWatcher({ includeUsage: true })
  const passes = chunks.map((chunk) => {
    const data = typeof chunk === 'string' ? chunk : JSON.stringify(chunk)
    return watcher.frame('', Buffer.from(data).toString('latin1'))
  })
  return { watcher, passes }
}

function chunk(parts: JsonObject[], more: JsonObject = {}, output = 1): JsonObject {
  return {
    candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
    usageMetadata: {
      promptTokenCount: 5,
      candidatesTokenCount: output,
      totalTokenCount: 5 + output,
    },
    modelVersion: 'gemini-x',
  }
}

void t.test('text, usage and the end of a stream', (t) => {
  const { watcher, passes } = fed(
    chunk([{ text: '' }]),
    chunk([{ text: 'Grüße' }], {}, 2),
    chunk([{ text: 'and' }], {}, 3),
    chunk([{ text: 'more' }], {}, 4),
  )
  t.same(passes, [true, true, true, true])
  t.match(watcher, {
    hasContent: true,
    isFinished: false,
    isComplete: false,
    model: 'gemini-x',
    error: null,
  })
  t.same(watcher.usage, { input: 5, output: 4 })
  t.equal(watcher.outputSize.bytes, 7 + 3 + 4, 'bytes, not characters')
  t.ok(watcher.frame('', JSON.stringify(chunk([{ text: '' }], { finishReason: 'MAX_TOKENS' }, 9))))
  t.match(watcher, { isFinished: true, reason: 'length', usage: { output: 9 } })
  t.equal(fed(chunk([{ text: '' }])).watcher.hasContent, false, 'an empty text is not content')
  t.end()
})

void t.test('a stream is finished when every candidate has a reason; calls end with STOP', (t) => {
  const functionCall = { name: 'a', args: { b: 1 } }
  const { watcher } = fed(chunk([{ functionCall }], { finishReason: 'STOP' }))
  t.match(watcher, { reason: 'tool-use', outputSize: { calls: 1, bytes: 8 } })
  const two = fed(
    { candidates: [{ index: 0, finishReason: 'STOP' }] },
    { candidates: [{ index: 1, content: { parts: [{ text: 'x' }] } }] },
  )
  t.equal(two.watcher.isFinished, false)
  two.watcher.frame('', '{"candidates":[{"index":1,"finishReason":"SAFETY"}]}')
  t.equal(two.watcher.isFinished, true)
  t.end()
})

void t.test('a blocked prompt, an error and malformed frames', (t) => {
  const blocked = fed({ promptFeedback: { blockReason: 'SAFETY' } })
  t.match(blocked.watcher, { isFinished: true, reason: 'filter', hasContent: true, error: null })
  const error = { code: 503, message: 'Überlastet', status: 'UNAVAILABLE' }
  const failed = fed(chunk([{ text: 'a' }]), { error }, chunk([{ text: 'b' }]))
  t.same(failed.passes, [true, false, false])
  t.match(failed.watcher.error, { kind: 'upstream_busy', message: 'Überlastet' })
  t.equal(fed('{"candidates":').watcher.error?.kind, 'upstream_malformed')
  t.equal(fed('[1]').watcher.error?.kind, 'upstream_malformed')
  t.end()
})

void t.test('whole replies', (t) => {
  t.match(replyFacts(chunk([{ text: 'x' }], { finishReason: 'STOP' }, 3)), {
    usage: { input: 5, output: 3 },
    reason: 'stop',
    error: null,
    model: 'gemini-x',
  })
  t.match(replyFacts({ error: { code: 400, message: 'Bad', status: 'INVALID_ARGUMENT' } }), {
    error: { kind: 'upstream_rejected' },
  })
  t.match(replyFacts({ usageMetadata: {} }), { error: { kind: 'upstream_malformed' } })
  t.end()
})

void t.test('edits: a model in the body, and state of other providers', (t) => {
  const facts: ModelFacts = { id: 'm', family: 'google', createdAtSeconds: 0 }
  const old: ModelFacts = { ...facts, callSignatures: false }
  const edited = (body: JsonObject, model = facts): { out: unknown; lost: string[] } => {
    const lost: string[] = []
    const losses = { drop: (path: string): unknown => lost.push(path) }
    const out = edits(body, 'm', { model, losses }).map(({ key, json }) => [
      key,
      json === null ? null : (JSON.parse(String(json)) as unknown),
    ])
    return { out, lost }
  }
  t.same(edited({ contents: [{ parts: [{ text: 'x', thoughtSignature: 'AAAA' }] }] }).out, [])
  t.same(edited({ model: 'models/x' }).out, [['model', null]])
  const counted = { model: 'models/alias', contents: [] }
  t.same(edited({ generateContentRequest: counted }).out, [
    ['generateContentRequest', { ...counted, model: 'models/m' }],
  ])
  // The API takes an empty text, and refuses turns without parts.
  const kept = { role: 'model', parts: [{ text: '' }] }
  const turns = [{}, { parts: null }, { parts: [] }].map((turn) => ({ role: 'model', ...turn }))
  t.same(edited({ contents: [{ parts: [{ text: '' }] }, ...turns, kept] }).out, [
    ['contents', [{ parts: [{ text: '' }] }, kept]],
  ])
  const foreign = writeReasoningToken({
    origin: 'anthropic',
    thoughts: [{ signature: 's' }],
    of: { call: 'c' },
  })
  const contents = [
    { role: 'user', parts: [{ text: 'Hi' }] },
    {
      role: 'model',
      parts: [
        { text: 'Hm', thought: true, thoughtSignature: foreign },
        { text: 'Yes', thought_signature: foreign },
        { functionCall: { name: 'a' }, thoughtSignature: foreign },
      ],
    },
    { role: 'model', parts: [{ text: '', thoughtSignature: foreign }] },
  ]
  const expected = (signature: JsonObject): unknown => [
    [
      'contents',
      [
        contents[0],
        { role: 'model', parts: [{ text: 'Yes' }, { functionCall: { name: 'a' }, ...signature }] },
      ],
    ],
  ]
  const standIn = { thoughtSignature: 'skip_thought_signature_validator' }
  t.same(edited({ contents }), { out: expected(standIn), lost: ['contents.thoughtSignature'] })
  t.same(edited({ contents }, old).out, expected({}), 'models that check no signatures get none')
  t.end()
})
