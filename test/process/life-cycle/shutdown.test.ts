/**
 * Goal: a signal ends the gateway after its requests in flight and leaves no process or port.
 * Method: the real program with two workers and slow streams; signals; the processes and ports are checked.
 */
import { createServer } from 'node:net'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { stopwatch } from '../../helpers/stopwatch.js'
import { isRunning, startServe, until, type Served } from '../program.js'
import { ofToday } from '../../helpers/long-suite.js'

/** A reply that takes about 1.5 s. */
const SLOW = { stream: true, messages: [{ role: 'user', content: '[[words: 30]] [[pace: 50]]' }] }
/** A reply that takes longer than any test. */
const ENDLESS = {
  stream: true,
  messages: [{ role: 'user', content: '[[words: 4000]] [[pace: 50]]' }],
}

for (const signal of ofToday(['SIGTERM', 'SIGINT'] as const, 2)) {
  void t.test(`${signal} lets running streams finish and ends with 0`, async (t) => {
    const served = await startServe(t)
    const running = await Promise.all(Array.from({ length: 4 }, () => served.chat(SLOW)))
    const workers = served.program.workers()
    served.program.child.kill(signal)
    await until(async () => (await served.ops('/readyz')).status === 503)
    t.match((await served.ops('/readyz')).text, /"drain":"draining"/)
    for (const response of running) t.match(await response.text(), /data: \[DONE\]\n\n$/)
    t.equal(await served.program.ended, 0)
    t.match(
      served.program.lines().map(({ msg }) => msg),
      ['sluice serves'],
    )
    t.equal(served.program.lines().filter(({ msg }) => msg === 'exchange').length, 4)
    await leavesNothing(t, served, workers)
  })
}

void t.test(
  'J-145: a stream that outlasts the drain gets an error event and does not delay the end',
  async (t) => {
    const served = await startServe(t, { server: 'workers: 1, drain_ms: 600' })
    const response = await served.chat(ENDLESS)
    const reading = bytesUntilBroken(response)
    const began = performance.now()
    const watch = stopwatch()
    served.program.child.kill('SIGTERM')
    const text = await reading
    t.match(text, /data: \{"error":\{.*"kind":"draining"/)
    t.notMatch(text, /\[DONE\]/)
    t.equal(await served.program.ended, 0)
    const took = performance.now() - began
    t.ok(took > 500 && watch() < 5600, `${took} ms: drain_ms and 5 s at most`)
  },
)

void t.test('J-147: a second signal ends the gateway at once with status 1', async (t) => {
  const served = await startServe(t)
  const reading = bytesUntilBroken(await served.chat(ENDLESS))
  const workers = served.program.workers()
  served.program.child.kill('SIGTERM')
  await until(async () => (await served.ops('/readyz')).status === 503)
  const watch = stopwatch()
  served.program.child.kill('SIGTERM')
  t.equal(await served.program.ended, 1)
  t.ok(watch() < 1000)
  t.notMatch(await reading, /\[DONE\]/)
  await leavesNothing(t, served, workers)
})

void t.test('J-149: workers end when the primary is killed', async (t) => {
  const served = await startServe(t)
  const workers = served.program.workers()
  served.program.child.kill('SIGKILL')
  t.equal(await served.program.ended, 'SIGKILL')
  await leavesNothing(t, served, workers)
})

/** Checks that no process is left and that both ports are free. */
async function leavesNothing(t: Test, served: Served, workers: readonly number[]) {
  t.equal(workers.length, 2)
  await until(() => !workers.some(isRunning))
  for (const port of [served.port, served.opsPort]) {
    const server = createServer().listen(port, '127.0.0.1')
    await once(server, 'listening')
    server.close()
  }
  t.pass('no process and no port is held')
}

/** The bytes received until the connection ended or was reset. */
async function bytesUntilBroken(response: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  try {
    const body = response.body as AsyncIterable<Uint8Array> | null
    for await (const chunk of body ?? []) text += decoder.decode(chunk, { stream: true })
  } catch {
    // Broken, as it should be.
  }
  return text
}
