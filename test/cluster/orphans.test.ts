/**
 * Goal: workers never outlive the primary, and no signal opens a debugger.
 * Method: SIGKILL to a real primary; SIGUSR1 to a real primary and its worker.
 */
import t from 'tap'
import { startService, until } from './fork.js'
import { isRunning } from '../process/program.js'

void t.test('J-149: workers exit when the primary is killed, and the port is free', async (t) => {
  const service = await startService(t)
  t.ok([...service.pids].every(isRunning))
  service.child.kill('SIGKILL')
  await until(() => ![...service.pids].some(isRunning))
  await t.rejects(service.get('/'))
})

void t.test(
  'J-154: SIGUSR1 and SIGUSR2 to a worker, and to a primary without restarts, change nothing',
  async (t) => {
    const service = await startService(t, { WORKERS: '1' })
    const [worker = 0] = service.pids
    for (const pid of [service.child.pid ?? 0, worker]) {
      for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.kill(pid, signal)
    }
    await until(() => service.output().split('signal ignored').length === 5)
    t.notMatch(service.output(), /Debugger/)
    t.match(await service.get('/'), /"text":"one"/)
    t.equal(service.pids.size, 1, 'no worker was replaced')
  },
)
