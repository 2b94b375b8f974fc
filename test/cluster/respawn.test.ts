/**
 * Goal: a worker that exits is replaced, with growing delays if it keeps exiting, and the reason is logged.
 * Method: a worker is made to exit under a request; another service's workers fail at every start.
 */
import t from 'tap'
import { startService, until } from './fork.js'

void t.test('a worker that exited is replaced and gets the newest configuration', async (t) => {
  const service = await startService(t)
  service.child.send({ generation: 2, text: 'two' })
  await t.rejects(service.get('/crash'))
  await until(() => service.pids.size === 3)
  await until(async () => (await service.getOps('/readyz')).status === 200)
  t.match(service.output(), /"reason":"exit 7"/)
  const answers = await Promise.all(Array.from({ length: 8 }, () => service.get('/')))
  for (const answer of answers) t.match(answer, /"text":"two"/)
})

void t.test('while one worker is replaced the others serve, and /readyz reports it', async (t) => {
  const service = await startService(t, { FAIL_AGAIN: '1' })
  await t.rejects(service.get('/crash'))
  await until(async () => (await service.getOps('/readyz')).text.includes('after: '))
  const { status, text } = await service.getOps('/readyz')
  t.equal(status, 200, text)
  t.match(text, /"worker_\d":"ok"/)
  for (let i = 0; i < 4; i += 1) t.match(await service.get('/'), /"text":/)
})

void t.test('an uncaught exception ends a worker and is logged without its message', async (t) => {
  const service = await startService(t)
  await t.rejects(service.get('/throw'))
  await until(() => service.pids.size === 3)
  await t.rejects(service.get('/reject'))
  await until(() => service.pids.size === 4)
  const output = service.output()
  t.equal(output.split('uncaught exception').length, 3)
  t.match(output, /"kind":"SyntaxError"/)
  t.match(output, /"message":"the key was \*\*\*"/)
  t.notMatch(output, /canary/)
  await until(async () => (await service.getOps('/readyz')).status === 200)
})

void t.test(
  'J-150: workers that fail at every start are restarted with growing delays, up to a maximum',
  async (t) => {
    const service = await startService(t, { FAIL_START: '1', WORKERS: '1' }, false)
    const deaths = (): { delay_ms: number; reason: string }[] =>
      service
        .output()
        .split('\n')
        .filter((line) => line.includes('worker exited') && line.endsWith('}'))
        .map((line) => JSON.parse(line) as { delay_ms: number; reason: string })
    await until(() => deaths().length >= 5)
    deaths()
      .slice(0, 5)
      .forEach(({ delay_ms: delayMs, reason }, index) => {
        const ceiling = Math.min(100, 20 * 2 ** index)
        t.ok(delayMs >= ceiling / 2 && delayMs <= ceiling, `${delayMs} ms of ${ceiling} ms`)
        t.equal(reason, 'the handler failed')
      })
    const { status, text } = await service.getOps('/readyz')
    t.equal(status, 503)
    t.match(text, /after: the handler failed/)
  },
)
