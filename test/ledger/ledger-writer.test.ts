/**
 * Goal: an entry is never lost, and no request waits longer than half a second for it, if the ledger refuses,
 * freezes, recovers or does not reply; each entry arrives once.
 * Method: the writer with a ledger in memory that fails on command, and spools in temporary folders.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LedgerWriter, type RowKind } from '../../src/ledger/ledger-writer.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { Spool } from '../../src/ledger/spool.js'
import type { Reservation, Retention, SettleOutcome } from '../../src/store/ledger.js'
import { stopwatch } from '../helpers/stopwatch.js'
import { ledgerEntry } from './build-entry.js'

/** The reservation of a request under a limit. */
const HELD: Reservation = { demands: [], takenFrom: 'reserved' }

/** A ledger that replies, refuses or freezes, as the test sets. */
class FaultyLedger {
  mode: 'answers' | 'refuses' | 'freezes' = 'answers'
  readonly rows = new Map<string, LedgerEntry>()
  readonly limitDemands = new Map<string, Reservation | undefined>()
  settles = 0
  appends = 0
  /** The number of entries after which it refuses. */
  breaksAfter = Number.POSITIVE_INFINITY
  /** The argument of each call of `expire`. */
  readonly spared: number[] = []
  readonly pruned: Retention[] = []

  settle(row: LedgerEntry, reservation?: Reservation): Promise<SettleOutcome> {
    this.settles += 1
    if (this.settles > this.breaksAfter) this.mode = 'refuses'
    return this.behave(() => {
      if (this.rows.has(row.requestId)) return 'already'
      this.rows.set(row.requestId, row)
      this.limitDemands.set(row.requestId, reservation)
      return 'settled'
    })
  }

  async append(row: LedgerEntry): Promise<void> {
    this.appends += 1
    await this.settle(row)
  }

  expire(overdueMs = 0): Promise<number> {
    this.spared.push(overdueMs)
    return this.behave(() => 0)
  }

  prune(retention: Retention): Promise<number> {
    return this.behave(() => this.pruned.push(retention))
  }

  fitMemory(): Promise<null> {
    return this.behave(() => null)
  }

  private behave<Value>(answer: () => Value): Promise<Value> {
    if (this.mode === 'refuses') return Promise.reject(new Error('refused'))
    if (this.mode === 'freezes') return new Promise(() => undefined)
    return Promise.resolve(answer())
  }
}

interface Stage {
  readonly ledgerWriter: LedgerWriter
  readonly ledger: FaultyLedger
  readonly spool: Spool
  readonly kinds: Map<RowKind, number>
  readonly events: string[]
}

function stage(t: Test, options: { bytes?: number; whenFull?: 'serve' | 'refuse' } = {}): Stage {
  const ledger = new FaultyLedger()
  const spool = new Spool(join(t.testdir(), 'spool'), options.bytes ?? 1_000_000)
  const kinds = new Map<RowKind, number>()
  const events: string[] = []
  const say = (event: string): void => void events.push(event)
  const settings = {
    keepDays: 1,
    maxMemory: 0.5,
    hoursDays: 1,
    daysDays: 1,
    spool: '',
    spoolMaxBytes: 0,
    errorMessages: true,
    whenFull: options.whenFull ?? 'serve',
  }
  const ledgerWriter = new LedgerWriter({
    ledger,
    spool,
    settings: () => settings,
    log: { info: say, warn: say, error: say },
    ownerOf: (digest) =>
      ledger.mode === 'answers'
        ? Promise.resolve(
            digest === 'd1' ? { accountId: 'acc_1', accountPath: null, keyId: 'key_1', labels: null } : null,
          )
        : Promise.reject(new Error('it is away')),
    onRow: (kind, rows) => kinds.set(kind, (kinds.get(kind) ?? 0) + rows),
    onMemory: () => undefined,
  })
  // The timers of the ledger writer do not keep the process running.
  const awake = setInterval(() => undefined, 50)
  t.teardown(async () => {
    ledger.mode = 'refuses'
    await ledgerWriter.close()
    clearInterval(awake)
  })
  return { ledgerWriter, ledger, spool, kinds, events }
}

