/**
 * The thread that moves entries and sums to the archive, with connections of its own to the store and the
 * database, so that requests never wait for it. It reports its state every second.
 */
import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { hideSecrets, protectSecrets } from '../../hide-secrets.js'
import { writeEntry } from '../records/entry-text.js'
import { NO_PROGRESS } from '../archive-feed.js'
import { openExpectedStore } from '../store-identity.js'
import type { Store } from '../store.js'
import type { ArchiveEngine } from './archive-engine.js'
import { restoredNotice } from './find-restored.js'
import { openArchiveEngine } from './open-archive-engine.js'
import { ArchiveCopier } from './copier.js'
import type { ArchiveState, ThreadData } from './start-archive.js'
import { passwordsIn } from '../../config/secret-settings.js'
import { measured, type ArchiveOperation } from './measure-engine.js'
import { WaitingFiles } from './waiting-files.js'

const TICK_MS = 1_000
/** Waits after failures in sequence, in ms. */
const RETRY_MS = [1_000, 2_000, 5_000, 10_000, 30_000]
const MEASURE_MS = 2_000
/** Requests of a report. */
const MOST_REQUESTS = 1_000

const data = workerData as ThreadData
const FOLDER = join(data.spool, 'archive')
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
let notice: string | null = null
let measuredAtMs = Number.NEGATIVE_INFINITY
let waiting: Pick<ArchiveState, 'rowsWaiting' | 'lagSeconds' | 'bytesWaiting'> = {
  rowsWaiting: 0,
  lagSeconds: 0,
  bytesWaiting: { store: 0, disk: 0 },
}
/** Since the last report. */
let requests: [ArchiveOperation, number][] = []

void run()

async function run(): Promise<void> {
  let store: Store | null = null
  let engine: ArchiveEngine | null = null
  let copier: ArchiveCopier | null = null
  let files: WaitingFiles | null = null
  while (!isOver()) {
    try {
      store ??= await openExpectedStore({ url: data.store, folder: data.spool, minTimeoutMs: 5_000 })
      files ??= new WaitingFiles(FOLDER, store.id, data.archive.spoolMaxBytes)
      engine ??= measured(await openArchiveEngine(data.archive), 'check', (...request) => {
        if (requests.length < MOST_REQUESTS) requests.push(request)
      })
      copier ??= copierOf(store, engine, files)
      let more = await copier.step()
      while (more === true && !isOver()) {
        await reported({ store, copier, files }, true)
        more = await copier.step()
      }
      failures = 0
      awaySinceMs = null
      problem = null
      await reported({ store, copier, files }, more !== null)
      await Promise.race([delay(TICK_MS), end])
    } catch (error) {
      failed(error)
      if (store !== null && copier !== null && files !== null) {
        await copier.spill().catch(spillFailed)
        await reported({ store, copier, files }, true).catch(() => undefined)
      } else report({ counts: { written: 0, late: 0, dropped: 0, repeated: 0 }, isLeader: true })
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

/** The files could not be written, or the store does not reply. */
function spillFailed(error: unknown): void {
  const reason = hideSecrets(error instanceof Error ? causeOf(error) : String(error), '***')
  parentPort?.postMessage({ warning: `entries that wait for the archive stay in the store: ${reason}` })
}

function copierOf(store: Store, engine: ArchiveEngine, files: WaitingFiles): ArchiveCopier {
  return new ArchiveCopier({
    ...{ store, engine, files, memory: data.memory, config: data.archive, leader: data.leader },
    warn: (message) => parentPort?.postMessage({ warning: message }),
    refused(entry, reason) {
      mkdirSync(FOLDER, { recursive: true, mode: 0o700 })
      appendFileSync(join(FOLDER, 'refused'), `${JSON.stringify(reason)} ${writeEntry(entry)}\n`, {
        mode: 0o600,
      })
      parentPort?.postMessage({
        warning: `an entry was refused (${reason}): it is in the file archive/refused`,
      })
    },
  })
}

interface Opened {
  readonly store: Store
  readonly copier: ArchiveCopier
  readonly files: WaitingFiles
}

/** Measures what waits every two seconds, and reports. */
async function reported({ store, copier, files }: Opened, isLeader: boolean): Promise<void> {
  const atMs = performance.now()
  if (atMs - measuredAtMs >= MEASURE_MS) {
    measuredAtMs = atMs
    const { rows, oldestAtMs, bytes } = await store.ledger.archive.waiting()
    const progress = (await store.ledger.archive.progress()) ?? NO_PROGRESS
    notice = restoredNotice(progress)
    const oldestMs = Math.min(oldestAtMs ?? Infinity, progress.restored?.sinceMs ?? Infinity)
    const lagSeconds = Number.isFinite(oldestMs) ? Math.max(0, (Date.now() - oldestMs) / 1_000) : 0
    waiting = { rowsWaiting: rows, lagSeconds, bytesWaiting: { store: bytes ?? 0, disk: files.bytes } }
    report({ counts: copier.counts, isLeader })
  }
}

function report({ counts, isLeader }: Pick<ArchiveState, 'counts' | 'isLeader'>): void {
  const state: ArchiveState = {
    isLeader,
    problem,
    notice,
    awaySinceMs,
    ...waiting,
    bytesMax: { store: data.archive.waitingMaxBytes, disk: data.archive.spoolMaxBytes },
    counts,
    requests,
  }
  requests = []
  parentPort?.postMessage({ state })
}
