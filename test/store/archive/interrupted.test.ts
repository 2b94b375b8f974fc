/**
 * Goal: a leader that ends at any point loses nothing and counts nothing twice: before or after each request
 * to the archive, and before or after each change of the store. Neither does one that goes on after another
 * process leads, one whose clock is wrong, or one whose replica of the archive lags.
 * Method: real stores and engines behind a wrapper that ends the work at the call with a number; another
 * copier then finishes. Each number has tables and a store of its own.
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
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'
import { anotherDay, DAY, IS_LONG } from '../../helpers/long-suite.js'
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

/** Replies to the first questions about a batch as a replica does that has none of it yet. */
class Lag {
  private left: number

  constructor(questions: number) {
    this.left = questions
  }

  get isReached(): boolean {
    return this.left === 0
  }

  engine(engine: ArchiveEngine): ArchiveEngine {
    const own: ArchiveEngine = {
      ...{ kind: engine.kind, is: engine.is },
      query: (...args) => engine.query(...args),
      run: (sql) => engine.run(sql),
      insert: (...args) => engine.insert(...args),
      put: (...args) => engine.put(...args),
      countBatch: (...args) => {
        if (this.left === 0) return engine.countBatch(...args)
        this.left -= 1
        return Promise.resolve({ count: 0, cost: 0n })
      },
      prepare: (timesMs) => engine.prepare(timesMs),
      size: () => engine.size(),
      close: () => engine.close(),
    }
    return own
  }

  store(store: Store): Store {
    return store
  }
}

let prefixes = 0

/** The archive, an address of a new store, and by how much the clock of the first leader is wrong. */
interface Place {
  readonly server: ArchiveDatabase
  readonly address: () => string
  readonly wrongMs?: number
}

/** Moves entries with one interruption; whether it was reached. */
async function moved(
  t: Test,
  { server, address, wrongMs = 0 }: Place,
  calls: (resume: () => Promise<void>) => Calls | Lag,
): Promise<boolean> {
  prefixes += 1
  const config = archiveConfig({ url: server.url, hotHours: 1, prefix: `p${prefixes}_` })
  const clock = { nowMs: SOME_TIME_MS }
  const nowMs = () => clock.nowMs
  const store = await openStore(address(), { nowMs, monotonicMs: nowMs })
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
      ownMs = nowMs,
    ) =>
      new ArchiveCopier({
        ...{ ...parts, config, nowMs: ownMs, leader: { id, gateway: 'gw', pid: 1 } },
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
    const parts = { store: counted.store(store), engine: counted.engine(engine) }
    const first = copierOf(parts, 'first', () => clock.nowMs + wrongMs)
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

/** Makes addresses of new stores. */
async function addressesOf(t: Test, kind: 'sqlite' | 'redis'): Promise<() => string> {
  if (kind === 'redis') return freshDatabases(await startRedis(t))
  const folder = t.testdir()
  let stores = 0
  return () => `sqlite:${folder}/store${++stores}.db`
}

for (const [engineAt, name] of ENGINES.entries()) {
  for (const [storeAt, kind] of (['sqlite', 'redis'] as const).entries()) {
    const missing = engineMissing(name) || (kind === 'redis' && redisMissing())
    // One engine and one store a day, and other points each day; all are in the long suite. Steps are odd, so
    // that a day has points before a call and after one.
    const skip = anotherDay(engineAt * 2 + storeAt, ENGINES.length * 2) || missing
    const step = IS_LONG ? 1 : name === 'postgresql' ? 7 : 13
    const first = IS_LONG ? 0 : DAY % step
    const placeOf = async (t: Test): Promise<Place> => {
      return { server: await archiveDatabase(name), address: await addressesOf(t, kind) }
    }
    void t.test(`${kind}, ${name}: a leader that ends at any call`, { skip, timeout: 600_000 }, async (t) => {
      const place = await placeOf(t)
      let reached = 0
      for (let at = 1 + first; at <= MOST_CALLS; at += step) {
        const killed = async (): Promise<void> => Promise.reject(new Killed())
        const isReached = await moved(t, place, () => new Calls(at, at % 2 === 0, killed))
        if (!isReached) break
        reached += 1
      }
      t.ok(reached >= Math.floor(20 / step), `${reached} points`)
    })

    const goesOn = `${kind}, ${name}: a leader that goes on after another leads`
    void t.test(goesOn, { skip, timeout: 600_000 }, async (t) => {
      const place = await placeOf(t)
      for (let at = 2 + 2 * first; at <= MOST_CALLS; at += 2 * step) {
        const isReached = await moved(t, place, (resume) => new Calls(at, at % 4 === 0, resume))
        if (!isReached) break
      }
    })

    void t.test(`${kind}, ${name}: a wrong clock`, { skip, timeout: 120_000 }, async (t) => {
      const place = await placeOf(t)
      for (const wrongMs of [2 * HOUR_MS, -2 * HOUR_MS, 24 * HOUR_MS]) {
        const never = new Calls(Infinity, false, () => Promise.resolve())
        t.equal(await moved(t, { ...place, wrongMs }, () => never), false)
      }
    })

    // The reply of PostgreSQL counts the rows.
    if (name === 'postgresql') continue
    void t.test(`${kind}, ${name}: a replica that lags`, { skip, timeout: 120_000 }, async (t) => {
      // A batch is read back twice.
      for (const questions of [1, 2, 3]) t.ok(await moved(t, await placeOf(t), () => new Lag(questions)))
    })
  }
}
