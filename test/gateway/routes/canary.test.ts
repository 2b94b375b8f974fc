/**
 * Goal: a target with `abort` is taken out of use at the error rate that its route names, not before
 * `min_requests`, for failures of the provider only, and until the next generation of the configuration.
 * Method: a whole gateway with an emulator for each upstream; the canary's emulator fails as the test sets.
 */
import t from 'tap'
import { startStage, until, type Stage } from './fixtures.js'

const NO_BREAKER = 'breaker: { failures: 1000, min_requests: 100000 }'
const UPSTREAMS = { stable: { options: NO_BREAKER }, canary: { options: NO_BREAKER } }

/** A canary with half of the requests. */
function routeWith(abort: string, more = ''): string {
  return `  - { prefix: m-, targets: [{ upstream: stable }, { upstream: canary, abort: ${abort} }]${more} }`
}

/** Sends requests until the canary has received this number of requests. */
async function askUntilCanaryHas({ ask, received }: Stage, requests: number): Promise<void> {
  await until(async () => {
    if ((received()['canary'] ?? 0) >= requests) return true
    await ask()
    return (received()['canary'] ?? 0) >= requests
  })
}

function checkOf({ gateway }: Stage): string | undefined {
  return gateway.plane.ready().checks['canaries']
}

/** Waits for longer than the interval at which a process reports its counts. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 300))
}

void t.test('a failing canary is aborted at min_requests and not before', async (t) => {
  const stage = await startStage(t, UPSTREAMS, routeWith('{ error_rate: 0.3, min_requests: 12 }'))
  const { gateway, emulators, ask, received, metric } = stage
  emulators['canary']?.script({ fault: { kind: 'status', code: 500 } })
  await askUntilCanaryHas(stage, 11)
  await pause()
  t.equal(checkOf(stage), 'ok', 'eleven of eleven failed')
  t.equal(await metric('sluice_canary_aborted{route="m-",upstream="canary"}'), 0)

  await askUntilCanaryHas(stage, 12)
  await until(() => checkOf(stage) !== 'ok')
  t.equal(checkOf(stage), 'm- to canary aborted: 12 of 12 requests failed')
  t.equal(gateway.plane.ready().ready, true)
  for (let index = 0; index < 40; index += 1) {
    t.match(await ask(), { status: 200, upstream: 'stable', attempts: null })
  }
  t.equal(received()['canary'], 12)
  t.equal(await metric('sluice_canary_aborted{route="m-",upstream="canary"}'), 1)
  t.equal(await metric('sluice_canary_aborts_total{route="m-",upstream="canary"}'), 1)
  const warnings = gateway.lines.filter(({ level }) => level === 'warn')
  t.match(warnings, [
    {
      msg: 'canary aborted: its weight is 0 until the configuration changes',
      route: 'm-',
      upstream: 'canary',
      reason: '12 of 12 requests failed; abort.error_rate is 0.3',
    },
  ])
  t.match(gateway.plane.canaries(), [
    { route: 'm-', upstream: 'canary', percent: 50, attempts: 12, failures: 12 },
  ])
})

void t.test('a canary is aborted at the error rate and not below it', async (t) => {
  const stage = await startStage(t, UPSTREAMS, routeWith('{ error_rate: 0.5, min_requests: 4 }'))
  await askUntilCanaryHas(stage, 6)
  stage.emulators['canary']?.script({ fault: { kind: 'status', code: 503 } })
  await askUntilCanaryHas(stage, 11)
  await pause()
  t.equal(checkOf(stage), 'ok', 'five of eleven failed')
  await askUntilCanaryHas(stage, 12)
  await until(() => checkOf(stage) !== 'ok')
  t.equal(checkOf(stage), 'm- to canary aborted: 6 of 12 requests failed')
})

void t.test("failures that are not the provider's do not abort a canary", async (t) => {
  const stage = await startStage(t, UPSTREAMS, routeWith('{ error_rate: 0.01, min_requests: 1 }'))
  const { emulators, received, gateway } = stage
  const restore = emulators['canary']?.script({ fault: { kind: 'status', code: 400 } })
  await askUntilCanaryHas(stage, 5)
  restore?.()
  // Clients that leave before the first content.
  emulators['canary']?.script({ fault: { kind: 'delay', ms: 60_000 } })
  const before = received()['canary'] ?? 0
  await until(async () => {
    const aborter = new AbortController()
    const pending = gateway.chat(
      { model: 'm-1', messages: [{ role: 'user', content: 'Hello' }] },
      { signal: aborter.signal },
    )
    const ended = pending.then((reply) => reply.text()).catch(() => null)
    await Promise.race([ended, pause()])
    aborter.abort()
    await ended
    return (received()['canary'] ?? 0) >= before + 2
  })
  await pause()
  t.equal(checkOf(stage), 'ok')
  t.match(gateway.plane.canaries(), [{ failures: 0 }])
})

void t.test('a stream that the canary truncates after its first content is a failure', async (t) => {
  const stage = await startStage(t, UPSTREAMS, routeWith('{ error_rate: 1, min_requests: 3 }'))
  const { emulators, ask, received } = stage
  emulators['canary']?.script({ fault: { kind: 'cut', event: 4, mode: 'reset' } })
  await until(async () => {
    // The connection of a truncated reply is closed.
    await ask({ stream: true }).catch(() => null)
    return received()['canary'] === 3
  })
  await until(() => checkOf(stage) !== 'ok')
  t.match(checkOf(stage), /3 of 3 requests failed/)
})

void t.test('the next generation restores an aborted canary, and resets the counts', async (t) => {
  const routes = routeWith('{ error_rate: 0.5, min_requests: 3 }')
  const stage = await startStage(t, UPSTREAMS, routes)
  const { emulators, reload, metric } = stage
  const restore = emulators['canary']?.script({ fault: { kind: 'status', code: 500 } })
  await askUntilCanaryHas(stage, 3)
  await until(() => checkOf(stage) !== 'ok')
  restore?.()
  reload(UPSTREAMS, routes)
  t.equal(checkOf(stage), 'ok')
  t.equal(await metric('sluice_canary_aborted{route="m-",upstream="canary"}'), 0)
  t.equal(await metric('sluice_canary_aborts_total{route="m-",upstream="canary"}'), 1)
  await askUntilCanaryHas(stage, 8)
  await until(() => (stage.gateway.plane.canaries()[0]?.attempts ?? 0) >= 5)
  t.match(stage.gateway.plane.canaries(), [{ failures: 0, abortedAtMs: null }])
})

void t.test('keys that stick to an aborted canary move, the others stay', async (t) => {
  const stage = await startStage(
    t,
    UPSTREAMS,
    routeWith('{ error_rate: 0.01, min_requests: 1 }', ', sticky: key'),
  )
  const { emulators, ask, keyWith } = stage
  const upstreamOf = new Map<string, string | null>()
  await until(async () => {
    const key = await keyWith({})
    upstreamOf.set(key, (await ask({}, key)).upstream)
    return new Set(upstreamOf.values()).size === 2
  })
  for (const [key, upstream] of upstreamOf) {
    for (let index = 0; index < 3; index += 1) t.equal((await ask({}, key)).upstream, upstream)
  }
  emulators['canary']?.script({ fault: { kind: 'status', code: 500 }, times: 1 })
  const [canaryKey] = [...upstreamOf].find(([, upstream]) => upstream === 'canary') ?? ['']
  t.match(await ask({}, canaryKey), { status: 200, attempts: /^canary:\w+, stable:ok$/ })
  await until(() => checkOf(stage) !== 'ok')
  for (const key of upstreamOf.keys()) t.equal((await ask({}, key)).upstream, 'stable')
})
