/**
 * Goal: workers share one port and all follow the primary's configuration.
 * Method: a real primary with two workers; requests on new connections; a new payload is published.
 */
import t from 'tap'
import { startService, until } from './fork.js'

void t.test('two workers share one port', async (t) => {
  const service = await startService(t)
  const pids = new Set<unknown>()
  // Any idle worker may accept a connection; on an idle machine it is often the same one.
  for (let index = 0; index < 500 && (index < 20 || pids.size < 2); index += 1) {
    const answer: unknown = JSON.parse(await service.get('/'))
    t.match(answer, { text: 'one' })
    pids.add((answer as { pid: number }).pid)
  }
  t.strictSame([...pids].sort(), [...service.pids].sort(), 'both took part, the primary did not')
})

void t.test('a published configuration reaches every worker; a refused one changes nothing', async (t) => {
  const service = await startService(t)
  service.child.send({ generation: 2, text: 'two' })
  const both = async (text: string): Promise<boolean> => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => service.get('/')))
    return answers.every((answer) => answer.includes(`"text":"${text}"`))
  }
  await until(() => both('two'))
  service.child.send({ generation: 3, text: 'refused' })
  await until(() => service.output().split('configuration not applied').length === 3)
  t.ok(await both('two'), 'the one before stays in force')
  service.child.send({ generation: 4, text: 'four' })
  await until(() => both('four'))
  t.match(await service.getOps('/readyz'), { status: 200 })
})
