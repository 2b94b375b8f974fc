/**
 * The values of dimensions of the requests of this process: whether each has a place, whether a run has
 * ended, and what was used, which the store gets in batches. A value is looked up at its first use; after
 * that a request costs a look-up in memory.
 */
import type { Identity } from '../../accounts/account.js'
import { Lru } from '../../base/lru.js'
import { GatewayError } from '../../errors.js'
import type { DimensionConfig } from '../../config/schema/dimensions-schema.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import {
  WRITTEN_AFTER_MS,
  type ValueName,
  type ValueState,
  type ValueUse,
} from '../../store/dimension-values.js'
import type { Store } from '../../store/store.js'
import { valueDigest } from '../../store/value-digest.js'

/** The dimension with routes of its own in the admin API. */
const RUN = 'run'
/** The value under which those without a place count together. */
const OTHER = 'other'

/** Values in memory; a value takes about 300 bytes. */
const MAX_KNOWN = 50_000
/** A value without a place may get one when others are dropped, and an ended one is dropped at some time. */
const AGAIN_MS = 10_000
/** Uses that are kept while the store does not reply. */
const MAX_PENDING = 50_000

interface KnownValue extends ValueState {
  usedAtMs: number
}

/** A run of a running request. */
export interface RunOfRequest {
  /** `valueDigest` of its name, by which it is ended. */
  readonly digest: string
  readonly name: ValueName
}

/** The running requests that belong to a run. */
export interface RunningRuns {
  /** Calls `visit` for the run of each. */
  each(visit: (run: RunOfRequest) => void): void
  /** Ends all requests of the run. */
  end(digest: string, error: GatewayError): void
}

/** The dimensions of a request. */
interface OwnDimensions {
  readonly dimensions: Readonly<Record<string, string>>
  readonly run: RunOfRequest | null
}

/** Holds a subscription of the store, and a timer while uses wait. */
export class LiveValues {
  private readonly store: Pick<Store, 'dimensionValues' | 'subscribe'>
  private readonly settings: () => readonly DimensionConfig[]
  private readonly nowMs: () => number
  private readonly known = new Lru<KnownValue>(MAX_KNOWN)
  private readonly runs = new Lru<ValueName>(MAX_KNOWN)
  private pending = new Map<string, ValueUse>()
  private timer: NodeJS.Timeout | null = null
  private flushedMs = Number.NEGATIVE_INFINITY
  private writing: Promise<void> = Promise.resolve()
  private running: RunningRuns | null = null
  private unsubscribe: (() => void) | null = null

  constructor(
    store: Pick<Store, 'dimensionValues' | 'subscribe'>,
    settings: () => readonly DimensionConfig[],
    nowMs: () => number = Date.now,
  ) {
    this.store = store
    this.settings = settings
    this.nowMs = nowMs
  }

  /** Sets the list of running requests. */
  watch(running: RunningRuns): void {
    this.running = running
  }

  /**
   * The dimensions of a request of the account with these values, with `other` for those without a place.
   * `begun` is called with the run before the first wait, so that ending it ends the request. Throws
   * `run_ended`.
   */
  async identify(
    accountId: string,
    found: Readonly<Record<string, string>>,
    begun: (run: RunOfRequest) => void,
  ): Promise<OwnDimensions> {
    this.unsubscribe ??= this.store.subscribe(({ digest }) => this.changed(digest))
    const value = found[RUN]
    let run: RunOfRequest | null = null
    if (value !== undefined) {
      const name = { accountId, dimension: RUN, value }
      run = { digest: this.digestOf(name), name }
      begun(run)
    }
    const dimensions: Record<string, string> = {}
    for (const dimension of this.settings()) {
      const own = found[dimension.name]
      if (own === undefined) continue
      const name = { accountId, dimension: dimension.name, value: own }
      const state = this.stateIn(name, dimension) ?? (await this.claim(name, dimension))
      if (state.endedAtMs !== null && dimension.name === RUN) throw runEnded(own)
      dimensions[dimension.name] = state.hasPlace ? own : OTHER
    }
    return { dimensions, run }
  }

  /** Counts an admitted request. */
  admitted({ accountId, dimensions }: Pick<Identity, 'accountId' | 'dimensions'>): void {
    if (dimensions === undefined) return
    const nothing = { requests: 1, inputTokens: 0, outputTokens: 0, costNanoUsd: 0 }
    this.note(accountId, dimensions, nothing)
  }

