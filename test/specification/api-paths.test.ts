/**
 * Goal: every API path begins with /v1, and there are no others.
 * Method: paths similar to the real ones, with and without a key.
 */
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { body, get, read } from './exchange.js'

void t.test('S10: the same paths without /v1, or with another version, are 404', async (t) => {
  const gateway = await startGateway(t)
  for (const path of [
    '/chat/completions',
    '/v2/chat/completions',
    '/V1/chat/completions',
    '/v1/chat/completions/',
    '/v1/chat',
    '/v1',
    '/api/v1/chat/completions',
    '/v1beta/chat/completions',
    '/models',
    '/v2/models',
    '/v1/models/',
    '/v1/modelsx',
    '/metrics',
    '/config',
  ]) {
    const init = { method: 'POST', body: JSON.stringify(body()) }
    const headers = {
      authorization: `Bearer ${gateway.secret}`,
      'content-type': 'application/json',
    }
    for (const answer of [
      await read(await fetch(`${gateway.origin}${path}`, { ...init, headers })),
      await get(gateway, path),
    ]) {
      t.equal(answer.status, 404, path)
      const isGemini = path.startsWith('/v1beta/')
      const shape = isGemini
        ? { code: 404, status: 'NOT_FOUND' }
        : { code: null, type: 'invalid_request_error' }
      t.match(answer.error, shape)
      t.match(answer.error.message, /There is no endpoint .* \/v1/, 'names an endpoint')
    }
  }
  t.equal(gateway.emulator.ledger.length, 0)
})

void t.test('S10: a query string is ignored', async (t) => {
  const gateway = await startGateway(t)
  t.equal((await get(gateway, '/v1/models?limit=1')).status, 200)
})

void t.test('S10: a known path with another method is 405 and names the right one', async (t) => {
  const gateway = await startGateway(t)
  const headers = { authorization: `Bearer ${gateway.secret}` }
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
    const response = await fetch(`${gateway.origin}/v1/chat/completions`, { method, headers })
    const { status, error } = await read(response)
    t.equal(status, 405, method)
    t.match(error, { code: null, message: /takes POST/ })
    t.equal(response.headers.get('allow'), 'POST')
  }
})

void t.test('S10: an unknown path is 404 before the key is checked', async (t) => {
  const { origin } = await startGateway(t)
  t.equal((await fetch(`${origin}/v1/models`)).status, 401)
  for (const path of ['/v1/nothing', '/anything', '/']) {
    t.equal((await fetch(`${origin}${path}`)).status, 404, path)
  }
})
