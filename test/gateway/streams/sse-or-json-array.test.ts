/**
 * Goal: the array form of a stream is valid JSON with the unchanged data of the events, for all chunk
 * boundaries.
 * Method: events that are written at once and byte by byte.
 */
import t from 'tap'
import { ArrayForm, arrayOfEvents } from '../../../src/gateway/streams/sse-or-json-array.js'

const EVENTS = 'data: {"a":"é\\n"}\r\n\r\n: comment\n\ndata: {"b": [1]}\n\n'

function fed(chunks: readonly Buffer[]): string {
  const form = new ArrayForm()
  const out = chunks.map((chunk) => form.events(chunk))
  return Buffer.concat([...out, Buffer.from(form.end())]).toString()
}

void t.test('elements are the data of the events', (t) => {
  const whole = fed([Buffer.from(EVENTS)])
  t.equal(whole, '[{"a":"é\\n"},\n{"b": [1]}]')
  t.same(JSON.parse(whole), [{ a: 'é\n' }, { b: [1] }])
  const bytes = Buffer.from(EVENTS)
  t.equal(fed(Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))), whole, 'byte by byte')
  t.equal(arrayOfEvents(EVENTS).toString(), whole, 'as one body')
  t.end()
})

void t.test('a stream without events is an empty array, an error has no closing bracket', (t) => {
  t.equal(arrayOfEvents('').toString(), '[]')
  const form = new ArrayForm()
  t.equal(form.events('data: {"error":{}}\n\n').toString(), '[{"error":{}}')
  t.equal(form.heartbeat.trim(), '', 'white space between elements')
  t.end()
})
