/**
 * Goal: with `workers: 1` the gateway is one process with the same signals, drain, readiness, metrics and
 * reload.
 * Method: the real program; signals, changed files, a port that is taken.
 */
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import { ALONE, isRunning, fileText, prepare, run, startServe, until } from '../program.js'

/** A reply that takes about 1.5 s. */
const SLOW = { stream: true, messages: [{ role: 'user', content: '[[words: 30]] [[pace: 50]]' }] }
/** A reply that takes longer than any test. */
const ENDLESS = {
  stream: true,
  messages: [{ role: 'user', content: '[[words: 4000]] [[pace: 50]]' }],
}

void t.test('one process serves, counts, reloads and drains', async (t) => {
  const served = await startServe(t, ALONE)
  t.same(served.program.workers(), [], 'no second process')
  t.equal((await served.chat()).status, 200)
  t.match((await served.ops('/metrics')).text, /^sluice_requests_total\{[^\n]*outcome="ok"\} 1$/m)
  t.match((await served.ops('/readyz')).text, '"store":"ok"')

  served.write(`${fileText(served.emulator, ALONE)}on_loss: reject\n`)
  served.program.child.kill('SIGHUP')
  await until(async () => (await served.chat()).headers.get('x-sluice-generation') === '2')

  const running = await served.chat(SLOW)
  served.program.child.kill('SIGTERM')
  await until(async () => (await served.ops('/readyz')).status === 503)
  t.match(await running.text(), /data: \[DONE\]\n\n$/)
  t.equal(await served.program.ended, 0)
  t.notOk(isRunning(served.program.pid))
})

void t.test('a second signal ends the process at once with status 1', async (t) => {
  const served = await startServe(t, ALONE)
  const reading = (await served.chat(ENDLESS)).text().catch(() => 'cut')
  served.program.child.kill('SIGTERM')
  await until(async () => (await served.ops('/readyz')).status === 503)
  served.program.child.kill('SIGTERM')
  t.equal(await served.program.ended, 1)
  t.notMatch(await reading, /\[DONE\]/)
})

void t.test('a failed start exits with 1 and the reason', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const { server = '' } = ALONE
  for (const settings of [
    { server, port },
    { server, opsPort: port },
  ]) {
    const { file } = await prepare(t, settings)
    const program = run(t, ['serve', '--config', file])
    t.equal(await program.ended, 1)
    t.match(program.err(), `cannot listen on 127.0.0.1:${port} (EADDRINUSE)`)
    t.equal(program.err().trim().split('\n').length, 1, 'one line')
  }
})
