/**
 * Files and batches of one process: serves both, and works on the batches of the fleet that no other process
 * works on. Loaded at the first use of a configuration with `files`.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import type { ResolvedEndpoint } from '../../formats/index.js'
import type { Logger } from '../../observe/log.js'
import type { BATCH_STATES } from '../../observe/metrics/batch-metrics.js'
import type { CacheStore } from '../../policy/cache-in-store.js'
import type { Exchange } from '../client-exchange.js'
import type { Generation } from '../generation.js'
import type { Delivery } from '../phases/phase-results.js'
import {
  BatchRecords,
  cancellation,
  hasEnded,
  LEASE_MS,
  type Batch,
  type BatchInfo,
} from '../../policy/batch-records.js'
import type { LineEnd } from './clients/client-form.js'
import { forget, type CreateServices } from './create-batch.js'
import { LONGEST_MS, settleBatch, UNUSED } from './charge-batch.js'
import { FileStore, type StoredFile } from '../../policy/file-store.js'
import { Journal, type LineUse } from './journal.js'
import { writeResults, type Missing } from './result-files.js'
import type { LineServices } from './line-run.js'
import { finisherOf, runAtVendor, type FinishLine, type BatchEnd } from './run-at-vendor.js'
import { mayRun, runQueue, Slots, type QueueRun, type RunLine } from './run-queue.js'
import { serveBatches } from './serve-batches.js'
import { serveFiles } from './serve-files.js'
import { UpstreamFiles } from './upstream-files.js'

/** What files and batches use. */
interface BatchesOptions extends Pick<CreateServices, 'limiter' | 'ledgerWriter' | 'values'> {
  readonly store: CacheStore
  readonly config: () => Pick<Config, 'files' | 'batches'>
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly run: RunLine
  readonly generation: () => Generation
  readonly lines: LineServices
}

/** Time between two looks at the open batches; a new one of this process is begun at once. */
const LOOK_MS = 1_000
/** The counts of a running batch are written at most so often. */
const PROGRESS_MS = 1_000
const SWEEP_MS = 600_000
/** The gauge of open batches is counted so often. */
const COUNT_MS = 10_000
const CLOSE_MS = 5_000

/** Time until a batch is looked at again whose queue another process runs. */
const QUEUE_REST_MS = 2_000

/** The right of this process to work on a batch. */
interface Lease {
  /** False as soon as another process has it. */
  readonly isMine: () => boolean
  /** Renews it; false if another process has it. */
  readonly renew: () => Promise<boolean>
}

/** The leases of a running batch. */
interface Held {
  readonly leases: string[]
  /** Another process has taken one. */
  isLost: boolean
}

const FILES_OFF = 'This gateway keeps no files: set files.to in its configuration.'

/** Open until `close`. */
export class Batches {
  private readonly options: BatchesOptions
  /** This process, in leases. */
  private readonly name = randomUUID()
  private readonly slots = new Map<string, Slots>()
  private readonly running = new Map<string, Promise<void>>()
  /** The leases of queues that running batches need, by their ids. */
  private readonly queues = new Map<string, string>()
  /** When to look again at a batch that could not be worked on. */
  private readonly restingUntilMs = new Map<string, number>()
  /** For how long no process looks at batches that are being worked on. */
  private readonly restMs = new Map<string, number>()
  /** How long the last rest of a batch at a vendor was. */
  private readonly pollMs = new Map<string, number>()
  private readonly timers: readonly NodeJS.Timeout[]
  private opened: { readonly settings: string; readonly files: FileStore } | null = null
  private isClosed = false
  private looking: Promise<void> | null = null

  constructor(options: BatchesOptions) {
    this.options = options
    this.timers = [
      setInterval(() => this.wake(), LOOK_MS).unref(),
      setInterval(() => void this.sweep(), SWEEP_MS).unref(),
      setInterval(() => void this.count(), COUNT_MS).unref(),
    ]
    this.wake()
    void this.count()
  }

  /** Answers a request to an endpoint of files or of batches. Rejects with `GatewayError`. */
  serve(x: Exchange, { dialect, endpoint }: ResolvedEndpoint): Promise<Delivery> {
    const { operation, model: named = null } = endpoint
    const files = this.files()
    if (files === null) return Promise.reject(new GatewayError('untranslatable', FILES_OFF))
    if (operation === 'files') {
      const { openai } = files.settings.upstreams
      const target = openai === null ? null : x.generation.nativeTarget(openai)
      const others = target === null ? null : new UpstreamFiles(target, this.options.lines.objects)
      const isGoogle = dialect === 'gemini'
      return serveFiles(x, named, { identity: x.identity, files, others, isGoogle })
    }
    const services = { ...this.services(files), wake: () => this.wake() }
    return serveBatches(x, { dialect, named }, services)
  }

