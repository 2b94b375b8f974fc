/**
 * Goal: without `responses.websocket`, clients that dial Responses as a WebSocket use HTTP then; a client
 * that tests whether the address replies is no error.
 * Method: raw requests to a gateway without and with native WebSockets.
 */
import { request } from 'node:http'
import t from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const SOCKET = {
  connection: 'upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

function statusOf(
  gateway: TestGateway,
  { method, path, headers = {} }: { method: string; path: string; headers?: Record<string, string> },
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const req = request(`${gateway.origin}${path}`, { method, headers, agent: false }, (res) => {
      res.resume()
      res.once('end', () => resolve(res.statusCode))
    })
    req.once('error', reject)
    req.end()
  })
}

for (const upstreamOptions of ['', "native: ['GET /v1/realtime']"]) {
  void t.test(`native: ${upstreamOptions}`, async (t) => {
    const more = 'responses: { websocket: false }'
    const gateway = await startGateway(t, upstreamOptions === '' ? { more } : { upstreamOptions, more })
    const headers = { ...SOCKET, authorization: `Bearer ${gateway.secret}` }
    t.equal(await statusOf(gateway, { method: 'GET', path: '/v1/responses', headers }), 426)
    t.equal(await statusOf(gateway, { method: 'GET', path: '/v1/responses' }), 405, 'without an upgrade')
    for (const path of ['/', '/api/hello']) t.equal(await statusOf(gateway, { method: 'HEAD', path }), 200)
    const metrics = await gateway.metrics.text()
    t.notMatch(metrics, /sluice_requests_total\{[^}]*status="404"/, 'and no error')
  })
}
