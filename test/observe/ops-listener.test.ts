/**
 * Goal: the ops port serves its four paths, and replies to everything else with a clear JSON error.
 * Method: requests to a real server on a free port.
 */
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { openOps, type Ops } from '../../src/process/ops/ops-listener.js'
import { type Readiness } from '../../src/process/ops/readiness.js'

async function open(
  t: Test,
  state: {
    readiness?: Readiness
    metrics?: (format: string) => Promise<string>
    port?: number
    hosts?: () => readonly string[]
  } = {},
): Promise<Ops> {
  const ops = await openOps({
    host: '127.0.0.1',
    port: state.port ?? 0,
    ...(state.hosts === undefined ? {} : { hosts: state.hosts }),
    metrics: state.metrics ?? (() => Promise.resolve('a_total 1\n')),
    ready: () => state.readiness ?? { ready: true, degraded: [], checks: { store: 'ok' } },
    config: () => ({ generation: 3 }),
    workers: () => ({ pid: 7, workers: [] }),
  })
  t.teardown(() => ops.close())
  return ops
}

function ask(ops: Ops, path: string, method = 'GET'): Promise<Response> {
  return fetch(`http://127.0.0.1:${ops.port}${path}`, { method })
}

void t.test('metrics, health, readiness, configuration', async (t) => {
  const ops = await open(t)
  const metrics = await ask(ops, '/metrics?x=1')
  t.equal(metrics.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.equal(await metrics.text(), 'a_total 1\n')
  t.strictSame(await (await ask(ops, '/healthz')).json(), { status: 'ok' })
  t.strictSame(await (await ask(ops, '/config')).json(), { generation: 3 })
  const ready = await ask(ops, '/readyz')
  t.equal(ready.status, 200)
  t.strictSame(await ready.json(), { ready: true, degraded: [], checks: { store: 'ok' } })
  const head = await ask(ops, '/metrics', 'HEAD')
  t.equal(head.headers.get('content-length'), '10')
  t.equal(await head.text(), '')
})

void t.test('the metrics are OpenMetrics if the client prefers it', async (t) => {
  const ops = await open(t, { metrics: (format) => Promise.resolve(format) })
  const typeFor = async (accept: string): Promise<string> => {
    const reply = await fetch(`http://127.0.0.1:${ops.port}/metrics`, { headers: { accept } })
    return `${reply.headers.get('content-type') ?? ''} ${await reply.text()}`
  }
  const text = 'text/plain; version=0.0.4; charset=utf-8 prometheus'
  const open1 = 'application/openmetrics-text; version=1.0.0; charset=utf-8 openmetrics'
  const prometheus2 =
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
  const prometheus3 =
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;q=0.3,*/*;q=0.1'
  for (const accept of [prometheus2, prometheus3, 'application/openmetrics-text']) {
    t.equal(await typeFor(accept), open1, accept)
  }
  for (const accept of [
    '*/*',
    'text/html',
    'text/plain, application/openmetrics-text;q=0.5',
    'application/openmetrics-text;q=0',
    'application/openmetrics-text;q=x',
  ]) {
    t.equal(await typeFor(accept), text, accept)
  }
})

void t.test('not ready is 503 with the reason', async (t) => {
  const readiness = { ready: false, degraded: [], checks: { store: 'unavailable', drain: 'ok' } }
  const response = await ask(await open(t, { readiness }), '/readyz')
  t.equal(response.status, 503)
  t.strictSame(await response.json(), readiness)
})

void t.test('degraded is 200 with the failed check, and 503 for ?strict', async (t) => {
  const readiness = { ready: true, degraded: ['store'], checks: { store: 'unavailable' } }
  const ops = await open(t, { readiness })
  for (const [path, status] of [
    ['/readyz', 200],
    ['/readyz?verbose=1', 200],
    ['/readyz?strict', 503],
    ['/readyz?strict=1', 503],
  ] as const) {
    const response = await ask(ops, path)
    t.equal(response.status, status, path)
    t.strictSame(await response.json(), readiness)
  }
  t.equal((await ask(await open(t), '/readyz?strict')).status, 200, 'nothing is degraded')
})

void t.test('other paths and methods', async (t) => {
  const ops = await open(t)
  for (const path of ['/', '/debug/pprof', '/metrics/', '/constructor', '/__proto__']) {
    const response = await ask(ops, path)
    t.equal(response.status, 404, path)
    t.match(await response.json(), { error: { code: 404, kind: 'unknown_endpoint' } })
  }
  const response = await ask(ops, '/metrics', 'POST')
  t.equal(response.status, 405)
  t.equal(response.headers.get('allow'), 'GET, HEAD')
  t.match(await response.json(), { error: { code: 405, kind: 'method_not_allowed' } })
})

/** The status of a request with this `Host` header; `fetch` cannot set it. */
function statusFor(ops: Ops, host: string, path = '/metrics'): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { port: ops.port, host: '127.0.0.1', path, headers: { host }, agent: false }
    request(options, (res) => resolve(res.resume().statusCode))
      .on('error', reject)
      .end()
  })
}

void t.test('only addresses, localhost and configured names are served', async (t) => {
  let hosts = ['sluice.monitoring.svc', 'Ops.example.']
  const ops = await open(t, { hosts: () => hosts })
  for (const host of [
    ...['127.0.0.1', '127.0.0.1:9464', '10.1.2.3', '[::1]', '[::1]:9464', '[fd00::7]:80'],
    ...['localhost', 'LOCALHOST:9464', 'localhost.'],
    ...['sluice.monitoring.svc', 'Sluice.Monitoring.svc:9464', 'ops.example', 'ops.example.:1'],
  ]) {
    t.equal(await statusFor(ops, host), 200, host)
  }
  for (const host of [
    ...['attacker.example', 'attacker.example:9464', '127.0.0.1.nip.io', 'localhost.attacker.example'],
    ...['monitoring.svc', 'x.sluice.monitoring.svc', '[localhost]', '0x7f.1'],
  ]) {
    for (const path of ['/metrics', '/healthz', '/readyz', '/config', '/generations', '/none']) {
      t.equal(await statusFor(ops, host, path), 403, `${host} ${path}`)
    }
  }
  hosts = []
  t.equal(await statusFor(ops, 'ops.example'), 403, 'a changed list is in force at once')
  const none = await open(t)
  t.equal(await statusFor(none, 'ops.example'), 403, 'no list')
  t.equal(await statusFor(none, `localhost:${none.port}`), 200)
})

void t.test('a failing handler causes a 500 without the reason', async (t) => {
  const ops = await open(t, { metrics: () => Promise.reject(new Error('sk-secret-in-a-message')) })
  const response = await ask(ops, '/metrics')
  t.equal(response.status, 500)
  t.notMatch(await response.text(), 'secret')
})

void t.test('listening on a used port rejects with the reason', async (t) => {
  const { port } = await open(t)
  await t.rejects(open(t, { port }), { kind: 'cannot_listen', message: /EADDRINUSE.*ops port/ })
})

void t.test('close frees the port at once, open connections or not', async (t) => {
  const ops = await open(t)
  await (await ask(ops, '/healthz')).text()
  await ops.close()
  await t.rejects(ask(ops, '/healthz'))
})
