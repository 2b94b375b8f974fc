/**
 * Goal: a connection keeps its last responses within a number, its own limit and the memory of its account.
 * Method: adds responses of known sizes.
 */
import t from 'tap'
import { BodyMemory } from '../../../src/gateway/body-memory.js'
import { ConnectionResponses } from '../../../src/gateway/stored-responses/connection-responses.js'

function response(bytes: number, ownBytes = bytes) {
  return { input: [], reply: {}, upstream: null, model: 'm', bytes, ownBytes }
}

void t.test('the oldest responses leave', (t) => {
  const memory = new BodyMemory(1_000_000)
  const kept = new ConnectionResponses(memory.open('a'), () => 10_000)
  for (let at = 0; at < 20; at += 1) kept.add(`r${at}`, response(100 + at * 10, 10))
  t.equal(kept.find('r3'), null)
  t.ok(kept.find('r4'))
  t.equal(kept.lastId, 'r19')
  t.equal(memory.heldBytes, 2 * (290 - 10 + 16 * 10), 'shared items count once')
  kept.add('large', response(9_950))
  t.equal(kept.find('r4'), null)
  t.ok(kept.find('r19'), 'what still fits stays')
  kept.add('too large', response(10_001))
  for (const id of ['too large', 'large', 'r19']) t.equal(kept.find(id), null, id)
  t.equal(memory.heldBytes, 0)
  kept.add('last', response(100))
  kept.end()
  t.equal(memory.heldBytes, 0)
  t.end()
})

void t.test('without memory nothing is kept', (t) => {
  const memory = new BodyMemory(1_000)
  const kept = new ConnectionResponses(memory.open('a'), () => 10_000)
  kept.add('small', response(100))
  t.ok(kept.find('small'))
  kept.add('large', response(400))
  t.equal(kept.find('large'), null)
  t.equal(memory.heldBytes, 0)
  t.end()
})
