/**
 * The thread that moves entries and sums to the archive, with connections of its own to the store and the
 * database, so that requests never wait for it. It reports its state every second.
 */
import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { hideSecrets, protectSecrets } from '../hide-secrets.js'
import { writeEntry } from '../store/records/entry-text.js'
import { openExpectedStore } from '../store/store-identity.js'
import type { Store } from '../store/store.js'
import type { ArchiveEngine } from './archive-engine.js'
import { openArchiveEngine } from './open-archive-engine.js'
import { ArchiveCopier } from './copier.js'
import type { ArchiveState, ThreadData } from './start-archive.js'
import { passwordsIn } from '../config/secret-settings.js'

const TICK_MS = 1_000
/** Waits after failures in sequence, in ms. */
const RETRY_MS = [1_000, 2_000, 5_000, 10_000, 30_000]
const MEASURE_MS = 2_000

const data = workerData as ThreadData
protectSecrets(passwordsIn(data.archive.url))
let isEnding = false
let ended: () => void = () => undefined
const end = new Promise<void>((resolve) => (ended = resolve))
parentPort?.on('message', () => {
  isEnding = true
  ended()
})

let failures = 0
let awaySinceMs: number | null = null
let problem: string | null = null
let measuredAtMs = Number.NEGATIVE_INFINITY
let waiting = { rows: 0, lagSeconds: 0 }

void run()

async function run(): Promise<void> {
  let store: Store | null = null
  let engine: ArchiveEngine | null = null
  let copier: ArchiveCopier | null = null
  while (!isOver()) {
    try {
      store ??= await openExpectedStore({ url: data.store, folder: data.spool, minTimeoutMs: 5_000 })
      engine ??= await openArchiveEngine(data.archive)
      copier ??= copierOf(store, engine)
      let more = await copier.step()
      while (more === true && !isOver()) {
        await reported(store, copier, true)
        more = await copier.step()
      }
      failures = 0
      awaySinceMs = null
      problem = null
      await reported(store, copier, more !== null)
      await Promise.race([delay(TICK_MS), end])
    } catch (error) {
      failed(error)
      if (store !== null && copier !== null) await reported(store, copier, true).catch(() => undefined)
      else report({ counts: { written: 0, late: 0, dropped: 0, repeated: 0 }, isLeader: true })
      await Promise.race([delay(RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? TICK_MS), end])
    }
  }
  await copier?.close().catch(() => undefined)
  await engine?.close().catch(() => undefined)
  await store?.close()
  parentPort?.postMessage('closed')
  parentPort?.close()
}

function isOver(): boolean {
  return isEnding
}

function failed(error: unknown): void {
  failures += 1
  awaySinceMs ??= Date.now()
  problem = hideSecrets(error instanceof Error ? causeOf(error) : String(error), '***')
}

/** An error of the store has its reason in its cause. */
function causeOf(error: Error): string {
  return error.name === 'GatewayError' && error.cause instanceof Error ? error.cause.message : error.message
}

function copierOf(store: Store, engine: ArchiveEngine): ArchiveCopier {
  return new ArchiveCopier({
    ...{ store, engine, config: data.archive, leader: data.leader },
    warn: (message) => parentPort?.postMessage({ warning: message }),
    refused(entry, reason) {
      const folder = join(data.spool, 'archive')
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      appendFileSync(join(folder, 'refused'), `${JSON.stringify(reason)} ${writeEntry(entry)}\n`, {
        mode: 0o600,
      })
      parentPort?.postMessage({
        warning: `an entry was refused (${reason}): it is in the file archive/refused`,
      })
    },
  })
}

/** Measures what waits every two seconds, and reports. */
async function reported(store: Store, copier: ArchiveCopier, isLeader: boolean): Promise<void> {
  const atMs = performance.now()
  if (atMs - measuredAtMs >= MEASURE_MS) {
    measuredAtMs = atMs
    const { rows, oldestAtMs } = await store.ledger.archive.waiting()
    const lagSeconds = oldestAtMs === null ? 0 : Math.max(0, (Date.now() - oldestAtMs) / 1_000)
    waiting = { rows, lagSeconds }
    report({ counts: copier.counts, isLeader })
  }
}

function report({ counts, isLeader }: Pick<ArchiveState, 'counts' | 'isLeader'>): void {
  const state: ArchiveState = {
    isLeader,
    problem,
    awaySinceMs,
    rowsWaiting: waiting.rows,
    lagSeconds: waiting.lagSeconds,
    counts,
  }
  parentPort?.postMessage({ state })
}
