/**
 * Goal (G-107, G-108, G-109): a process that runs out of heap, open files or ports refuses work, keeps
 * running and recovers.
 * Method: the whole program; its heap limit and its limit on open files (prlimit) are lowered while it runs.
 * For ports, the error that the system returns without a free port is constructed.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { transportError } from '../../src/gateway/transport-errors.js'
import { startServe, until, type Served } from '../process/program.js'

t.setTimeout(170_000)

async function status(served: Served): Promise<number> {
  try {
    const reply = await served.chat()
    await reply.arrayBuffer()
    return reply.status
  } catch {
    return 0
  }
}

async function levelOf(served: Served): Promise<number> {
  const { text } = await served.ops('/metrics')
  return Number(/^sluice_overload_level (\d)/m.exec(text)?.[1])
}

void t.test('G-107: a heap above its limits', async (t) => {
  const server =
    'workers: 1, drain_ms: 500, overload: { heap_share: [0.8, 0.88, 0.93], rise_ms: 0, hold_ms: 300 }'
  const served = await startServe(t, { server })
  const text = readFileSync(served.file, 'utf8')
  t.equal(await status(served), 200)
  // An idle process already uses more than these shares.
  const low = (shares: string): void => served.write(text.replace('[0.8, 0.88, 0.93]', shares))
  low('[0.01, 0.9, 0.93]')
  await until(async () => (await levelOf(served)) === 1, 20_000, 50)
  const closing = await served.chat()
  t.match([closing.status, closing.headers.get('connection')], [200, 'close'], 'no keep-alive')
  await closing.arrayBuffer()
  low('[0.01, 0.01, 0.93]')
  await until(async () => (await levelOf(served)) === 2, 20_000, 50)
  t.equal(await status(served), 503, 'new requests are refused')
  t.equal((await served.ops('/healthz')).status, 200)
  t.match((await served.ops('/readyz')).text, /level 2 of 3: heap/)
  low('[0.01, 0.01, 0.01]')
  await until(async () => (await levelOf(served)) === 3, 20_000, 50)
  t.equal(await status(served), 503)
  low('[0.8, 0.88, 0.93]')
  await until(async () => (await status(served)) === 200, 20_000, 50)
  t.equal(served.program.child.exitCode, null, 'the process is the same')
})

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0

void t.test('G-108: no more open files', { skip: !hasPrlimit }, async (t) => {
  const served = await startServe(t, { server: 'workers: 1, drain_ms: 500' })
  const { pid } = served.program
  t.equal(await status(served), 200)
  const files = (): number => readdirSync(`/proc/${pid}/fd`).length
  const most = files() + 40
  const limited = spawnSync('prlimit', [`--pid=${pid}`, `--nofile=${most}:${most}`])
  t.equal(limited.status, 0, String(limited.stderr))
  const sockets = await occupied(t, served, 120)
  await sleep(1_000)
  const statuses = await Promise.all(Array.from({ length: 10 }, () => timely(status(served))))
  t.ok(
    statuses.every((each) => [0, 200, 429, 503].includes(each)),
    `${statuses.join(' ')}: served, refused or not accepted`,
  )
  const used = await ticks(pid, 1_000)
  t.ok(used < 90, `it does not spin: ${used} % of a core`)
  for (const socket of sockets) socket.destroy()
  await until(async () => (await timely(status(served))) === 200, 60_000, 100)
  t.equal(served.program.child.exitCode, null, 'the process is the same')
  // While the limit is reached, connections are reset.
  await until(() => files() < most - 30, 60_000, 50)
  t.equal((await served.ops('/healthz')).status, 200)
})

/** Opens connections until no file descriptor is free; some connections are not accepted. */
async function occupied(t: Test, { port }: Served, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    t.teardown(() => socket.destroy())
    return socket
  })
  await Promise.race([Promise.all(sockets.map((each) => once(each, 'connect'))), sleep(2_000)])
  return sockets
}

/** The status; 0 if no reply arrives within two seconds. */
function timely(asked: Promise<number>): Promise<number> {
  return Promise.race([asked, sleep(2_000, 0)])
}

/** Processor time of a process during `ms`, in hundredths of a second. */
async function ticks(pid: number, ms: number): Promise<number> {
  const before = usedTicks(pid)
  await sleep(ms)
  return usedTicks(pid) - before
}

function usedTicks(pid: number): number {
  const { stdout } = spawnSync('cat', [`/proc/${pid}/stat`], { encoding: 'utf8' })
  const fields = stdout.slice(stdout.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}

void t.test('G-109: no more ports', (t) => {
  const cause = Object.assign(new Error('connect EADDRNOTAVAIL'), { code: 'EADDRNOTAVAIL' })
  const error = transportError(cause, 'connecting')
  t.match(error, { kind: 'overloaded', retryAfterSeconds: 1 }, 'the gateway is at fault: 503')
  t.notMatch(error.message, '127.0.0.1')
  t.end()
})
