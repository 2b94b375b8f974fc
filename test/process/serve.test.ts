/**
 * Goal: `sluice serve` with two workers acts as one gateway: its pages, its metrics, its keys.
 * Method: the real program in front of an emulator; `sluice keys` beside it; every chat on
 * a new connection, so that the workers serve in turn.
 */
import t from 'tap'
import { sluiceHere } from '../cli/session.js'
import { ALONE, CANARY, EMAIL, hasAllWorkers, run, startServe, until, type Served } from './program.js'

/** Tests of it build on each other. */
const served = await startServe(t)

void t.test('the ops pages describe the whole gateway', async (t) => {
  t.same(JSON.parse((await served.ops('/healthz')).text), { status: 'ok' })
  t.same(JSON.parse((await served.ops('/readyz')).text), {
    ready: true,
    degraded: [],
    checks: { worker_1: 'ok', worker_2: 'ok', config: 'ok', canaries: 'ok' },
    generation: 1,
    held: null,
    waiting_for_restart: [],
  })
  for (let sent = 0; sent < 9; sent += 1) {
    const response = await served.chat(sent === 8 ? { messages: 'none' } : {})
    t.equal(response.status, sent === 8 ? 400 : 200)
    await response.text()
  }
  const metrics = await served.ops('/metrics')
  t.equal(metrics.status, 200)
  t.equal(sumOf(metrics.text, 'sluice_requests_total'), 9, 'both workers are counted')
  t.match(metrics.text, /^sluice_config_generation 1$/m)
  const exchanges = (): Record<string, unknown>[] =>
    served.program.lines().filter(({ msg }) => msg === 'exchange')
  await until(() => exchanges().length === 9)
  t.equal(new Set(exchanges().map(({ pid }) => pid)).size, 2, 'both workers served requests')
  const config = await served.ops('/config')
  const page = JSON.parse(config.text) as Record<string, unknown>
  t.match(page, { generation: 1, last_error: null, upstreams: { openai: { configured: true } } })
  const texts = config.text + metrics.text + served.program.out() + served.program.err()
  t.notMatch(texts, CANARY, 'the upstream key is nowhere')
  t.notMatch(texts, served.secret, 'the client key is nowhere')
})

void t.test('S7, B-35: a new and a revoked key take effect on all workers within a second', async (t) => {
  const creating = run(t, [
    ...['keys', 'create', '--config', served.file, '--account', EMAIL, '--name', 'second'],
  ])
  t.equal(await creating.ended, 0, creating.err())
  const secret = creating.out().trim()
  t.ok((await until(() => allAnswer(served, secret, 200))) < 1000)
  const at = ['--config', served.file, '--account', EMAIL]
  const listing = await sluiceHere(['keys', 'list', ...at, '--json'])
  t.equal(listing.status, 0)
  const keys = JSON.parse(listing.out) as { id: string; name: string }[]
  const id = keys.find(({ name }) => name === 'second')?.id ?? ''
  const revoking = await sluiceHere(['keys', 'revoke', ...at, '--key', id])
  // Counted from the moment the change is durable, which is before the command has ended.
  t.equal(revoking.status, 0, revoking.err)
  t.ok((await until(() => allAnswer(served, secret, 401))) < 1000)
  t.ok(await allAnswer(served, served.secret, 200), 'the other key is still valid')
  t.notMatch(served.program.out(), secret)
})

void t.test('an upstream without its key is logged at the start and named in the 503', async (t) => {
  const served = await startServe(t, { ...ALONE, key: '${SLUICE_TEST_KEY}' }, { SLUICE_TEST_KEY: '' })
  t.match(
    served.program.lines().filter(({ variable }) => variable !== undefined),
    [{ level: 'warn', upstream: 'openai', variable: 'SLUICE_TEST_KEY' }],
  )
  const response = await served.chat()
  t.equal(response.status, 503)
  t.match(await response.json(), {
    error: { kind: 'upstream_unconfigured', message: /SLUICE_TEST_KEY/ },
  })
  const other = await served.chat({ model: 'claude-sonnet-4-5' })
  t.equal(other.status, 200, 'the other upstream works')
  await other.text()
})

void t.test('a killed worker is replaced, and the gateway still serves', async (t) => {
  const before = served.program.workers()
  t.equal(before.length, 2)
  process.kill(before[0] ?? 0, 'SIGKILL')
  // Node detects the exit after a moment; connections that the worker accepted meanwhile are lost.
  await until(async () => (await served.ops('/readyz')).text.includes('after: killed by SIGKILL'))
  t.equal((await served.ops('/readyz')).status, 200, 'the other one is ready')
  t.ok(await allAnswer(served, served.secret, 200), 'and serves')
  await until(async () => hasAllWorkers(await served.ops('/readyz')))
  const after = served.program.workers()
  t.equal(after.length, 2)
  t.notOk(after.includes(before[0] ?? 0))
  t.ok(await allAnswer(served, served.secret, 200))
  t.match(
    served.program.lines().filter(({ msg }) => msg === 'worker exited; restarting it'),
    [{ reason: 'killed by SIGKILL' }],
  )
})

/** Whether chats of each worker, sent in sequence, all get this status. */
async function allAnswer(served: Served, secret: string, status: number): Promise<boolean> {
  for (let turn = 0; turn < 4; turn += 1) {
    const response = await served.chat({}, secret)
    await response.text()
    if (response.status !== status) return false
  }
  return true
}

function sumOf(text: string, metric: string): number {
  const lines = text.split('\n').filter((line) => line.startsWith(`${metric}{`))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}
