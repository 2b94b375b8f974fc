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

void t.test('the dashboard answers problems, too, also before its router', async (t) => {
  const { gateway } = await startAdmin(t)
  const api = `${gateway.origin}/dashboard/api`
  const asked: [path: string, init: RequestInit, status: number, kind: string][] = [
    ['/keys/%zz', {}, 400, 'malformed_request'],
    ['/nothing', {}, 404, 'unknown_endpoint'],
    ['/keys', {}, 401, 'unauthenticated'],
    ['/session', { method: 'PATCH' }, 405, 'method_not_allowed'],
    ['/session', { method: 'POST', body: '{}' }, 403, 'forbidden'],
    ['/session?x=1', {}, 400, 'unknown_field'],
  ]
  for (const [path, init, status, kind] of asked) {
    const response = await fetch(api + path, init)
    t.equal(response.headers.get('content-type'), 'application/problem+json', path)
    t.match(response.headers.get('x-request-id'), /^[\w-]{20,}/, path)
    const type = `urn:sluice:error:${kind}`
    t.match(
      await response.json(),
      { type, status, kind, request_id: undefined, title: /\w/, detail: /\w/ },
      path,
    )
    t.equal(response.status, status, path)
  }
  const headers = { origin: gateway.origin, 'content-type': 'application/json' }
  const body = JSON.stringify({ email: 1, pass_word: 'x', other: true })
  const wrong = await fetch(`${api}/session`, { method: 'POST', headers, body })
  t.match(await wrong.json(), {
    kind: 'invalid_field',
    field: 'email',
    errors: [
      { field: 'email' },
      { field: 'password' },
      { field: 'pass_word', fix: 'Use "password".' },
      { field: 'other' },
    ],
  })
})
