/**
 * Goal: a gateway whose log is not read serves, ends on SIGTERM within the drain's deadline, and counts the
 * lines that it drops.
 * Method: the real program with two workers on a FIFO and on a socket that are open and never read; then the
 * logger alone in a process, with far more lines than the buffer holds.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { freePort } from '../../helpers/free-port.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { isRunning, fileText, get, hasAllWorkers, MAIN, prepare, until } from '../program.js'
import { ofToday } from '../../helpers/long-suite.js'
import { V8_FLAGS } from '../../helpers/test-program.js'

/** A pipe buffers 64 KiB and a socket some more; each line has about 400 bytes. */
const REQUESTS = { FIFO: 400, socket: 800 }
const DRAIN_MS = 2000

/** The write end of a FIFO whose read end is open and never read. */
function unreadFifo(t: Test): number {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
  const path = join(folder, 'log')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(path, constants.O_WRONLY)
  t.teardown(() => {
    closeSync(reader)
    closeSync(writer)
    rmSync(folder, { recursive: true })
  })
  return writer
}

/** Kills the process and its workers with SIGKILL. */
function killedAfter(t: Test, child: ChildProcess): void {
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
}

interface Started {
  readonly child: ChildProcess
  readonly port: number
  readonly opsPort: number
}

/** Another program of the machine may take a port that was free before the gateway opens it. */
const STARTS = 5
/** Of waiting for the program on a busy machine. */
const LONG_MS = 100_000

/**
 * A gateway with this standard output, whose ports therefore cannot be read from its log. Starts it again on
 * other ports if it cannot open these.
 */
async function started(t: Test, open: () => number | 'pipe'): Promise<Started> {
  const { emulator, file } = await prepare(t)
  for (let start = 1; ; start += 1) {
    const [port, opsPort] = [await freePort(), await freePort()]
    const server = `workers: 2, drain_ms: ${DRAIN_MS}`
    writeFileSync(file, fileText(emulator, { server, port, opsPort }))
    const child = spawn(process.execPath, [...V8_FLAGS, MAIN, 'serve', '--config', file], {
      stdio: ['ignore', open(), 'ignore'],
    })
    killedAfter(t, child)
    const isReady = async (): Promise<boolean> =>
      hasAllWorkers(await get(`http://127.0.0.1:${opsPort}/readyz`).catch(() => FAILED))
    await until(async () => child.exitCode !== null || (await isReady()), LONG_MS)
    if (child.exitCode === null) return { child, port, opsPort }
    if (start === STARTS) throw new Error(`the gateway exited with ${String(child.exitCode)}`)
  }
}

for (const kind of ofToday(['FIFO', 'socket'] as const, 2)) {
  void t.test(`SIGTERM ends a gateway whose stdout is a full ${kind}`, async (t) => {
    const { child, port, opsPort } = await started(t, () => (kind === 'FIFO' ? unreadFifo(t) : 'pipe'))
    const ops = `http://127.0.0.1:${opsPort}`
    const path = `/${'x'.repeat(250)}`
    for (let sent = 0; sent < REQUESTS[kind]; sent += 50) {
      await Promise.all(Array.from({ length: 50 }, () => get(`http://127.0.0.1:${port}${path}`)))
    }
    t.match((await get(`${ops}/metrics`)).text, /^sluice_log_lines_lost_total \d+$/m)
    const elapsed = stopwatch()
    child.kill('SIGTERM')
    await until(() => child.exitCode !== null, LONG_MS)
    t.ok(elapsed() < DRAIN_MS + 5000)
    t.equal(child.exitCode, 0)
    t.notOk(isRunning(child.pid ?? 0))
  })
}

const FAILED = { status: 0, text: '' }

void t.test('lines that an unread pipe does not accept are dropped and counted', async (t) => {
  const module = JSON.stringify(new URL('../../../src/observe/log.js', import.meta.url).href)
  const program = `
    const { createLogger } = await import(${module})
    let lost = 0
    const log = createLogger({ level: 'info', onLost: (lines) => (lost += lines) })
    let longestMs = 0
    let lastMs = performance.now()
    for (let round = 0; round < 200; round += 1) {
      for (let line = 0; line < 300; line += 1) log.info('event', { reason: 'x'.repeat(240) })
      await new Promise((resolve) => setTimeout(resolve, 1))
      longestMs = Math.max(longestMs, performance.now() - lastMs)
      lastMs = performance.now()
    }
    const { rss } = process.memoryUsage()
    await log.flush()
    console.error(JSON.stringify({ lost, longestMs, rss }))
    process.exit(0)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', unreadFifo(t), 'pipe'],
  })
  killedAfter(t, child)
  const [report] = await Promise.all([text(child.stderr ?? Readable.from('')), once(child, 'exit')])
  const { lost, longestMs, rss } = JSON.parse(report) as Record<string, number>
  t.ok((lost ?? 0) > 20_000 && (lost ?? 0) < 60_000, `${String(lost)} of 60000 lines`)
  t.ok((longestMs ?? Infinity) < 1000, `the event loop waited ${String(longestMs)} ms`)
  t.ok((rss ?? Infinity) < 250e6, `${String(rss)} bytes`)
  t.equal(child.exitCode, 0)
})
