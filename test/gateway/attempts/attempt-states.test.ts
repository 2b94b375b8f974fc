/**
 * Goal: the table of the states of an attempt lets every attempt end, and has no state that no event leads
 * to.
 * Method: the states are followed from the first one; events that the table does not have are tried in each.
 */
import t from 'tap'
import {
  ATTEMPT_EVENTS,
  ATTEMPT_STATES,
  stateAfter,
  type AttemptEvent,
  type AttemptState,
} from '../../../src/gateway/attempts/attempt-states.js'

const STATES = Object.keys(ATTEMPT_STATES) as AttemptState[]
const EVENTS = Object.keys(ATTEMPT_EVENTS) as AttemptEvent[]

void t.test('every state has a way to it, and ends', (t) => {
  const reached = new Set<AttemptState>(['connecting'])
  for (const state of reached) for (const event of EVENTS) reached.add(stateAfter(state, event))
  t.strictSame([...reached].sort(), [...STATES].sort())
  for (const state of STATES) t.equal(stateAfter(state, 'end'), 'over', state)
  t.end()
})

void t.test('the ways of a stream, a whole reply and an error', (t) => {
  const after = (...events: AttemptEvent[]): AttemptState =>
    events.reduce<AttemptState>(stateAfter, 'connecting')
  t.equal(after('sent', 'events'), 'stream')
  t.equal(after('sent', 'events', 'complete'), 'lingering')
  t.equal(after('sent', 'events', 'body'), 'whole', 'the first bytes are no event')
  t.equal(after('sent', 'body'), 'whole')
  t.equal(after('sent', 'refused'), 'error')
  t.equal(after('sent', 'refused', 'events'), 'error', 'the body of an error is no reply')
  for (const event of EVENTS) t.equal(stateAfter('over', event), 'over', 'nothing follows the end')
  t.end()
})
