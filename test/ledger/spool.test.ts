/**
 * Goal: spooled lines survive a crash of the process, in order; truncated or damaged lines are counted and do
 * not affect others; the spool never exceeds its maximum size, and a full disk is reported.
 * Method: spools in temporary folders, files damaged by hand, a process killed with SIGKILL, /dev/full.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Spool } from '../../src/ledger/spool.js'

const ROOM = 10_000_000
const SPOOL = new URL('../../src/ledger/spool.js', import.meta.url).href

function linesOf(spool: Spool): string[] {
  return spool.segments().flatMap((segment) => segment.lines())
}

void t.test('stored lines are returned in order, until they are removed', (t) => {
  const spool = new Spool(join(t.testdir(), 'spool'), ROOM)
  t.same(linesOf(spool), [], 'no folder yet')
  const lines = Array.from({ length: 1000 }, (_unused, index) => `{"row":${index},"ü":"…"}`)
  for (const line of lines) t.equal(spool.append(line), 'kept')
  t.ok(spool.waitingBytes > 20_000)
  t.same(linesOf(spool), lines)
  spool.append('after')
  t.same(linesOf(spool), [...lines, 'after'], 'a second file')
  for (const segment of spool.segments()) spool.remove(segment)
  t.same(linesOf(spool), [])
  t.equal(spool.waitingBytes, 0)
  spool.close()
  t.end()
})

void t.test('only the owner can read the files', (t) => {
  const folder = join(t.testdir(), 'spool')
  const spool = new Spool(folder, ROOM)
  spool.append('x')
  spool.close()
  const [name = ''] = readdirSync(folder)
  t.equal(statSync(folder).mode & 0o777, 0o700)
  t.equal(statSync(join(folder, name)).mode & 0o777, 0o600)
  t.end()
})

void t.test('a truncated or damaged line is counted, and the other lines are read', (t) => {
  const folder = join(t.testdir(), 'spool')
  const spool = new Spool(folder, ROOM)
  for (const line of ['one', 'two', 'three']) spool.append(line)
  spool.close()
  const path = join(folder, readdirSync(folder)[0] ?? '')
  const whole = readFileSync(path, 'utf8')
  writeFileSync(path, whole.replace('two', 'tvo'))
  appendFileSync(path, 'deadbeef cut he')
  const [segment] = spool.segments()
  t.same(segment?.lines(), ['one', 'three'])
  t.equal(segment?.damaged, 2)
  for (let length = 0; length < whole.length; length += 1) {
    writeFileSync(path, whole.slice(0, length))
    const lines = segment?.lines() ?? []
    const expected = ['one', 'two', 'three'].slice(0, lines.length)
    if (lines.join() !== expected.join()) t.same(lines, expected, `cut at ${length}`)
  }
  t.end()
})

void t.test('the maximum applies, and there is room again afterwards', (t) => {
  const spool = new Spool(join(t.testdir(), 'spool'), 100)
  t.equal(spool.append('x'.repeat(50)), 'kept')
  t.equal(spool.append('x'.repeat(50)), 'full')
  t.match(spool.fault?.message, /100 bytes/)
  t.equal(spool.append('x'.repeat(20)), 'kept')
  for (const segment of spool.segments()) spool.remove(segment)
  t.equal(spool.append('x'.repeat(50)), 'kept')
  t.equal(spool.fault, null)
  spool.close()
  t.end()
})

void t.test('a full disk is a result, not an exception', (t) => {
  const folder = t.testdir()
  symlinkSync('/dev/full', join(folder, 'spool'))
  const spool = new Spool(join(folder, 'spool', 'x'), ROOM)
  t.equal(spool.append('x'), 'full')
  t.ok(spool.fault instanceof Error)
  const other = new Spool('/proc/no-such-place', ROOM)
  t.equal(other.append('x'), 'full')
  other.close()
  t.end()
})

void t.test('a full disk gets no empty file for each line that it refuses', (t) => {
  const folder = join(t.testdir(), 'spool')
  const program = `
    import { readdirSync } from 'node:fs'
    import { Spool } from '${SPOOL}'
    const spool = new Spool(process.argv[1], ${ROOM})
    for (let index = 0; index < 5; index += 1) process.stdout.write(spool.append('row') + ' ')
    process.stdout.write(readdirSync(process.argv[1]).filter((name) => name.endsWith('.spool')).length + ' files')
  `
  const limited = ['-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath]
  const { stdout, stderr } = spawnSync('sh', [...limited, '--input-type=module', '-e', program, folder], {
    encoding: 'utf8',
  })
  t.equal(stdout, 'full full full full full 0 files', stderr)
  t.end()
})

/** A running process that has spooled 100 lines; `isolated`: in its own PID namespace. */
async function startOwner(t: Test, folder: string, isolated: boolean): Promise<ChildProcess> {
  const program = `
    import { Spool } from '${SPOOL}'
    const spool = new Spool(process.argv[1], ${ROOM})
    for (let index = 0; index < 100; index += 1) spool.append('row ' + index)
    process.stdout.write('ready ' + process.pid)
    setInterval(() => undefined, 1000)
  `
  const node = [process.execPath, '--input-type=module', '-e', program, folder]
  const [command = '', ...args] = isolated ? [...UNSHARE, ...node] : node
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [output] = (await once(child.stdout, 'data')) as [Buffer]
  if (isolated) t.equal(String(output), 'ready 1', 'the first process of its namespace')
  return child
}

