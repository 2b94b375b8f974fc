/**
 * Goal: an edit of the file is in force on every worker within a second, and interrupts no request.
 * Method: the real program with two workers, or one process where no worker matters; the file is replaced
 * while streams run; each chat uses a new connection and its reply names the generation in a header. Each
 * edit is the next generation of one gateway.
 */
import t from 'tap'
import { ALONE, CANARY, fileText, startServe, until, type Served } from '../program.js'

/** A reply that takes about two seconds. */
const SLOW = { stream: true, messages: [{ role: 'user', content: '[[words: 40]] [[pace: 50]]' }] }
const NEW_KEY = 'sk-canary-the-second-0123456789'

void t.test('two workers', async (t) => {
  const served = await startServe(t)

  await t.test('an invalid edit is refused, and the previous file stays in force', async (t) => {
    const good = fileText(served.emulator)
    served.write(`${good}unheard_of: 1\n`)
    const lastError = async (): Promise<unknown> =>
      (JSON.parse((await served.ops('/config')).text) as { last_error: unknown }).last_error
    t.ok((await until(async () => (await lastError()) !== null)) < 1000)
    t.match(await lastError(), [/gateway\.yaml:\d+:1.*unheard_of/])
    t.match((await served.ops('/metrics')).text, /sluice_config_reloads_total\{result="refused"\} 1/)
    t.ok(await allIn(served, '1'))
    t.equal((await served.ops('/readyz')).status, 200)
    served.write(good)
    await until(async () => (await lastError()) === null)
    t.ok(await allIn(served, '1'), 'the same file again creates no generation')
  })

  await t.test('I-133: streams keep their generation, new requests get the new one', async (t) => {
    const running = await Promise.all(Array.from({ length: 6 }, () => served.chat(SLOW)))
    for (const response of running) t.equal(response.headers.get('x-sluice-generation'), '1')
    served.write(fileText(served.emulator, { key: NEW_KEY }))
    t.ok((await until(() => allIn(served, '2'))) < 1000, 'in force within a second')
    for (const response of running) {
      const text = await response.text()
      t.match(text, /"finish_reason":"stop"/)
      t.match(text, /data: \[DONE\]\n\n$/)
    }
    const page = JSON.parse((await served.ops('/config')).text) as Record<string, unknown>
    t.match(page, { generation: 2, last_error: null })
    const metrics = (await served.ops('/metrics')).text
    t.match(metrics, /^sluice_config_generation 2$/m)
    t.match(metrics, /^sluice_config_reloads_total\{result="ok"\} 1$/m)
    t.notMatch(served.program.out() + metrics + JSON.stringify(page), /sk-canary/)
  })

  await t.test('SIGHUP reloads the file at once', async (t) => {
    served.write(`${fileText(served.emulator)}on_loss: reject\n`)
    served.program.child.kill('SIGHUP')
    const within = await until(() => inForce(served).includes(3))
    // Without the signal the file is read 200 ms after it has changed, at the earliest.
    t.ok(within < 1000, `${within} ms`)
    t.ok((await until(() => allIn(served, '3'))) < 1000)
  })

  await t.test('I-134: settings that wait for a restart are logged once', async (t) => {
    served.write(fileText(served.emulator, { port: 1, server: 'workers: 3, drain_ms: 5000' }))
    await until(() => allIn(served, '4'))
    const waiting = (): unknown[] =>
      served.program
        .lines()
        .filter(({ msg }) => msg === 'setting takes effect at the next start')
        .map(({ reason }) => reason)
    // The log is written in batches: a duplicate line would be written before the last line.
    await until(() => waiting().length >= 2)
    await until(() => inForce(served).includes(4))
    t.same(waiting(), ['server.port', 'server.workers'])
    t.equal(served.program.workers().length, 2)
  })
})

void t.test('one process', async (t) => {
  const served = await startServe(t, ALONE)

  await t.test('each SIGHUP is logged, also if nothing has changed', async (t) => {
    const answers = (): unknown[] =>
      served.program
        .lines()
        .filter(({ msg }) => msg === 'configuration checked')
        .map(({ reason, generation }) => `${String(reason)} ${String(generation)}`)
    const hangUp = async (count: number): Promise<void> => {
      served.program.child.kill('SIGHUP')
      await until(() => answers().length === count)
    }
    await hangUp(1)
    await hangUp(2)
    served.write('upstreams: [')
    await hangUp(3)
    await hangUp(4)
    served.write(`${fileText(served.emulator, ALONE)}on_loss: reject\n`)
    await hangUp(5)
    t.same(answers().slice(0, 4), ['unchanged 1', 'unchanged 1', 'refused 1', 'refused 1'])
    t.match(answers()[4], /^(?:applied|unchanged) 2$/, 'or the watcher was faster')
  })

  await t.test('I-134: a removed upstream finishes its requests and receives no new ones', async (t) => {
    const running = await served.chat({ ...SLOW, model: 'claude-sonnet-4-5' })
    t.equal(running.status, 200)
    served.write(fileText(served.emulator, { ...ALONE, upstreams: ['openai'] }))
    await until(() => allIn(served, '3'))
    const refused = await served.chat({ model: 'claude-sonnet-4-5' })
    t.equal(refused.status, 404)
    t.match(await refused.json(), { error: { kind: 'unknown_model' } })
    t.match(await running.text(), /data: \[DONE\]\n\n$/)
  })

  await t.test('I-134: a rotated credential is used at once', async (t) => {
    served.write(fileText(served.emulator, { ...ALONE, key: 'sk-invalid-0123456789abcdef' }))
    await until(() => allIn(served, '4'))
    t.equal((await answered(served)).status, 502, 'the emulator refuses this key')
    served.write(fileText(served.emulator, { ...ALONE, key: CANARY }))
    await until(() => allIn(served, '5'))
    t.equal((await answered(served)).status, 200)
  })

  await t.test('I-134: a lowered limit applies to the next request', async (t) => {
    for (let sent = 0; sent < 4; sent += 1) t.equal((await answered(served)).status, 200)
    const limits = 'limits: [ { scope: key, requests_per_minute: 1 } ]'
    served.write(fileText(served.emulator, { ...ALONE, more: limits }))
    await until(async () => (await served.ops('/config')).text.includes('"generation":6'))
    await until(async () => (await answered(served)).status === 429)
  })
})

/** The generations that the log names as in force. */
function inForce(served: Served): unknown[] {
  const lines = served.program.lines().filter(({ msg }) => msg === 'configuration in force')
  return lines.map(({ generation }) => generation)
}

async function answered(served: Served): Promise<Response> {
  const response = await served.chat()
  await response.text()
  return response
}

/** Whether chats of every worker have this generation. Errors of workers have it too. */
async function allIn(served: Served, generation: string): Promise<boolean> {
  for (let turn = 0; turn < 4; turn += 1) {
    const response = await answered(served)
    if (response.headers.get('x-sluice-generation') !== generation) return false
  }
  return true
}
