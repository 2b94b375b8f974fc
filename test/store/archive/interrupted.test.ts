/**
 * Goal: a leader that ends at any point loses nothing and counts nothing twice: before or after each request
 * to the archive, and before or after each change of the store. Neither does one that goes on after another
 * process leads.
 * Method: real engines behind a wrapper that ends the work at the call with a number; another copier then
 * finishes. Each number has tables of its own.
 */
import t, { type Test } from 'tap'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { ArchiveFailure, type ArchiveEngine } from '../../../src/store/archive/archive-engine.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { verifyHours } from '../../../src/store/archive/verify.js'
import type { ArchiveFeed } from '../../../src/store/archive-feed.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import {
  ENGINES,
  engineMissing,
  archiveDatabase,
  type ArchiveDatabase,
} from '../../helpers/archive-engines.js'
import { anotherDay, IS_LONG } from '../../helpers/long-suite.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'

const HOUR_MS = 3_600_000
/** More calls than a move of these entries makes. */
const MOST_CALLS = 60

class Killed extends Error {}

/** Runs `onCall` around the call with a number. */
class Calls {
  private count = 0
  private readonly at: number
  private readonly isAfter: boolean
  private readonly onCall: () => Promise<void>

  constructor(at: number, isAfter: boolean, onCall: () => Promise<void>) {
    this.at = at
    this.isAfter = isAfter
    this.onCall = onCall
  }

  get isReached(): boolean {
    return this.count >= this.at
  }

  async around<T>(work: () => Promise<T>): Promise<T> {
    this.count += 1
    const isNow = this.count === this.at
    if (isNow && !this.isAfter) await this.onCall()
    const result = await work()
    if (isNow && this.isAfter) await this.onCall()
    return result
  }

  engine(engine: ArchiveEngine): ArchiveEngine {
    return {
      ...{ kind: engine.kind, is: engine.is },
      query: (...args) => this.around(() => engine.query(...args)),
      run: (sql) => this.around(() => engine.run(sql)),
      insert: (...args) => this.around(() => engine.insert(...args)),
      put: (...args) => this.around(() => engine.put(...args)),
      countBatch: (...args) => this.around(() => engine.countBatch(...args)),
      prepare: (timesMs) => this.around(() => engine.prepare(timesMs)),
      size: () => engine.size(),
      close: () => engine.close(),
    }
  }

  store(store: Store): Pick<Store, 'id' | 'ledger'> {
    const feed = store.ledger.archive
    const own: ArchiveFeed = Object.assign(Object.create(feed) as ArchiveFeed, {
      declare: (...args: Parameters<ArchiveFeed['declare']>) => this.around(() => feed.declare(...args)),
      save: (...args: Parameters<ArchiveFeed['save']>) => this.around(() => feed.save(...args)),
      remove: (...args: Parameters<ArchiveFeed['remove']>) => this.around(() => feed.remove(...args)),
    })
    const ledger = Object.assign(Object.create(store.ledger) as Store['ledger'], { archive: own })
    return { id: store.id, ledger }
  }
}

let prefixes = 0

/** Moves entries with one interruption; whether it was reached. */
async function moved(
  t: Test,
  server: ArchiveDatabase,
  calls: (resume: () => Promise<void>) => Calls,
): Promise<boolean> {
  prefixes += 1
  const config = archiveConfig({ url: server.url, hotHours: 1, prefix: `p${prefixes}_` })
  const clock = { nowMs: SOME_TIME_MS }
  const nowMs = () => clock.nowMs
  const store = await openStore(`sqlite:${t.testdir()}/store${prefixes}.db`, { nowMs, monotonicMs: nowMs })
  const engine = await openArchiveEngine(config)
  try {
    for (const statement of schemaStatements({ engine: server.name, config })) await engine.run(statement)
    const entries: LedgerEntry[] = Array.from({ length: 12 }, (_, at) =>
      anEntry(at, { atMs: SOME_TIME_MS + at * 60_000 }),
    )
    for (const entry of entries) await store.ledger.append(entry)
    clock.nowMs += 3 * HOUR_MS
    const warnings: string[] = []
    const copierOf = (
      parts: Pick<ConstructorParameters<typeof ArchiveCopier>[0], 'store' | 'engine'>,
      id: string,
    ) =>
      new ArchiveCopier({
        ...{ ...parts, config, nowMs, leader: { id, gateway: 'gw', pid: 1 } },
        refused: (_, reason) => t.fail(reason),
        warn: (message) => warnings.push(message),
      })
    const settle = async (copier: ArchiveCopier): Promise<void> => {
      for (let quiet = 0; quiet < 2; clock.nowMs += 6_000)
        quiet = (await copier.step()) === true ? 0 : quiet + 1
    }
    // The former leader's lease has ended while it still works.
    const resume = async (): Promise<void> => {
      await store.ledger.archive.resign('first')
      const second = copierOf({ store, engine }, 'second')
      await settle(second)
      await second.close()
    }
    const counted = calls(resume)
    const first = copierOf({ store: counted.store(store), engine: counted.engine(engine) }, 'first')
    await settle(first).catch((error: unknown) => {
      // Inspecting the tables reports any failure as that of a database that does not reply.
      if (!(error instanceof Killed || error instanceof ArchiveFailure)) throw error
    })
    const late = anEntry(50, { atMs: SOME_TIME_MS + 30_000 })
    await store.ledger.append(late)
    await settle(first).catch((error: unknown) => {
      // Inspecting the tables reports any failure as that of a database that does not reply.
      if (!(error instanceof Killed || error instanceof ArchiveFailure)) throw error
    })
    clock.nowMs += 61_000
    await resume()
    const all = [...entries, late]
    const [row] = await engine.query(
      `SELECT (SELECT count(*) FROM p${prefixes}_requests) AS entries,
         (SELECT sum(requests) FROM p${prefixes}_usage) AS requests,
         (SELECT sum(cost_nano_usd) FROM p${prefixes}_usage) AS cost`,
    )
    const cost = all.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
    t.same(
      { entries: Number(row?.['entries']), requests: Number(row?.['requests']), cost: Number(row?.['cost']) },
      { entries: all.length, requests: all.length, cost },
      `after call ${prefixes}`,
    )
    t.strictSame((await verifyHours(store, engine, 0, Infinity)).different, [])
    t.strictSame(warnings, [])
    return counted.isReached
  } finally {
    await engine.close()
    await store.close()
  }
}

for (const [at, name] of ENGINES.entries()) {
  const skip = anotherDay(at, 2) || engineMissing(name)
  // All points are in the long suite.
  const step = IS_LONG ? 1 : name === 'postgresql' ? 3 : 7
  void t.test(`a leader that ends at any call, ${name}`, { skip, timeout: 600_000 }, async (t) => {
    const server = await archiveDatabase(name)
    let reached = 0
    for (let at = 1; at <= MOST_CALLS; at += step) {
      const killed = async (): Promise<void> => Promise.reject(new Killed())
      const isReached = await moved(t, server, () => new Calls(at, at % 2 === 0, killed))
      if (!isReached) break
      reached += 1
    }
    t.ok(reached >= Math.floor(20 / step), `${reached} points`)
  })

  void t.test(`a leader that goes on after another leads, ${name}`, { skip, timeout: 600_000 }, async (t) => {
    const server = await archiveDatabase(name)
    for (let at = 2; at <= MOST_CALLS; at += 2 * step) {
      const isReached = await moved(t, server, (resume) => new Calls(at, at % 4 === 0, resume))
      if (!isReached) break
    }
  })
}
