/**
 * Goal: the first signal lets open requests finish, after the second all processes exit at once.
 * Method: a slow reply is in progress when the primary of a real service gets SIGTERM.
 */
import { once } from 'node:events'
import t from 'tap'
import { startService, until } from './fork.js'
import { isRunning } from '../process/program.js'

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  void t.test(`${signal} drains: running requests finish, new connections are refused`, async (t) => {
    const service = await startService(t)
    const response = await fetch(`http://127.0.0.1:${service.port}/slow`)
    const exited = once(service.child, 'exit')
    service.child.kill(signal)
    t.equal(await response.text(), 'begun finished')
    t.strictSame(await exited, [0, null], 'exits with 0')
    await t.rejects(service.get('/'))
    for (const pid of service.pids) t.notOk(isRunning(pid), 'no worker is left')
  })
}

void t.test('J-147: after a second signal the program exits at once with a failure', async (t) => {
  const service = await startService(t)
  const response = await fetch(`http://127.0.0.1:${service.port}/endless`)
  // Node's client treats the end of a connection as the end of a reply with `connection: close`.
  const body = response.text().catch(() => 'begun ')
  const exited = once(service.child, 'exit')
  service.child.kill('SIGTERM')
  await until(() => service.output().includes('draining'))
  service.child.kill('SIGTERM')
  t.strictSame(await exited, [1, null])
  t.equal(await body, 'begun ', 'the open answer is cut')
  await until(() => ![...service.pids].some(isRunning))
})

void t.test('a worker that gets SIGTERM drains and is replaced', async (t) => {
  const service = await startService(t, { WORKERS: '1' })
  const [pid] = service.pids
  const response = await fetch(`http://127.0.0.1:${service.port}/slow`)
  process.kill(pid ?? 0, 'SIGTERM')
  t.equal(await response.text(), 'begun finished')
  await until(() => service.pids.size === 2)
})
