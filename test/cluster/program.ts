/**
 * A whole small service for the cluster's tests: primary with ops port, workers with an HTTP server.
 * The test forks it, sends commands over its channel, and reads its log from stdout.
 */
import cluster from 'node:cluster'
import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { runPrimary } from '../../src/process/cluster/primary.js'
import { runWorker } from '../../src/process/cluster/run-worker.js'
import { createLogger } from '../../src/observe/log.js'
import { Metrics } from '../../src/observe/metrics/metrics.js'
import { openOps } from '../../src/process/ops/ops-listener.js'

interface Payload {
  generation: number
  text: string
}

function isPayload(value: unknown): value is Payload {
  return typeof value === 'object' && value !== null && 'generation' in value && 'text' in value
}

const log = createLogger({ level: 'info' })
const metrics = new Metrics()
const collect = () => metrics.collect()

async function primary(): Promise<void> {
  const running = runPrimary<Payload>({
    workers: Number(process.env['WORKERS'] ?? 2),
    payload: { generation: 1, text: 'one' },
    log,
    collect,
    drainMs: () => 5000,
    respawn: { baseMs: 20, capMs: 100 },
    pingMs: Number(process.env['PING_MS'] ?? 1000),
    onReplaced: (reason) => metrics.workerReplaced(reason),
    closed: () => ops.close(),
  })
  const ops = await openOps({
    host: '127.0.0.1',
    port: 0,
    metrics: () => running.metrics(),
    ready: () => running.ready(),
    config: () => ({}),
    workers: () => ({}),
  })
  cluster.on('message', (worker, message: unknown) => {
    if (typeof message !== 'object' || message === null) return
    if ('port' in message) process.send?.({ ...message, pid: worker.process.pid })
    if ('blocked' in message) process.send?.(message)
  })
  process.on('message', (message: unknown) => {
    if (isPayload(message)) running.publish(message)
  })
  process.send?.({ ops: ops.port })
}

async function worker(): Promise<void> {
  let current: Payload = { generation: 0, text: '' }
  const target = metrics.target('route', 'upstream')
  const server = createServer((req, res) => {
    if (req.url === '/crash') process.exit(7)
    if (req.url === '/block') {
      process.send?.({ blocked: true })
      for (;;) Math.sqrt(2)
    }
    if (req.url === '/throw') {
      setImmediate(() => void JSON.parse('"a canary" in a prompt'))
      return
    }
    if (req.url === '/reject') {
      void Promise.reject(new Error(`the key was sk_canary0123456789`))
      return
    }
    target.finished(200, 'ok')
    res.setHeader('connection', 'close')
    if (req.url !== '/slow' && req.url !== '/endless') {
      res.end(JSON.stringify({ pid: process.pid, text: current.text }))
      return
    }
    res.write('begun ')
    if (req.url === '/endless') return
    void wait(300).then(() => res.end('finished'))
  })
  const apply = (payload: Payload): void => {
    if (payload.text === 'refused') throw new Error('the text is refused')
    current = payload
    metrics.configLoaded(payload.generation)
  }
  await runWorker<Payload>({
    isPayload,
    apply,
    start: async (payload) => {
      const isLater = (cluster.worker?.id ?? 0) > 2
      if (process.env['FAIL_START'] === '1' || (process.env['FAIL_AGAIN'] === '1' && isLater)) {
        throw new Error('the handler failed')
      }
      apply(payload)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const address = server.address()
      if (address === null || typeof address === 'string') throw new Error('no port')
      process.send?.({ port: address.port })
    },
    ready: () => ({
      ready: server.listening,
      degraded: [],
      checks: { server: server.listening ? 'ok' : 'shut' },
    }),
    collect,
    drain: () => new Promise((resolve) => server.close(() => resolve())),
    log,
  })
}

await (cluster.isPrimary ? primary() : worker())