/** As in a container: the first process has id 1, and exits with this command. */
const UNSHARE = ['unshare', '--pid', '--fork', '--kill-child=SIGKILL']
const [unshare = '', ...unshareArgs] = UNSHARE
const canUnshare = spawnSync(unshare, [...unshareArgs, 'true']).status === 0

for (const [name, isolated] of [
  ['of this machine', false],
  ['of another PID namespace', true],
] as const) {
  const skip = isolated && !canUnshare ? 'no right to make PID namespaces' : false
  const title = `a process ${name} keeps its segments while it lives and leaves them when it is killed`
  void t.test(title, { skip }, async (t) => {
    const folder = join(t.testdir(), 'spool')
    const child = await startOwner(t, folder, isolated)
    const spool = new Spool(folder, ROOM)
    t.same(linesOf(spool), [], 'it lives')
    t.same(
      spool.others().map(({ isOrphan }) => isOrphan),
      [false],
    )
    t.same(linesOf(spool), [], 'looking ends no lock')
    child.kill('SIGKILL')
    await once(child, 'exit')
    t.equal((await settled(() => linesOf(spool))).length, 100, 'all kept lines')
    for (const segment of spool.segments()) {
      t.notOk(spool.owns(segment))
      spool.remove(segment)
    }
    t.same(linesOf(spool), [])
    t.equal(spool.waitingBytes, 0)
    spool.append('own')
    spool.close()
    t.same(
      readdirSync(folder).map((file) => file.replace(/.*\./, '')),
      ['spool', 'lock'],
      'the lock of the exited process is removed',
    )
  })
}

/** The kernel ends a namespace's processes a moment after the one that made it. */
async function settled(list: () => string[]): Promise<string[]> {
  for (let turn = 0; turn < 500 && list().length === 0; turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return list()
}

void t.test("two running owners in two PID namespaces do not take each other's segments", async (t) => {
  if (!canUnshare) {
    t.pass('no right to make PID namespaces')
    return
  }
  const folder = join(t.testdir(), 'spool')
  const children = [await startOwner(t, folder, true), await startOwner(t, folder, true)]
  const spool = new Spool(folder, ROOM)
  t.equal(spool.others().length, 2)
  t.same(linesOf(spool), [])
  children[0]?.kill('SIGKILL')
  t.equal((await settled(() => linesOf(spool))).length, 100, 'those of one of them')
  spool.close()
})

void t.test('segments of version 0.1.0, which had no locks, are read', (t) => {
  const folder = join(t.testdir(), 'spool')
  const spool = new Spool(folder, ROOM)
  spool.append('a row')
  spool.close()
  const [name = ''] = readdirSync(folder)
  renameSync(join(folder, name), join(folder, 'rows-17-123456-0123456789ab-000001.spool'))
  const next = new Spool(folder, ROOM)
  t.same(linesOf(next), ['a row'])
  next.close()
  t.end()
})

void t.test('no line is lost while a process reads the segments of exited ones', async (t) => {
  const folder = join(t.testdir(), 'spool')
  const [owners, spools] = [3, 120]
  // Each spool is that of a process that starts, writes twice and exits.
  const program = `
    import { Spool } from '${SPOOL}'
    for (let at = 0; at < ${spools}; at += 1) {
      const spool = new Spool(process.argv[1], 1e9)
      for (const part of ['first', 'second']) {
        if (spool.append(process.pid + ' ' + at + ' ' + part) !== 'kept') throw spool.fault
        await new Promise((resolve) => setImmediate(resolve))
      }
      spool.close()
    }
  `
  const children = Array.from({ length: owners }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', program, folder], { stdio: 'inherit' }),
  )
  const exits = Promise.all(children.map((child) => once(child, 'exit')))
  const run = { isOver: false }
  void exits.then(() => (run.isOver = true))
  const spool = new Spool(folder, ROOM)
  const read = new Set<string>()
  const readOrphans = (): void => {
    for (const { segment, isOrphan } of spool.others()) {
      if (!isOrphan) continue
      for (const line of segment.lines()) read.add(line)
      spool.remove(segment)
    }
  }
  while (!run.isOver) {
    readOrphans()
    await new Promise((resolve) => setImmediate(resolve))
  }
  readOrphans()
  t.same(
    await exits,
    Array.from({ length: owners }, () => [0, null]),
  )
  t.equal(read.size, owners * spools * 2)
  spool.close()
})
