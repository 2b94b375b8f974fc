/**
 * Goal: a call whose arguments are blank or null has an empty object in the reply of each format.
 * Method: each form of no arguments, and the encoders for clients.
 */
import t from 'tap'
import { encodeToolInput } from '../../../../src/formats/anthropic/client/encode-reply.js'
import { argumentsOf } from '../../../../src/formats/openai-responses/client/encode-reply.js'
import { hasNoArguments } from '../../../../src/formats/wire/json/no-arguments.js'

void t.test('blank text and null are no arguments', (t) => {
  for (const none of ['', ' ', '\n', 'null', ' null\n']) {
    t.ok(hasNoArguments(none), none)
    t.equal(encodeToolInput(none, false), '{}')
    t.equal(argumentsOf(none), '{}')
  }
  for (const some of ['{}', '{"a":null}', '"null"', 'nul', '0']) t.notOk(hasNoArguments(some), some)
  t.equal(encodeToolInput('null', true), '{"input":"null"}', 'the text of a custom tool stays')
  t.end()
})