  /** Looks for batches to work on. */
  wake(): void {
    if (this.isClosed || this.looking !== null) return
    this.looking = this.look()
      .catch((error: unknown) => this.warn('batches cannot be read', error))
      .finally(() => {
        this.looking = null
      })
  }

  /** Starts no more lines; resolves when those that run have ended, at the latest after `CLOSE_MS`. */
  async close(): Promise<void> {
    this.isClosed = true
    for (const timer of this.timers) clearInterval(timer)
    await this.looking
    // A vendor that does not answer must not hold the process: another one goes on when the lease ends.
    const waiting = new AbortController()
    const late = pause(CLOSE_MS, undefined, { signal: waiting.signal }).catch(() => undefined)
    await Promise.race([Promise.all(this.running.values()), late])
    waiting.abort()
  }

  private async look(): Promise<void> {
    const files = this.files()
    if (files === null) return
    const { records } = this.services(files)
    for (const { id } of await records.open()) {
      const isResting = (this.restingUntilMs.get(id) ?? 0) > performance.now()
      if (this.isClosed || isResting || this.running.has(id)) continue
      this.restingUntilMs.delete(id)
      if (!(await records.lease(id, this.name))) continue
      const working = this.work(id, files).finally(() => this.running.delete(id))
      this.running.set(id, working)
    }
  }

  /** Works on a batch until it has ended or has to wait. Never rejects. */
  private async work(id: string, files: FileStore): Promise<void> {
    const services = this.services(files)
    const { records } = services
    const held: Held = { leases: [id], isLost: false }
    const renew = async (): Promise<boolean> => {
      for (const lease of held.leases) held.isLost ||= !(await records.lease(lease, this.name))
      return !held.isLost && !this.isClosed
    }
    const renewing = setInterval(() => void renew().catch(() => undefined), LEASE_MS / 3).unref()
    try {
      const batch = await records.find(null, id)
      if (batch !== null && !(await this.takeQueue(batch, records, held))) {
        this.restingUntilMs.set(id, performance.now() + QUEUE_REST_MS)
        return
      }
      if (batch === null || hasEnded(batch)) await records.close(id)
      else if (batch.info.state === 'creating') {
        // Its creator had its time.
        if (Date.now() - batch.createdAtMs > CREATION_MS) await forget(batch, services)
      } else await this.advance(batch, services, { isMine: () => !held.isLost && !this.isClosed, renew })
    } catch (error) {
      this.warn('a batch cannot be worked on', error, id)
      this.restingUntilMs.set(id, performance.now() + this.options.config().batches.pollMs)
    } finally {
      clearInterval(renewing)
      for (const lease of held.leases.filter((each) => this.mayRelease(each, id))) {
        const restMs = lease === id ? (this.restMs.get(id) ?? 0) : 0
        await records.release(lease, this.name, restMs).catch(() => undefined)
      }
      this.queues.delete(id)
      this.restMs.delete(id)
    }
  }

  /**
   * One process of the fleet runs all queued batches of an upstream, so that `queue.concurrency` holds for
   * the fleet. False if another one does.
   */
  private async takeQueue({ id, info }: Batch, records: BatchRecords, held: Held): Promise<boolean> {
    if (info.form !== 'queue' || info.state === 'creating') return true
    const lease = `queue:${info.upstreams[0] ?? ''}`
    if (!(await records.lease(lease, this.name))) return false
    this.queues.set(id, lease)
    held.leases.push(lease)
    return true
  }

  /** Whether no other batch of this process needs the lease. */
  private mayRelease(lease: string, id: string): boolean {
    return ![...this.queues].some(([other, queue]) => other !== id && queue === lease)
  }

  private async advance(found: Batch, services: CreateServices, lease: Lease): Promise<void> {
    const { files, records } = services
    const { isMine } = lease
    if (Date.now() - found.createdAtMs > LONGEST_MS) {
      await this.expire(found, services)
      return
    }
    // Each line of a queue is refused by itself.
    const isOfEndedRuns = found.info.form !== 'queue' && (await this.isOfEndedRuns(found))
    const batch = (isOfEndedRuns ? await records.change(found.id, cancellation) : found) ?? found
    const { info, accountId } = batch
    const [plan, file] = [
      await files.find(accountId, info.planId),
      await files.find(accountId, info.journalId),
    ]
    if (plan === null || file === null) throw new Error('its lines are not stored any more')
    const journal = await Journal.open(files, file)
    const work = { batch, files, plan, journal, ...lease }
    const generation = this.options.generation()
    generation.enter()
    try {
      const run = { ...work, generation, records: services.records, services: services.lines }
      const end = info.form === 'queue' ? await this.runQueued(work, services) : await runAtVendor(run)
      if (!isMine()) return
      if (end === null) this.rest(batch)
      else await this.finish(batch, { plan, journal: file, end, finish: finisherOf(run) }, services)
    } finally {
      generation.leave()
    }
  }

