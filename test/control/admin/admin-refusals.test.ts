/**
 * Goal: what the listener refuses before the admin API sees it is a problem, too.
 * Method: requests with invalid targets to the admin API and to the data plane.
 */
import t from 'tap'
import { startAdmin } from './admin-stage.js'

void t.test('an invalid percent escape is a problem, below /admin/v1 only', async (t) => {
  const { gateway, ask } = await startAdmin(t)
  for (const path of [
    '/accounts/%zz',
    '/accounts/%',
    '/accounts?name=%E0%A4%A',
    '/accounts/%00',
    '/keys//x',
  ]) {
    const reply = await ask('GET', path)
    t.equal(reply.status, 400, path)
    t.equal(reply.headers.get('content-type'), 'application/problem+json')
    const requestId = reply.headers.get('x-request-id')
    t.match(reply.json, { type: 'urn:sluice:error:malformed_request', status: 400, request_id: requestId })
  }
  const response = await fetch(`${gateway.origin}/v1/models/%zz`)
  t.equal(response.headers.get('content-type'), 'application/json')
  t.match(await response.json(), { error: { kind: 'malformed_request' } })
})
