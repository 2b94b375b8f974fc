/**
 * Goal: an upstream's quirks change the same members whether the body is bytes or a value.
 * Method: each quirk alone and together, through both ways, compared.
 */
import t from 'tap'
import type { JsonObject } from '../../src/chat/json.js'
import type { QuirksConfig } from '../../src/config/config.js'
import { applyQuirks, quirkEdits } from '../../src/upstreams/quirks.js'
import { parseObject } from '../../src/wire/json.js'
import { splice } from '../../src/wire/splice.js'

const NONE: QuirksConfig = { drop: [], rename: {}, set: {} }

/** Both ways; fails where they differ. */
function both(
  t: { same: (a: unknown, b: unknown) => void },
  body: JsonObject,
  quirks: QuirksConfig,
) {
  const bytes = Buffer.from(JSON.stringify(body))
  const edits = quirkEdits(body, quirks)
  const spliced = edits.length === 0 ? bytes : splice(bytes, parseObject(bytes).members, edits)
  const applied = applyQuirks(body, quirks)
  t.same(JSON.parse(spliced.toString()), applied)
  return applied
}

const BODY: JsonObject = { model: 'm', max_tokens: 5, store: true, user: null }

void t.test('no quirks: the body itself', (t) => {
  t.equal(applyQuirks(BODY, NONE), BODY)
  t.same(quirkEdits(BODY, NONE), [])
  t.end()
})

void t.test('drop takes a member away and does not mind one that is not there', (t) => {
  const quirks = { ...NONE, drop: ['store', 'missing'] }
  t.same(both(t, BODY, quirks), { model: 'm', max_tokens: 5, user: null })
  t.end()
})

void t.test('rename keeps the value, null too, and leaves what is absent absent', (t) => {
  const rename = { max_tokens: 'max_completion_tokens', user: 'safety_identifier', top_k: 'k' }
  t.same(both(t, BODY, { ...NONE, rename }), {
    model: 'm',
    store: true,
    max_completion_tokens: 5,
    safety_identifier: null,
  })
  t.end()
})

void t.test('rename onto a member that is there replaces it', (t) => {
  t.same(both(t, { a: 1, b: 2 }, { ...NONE, rename: { a: 'b' } }), { b: 1 })
  t.end()
})

void t.test('set adds and replaces, with any JSON value', (t) => {
  const set = { store: false, provider: { order: ['x'] }, none: null, text: '"q"\u2028' }
  t.same(both(t, BODY, { ...NONE, set }), { model: 'm', max_tokens: 5, user: null, ...set })
  t.end()
})

void t.test('all together, and the caller’s body is left as it was', (t) => {
  const before = JSON.stringify(BODY)
  const quirks = { drop: ['user'], rename: { max_tokens: 'limit' }, set: { store: 1 } }
  t.same(both(t, BODY, quirks), { model: 'm', limit: 5, store: 1 })
  t.equal(JSON.stringify(BODY), before)
  t.end()
})

void t.test('names of Object.prototype are members like any other', (t) => {
  const quirks = { ...NONE, drop: ['toString'], rename: { constructor: 'x', valueOf: 'y' } }
  t.equal(applyQuirks(BODY, quirks), BODY)
  t.end()
})