  /** Whether all its lines belong to runs that were ended. */
  private async isOfEndedRuns({ accountId, secrets }: Batch): Promise<boolean> {
    const { values } = this.options
    for (const { dimensions } of secrets.parts) {
      if (dimensions === undefined || !(await values.isOfEndedRun({ accountId, dimensions }))) return false
    }
    return true
  }

  /** Sends the lines of a queued batch. */
  private async runQueued(
    work: Omit<QueueRun, 'run' | 'slots' | 'mayStart' | 'progress'> & Pick<Lease, 'isMine'>,
    { records }: CreateServices,
  ): Promise<BatchEnd | null> {
    const { batch, isMine, journal: before } = work
    const { id, info } = batch
    const isNew = info.state === 'validating'
    let current = (isNew ? await records.change(id, inProgress) : batch) ?? batch
    const progress = this.progress(id, records, (changed) => (current = changed))
    const mayStart = (): boolean => isMine() && mayRun(current)
    const slots = this.slotsOf(info.upstreams[0] ?? '')
    await runQueue({ ...work, run: this.options.run, slots, mayStart, progress })
    const last = await records.find(null, id)
    if (!isMine() || last === null) return null
    if (last.info.isCancelled) return { state: 'cancelled', message: '' }
    const isWhole = before.completed + before.failed >= info.counts.total
    return { state: isWhole ? 'completed' : 'expired', message: '' }
  }

  /** Looks at the batch again later, each time after twice the time. */
  private rest({ id, createdAtMs }: Batch): void {
    const { pollMs } = this.options.config().batches
    const known = this.pollMs.get(id)
    const isYoung = Date.now() - createdAtMs < MOST_POLL_MS
    const waitMs =
      known === undefined || isYoung ? pollMs : Math.min(2 * known, Math.max(MOST_POLL_MS, pollMs))
    this.pollMs.set(id, waitMs)
    this.restMs.set(id, waitMs)
  }

  /** Writes the results, charges the batch, and ends it. */
  private async finish(
    batch: Batch,
    { plan, journal: file, end, finish }: Finishing,
    services: CreateServices,
  ): Promise<void> {
    const { files, records } = services
    const { id, info } = batch
    const { total } = info.counts
    const { state, message, strays = 0 } = end
    await records.change(id, ({ info: { isCancelled } }) => (isCancelled ? null : { state: 'finalizing' }))
    const journal = await Journal.open(files, file)
    const expiresAtMs = Date.now() + files.settings.keepMs
    const missing = MISSING[state]
    // Those of a process that was killed meanwhile.
    for (const begun of info.begunFileIds ?? []) await files.remove({ id: begun })
    await records.change(id, () => ({ begunFileIds: [] }))
    const onBegin = async (fileId: string): Promise<void> => {
      await records.change(id, (now) => ({ begunFileIds: [...(now.info.begunFileIds ?? []), fileId] }))
    }
    const ended = await writeResults({
      ...{ files, batch, plan, journal, finish, missing, strays, expiresAtMs, onBegin },
    })
    const { outputFileId, errorFileId, ends, used } = ended
    await settleBatch(batch, { used, outcome: state === 'completed' ? 'ok' : state }, services)
    const { ok: completed, expired, cancelled } = ends
    const failed = Object.values(ends).reduce((sum, lines) => sum + lines, -completed)
    const counts = { total, completed, failed, expired, cancelled }
    const failure = state === 'failed' ? message || 'The upstream did not run the batch.' : null
    const concluded = { state, outputFileId, errorFileId, counts, failure }
    if (await this.conclude(batch, concluded, services)) this.countLines(batch, ends)
  }

  /** Ends a batch that no upstream has reported as ended: it is charged its maximum. */
  private async expire(batch: Batch, services: CreateServices): Promise<void> {
    const used = batch.secrets.parts.map(({ entry: { usage, costNanoUsd: nanoUsd } }): LineUse => {
      return batch.info.form === 'queue' ? UNUSED : { usage, source: 'assumed', nanoUsd }
    })
    await settleBatch(batch, { used, outcome: 'expired' }, services)
    if (await this.conclude(batch, { state: 'expired' }, services)) {
      this.countLines(batch, { expired: batch.info.counts.total })
    }
  }

  /** Counts the lines of a batch that this process has ended. */
  private countLines({ info }: Batch, ends: Readonly<Partial<Record<LineEnd, number>>>): void {
    const { batches } = this.options.lines.metrics
    for (const [end, lines] of Object.entries(ends)) batches.lines(info.upstreams[0] ?? 'none', end, lines)
  }

