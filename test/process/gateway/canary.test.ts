/**
 * Goal: all workers of a gateway count a canary together, stop using it together, and a worker that starts
 * later does not use it either.
 * Method: the real program with two workers; the canary's emulator refuses everything.
 */
import t from 'tap'
import { startEmulator } from '../../../src/emulator/server.js'
import { fileText, hasAllWorkers, startServe, until } from '../program.js'

const MIN_REQUESTS = 30
const NO_BREAKER = 'breaker: { failures: 1000, min_requests: 100000 }'

void t.test('workers abort a canary together, and a new worker does not use it', async (t) => {
  const canary = await startEmulator({ models: 'any' })
  t.teardown(() => canary.close())
  canary.script({ fault: { kind: 'status', code: 500 } })
  const served = await startServe(t)
  const { emulator, program } = served
  const received = (): number => canary.ledger.length
  const abort = `abort: { error_rate: 0.2, min_requests: ${MIN_REQUESTS} }`
  const text = fileText(emulator)
    .replace(
      'upstreams:\n',
      `upstreams:\n  canary: { dialect: openai, base_url: ${canary.baseUrls.openai}, api_key: x, ${NO_BREAKER} }\n`,
    )
    .replace(
      '{ prefix: gpt-, upstream: openai }',
      `{ prefix: gpt-, targets: [{ upstream: openai }, { upstream: canary, ${abort} }] }`,
    )
  served.write(text)
  await until(() => program.out().includes('"configuration in force"'))

  await until(async () => {
    t.equal((await served.chat()).status, 200, 'every client gets a reply although the canary fails')
    return received() >= MIN_REQUESTS - 1
  })
  const checks = async (): Promise<Record<string, string>> => {
    return (JSON.parse((await served.ops('/readyz')).text) as { checks: Record<string, string> }).checks
  }
  t.equal((await checks())['canaries'], 'ok')
  await until(async () => {
    await served.chat()
    return (await checks())['canaries'] !== 'ok'
  })
  t.match((await checks())['canaries'], /^gpt- to canary aborted: \d+ of \d+ requests failed$/)
  const warnings = () => program.lines().filter(({ msg }) => String(msg).startsWith('canary aborted'))
  await until(() => warnings().length > 0)
  t.match(warnings(), [{ level: 'warn', route: 'gpt-', upstream: 'canary', generation: 2 }])
  const config = JSON.parse((await served.ops('/config')).text) as { routes: unknown[] }
  t.match(config.routes[0], {
    targets: [
      { upstream: 'openai', weight: 1 },
      { upstream: 'canary', weight: 0, abort: { min_requests: MIN_REQUESTS } },
    ],
  })
  const gauge = 'sluice_canary_aborted{route="gpt-",upstream="canary"} 1'
  t.match((await served.ops('/metrics')).text, gauge)

  // The order reaches every worker soon.
  let before = -1
  await until(async () => {
    before = received()
    await Promise.all(Array.from({ length: 40 }, () => served.chat()))
    return received() === before
  })
  const [first = 0] = program.workers()
  process.kill(first, 'SIGKILL')
  await until(() => program.workers().length === 2 && !program.workers().includes(first))
  await until(async () => hasAllWorkers(await served.ops('/readyz')))
  await Promise.all(Array.from({ length: 60 }, () => served.chat()))
  t.equal(received(), before, 'the new worker does not use it')
  t.equal(warnings().length, 1)
})