  /** Counts what a request used. */
  used(
    { accountId, dimensions }: Pick<Identity, 'accountId' | 'dimensions'>,
    { usage, costNanoUsd, source }: Pick<LedgerEntry, 'usage' | 'costNanoUsd' | 'source'>,
  ): void {
    if (dimensions === undefined || source === 'none') return
    const { input = 0, output = 0 } = usage
    const tokens = { inputTokens: input, outputTokens: output }
    this.note(accountId, dimensions, { requests: 0, ...tokens, costNanoUsd: costNanoUsd ?? 0 })
  }

  /** Writes the uses that wait. Never rejects. */
  async flush(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    this.flushedMs = performance.now()
    const uses = this.pending
    this.pending = new Map()
    if (uses.size > 0) this.writing = Promise.all([this.writing, this.write(uses)]).then(() => undefined)
    await this.writing
  }

  /** Writes what waits, and ends the subscription. */
  async close(): Promise<void> {
    this.unsubscribe?.()
    await this.flush()
  }

  private async write(uses: ReadonlyMap<string, ValueUse>): Promise<void> {
    try {
      await this.store.dimensionValues.add([...uses.values()])
    } catch {
      // Limits and the ledger do not depend on these counts.
      for (const [name, use] of uses) {
        if (this.pending.size < MAX_PENDING) this.pending.set(name, sum(this.pending.get(name), use))
      }
      this.schedule()
    }
  }

  /** Uses are written at once, and in batches under load. */
  private schedule(): void {
    if (this.timer !== null) return
    const sinceMs = performance.now() - this.flushedMs
    this.timer = setTimeout(
      () => void this.flush(),
      sinceMs > WRITTEN_AFTER_MS ? 0 : WRITTEN_AFTER_MS,
    ).unref()
  }

  private note(
    accountId: string,
    dimensions: Readonly<Record<string, string>>,
    amounts: Pick<ValueUse, 'requests' | 'inputTokens' | 'outputTokens' | 'costNanoUsd'>,
  ): void {
    const atMs = this.nowMs()
    for (const { name: dimension, keepMs } of this.settings()) {
      const value = dimensions[dimension]
      if (value === undefined) continue
      const use = { accountId, dimension, value, keepMs, atMs, ...amounts }
      const name = nameOf(use)
      if (this.pending.size < MAX_PENDING) this.pending.set(name, sum(this.pending.get(name), use))
    }
    this.schedule()
  }

  /** The state of the value in memory; null: it must be looked up. */
  private stateIn(name: ValueName, { keepMs }: DimensionConfig): ValueState | null {
    const known = this.known.get(nameOf(name))
    if (known === undefined) return null
    const nowMs = this.nowMs()
    const isInUse = known.hasPlace && known.endedAtMs === null
    if (nowMs - known.usedAtMs > (isInUse ? keepMs / 2 : AGAIN_MS)) return null
    if (isInUse) known.usedAtMs = nowMs
    return known
  }

  private async claim(name: ValueName, { maxValues, keepMs }: DimensionConfig): Promise<ValueState> {
    const nowMs = this.nowMs()
    try {
      const state = await this.store.dimensionValues.claim(name, { maxValues, keepMs }, nowMs)
      this.known.set(nameOf(name), { ...state, usedAtMs: nowMs })
      return state
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      // As limits, which this process enforces alone meanwhile.
      return { hasPlace: true, endedAtMs: null }
    }
  }

  private digestOf(name: ValueName): string {
    const digest = valueDigest(name)
    this.runs.set(digest, name)
    return digest
  }

  /** A run was ended, or null: any may have been. */
  private changed(digest: string | null): void {
    if (digest === null) this.known.clear()
    else {
      const name = this.runs.get(digest)
      if (name === undefined) return
      this.known.delete(nameOf(name))
    }
    const names = new Map<string, ValueName>()
    this.running?.each((run) => {
      if (digest === null || run.digest === digest) names.set(run.digest, run.name)
    })
    for (const [own, name] of names) void this.endIfEnded(own, name)
  }

  private async endIfEnded(digest: string, name: ValueName): Promise<void> {
    try {
      const record = await this.store.dimensionValues.find(name, this.nowMs())
      if (record !== null && record.endedAtMs !== null) this.running?.end(digest, runEnded(name.value))
    } catch {
      // The store notifies again when it is back.
    }
  }
}

/** The error of requests of a run that was ended. */
function runEnded(run: string): GatewayError {
  return new GatewayError('run_ended', `The run '${run}' was ended: begin another one.`)
}

function nameOf({ accountId, dimension, value }: ValueName): string {
  return `${accountId}\0${dimension}\0${value}`
}

function sum(one: ValueUse | undefined, other: ValueUse): ValueUse {
  if (one === undefined) return other
  return {
    ...other,
    requests: one.requests + other.requests,
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    costNanoUsd: one.costNanoUsd + other.costNanoUsd,
    atMs: Math.max(one.atMs, other.atMs),
  }
}
