/**
 * Goal: any worker can serve the turn after a tool call, also one that was started since, and restores the
 * reasoning that the client omits.
 * Method: the real program with two workers that keep nothing in memory, each request on a connection
 * of its own, an emulated provider that refuses wrong signatures; one worker is killed on the way.
 */
import t from 'tap'
import { arrayOf, type JsonObject, objectOf } from '../../../src/base/json.js'
import { hasAllWorkers, startServe, until, type Served } from '../program.js'

const TOOL = {
  type: 'function',
  function: { name: 'get_weather', parameters: { type: 'object', properties: {} } },
}

async function chat(served: Served, messages: JsonObject[]): Promise<JsonObject> {
  const ask = { model: 'claude-haiku-4-5', reasoning_effort: 'low', tools: [TOOL], messages }
  const response = await served.chat(ask)
  t.equal(response.status, 200)
  t.equal(response.headers.get('x-sluice-lost'), null, 'no reasoning is lost')
  const reply = objectOf(await response.json())
  return objectOf(objectOf(arrayOf(reply.choices)[0]).message)
}

/** Sends a request with a call and one with its result. True if the provider received its thinking. */
async function loop(served: Served, name: string): Promise<boolean> {
  const question = { role: 'user', content: `Use get_weather, ${name}` }
  const { content, tool_calls } = await chat(served, [question])
  const call = objectOf(arrayOf(tool_calls)[0])
  const { id, type, function: inner } = call
  const turn = { role: 'assistant', content, tool_calls: [{ id, type, function: inner }] }
  const result = { role: 'tool', tool_call_id: id, content: 'sunny' }
  await chat(served, [question, turn, result] as JsonObject[])
  return JSON.stringify(served.emulator.ledger.at(-1)?.body).includes('"signature"')
}

void t.test('two workers share the stored reasoning', async (t) => {
  const served = await startServe(t, { more: 'escrow: { memory_bytes: 0 }' })
  const exchanges = (): Record<string, unknown>[] =>
    served.program.lines().filter(({ msg }) => msg === 'exchange')
  const pids = (): unknown[] => exchanges().map(({ pid }) => pid)
  const crossed = (): number => pids().filter((pid, at, all) => at % 2 === 1 && pid !== all[at - 1]).length
  // The kernel chooses the worker of a connection: on a busy machine it may be the same one for many turns.
  for (let round = 0; round < 200 && (round < 8 || crossed() === 0); round += 1) {
    t.ok(await loop(served, `round ${round}`), 'the thinking is restored')
    if (round >= 7) await until(() => exchanges().length === 2 * (round + 1))
  }
  t.equal(new Set(pids()).size, 2)
  t.ok(crossed() > 0, 'a second turn was served by another worker than the first')

  const [victim = 0] = served.program.workers()
  process.kill(victim, 'SIGKILL')
  await until(() => served.program.workers().every((pid) => pid !== victim))
  await until(async () => hasAllWorkers(await served.ops('/readyz')))
  for (let round = 0; round < 4; round += 1) {
    t.ok(await loop(served, `after ${round}`), 'a new worker has the key of the old one')
  }
})