async function until(isSo: () => boolean): Promise<void> {
  for (let turn = 0; !isSo(); turn += 1) {
    if (turn > 1000) throw new Error('never so')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

void t.test('an entry that the ledger accepts', async (t) => {
  const { ledgerWriter, ledger, kinds, spool } = stage(t)
  await ledgerWriter.settle(ledgerEntry('a'), HELD)
  t.ok(ledger.rows.has('a'))
  t.equal(ledgerWriter.state, 'ok')
  t.same([...kinds], [['reported', 1]])
  t.equal(spool.waitingBytes, 0)
})

void t.test('a ledger that refuses: rows wait on disk, and arrive once', async (t) => {
  const { ledgerWriter, ledger, kinds, events } = stage(t)
  ledger.mode = 'refuses'
  await ledgerWriter.settle(ledgerEntry('a'), HELD)
  t.match(ledgerWriter.state, /unavailable, 1 rows spooled/)
  const settlesBefore = ledger.settles
  for (let index = 0; index < 200; index += 1)
    t.equal(ledgerWriter.settle(ledgerEntry(`b${index}`), HELD), null)
  t.equal(ledger.settles, settlesBefore, 'the ledger is not called meanwhile')
  ledger.mode = 'answers'
  await until(() => ledger.rows.size === 201)
  t.same(ledger.rows.get('b7'), ledgerEntry('b7'), 'unchanged')
  await until(() => ledgerWriter.state === 'ok')
  t.equal(kinds.get('replayed'), 201)
  t.equal(kinds.get('spooled'), 201)
  t.same(events, ['ledger unavailable, rows are spooled', 'ledger is back'], 'logged once each')
})

void t.test('the entries of an outage are charged to the budgets', async (t) => {
  const { ledgerWriter, ledger } = stage(t)
  const budget = { subject: 'key:k', shared: false, limitNanoUsd: 100, costNanoUsd: 7 }
  const demands = [{ ...budget, kind: 'usd_day' }] as const
  await ledgerWriter.settle(ledgerEntry('a'), { demands, takenFrom: 'nothing' })
  t.same(ledger.limitDemands.get('a'), { demands, takenFrom: 'nothing' })
  ledger.mode = 'refuses'
  for (const taken of ['nothing', 'slice', 'reserved'] as const) {
    await ledgerWriter.settle(ledgerEntry(taken), { demands, takenFrom: taken })
  }
  ledger.mode = 'answers'
  await until(() => ledger.rows.size === 4)
  t.same(ledger.limitDemands.get('nothing'), { demands, takenFrom: 'nothing' })
  t.same(ledger.limitDemands.get('slice'), { demands, takenFrom: 'slice' })
  // The reservation may have expired meanwhile; then what it has charged is corrected.
  t.same(ledger.limitDemands.get('reserved'), { demands, takenFrom: 'reserved' })
})

void t.test('after an outage requests have time to settle before they count as lost', async (t) => {
  const { ledgerWriter, ledger } = stage(t)
  const beganMs = performance.now()
  await until(() => ledger.spared.length === 1)
  t.same(ledger.spared, [0], 'without an outage expired reservations are lost')
  ledger.mode = 'refuses'
  await ledgerWriter.settle(ledgerEntry('a'), HELD)
  ledger.mode = 'answers'
  await until(() => ledgerWriter.state === 'ok')
  t.equal(ledger.spared.length, 2)
  for (const spared of ledger.spared.slice(1)) {
    t.ok(spared > 30_000 && spared < 30_000 + performance.now() - beganMs, `${spared} ms`)
  }
})

void t.test('a replay that fails continues where it stopped', async (t) => {
  const { ledgerWriter, ledger } = stage(t)
  ledger.mode = 'refuses'
  await ledgerWriter.settle(ledgerEntry('a'), HELD)
  for (let index = 0; index < 1_000; index += 1) void ledgerWriter.settle(ledgerEntry(`b${index}`), HELD)
  ledger.breaksAfter = ledger.settles + 600
  ledger.mode = 'answers'
  await until(() => ledger.settles >= ledger.breaksAfter)
  ledger.breaksAfter = Number.POSITIVE_INFINITY
  const before = ledger.settles
  await until(() => ledger.mode === 'refuses')
  ledger.mode = 'answers'
  await until(() => ledgerWriter.state === 'ok')
  t.equal(ledger.rows.size, 1_001)
  t.ok(ledger.settles - before < 600, `${ledger.settles - before} more instead of all`)
})

void t.test('a ledger that freezes delays a reply by half a second at most', async (t) => {
  const { ledgerWriter, ledger } = stage(t)
  ledger.mode = 'freezes'
  const began = performance.now()
  const watch = stopwatch()
  await Promise.all([
    ledgerWriter.settle(ledgerEntry('a'), HELD),
    ledgerWriter.settle(ledgerEntry('b'), HELD),
  ])
  const tookMs = performance.now() - began
  t.ok(tookMs > 300 && watch() < 1500, `${tookMs} ms`)
  t.equal(ledgerWriter.settle(ledgerEntry('c'), HELD), null, 'and the next one is not')
})

void t.test('a full spool: requests are served and counted, or refused, as configured', async (t) => {
  for (const whenFull of ['serve', 'refuse'] as const) {
    const { ledgerWriter, ledger, kinds, events } = stage(t, { bytes: 100, whenFull })
    t.equal(ledgerWriter.isRefusing, false)
    ledger.mode = 'refuses'
    await ledgerWriter.settle(ledgerEntry('a'), HELD)
    const isHeld = whenFull === 'refuse'
    t.equal(kinds.get('dropped'), isHeld ? undefined : 1)
    t.match(ledgerWriter.state, isHeld ? /1 in memory, requests are refused/ : /1 dropped/)
    const event = isHeld ? 'usage row held in memory' : 'usage row dropped'
    t.ok(events.some((each) => each.startsWith(event)))
    t.equal(ledgerWriter.isRefusing, isHeld, whenFull)
    ledger.mode = 'answers'
    await until(() => ledgerWriter.state === 'ok')
    t.equal(ledgerWriter.isRefusing, false)
    t.equal(ledger.rows.has('a'), isHeld, 'entries held in memory arrive')
  }
})

void t.test('entries of refused requests leave room in memory for those with a cost', async (t) => {
  const { ledgerWriter, ledger, kinds } = stage(t, { bytes: 0, whenFull: 'refuse' })
  ledger.mode = 'refuses'
  await ledgerWriter.settle(ledgerEntry('first'), HELD)
  for (let n = 0; n < 10_500; n += 1) {
    await ledgerWriter.settle({ ...ledgerEntry(`refused-${n}`), source: 'none' })
  }
  t.equal(kinds.get('spooled'), 10_000, 'one with a cost and 9,999 without')
  await ledgerWriter.settle(ledgerEntry('last'), HELD)
  t.equal(kinds.get('dropped'), 501)
  ledger.mode = 'answers'
  await until(() => ledgerWriter.state === 'ok')
  t.ok(ledger.rows.has('first') && ledger.rows.has('last'))
})

void t.test('pending entries at shutdown arrive, or are spooled for the next process', async (t) => {
  const { ledgerWriter, ledger, spool } = stage(t)
  ledger.mode = 'freezes'
  const settled = ledgerWriter.settle(ledgerEntry('a'), HELD)
  await ledgerWriter.close()
  await settled
  t.equal(spool.segments().flatMap((segment) => segment.lines()).length, 1)
})

void t.test('data older than configured are deleted soon after the start', async (t) => {
  const { ledger } = stage(t)
  const beganMs = Date.now()
  await until(() => ledger.pruned.length > 0)
  const dayMs = 86_400_000
  for (const atMs of Object.values(ledger.pruned[0] ?? {})) {
    // Without an archive, entries leave whether it has them or not.
    if (typeof atMs === 'boolean') continue
    t.ok(atMs >= beganMs - dayMs && atMs <= Date.now() - dayMs, `one day before: ${atMs}`)
  }
})

void t.test('closing empties the spool', async (t) => {
  const { ledgerWriter, ledger, spool } = stage(t)
  ledger.mode = 'refuses'
  await ledgerWriter.settle(ledgerEntry('a'), HELD)
  ledger.mode = 'answers'
  await ledgerWriter.close()
  t.ok(ledger.rows.has('a'))
  t.same(spool.segments(), [])
})

void t.test('invalid lines are counted and kept, and do not affect the others', async (t) => {
  const { ledgerWriter, ledger, spool, kinds } = stage(t)
  ledger.mode = 'refuses'
  await ledgerWriter.settle(ledgerEntry('a'), HELD)
  spool.append('[99,"of another version"]')
  await ledgerWriter.settle(ledgerEntry('b'), HELD)
  ledger.mode = 'answers'
  await until(() => ledger.rows.size === 2)
  t.equal(kinds.get('damaged'), 1)
  await until(() => spool.segments().length === 0)
  const names = readdirSync(join(t.testdirName, 'spool'))
  const [name = '', ...more] = names.filter((one) => !one.endsWith('.lock'))
  t.match(name, /\.spool\.damaged$/)
  t.same(more, [])
})

void t.test('entries of keys that cannot be looked up get their owner later', async (t) => {
  const { ledgerWriter, ledger, kinds } = stage(t, { bytes: 100_000_000 })
  ledger.mode = 'refuses'
  await ledgerWriter.settle(ledgerEntry('a'), HELD)
  ledgerWriter.spoolUnowned(ledgerEntry('b'), 'd1')
  ledgerWriter.spoolUnowned(ledgerEntry('c'), 'd2')
  ledger.mode = 'answers'
  await until(() => ledgerWriter.state === 'ok')
  t.match(ledger.rows.get('b'), { accountId: 'acc_1', keyId: 'key_1' })
  t.notOk(ledger.rows.has('c'), 'a key that does not exist')
  t.same([kinds.get('spooled'), kinds.get('replayed'), kinds.get('dropped')], [3, 2, 1])
  for (let count = 0; count < 10_050; count += 1) ledgerWriter.spoolUnowned(ledgerEntry('d'), 'd2')
  t.equal(kinds.get('spooled'), 10_003, 'bounded')
})
