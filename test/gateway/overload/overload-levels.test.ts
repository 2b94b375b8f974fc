/**
 * Goal: the overload level follows sustained readings up and down in steps, and a single high reading has no
 * effect; time in which the process is not scheduled does not count.
 * Method: the test passes the readings and the time; turns of the event loop are real.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import {
  AverageDelay,
  levelFor,
  Levels,
  Overload,
  Turns,
  type Level,
  type Readings,
} from '../../../src/gateway/overload.js'
import type { Labels } from '../../../src/accounts/labels.js'

const CONFIG = {
  enabled: true,
  maxInflight: 100,
  delayMs: [100, 250, 500],
  heapShare: [0.8, 0.88, 0.93],
  openFilesShare: [0.8, 0.9, 0.95],
  riseMs: 1_000,
  holdMs: 5_000,
}
const CALM: Readings = { delayMs: 1, heapShare: 0.1, openFilesShare: 0.1, inFlight: 1 }

void t.test('G-107: each resource has its thresholds, and the highest level applies', (t) => {
  const cases: readonly (readonly [Partial<Readings>, Level, string])[] = [
    [{}, 0, 'delay'],
    [{ delayMs: 99.9 }, 0, 'delay'],
    [{ delayMs: 100 }, 1, 'delay'],
    [{ delayMs: 250 }, 2, 'delay'],
    [{ delayMs: 9_999 }, 3, 'delay'],
    [{ heapShare: 0.9 }, 2, 'heap'],
    [{ openFilesShare: 0.96 }, 3, 'open_files'],
    [{ openFilesShare: null }, 0, 'delay'],
    [{ inFlight: 79 }, 0, 'delay'],
    [{ inFlight: 80 }, 1, 'in_flight'],
    [{ inFlight: 100 }, 2, 'in_flight'],
    [{ inFlight: 110 }, 3, 'in_flight'],
    [{ delayMs: 120, heapShare: 0.89 }, 2, 'heap'],
  ]
  for (const [change, level, resource] of cases) {
    t.same(levelFor({ ...CALM, ...change }, CONFIG), [level, resource], JSON.stringify(change))
  }
  t.end()
})

/** The level after each reading, 100 ms apart. */
function levelsAfter(levels: Levels, required: readonly Level[], startMs = 0): Level[] {
  return required.map((level, index) => levels.update(level, CONFIG, startMs + index * 100))
}

const times = (count: number, level: Level): Level[] => Array.from({ length: count }, () => level)

void t.test('one long turn, or several with pauses, do not raise the level', (t) => {
  t.same(new Set(levelsAfter(new Levels(), [3, 0, 3, 3, 3, 0, ...times(9, 3), 0])), new Set([0]))
  t.end()
})

void t.test('sustained readings raise the level step by step', (t) => {
  const levels = new Levels()
  t.equal(levelsAfter(levels, times(11, 1)).at(-1), 1)
  t.equal(levelsAfter(levels, times(10, 3), 1_100).at(-1), 1, 'not yet')
  t.equal(levelsAfter(levels, times(1, 3), 2_100).at(-1), 3)
  t.end()
})

void t.test(
  'the level holds for hold_ms after the last high reading, then falls to the level of the others',
  (t) => {
    const levels = new Levels()
    t.equal(levelsAfter(levels, times(11, 3)).at(-1), 3)
    t.equal(levelsAfter(levels, times(49, 1), 1_100).at(-1), 3, '4.9 s later')
    t.equal(levelsAfter(levels, times(2, 1), 6_000).at(-1), 1, 'level 1 is still required')
    t.equal(levelsAfter(levels, times(49, 0), 6_200).at(-1), 1)
    t.equal(levelsAfter(levels, [2], 11_000).at(-1), 1, 'a high reading restarts the hold')
    t.equal(levelsAfter(levels, times(49, 0), 11_100).at(-1), 1)
    t.equal(levelsAfter(levels, times(2, 0), 16_000).at(-1), 0)
    t.end()
  },
)

void t.test('the average of delays: one long turn counts little, alternating turns count', (t) => {
  const delay = new AverageDelay()
  for (let index = 0; index < 20; index += 1) delay.add(5, index * 100)
  const after = delay.add(600, 2_600)
  t.ok(after > 100 && after < 250, `${after} ms after one turn of 600 ms`)
  for (let index = 1; index <= 5; index += 1) delay.add(5, 2_600 + index * 100)
  t.ok(delay.add(5, 3_300) < 100, 'low again in less than rise_ms')
  const many = new AverageDelay()
  let average = 0
  for (let index = 0; index < 40; index += 1) average = many.add(index % 2 === 0 ? 500 : 20, index * 150)
  t.ok(average > 150 && average < 350, `${average} ms of turns of 500 and 20 ms`)
  t.end()
})

