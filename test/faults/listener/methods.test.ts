/**
 * Goal: a 405 lists in `allow` the methods of the path, on every port and page, and HEAD is a GET without a
 * body.
 * Method: requests with wrong methods to a running gateway and to an ops port.
 */
import t from 'tap'
import { openOps } from '../../../src/process/ops/ops-listener.js'
import { startGateway } from '../../helpers/gateway.js'

void t.test('a method that a path does not support', async (t) => {
  const gateway = await startGateway(t)
  const ops = await openOps({
    host: '127.0.0.1',
    port: 0,
    metrics: () => Promise.resolve('# none\n'),
    ready: () => ({ ready: true, degraded: [], checks: {} }),
    config: () => ({}),
    workers: () => ({}),
  })
  t.teardown(() => ops.close())
  const opsOrigin = `http://127.0.0.1:${ops.port}`
  const cases: readonly (readonly [method: string, url: string, allow: string])[] = [
    ['GET', `${gateway.origin}/v1/chat/completions`, 'POST'],
    ['HEAD', `${gateway.origin}/v1/chat/completions`, 'POST'],
    ['POST', `${gateway.origin}/v1/models`, 'GET, HEAD'],
    ['DELETE', `${gateway.origin}/v1/models/gpt-4o`, 'GET, HEAD'],
    ['PUT', `${gateway.origin}/dashboard/`, 'GET, HEAD'],
    ['POST', `${gateway.origin}/dashboard/assets/none.js`, 'GET, HEAD'],
    ['PUT', `${gateway.origin}/dashboard/api/session`, 'GET, HEAD, POST, DELETE'],
    ['PUT', `${gateway.origin}/dashboard/api/keys/abc`, 'GET, HEAD, PATCH, DELETE'],
    ['POST', `${opsOrigin}/metrics`, 'GET, HEAD'],
    ['PUT', `${opsOrigin}/config`, 'GET, HEAD'],
  ]
  for (const [method, url, allow] of cases) {
    const headers = { authorization: `Bearer ${gateway.secret}` }
    const res = await fetch(url, { method, headers })
    await res.arrayBuffer()
    t.equal(res.status, 405, `${method} ${url}`)
    t.equal(res.headers.get('allow'), allow, `${method} ${url}`)
  }
})

void t.test('HEAD gets the reply of GET without a body', async (t) => {
  const gateway = await startGateway(t)
  const headers = { authorization: `Bearer ${gateway.secret}` }
  for (const path of ['/v1/models', '/v1/models/gpt-4o', '/dashboard/api/session', '/dashboard/']) {
    const get = await fetch(`${gateway.origin}${path}`, { headers })
    const head = await fetch(`${gateway.origin}${path}`, { method: 'HEAD', headers })
    t.equal(head.status, get.status, path)
    t.equal(head.headers.get('content-length'), get.headers.get('content-length'), path)
    t.ok((await get.text()).length > 0)
    t.equal(await head.text(), '')
  }
})

void t.test("a client's own request id keeps its printable characters", async (t) => {
  const gateway = await startGateway(t)
  const logged = async (headers: Record<string, string>): Promise<unknown> => {
    const authorization = `Bearer ${gateway.secret}`
    await fetch(`${gateway.origin}/v1/models`, { headers: { authorization, ...headers } })
    return gateway.lines.findLast(({ path }) => path === '/v1/models')?.['client_request_id']
  }
  t.equal(await logged({ 'x-request-id': 'a b-1' }), 'a b-1')
  t.equal(await logged({ 'x-request-id': `a"b'c\\d\`e\tf\u00e9` }), 'abcdef')
  t.equal(await logged({ 'x-request-id': 'x'.repeat(500) }), 'x'.repeat(128))
  t.equal(await logged({ 'x-request-id': '""' }), undefined)
  t.equal(await logged({ 'x-client-request-id': 'theirs' }), 'theirs')
})
