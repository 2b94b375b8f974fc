/**
 * Goal: an upstream's quirks change the same members whether the body is bytes or a value.
 * Method: each quirk alone and all together, in both forms, whose results are compared.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import type { QuirksConfig } from '../../../src/config/config.js'
import { PLAIN } from '../../../src/config/quirks.js'
import { applyQuirks, quirkEdits } from '../../../src/gateway/upstreams/apply-quirks.js'
import { parseObject } from '../../../src/formats/wire/json/parse-body.js'
import { splice } from '../../../src/formats/wire/json/splice.js'

const NONE = PLAIN
const ignore = (): void => undefined

/** Applies quirks to both forms; fails if the results differ. */
function both(t: { same: (a: unknown, b: unknown) => void }, body: JsonObject, quirks: QuirksConfig) {
  const bytes = Buffer.from(JSON.stringify(body))
  const reported: string[] = []
  const edits = quirkEdits({ body, dialectEdits: [] }, quirks, (path) => reported.push(path))
  const spliced = edits.length === 0 ? bytes : splice(bytes, parseObject(bytes).members, edits)
  const again: string[] = []
  const applied = applyQuirks(body, quirks, (path) => again.push(path))
  t.same(JSON.parse(spliced.toString()), applied)
  t.same(again, reported)
  return applied
}

const BODY: JsonObject = { model: 'm', max_tokens: 5, store: true, user: null }

void t.test('no quirks: the body itself', (t) => {
  t.equal(applyQuirks(BODY, NONE, ignore), BODY)
  t.same(quirkEdits({ body: BODY, dialectEdits: [] }, NONE, ignore), [])
  t.end()
})

void t.test('drop removes a member and ignores a missing one', (t) => {
  const quirks = { ...NONE, drop: ['store', 'missing'] }
  t.same(both(t, BODY, quirks), { model: 'm', max_tokens: 5, user: null })
  t.end()
})

void t.test('rename keeps the value, also null, and adds no missing member', (t) => {
  const rename = { max_tokens: 'max_completion_tokens', user: 'safety_identifier', top_k: 'k' }
  t.same(both(t, BODY, { ...NONE, rename }), {
    model: 'm',
    store: true,
    max_completion_tokens: 5,
    safety_identifier: null,
  })
  t.end()
})

void t.test('rename to an existing member replaces it', (t) => {
  t.same(both(t, { a: 1, b: 2 }, { ...NONE, rename: { a: 'b' } }), { b: 1 })
  t.end()
})

void t.test('set adds and replaces, with any JSON value', (t) => {
  const set = { store: false, provider: { order: ['x'] }, none: null, text: '"q"\u2028' }
  t.same(both(t, BODY, { ...NONE, set }), { model: 'm', max_tokens: 5, user: null, ...set })
  t.end()
})

void t.test("all quirks together, and the caller's body is unchanged", (t) => {
  const before = JSON.stringify(BODY)
  const quirks = { ...NONE, drop: ['user'], rename: { max_tokens: 'limit' }, set: { store: 1 } }
  t.same(both(t, BODY, quirks), { model: 'm', limit: 5, store: 1 })
  t.equal(JSON.stringify(BODY), before)
  t.end()
})

void t.test('names of Object.prototype are members like any other', (t) => {
  const quirks = { ...NONE, drop: ['toString'], rename: { constructor: 'x', valueOf: 'y' } }
  t.equal(applyQuirks(BODY, quirks, ignore), BODY)
  t.end()
})

void t.test("members that the dialect has set are dropped and renamed like the client's", (t) => {
  const made = [
    { key: 'stream_options', json: '{"include_usage":true}' },
    { key: 'max_tokens', json: null },
    { key: 'max_completion_tokens', json: '5' },
  ]
  const rename = { max_completion_tokens: 'max_tokens' }
  const quirks = { ...NONE, drop: ['stream_options'], rename }
  const bytes = Buffer.from(JSON.stringify(BODY))
  const edits = [...made, ...quirkEdits({ body: BODY, dialectEdits: made }, quirks, (path) => t.fail(path))]
  const body: unknown = JSON.parse(splice(bytes, parseObject(bytes).members, edits).toString())
  t.same(body, BODY, 'usage is requested by the gateway itself, and the limit is back under its old name')
  t.end()
})

void t.test('messages: members are dropped and renamed, and roles are replaced', (t) => {
  const body: JsonObject = {
    messages: [
      { role: 'developer', content: 'Be brief.', name: 'boss' },
      { role: 'user', content: 'Hi', extra: 1 },
      { role: 'assistant', content: 'Yo', refusal: null, annotations: [], reasoning: 'hm' },
    ],
  }
  const messages = {
    drop: ['name', 'refusal', 'annotations'],
    rename: { reasoning: 'reasoning_content' },
    roles: { developer: 'system' },
  }
  t.same(both(t, body, { ...NONE, messages }), {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi', extra: 1 },
      { role: 'assistant', content: 'Yo', reasoning_content: 'hm' },
    ],
  })
  const plain = { messages: [{ role: 'user', content: 'Hi' }] }
  t.same(
    quirkEdits({ body: plain, dialectEdits: [] }, { ...NONE, messages }, ignore),
    [],
    'others keep their bytes',
  )
  t.end()
})

void t.test('quirks apply to messages that the dialect has changed', (t) => {
  const body: JsonObject = { messages: [{ role: 'developer', content: 'a', name: 'x' }] }
  const made = [{ key: 'messages', json: '[{"role":"developer","content":"b"}]' }]
  const messages = { ...NONE.messages, roles: { developer: 'system' } }
  t.same(quirkEdits({ body, dialectEdits: made }, { ...NONE, messages }, ignore), [
    { key: 'messages', json: '[{"role":"system","content":"b"}]' },
  ])
  t.end()
})

void t.test('dropped members are reported if they are not empty', (t) => {
  const reported: string[] = []
  const body: JsonObject = {
    store: true,
    user: null,
    logit_bias: {},
    stream_options: { include_usage: true },
    messages: [
      { role: 'user', content: 'Hi', name: 'ann' },
      { role: 'assistant', content: 'Yo', refusal: null },
    ],
  }
  const messages = { ...NONE.messages, drop: ['name', 'refusal'] }
  const drop = Object.keys(body).filter((key) => key !== 'messages')
  quirkEdits({ body, dialectEdits: [] }, { ...NONE, drop, messages }, (path) => reported.push(path))
  t.same(reported, ['store', 'messages.name'])
  t.end()
})
