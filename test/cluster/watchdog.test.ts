/**
 * Goal: a worker whose event loop is blocked is killed and replaced; a suspended primary kills no worker; no
 * worker outlives its primary, even with a blocked event loop.
 * Method: a real primary with a short ping interval; endless loops in a worker, SIGSTOP to the primary.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startService, until } from './fork.js'
import { isRunning } from '../process/program.js'

/** Ten pings take a second. */
const PING_MS = '100'

void t.test('a worker that does not reply to pings is killed, replaced, counted and logged', async (t) => {
  const service = await startService(t, { PING_MS })
  const before = [...service.pids]
  await t.rejects(service.get('/block'), 'the connection ends with the worker')
  await until(() => service.pids.size === 3)
  await until(async () => (await service.getOps('/readyz')).status === 200)
  t.equal(before.filter(isRunning).length, 1, 'only the blocked worker was killed')
  t.match(service.output(), /"worker_pid":\d+.*"msg":"worker does not respond and is killed"/)
  t.match(service.output(), /"reason":"no response to 10 pings".*"msg":"worker exited/)
  const { text } = await service.getOps('/metrics')
  t.match(text, /^sluice_worker_restarts_total\{reason="silent"\} 1$/m)
  t.match(text, /^sluice_worker_restarts_total\{reason="ended"\} 0$/m)
  t.match(await service.get('/'), /"text":"one"/)
})

void t.test('a primary that was suspended for longer than the ping timeout kills no worker', async (t) => {
  const service = await startService(t, { PING_MS })
  const before = [...service.pids]
  service.child.kill('SIGSTOP')
  await delay(2500)
  service.child.kill('SIGCONT')
  await until(async () => (await service.getOps('/readyz')).status === 200)
  await delay(1500)
  t.ok(before.every(isRunning))
  t.equal(service.pids.size, 2)
  t.notMatch(service.output(), 'does not answer')
})

void t.test('a blocked worker ends with its primary', async (t) => {
  const service = await startService(t)
  const blocked = service.get('/block')
  blocked.catch(() => undefined)
  await until(() => service.blocked() !== 0)
  service.child.kill('SIGKILL')
  await until(() => ![...service.pids].some(isRunning), 10_000)
  await t.rejects(blocked)
})
