/**
 * Runs a table of request rules: each row is one test of accepted and refused values.
 * The tables are in the tests.
 */
import type { Test } from 'tap'
import type { JsonObject, JsonValue } from '../../../src/base/json.js'
import { decode, refusalOf, request, requestBody } from './driver.js'

/** A rule of one field and the values that keep or break it. */
export interface Rule {
  field: string
  /** Values that pass. */
  good: JsonValue[]
  /** Values that fail, with the path that is named. */
  bad: [JsonValue | undefined, string][]
  message: string
  /** Other members of the body. */
  members?: JsonObject
}

/** One test per rule, and one that `null` is absent for every field. */
export function check(t: Test, rules: readonly Rule[]): void {
  for (const { field, good, bad, message, members } of rules) {
    void t.test(`${field}: ${message}`, (t) => {
      for (const value of good) {
        const body = requestBody({ ...members, [field]: value })
        const before = JSON.stringify(body)
        t.equal(decode(body).model.length > 0, true)
        t.equal(JSON.stringify(body), before, 'the body is unchanged')
      }
      for (const [value, path] of bad) {
        const error = refusalOf(() => decode(requestBody({ ...members, [field]: value })))
        t.equal(error.kind, 'malformed_request')
        t.ok(error.message.startsWith(message), error.message.slice(0, 120))
        t.equal(error.param, path === '' ? field : path)
      }
      t.end()
    })
  }
  void t.test('null is absent everywhere', (t) => {
    const body: JsonObject = {}
    for (const { field } of rules) body[field] = null
    const { model, messages } = requestBody()
    t.same(decode({ ...body, model, messages }), request())
    t.end()
  })
}
