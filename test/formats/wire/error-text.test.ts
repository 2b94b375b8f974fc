/**
 * Goal: the words of an error reach the client wherever a server puts them.
 * Method: bodies of several servers, decoded for an upstream of each format.
 */
import t from 'tap'
import { decodeError as decodeAnthropic } from '../../../src/formats/anthropic/upstream/decode-error.js'
import { decodeError as decodeGemini } from '../../../src/formats/gemini/upstream/decode-error.js'
import { decodeAwsError } from '../../../src/formats/wire/aws/decode-error.js'
import { decodeError as decodeOpenAi } from '../../../src/formats/wire/openai/decode-error.js'

const BODIES: readonly object[] = [
  { errors: { size: ['is too odd'] } },
  { error: { code: 'x', details: 'is too odd' } },
  { error: { innererror: { message: 'is too odd' } } },
  { fault: { faultstring: 'is too odd' } },
  { errorMessage: 'is too odd' },
  { description: 'is too odd' },
]

void t.test('the words of an error are found for upstreams of each format', (t) => {
  for (const decode of [decodeOpenAi, decodeAnthropic, decodeGemini, decodeAwsError]) {
    for (const body of BODIES) {
      const text = JSON.stringify(body)
      t.match(decode(400, {}, text).message, /is too odd$/, text)
    }
  }
  t.equal(decodeOpenAi(400, {}, JSON.stringify(BODIES[0])).message, 'size: is too odd')
  t.end()
})

void t.test('the words of the provider behind a router follow those of the router', (t) => {
  const raw = JSON.stringify({ error: { message: 'is too odd' } })
  const body = JSON.stringify({ error: { message: 'Provider returned error', metadata: { raw } } })
  for (const decode of [decodeOpenAi, decodeAnthropic, decodeGemini]) {
    t.equal(decode(400, {}, body).message, 'Provider returned error (is too odd)')
  }
  t.end()
})
