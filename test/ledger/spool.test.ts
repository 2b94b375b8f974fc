/**
 * Goal: lines that were kept are there after the death of the process, in order; what is cut or damaged is
 * counted and costs nothing else; the spool never grows past its bound, and a full disk is an answer.
 * Method: spools in temporary folders, files damaged by hand, a process killed with SIGKILL, /dev/full.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Spool } from '../../src/ledger/spool.js'

const ROOM = 10_000_000

function linesOf(spool: Spool): string[] {
  return spool.segments().flatMap((segment) => segment.lines())
}

void t.test('what was kept comes back in order, and goes when it is removed', (t) => {
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

void t.test('files are the owner’s alone', (t) => {
  const folder = join(t.testdir(), 'spool')
  const spool = new Spool(folder, ROOM)
  spool.append('x')
  spool.close()
  const [name = ''] = readdirSync(folder)
  t.equal(statSync(folder).mode & 0o777, 0o700)
  t.equal(statSync(join(folder, name)).mode & 0o777, 0o600)
  t.end()
})

void t.test('a cut or damaged line is counted, and its neighbours are read', (t) => {
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

void t.test('the bound holds, and there is room again after', (t) => {
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

void t.test('a disk that takes nothing is an answer, not an exception', (t) => {
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

void t.test('the dead leave theirs to anyone, the living keep their own', async (t) => {
  const folder = join(t.testdir(), 'spool')
  const module = new URL('../../src/ledger/spool.js', import.meta.url).href
  const program = `
    import { Spool } from '${module}'
    const spool = new Spool(process.argv[1], ${ROOM})
    for (let index = 0; index < 100; index += 1) spool.append('row ' + index)
    process.stdout.write('ready')
    setInterval(() => undefined, 1000)
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, folder])
  await once(child.stdout, 'data')
  const spool = new Spool(folder, ROOM)
  t.same(linesOf(spool), [], 'it lives')
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.equal(linesOf(spool).length, 100, 'all that it had kept')
  for (const segment of spool.segments()) {
    t.notOk(spool.owns(segment))
    spool.remove(segment)
  }
  t.same(linesOf(spool), [])
  t.equal(spool.waitingBytes, 0)
  spool.close()
})
