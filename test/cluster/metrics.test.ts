/**
 * Goal: the primary's metrics are the sums of all workers, including exited ones, and never decrease.
 * Method: requests to a real service, the exit of a worker, more requests; sums are compared.
 */
import t from 'tap'
import { startService, until } from './fork.js'

const REQUESTS = /^sluice_requests_total\{.*upstream="upstream".*\} (\d+)$/m

void t.test('counts of all workers are summed and kept after a worker exits', async (t) => {
  const service = await startService(t)
  const count = async (): Promise<number> => {
    const { text } = await service.getOps('/metrics')
    return Number(REQUESTS.exec(text)?.[1] ?? 0)
  }
  for (let index = 0; index < 10; index += 1) await service.get('/')
  t.equal(await count(), 10)
  await t.rejects(service.get('/crash'))
  t.equal(await count(), 10, 'a death takes nothing away')
  await until(() => service.pids.size === 3)
  for (let index = 0; index < 4; index += 1) await service.get('/')
  t.equal(await count(), 14)
})

void t.test('the generation is the newest, and each line appears once', async (t) => {
  const service = await startService(t)
  service.child.send({ generation: 7, text: 'seven' })
  await until(async () => /^sluice_config_generation 7$/m.test((await service.getOps('/metrics')).text))
  const { text } = await service.getOps('/metrics')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const names = lines.map((line) => line.slice(0, line.lastIndexOf(' ')))
  t.equal(new Set(names).size, names.length)
  t.match(text, /^nodejs_heap_size_used_bytes \d+$/m)
  t.notMatch(text, /null|undefined/)
})