interface Bench {
  readonly overload: Overload
  readonly set: (change: Partial<Readings>) => void
  readonly pass: (ms: number) => void
  readonly shed: string[]
  readonly levels: number[]
  readonly events: string[]
}

function bench(config = CONFIG): Bench {
  let readings = CALM
  let nowMs = 0
  const shed: string[] = []
  const levels: number[] = []
  const events: string[] = []
  const overload = new Overload({
    settings: () => config,
    inFlight: () => readings.inFlight,
    read: () => readings,
    now: () => nowMs,
    random: () => 0.999_999,
    log: {
      warn: (event, fields) => void events.push(`${event} ${fields?.reason ?? ''}`),
      info: (event) => void events.push(event),
    },
    onLevel: (level) => void levels.push(level),
    onShed: (resource) => void shed.push(resource),
  })
  return {
    overload,
    set: (change) => (readings = { ...CALM, ...change }),
    pass: (ms) => {
      for (let index = 0; index < ms; index += 100) {
        nowMs += 100
        overload.sample()
      }
    },
    shed,
    levels,
    events,
  }
}

function errorOf(step: () => void): unknown {
  try {
    step()
    return null
  } catch (error) {
    return error
  }
}

const served = ({ overload }: Bench): string[] => {
  const keys: Record<string, Labels> = {
    low: { priority: 'low' },
    normal: { team: 'a' },
    high: { priority: 'high' },
  }
  if (errorOf(() => overload.assertOpen()) !== null) return []
  const isServed = (name: string): boolean => errorOf(() => overload.assertServed(keys[name] ?? {})) === null
  return Object.keys(keys).filter(isServed)
}

void t.test('each level serves the right keys, is reported, and recovers', (t) => {
  const b = bench()
  t.same(served(b), ['low', 'normal', 'high'])
  t.equal(b.overload.state, 'ok')
  b.set({ delayMs: 120 })
  b.pass(3_000)
  t.same(served(b), ['normal', 'high'])
  t.ok(b.overload.closesConnections)
  b.set({ heapShare: 0.9 })
  b.pass(1_100)
  t.same(served(b), ['high'])
  t.equal(b.overload.state, 'level 2 of 3: heap')
  t.match(
    errorOf(() => b.overload.assertServed({})),
    { kind: 'overloaded', wire: { retryAfterSeconds: 5 } },
  )
  b.set({ delayMs: 550 })
  b.pass(3_000)
  t.same(served(b), [])
  b.set({})
  b.pass(4_900)
  t.same(served(b), [])
  b.pass(2_000)
  t.same(served(b), ['low', 'normal', 'high'])
  t.notOk(b.overload.closesConnections)
  t.same(b.levels.slice(0, 3), [1, 2, 3])
  t.equal(b.levels.at(-1), 0)
  t.match(
    b.events.slice(0, 3),
    [1, 2, 3].map((level) => new RegExp(`^overloaded level ${level}`)),
  )
  t.match(b.events.at(-1), /^no longer/)
  t.ok(b.shed.includes('delay') && b.shed.includes('heap'))
  t.end()
})

void t.test('requests in flight are counted at once, without a reading', (t) => {
  const b = bench()
  b.set({ inFlight: 100 })
  t.same(served(b), ['low', 'normal', 'high'], 'the request itself is among them')
  b.set({ inFlight: 101 })
  t.same(served(b), ['high'])
  b.set({ inFlight: 111 })
  t.same(served(b), [])
  t.same(new Set(b.shed), new Set(['in_flight']))
  b.set({ inFlight: 50 })
  t.same(served(b), ['low', 'normal', 'high'])
  t.end()
})

void t.test('enabled: false refuses no request', (t) => {
  const b = bench({ ...CONFIG, enabled: false })
  b.set({ delayMs: 5_000, inFlight: 500 })
  b.pass(3_000)
  t.same(served(b), ['low', 'normal', 'high'])
  t.equal(b.overload.state, 'ok')
  t.end()
})

void t.test('a turn counts for the CPU time that the process used in it', async (t) => {
  const turns = new Turns()
  t.teardown(() => turns.close())
  await delay(100)
  turns.takeDelayMs()
  const beganMs = turns.runningMs
  // As if the system did not schedule the process.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
  await delay(1)
  t.ok(turns.takeDelayMs() < 100, 'a process that does not run is not overloaded')
  t.ok(turns.runningMs - beganMs < 200, 'and its time does not pass')
  const { user, system } = process.cpuUsage()
  for (let used = 0; used < 300_000;) {
    // Most of it in this loop, not in the system.
    for (const endMs = performance.now() + 5; performance.now() < endMs;);
    const now = process.cpuUsage()
    used = now.user + now.system - user - system
  }
  await delay(1)
  const delayMs = turns.takeDelayMs()
  t.ok(delayMs >= 250, `${delayMs} ms of work`)
  t.ok(turns.runningMs - beganMs >= 250)
  t.equal(turns.takeDelayMs() < 250, true, 'a turn is reported once')
})
