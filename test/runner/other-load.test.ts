/**
 * Goal: a failure is excused by the load of other work alone: the run's own processes do not count.
 * Method: a process that keeps a core busy and loses its parent; the load average is the test's.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Descendants, OtherLoad } from './other-load.js'

const SPIN = 'const end = Date.now() + 20_000; while (Date.now() < end);'

void t.test('descendants are counted, also after their parent has ended', async (t) => {
  const descendants = new Descendants(process.pid)
  t.equal(descendants.busyThreads(), 0)
  // The shell waits until the test has looked, and ends without its child.
  const script = `"$0" -e '${SPIN}' & echo $!; read line`
  const shell = spawn('sh', ['-c', script, process.execPath], { stdio: ['pipe', 'pipe', 'ignore'] })
  const [line] = (await once(shell.stdout, 'data')) as [Buffer]
  const pid = Number(line.toString())
  t.teardown(() => process.kill(pid, 'SIGKILL'))
  // Node reads its modules first.
  while (descendants.busyThreads() === 0) await delay(10)
  shell.stdin.end('\n')
  await once(shell, 'exit')
  while (descendants.busyThreads() === 0) await delay(10)
  t.pass('it is still one of the run')
  t.equal(new Descendants(process.pid).busyThreads(), 0, 'which is known only from before')
})

void t.test("the load of others is the machine's without the run's", (t) => {
  let machine = 0
  const load = new OtherLoad(() => machine)
  // A run of ten busy threads for five minutes, beside nothing, and then beside six others.
  for (let look = 0; look < 60; look += 1) load.look(10)
  machine = 10
  t.ok(load.now() < 0.2)
  machine = 16
  t.ok(load.now() > 5.9 && load.now() < 6.2)
  machine = 4
  t.equal(load.now(), 0, 'never below zero')
  t.end()
})
