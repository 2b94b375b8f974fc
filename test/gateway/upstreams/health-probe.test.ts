/**
 * Goal: a health check requests its path with the upstream's credential, opens the breaker of an upstream
 * that fails, lets a healthy one be tested at once, and releases its timer when it stops.
 * Method: a local server through a real connection pool; the breaker records its calls.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { Breaker } from '../../../src/gateway/attempts/breaker.js'
import { SYSTEM_CLOCK } from '../../../src/base/rolling-sums.js'
import { HealthProbe } from '../../../src/gateway/attempts/health-probe.js'
import { openPool } from './fixtures.js'

const CONFIG = { failures: 2, errorRate: 0.5, minRequests: 20, windowMs: 10_000, openMs: 60_000 }

interface Scene {
  readonly breaker: Breaker
  readonly requests: IncomingMessage[]
  answer: (res: ServerResponse) => void
  readonly probe: HealthProbe
}

async function scene(t: Test, intervalMs = 20): Promise<Scene> {
  const requests: IncomingMessage[] = []
  const server = createServer((req, res) => {
    requests.push(req)
    scene.answer(res)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const pool = openPool({ baseUrl: `http://127.0.0.1:${port}` })
  const breaker = new Breaker(CONFIG, SYSTEM_CLOCK)
  const scene: Scene = {
    breaker,
    requests,
    answer: (res) => res.end('{}'),
    probe: new HealthProbe({
      probe: { path: '/models', intervalMs },
      pool,
      path: '/v1/models',
      headers: () => ['authorization', 'Bearer k'],
      breaker,
    }),
  }
  t.teardown(async () => {
    scene.probe.stop()
    await pool.destroy()
    server.closeAllConnections()
    server.close()
  })
  return scene
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5))
}

void t.test('it requests the path with GET and the credential, again and again', async (t) => {
  // The interval is also the time limit of a check.
  const { requests, breaker } = await scene(t, 1_000)
  await until(() => requests.length >= 3)
  t.match(requests[0], { method: 'GET', url: '/v1/models', headers: { authorization: 'Bearer k' } })
  t.equal(requests[0]?.headers['content-length'], undefined)
  t.equal(breaker.state, 'closed')
})

void t.test(
  'status 500 opens the breaker without any traffic; a healthy reply allows a test request',
  async (t) => {
    const up = await scene(t, 300)
    up.answer = (res) => res.writeHead(500).end()
    await until(() => up.breaker.state === 'open')
    up.answer = (res) => res.writeHead(401).end()
    await until(() => up.breaker.state === 'half_open')
    t.pass('a reply below 500 shows that the provider answers')
  },
)

void t.test('a server that accepts and sends nothing counts as down', async (t) => {
  const up = await scene(t, 50)
  up.answer = () => undefined
  await until(() => up.breaker.state === 'open')
  t.pass()
})

void t.test('after stop nothing more is sent, and a running check has no effect', async (t) => {
  const up = await scene(t, 1_000)
  up.answer = (res) => void setTimeout(() => res.writeHead(500).end(), 30)
  await until(() => up.requests.length === 1)
  up.probe.stop()
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  t.equal(up.requests.length, 1)
  t.equal(up.breaker.state, 'closed')
})
