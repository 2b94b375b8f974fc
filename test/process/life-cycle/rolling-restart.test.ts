/**
 * Goal: `sluice restart` replaces the workers of a running gateway and applies settings that need a
 * restart; a restart that fails keeps the previous workers, and a gateway of one process refuses it.
 * Method: the real program and the command beside it, or in this process; files that change the port, the
 * workers and the store. Restarts that apply settings are in the long suite and in each tenth day's run; of
 * the other ways of one gateway a day has half.
 */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { sluiceHere } from '../../cli/session.js'
import { freePort } from '../../helpers/free-port.js'
import { anotherDay, IS_LONG, isToday } from '../../helpers/long-suite.js'
import { fileText, makeKey, run, startServe, until, type Served } from '../program.js'

/** A reply that takes about 1.5 s. */
const SLOW = { stream: true, messages: [{ role: 'user', content: '[[words: 30]] [[pace: 50]]' }] }
const SERVER = 'workers: 2, drain_ms: 5000'

/** `sluice restart` on the gateway's file. */
async function restart(t: Test, file: string) {
  const program = run(t, ['restart', '--config', file])
  return { status: await program.ended, out: program.out(), err: program.err() }
}

/** The same in this process. */
function restartHere({ file }: Served, ...more: string[]) {
  return sluiceHere(['restart', '--config', file, ...more])
}

/** A gateway on fixed ports, so that the command finds it by its file. */
async function startKnown(t: Test, server = SERVER): Promise<Served> {
  const [port, opsPort] = [await freePort(), await freePort()]
  return startServe(t, { server, port, opsPort })
}

void t.test('sluice restart', async (t) => {
  const served = await startKnown(t)
  const { opsPort } = served

  await t.test('it replaces the workers, keeps the primary and truncates no stream', async (t) => {
    const before = served.program.workers()
    const running = await Promise.all(Array.from({ length: 4 }, () => served.chat(SLOW)))
    const { status, out, err } = await restart(t, served.file)
    t.equal(status, 0, err)
    t.match(out, /^2 new workers serve; 2 previous ones finish their requests within 5000 ms$/m)
    t.equal((await served.ops('/readyz')).status, 200, 'the gateway stays ready')
    for (const response of running) t.match(await response.text(), /data: \[DONE\]\n\n$/)
    await until(() => !before.some((pid) => served.program.workers().includes(pid)))
    t.equal(served.program.workers().length, 2)
    t.equal((await served.chat()).status, 200)
    t.equal(served.program.child.exitCode, null, 'the primary is the same process')
    const counted = /^sluice_requests_total\{[^\n]*outcome="ok"\} (\d+)$/m
    t.equal(counted.exec((await served.ops('/metrics')).text)?.[1], '5', 'counters do not fall')
  })

  await t.test('--json prints the workers', { skip: anotherDay(0, 2) }, async (t) => {
    const { status, out } = await restartHere(served, '--json')
    t.equal(status, 0)
    const page = JSON.parse(out) as Record<string, unknown>
    t.match(page, { pid: served.program.pid, restarts: { asked: 2, settled: 2, failure: null } })
  })

  await t.test('signals in quick succession share a restart', { skip: anotherDay(1, 2) }, async (t) => {
    const done = (): number =>
      served.program.lines().filter(({ msg }) => msg === 'rolling restart done').length
    const before = IS_LONG ? 2 : 1
    await until(() => done() === before)
    for (let sent = 0; sent < 20; sent += 1) {
      served.program.child.kill('SIGUSR2')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const settled = async (): Promise<boolean> => {
      const page = JSON.parse((await served.ops('/workers')).text) as {
        restarts: { asked: number; settled: number }
      }
      return page.restarts.settled > before && page.restarts.settled === page.restarts.asked
    }
    await until(settled, 60_000)
    await until(() => done() > before)
    t.ok(done() <= before + 2, `${done() - before} restarts for 20 signals`)
  })

  await t.test('an invalid file: the generation in force', { skip: anotherDay(0, 2) }, async (t) => {
    served.write(`${fileText(served.emulator, { opsPort })}unheard_of: 1\n`)
    const { status, err } = await restartHere(served)
    t.equal(status, 0)
    t.match(err, /unheard_of/)
    t.match(err, 'the new workers use generation 1, which is in force')
    t.equal((await served.chat()).status, 200)
  })

  await t.test(
    'workers that cannot listen leave the previous ones',
    { skip: anotherDay(1, 2) },
    async (t) => {
      await until(() => served.program.workers().length === 2)
      const before = served.program.workers()
      const taken = createServer().listen(0, '127.0.0.1')
      await once(taken, 'listening')
      t.teardown(() => taken.close())
      const { port } = taken.address() as AddressInfo
      served.write(fileText(served.emulator, { server: SERVER, port, opsPort }))
      const { status, err } = await restartHere(served)
      t.equal(status, 1)
      t.match(err, `cannot listen on 127.0.0.1:${port} (EADDRINUSE)`)
      t.match(err, 'the previous ones continue')
      t.same(served.program.workers(), before)
      t.equal((await served.chat()).status, 200)
      t.equal((await served.ops('/readyz')).status, 200)
    },
  )

  await t.test('without a gateway the command names the address', async (t) => {
    served.program.child.kill('SIGTERM')
    await served.program.ended
    const { status, err } = await restart(t, served.file)
    t.equal(status, 1)
    t.match(err, `nothing listens on 127.0.0.1:${opsPort}`)
  })
})

async function appliesSettings(t: Test): Promise<void> {
  const served = await startKnown(t)
  const { emulator, opsPort, secret } = served
  const port = await freePort()
  const store = `sqlite:${join(dirname(served.file), 'other', 'sluice.db')}`

  await t.test('another port, other workers and another store', async (t) => {
    const other = await makeKey(store)
    const server = 'workers: 3, drain_ms: 5000'
    served.write(fileText(emulator, { server, port, opsPort, store }))
    const { status, out, err } = await restart(t, served.file)
    t.equal(status, 0, err)
    t.match(out, /^3 new workers serve/m)
    const chat = (at: number, key: string): Promise<number> =>
      fetch(`http://127.0.0.1:${at}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'gpt-5.4-mini',
          messages: [{ role: 'user', content: 'Hi.' }],
        }),
      }).then(
        ({ status: code }) => code,
        () => 0,
      )
    t.equal(await chat(port, other), 200, 'a key of the new store')
    t.equal(await chat(port, secret), 401, 'a key of the former store')
    await until(async () => (await chat(served.port, secret)) === 0, 30_000)
    await until(() => served.program.workers().length === 3)
  })

  await t.test('another ops port', async (t) => {
    const moved = await freePort()
    served.write(fileText(emulator, { server: SERVER, port, opsPort: moved, store }))
    const { status, err } = await restartHere(served)
    t.equal(status, 0, err)
    const readyz = (at: number): Promise<number> =>
      fetch(`http://127.0.0.1:${at}/readyz`).then(
        ({ status }) => status,
        () => 0,
      )
    await until(async () => (await readyz(moved)) === 200, 30_000)
    await until(async () => (await readyz(opsPort)) === 0)
  })
}
if (isToday(1)) void t.test('a restart applies settings', appliesSettings)

void t.test('one process refuses a restart', async (t) => {
  const served = await startKnown(t, 'workers: 1, drain_ms: 5000')
  const { status, err } = await restartHere(served)
  t.equal(status, 1)
  t.match(err, /one process \(server\.workers: 1\)/)
  served.program.child.kill('SIGUSR2')
  await until(() => served.program.out().includes('rolling restart refused'))
  t.equal((await served.chat()).status, 200)
})
