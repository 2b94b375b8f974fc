/**
 * Goal: all processes of a gateway append to `log.file`, and SIGUSR1 makes them open it again, so that a file
 * can be rotated without a lost line.
 * Method: the real program with one and with two workers, requests before, during and after a rotation.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { freePort } from '../../helpers/free-port.js'
import { ofToday } from '../../helpers/long-suite.js'
import { fileText, get, hasAllWorkers, prepare, run, until } from '../program.js'

type Line = Readonly<Record<string, unknown>>

/** The complete lines of a file, each of which must be JSON. */
function linesOf(path: string): Line[] {
  if (!existsSync(path)) return []
  const text = readFileSync(path, 'utf8')
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
}

const named = (lines: readonly Line[], msg: string) => lines.filter((line) => line['msg'] === msg)

for (const workers of ofToday([1, 2], 2)) {
  void t.test(`workers: ${workers}: SIGUSR1 reopens the log in every process`, async (t) => {
    const { emulator, file } = await prepare(t)
    const [port, opsPort] = [await freePort(), await freePort()]
    const server = `workers: ${workers}, drain_ms: 2000`
    const settings = { server, port, opsPort, more: 'log: { file: logs/gateway.log }' }
    writeFileSync(file, fileText(emulator, settings))
    const log = join(dirname(file), 'logs', 'gateway.log')
    const old = `${log}.1`
    const program = run(t, ['serve', '--config', file])
    const ops = `http://127.0.0.1:${opsPort}`
    const isReady = async (): Promise<boolean> => {
      const page = await get(`${ops}/readyz`).catch(() => ({ status: 0, text: '' }))
      return workers === 1 ? page.status === 200 : hasAllWorkers(page)
    }
    await until(isReady)
    let sent = 0
    const send = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1) {
        // Each on a new connection, so that all workers serve.
        const headers = { connection: 'close' }
        await (await fetch(`http://127.0.0.1:${port}/v1/models`, { headers })).text()
        sent += 1
      }
    }
    const exchanges = () => named([...linesOf(old), ...linesOf(log)], 'exchange').length
    await send(20)
    await until(() => exchanges() === sent)
    renameSync(log, old)
    await send(20)
    process.kill(program.pid, 'SIGUSR1')
    const processes = workers === 1 ? 1 : workers + 1
    await until(() => named(linesOf(log), 'log file reopened').length === processes)
    const beforeMs = linesOf(old).length
    await send(20)
    await until(() => exchanges() === sent)
    t.equal(linesOf(old).length, beforeMs, 'nothing more is written to the former file')
    t.ok(named(linesOf(log), 'exchange').length >= 20)
    const pids = new Set(linesOf(log).map(({ pid }) => pid))
    t.equal(pids.size, processes, 'every process writes to the new file')

    process.kill(program.pid, 'SIGTERM')
    t.equal(await program.ended, 0)
    t.match(linesOf(log).at(-1), { msg: 'drained' })
    t.match(named(linesOf(old), 'sluice serves'), [{ workers }])
    t.equal(program.out(), '', 'nothing is written to standard output')
  })
}

void t.test('a log file that cannot be opened is named at the start', async (t) => {
  const { emulator, file } = await prepare(t)
  const more = `log: { file: ${file}/gateway.log }`
  writeFileSync(file, fileText(emulator, { server: 'workers: 1', more }))
  const program = run(t, ['serve', '--config', file])
  t.equal(await program.ended, 1)
  t.match(program.err(), /gateway\.log \(log\.file\) cannot be opened: E/)
})
