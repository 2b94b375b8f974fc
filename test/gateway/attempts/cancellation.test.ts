/**
 * Goal: an exchange is cancelled once, and its owner is called exactly once.
 * Method: cancellation and listening in every order.
 */
import t from 'tap'
import { GatewayError } from '../../../src/errors.js'
import { Cancellation } from '../../../src/gateway/request-context.js'

const clientGone = new GatewayError('client_gone', 'gone')
const late = new GatewayError('upstream_timeout', 'late')

void t.test('only the first reason counts', (t) => {
  const cancellation = new Cancellation()
  const reasons: GatewayError[] = []
  cancellation.onCancel((reason) => reasons.push(reason))
  t.equal(cancellation.reason, null)
  cancellation.cancel(clientGone)
  cancellation.cancel(late)
  t.same(reasons, [clientGone])
  t.equal(cancellation.reason, clientGone)
  t.end()
})

void t.test('a listener added after the cancellation is called at once', (t) => {
  const cancellation = new Cancellation()
  cancellation.cancel(late)
  const reasons: GatewayError[] = []
  cancellation.onCancel((reason) => reasons.push(reason))
  t.same(reasons, [late])
  t.end()
})

void t.test('a listener replaces the previous one, and null removes it', (t) => {
  const cancellation = new Cancellation()
  cancellation.onCancel(() => t.fail('was replaced'))
  let reasons = 0
  cancellation.onCancel(() => (reasons += 1))
  cancellation.cancel(clientGone)
  t.equal(reasons, 1)
  const silent = new Cancellation()
  silent.onCancel(() => t.fail('was taken away'))
  silent.onCancel(null)
  silent.cancel(clientGone)
  t.equal(silent.reason, clientGone)
  t.end()
})

void t.test('check throws the reason once there is one', (t) => {
  const cancellation = new Cancellation()
  cancellation.check()
  cancellation.cancel(clientGone)
  t.throws(() => cancellation.check(), clientGone)
  t.end()
})

void t.test('a second cancellation by a listener has no effect', (t) => {
  const cancellation = new Cancellation()
  let reasons = 0
  cancellation.onCancel(() => {
    reasons += 1
    cancellation.cancel(late)
  })
  cancellation.cancel(clientGone)
  t.equal(reasons, 1)
  t.equal(cancellation.reason, clientGone)
  t.end()
})