  /**
   * Stores how the batch has ended, and removes what it needed; false if another process has stored it
   * before.
   */
  private async conclude(
    { id, info }: Batch,
    end: Partial<BatchInfo> & Pick<BatchEnd, 'state'>,
    { records, files }: CreateServices,
  ): Promise<boolean> {
    let isOurs = false
    await records.change(id, (now) => {
      isOurs = !hasEnded(now)
      return isOurs ? { ...end, begunFileIds: [] } : null
    })
    await records.close(id)
    this.pollMs.delete(id)
    for (const done of [info.planId, info.journalId]) await files.remove({ id: done })
    this.options.log.info('batch ended', { reason: `${id}: ${end.state}` })
    return isOurs
  }

  /** Writes the counts now and then, and reads whether a client has cancelled the batch. */
  private progress(
    id: string,
    records: BatchRecords,
    onChange: (batch: Batch) => void,
  ): (journal: Journal) => void {
    let writtenMs = Number.NEGATIVE_INFINITY
    return ({ completed, failed }) => {
      const nowMs = performance.now()
      if (nowMs - writtenMs < PROGRESS_MS) return
      writtenMs = nowMs
      const counted = ({ info: { counts } }: Batch) => ({ counts: { ...counts, completed, failed } })
      records.change(id, counted).then(
        (batch) => {
          if (batch !== null) onChange(batch)
        },
        () => undefined,
      )
    }
  }

  private slotsOf(upstream: string): Slots {
    const known = this.slots.get(upstream)
    if (known !== undefined) return known
    const slots = new Slots(() => {
      const { concurrency, upstreams } = this.options.config().batches.queue
      return upstreams[upstream] ?? concurrency
    })
    this.slots.set(upstream, slots)
    return slots
  }

  private services(files: FileStore): CreateServices {
    const { store, limiter, ledgerWriter, values, lines } = this.options
    const records = new BatchRecords(store.store.sealedRecords, files)
    return { files, records, limiter, ledgerWriter, values, lines }
  }

  /** The files of the configuration in force; null if it has none. */
  private files(): FileStore | null {
    const { store, config } = this.options
    const settings = config().files
    if (settings === null) return null
    const text = JSON.stringify(settings)
    if (this.opened?.settings !== text) {
      const files = new FileStore({ records: store.store.sealedRecords, secret: store.secret, settings })
      this.opened = { settings: text, files }
    }
    return this.opened.files
  }

  /** Counts the batches of the store that have not ended. */
  private async count(): Promise<void> {
    const files = this.files()
    if (files === null) return
    try {
      const { records } = this.services(files)
      const counts = { checking: 0, submitted: 0, running: 0, finishing: 0 }
      for (const { state } of await records.open()) counts[METRIC_STATES[state]] += 1
      this.options.lines.metrics.batches.open(counts)
    } catch {
      // The store is away: the next count follows.
    }
  }

  private async sweep(): Promise<void> {
    await this.files()
      ?.sweep()
      .catch((error: unknown) => this.warn('files cannot be removed', error))
  }

  private warn(event: string, error: unknown, id?: string): void {
    const why = error instanceof Error ? error.message : String(error)
    this.options.log.warn(event, { reason: id === undefined ? why : `${id}: ${why}` })
  }
}

/** A batch whose results are written. */
interface Finishing {
  readonly plan: StoredFile
  readonly journal: StoredFile
  readonly end: BatchEnd
  readonly finish: FinishLine | null
}

/** The states of batches in metrics; those of ended ones are not counted. */
const METRIC_STATES: Readonly<Record<Batch['info']['state'], (typeof BATCH_STATES)[number]>> = {
  creating: 'checking',
  validating: 'submitted',
  submitting: 'submitted',
  in_progress: 'running',
  cancelling: 'running',
  finalizing: 'finishing',
  completed: 'finishing',
  failed: 'finishing',
  cancelled: 'finishing',
  expired: 'finishing',
}

/** The longest time between two questions to a vendor. */
const MOST_POLL_MS = 300_000

/** A batch that is still being made after this time is not made any more. */
const CREATION_MS = 600_000

function inProgress({ info }: Batch): { readonly state: 'in_progress' } | null {
  return info.state === 'validating' ? { state: 'in_progress' } : null
}

/** Why lines of a batch in this state have no result. */
const MISSING: Readonly<Record<BatchEnd['state'], Missing>> = {
  completed: { code: 'batch_missing_result', message: 'The upstream has no result of this request.' },
  cancelled: { code: 'batch_cancelled', message: 'The batch was cancelled before this request ran.' },
  failed: {
    code: 'batch_cancelled',
    message: 'The upstream did not run the batch.',
    isFailure: true,
  },
  expired: {
    code: 'batch_expired',
    message: 'This request did not run before the end of the completion window.',
  },
}
