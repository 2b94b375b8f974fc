/**
 * The values of dimensions of the requests of this process: whether each has a place, whether a run has
 * ended, and what was used, which the store gets in batches. A value is looked up at its first use; after
 * that a request costs one look-up in memory for all its values together.
 */
import type { Identity } from '../../accounts/account.js'
import { Lru } from '../../base/lru.js'
import { GatewayError } from '../../errors.js'
import type { DimensionConfig } from '../../config/schema/dimensions-schema.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import {
  byName,
  WRITTEN_AFTER_MS,
  type ValueName,
  type ValueState,
  type ValueUse,
} from '../../store/dimension-values.js'
import type { Store } from '../../store/store.js'
import type { CalledTools } from './called-tools.js'
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
  /** It must be looked up again. */
  isStale: boolean
}

/** What a value has used since it was last written. */
interface Use {
  readonly name: ValueName
  readonly keepMs: number
  requests: number
  inputTokens: number
  outputTokens: number
  costNanoUsd: number
  /** By tool; null for none. */
  tools: Map<string, number> | null
  atMs: number
  isPending: boolean
}

/** The values of a request, which others of the same run have too. */
interface Combination {
  readonly dimensions: Readonly<Record<string, string>>
  readonly states: readonly { readonly known: KnownValue; readonly keepMs: number }[]
  readonly uses: readonly Use[]
  readonly run: RunOfRequest | null
  /** The last identity that had it, and the same with the dimensions. */
  identity: Identity | null
  distinguished: Identity | null
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

/** An account, and the values of its request. */
interface Distinguished {
  readonly accountId: string
  readonly dimensions: Readonly<Record<string, string>>
}

/** Holds a subscription of the store, and a timer while uses wait. */
export class LiveValues {
  private readonly store: Pick<Store, 'dimensionValues' | 'subscribe'>
  private readonly settings: () => readonly DimensionConfig[]
  private readonly nowMs: () => number
  private readonly known = new Lru<KnownValue>(MAX_KNOWN)
  private readonly runs = new Lru<ValueName>(MAX_KNOWN)
  private readonly combinations = new Lru<Combination>(MAX_KNOWN)
  /** The settings that combinations are of. */
  private combined: readonly DimensionConfig[] = []
  private readonly byDimensions = new WeakMap<Readonly<Record<string, string>>, readonly Use[]>()
  private readonly uses = new Lru<Use>(MAX_KNOWN)
  private pending: Use[] = []
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
   * The identity with these dimensions, `other` for values without a place. `begun` is called with the run
   * before the first wait, so that ending it ends the request. Throws `run_ended`.
   */
  identify(
    identity: Identity,
    found: Readonly<Record<string, string>>,
    begun: (run: RunOfRequest) => void,
  ): Identity | Promise<Identity> {
    const settings = this.settings()
    if (settings !== this.combined) {
      this.combinations.clear()
      this.combined = settings
    }
    let name = identity.accountId
    for (const dimension of settings) name += `\0${found[dimension.name] ?? ''}`
    const known = this.combinations.get(name)
    if (known === undefined || !this.isCurrent(known)) return this.combine(identity, found, { name, begun })
    if (known.run !== null) begun(known.run)
    return withDimensions(identity, known)
  }

  private async combine(
    identity: Identity,
    found: Readonly<Record<string, string>>,
    { name, begun }: { readonly name: string; readonly begun: (run: RunOfRequest) => void },
  ): Promise<Identity> {
    this.unsubscribe ??= this.store.subscribe(({ digest }) => this.changed(digest))
    const settings = this.combined
    const { accountId } = identity
    const value = found[RUN]
    const run = value === undefined ? null : this.runOf({ accountId, dimension: RUN, value })
    if (run !== null) begun(run)
    const dimensions: Record<string, string> = {}
    const states: Combination['states'][number][] = []
    const uses: Use[] = []
    for (const dimension of settings) {
      const own = found[dimension.name]
      if (own === undefined) continue
      const of = { accountId, dimension: dimension.name, value: own }
      const known = this.stateIn(of, dimension) ?? (await this.claim(of, dimension))
      if (known.endedAtMs !== null && dimension.name === RUN) throw runEnded(own)
      const shown = known.hasPlace ? own : OTHER
      dimensions[dimension.name] = shown
      states.push({ known, keepMs: dimension.keepMs })
      uses.push(this.useOf({ ...of, value: shown }, dimension.keepMs))
    }
    const combination = { dimensions, states, uses, run, identity: null, distinguished: null }
    if (settings === this.combined && this.isCurrent(combination)) this.combinations.set(name, combination)
    this.byDimensions.set(dimensions, uses)
    return withDimensions(identity, combination)
  }

  /** Whether none of its values must be looked up. */
  private isCurrent({ states }: Pick<Combination, 'states'>): boolean {
    const nowMs = this.nowMs()
    for (const { known, keepMs } of states) if (!isCurrent(known, keepMs, nowMs)) return false
    return true
  }

  /** Whether the run of these dimensions was ended; false if the store does not reply. */
  async isOfEndedRun({ accountId, dimensions }: Distinguished): Promise<boolean> {
    const value = dimensions[RUN]
    if (value === undefined) return false
    const found = await this.store.dimensionValues
      .find({ accountId, dimension: RUN, value }, this.nowMs())
      .catch(() => null)
    return found !== null && found.endedAtMs !== null
  }

  /** Counts an admitted request. */
  admitted(identity: Pick<Identity, 'accountId' | 'dimensions'>): void {
    const uses = this.usesOf(identity)
    if (uses === null) return
    const nowMs = this.nowMs()
    for (const use of uses) {
      use.requests += 1
      this.note(use, nowMs)
    }
  }

  /** Counts what a request used. */
  used(
    identity: Pick<Identity, 'accountId' | 'dimensions'>,
    { usage, costNanoUsd, source }: Pick<LedgerEntry, 'usage' | 'costNanoUsd' | 'source'>,
    tools: CalledTools | null = null,
  ): void {
    const calls = tools?.calls ?? null
    const uses = source === 'none' && calls === null ? null : this.usesOf(identity)
    if (uses === null) return
    const { input = 0, output = 0 } = usage
    const nowMs = this.nowMs()
    for (const use of uses) {
      use.inputTokens += input
      use.outputTokens += output
      use.costNanoUsd += costNanoUsd ?? 0
      if (calls !== null && use.name.dimension === RUN) addCalls(use, calls)
      this.note(use, nowMs)
    }
  }

  /** Writes the uses that wait. Never rejects. */
  async flush(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    this.flushedMs = performance.now()
    const uses = this.pending
    this.pending = []
    if (uses.length > 0) this.writing = Promise.all([this.writing, this.write(uses)]).then(() => undefined)
    await this.writing
  }

  /** Writes what waits, and ends the subscription. */
  async close(): Promise<void> {
    this.unsubscribe?.()
    await this.flush()
  }

  private async write(uses: readonly Use[]): Promise<void> {
    const written = uses.map(takeFrom)
    try {
      await this.store.dimensionValues.add(written)
    } catch {
      // Limits and the ledger do not depend on these counts.
      for (const [
        at,
        { requests, inputTokens, outputTokens, costNanoUsd, tools, atMs },
      ] of written.entries()) {
        const use = uses[at]
        if (use === undefined || this.pending.length >= MAX_PENDING) break
        use.requests += requests
        use.inputTokens += inputTokens
        use.outputTokens += outputTokens
        use.costNanoUsd += costNanoUsd
        addCalls(use, new Map(tools?.map(({ name, calls }) => [name, calls])))
        this.note(use, Math.max(atMs, use.atMs))
      }
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

  private note(use: Use, atMs: number): void {
    use.atMs = atMs
    if (use.isPending) return
    this.schedule()
    if (this.pending.length >= MAX_PENDING) return
    use.isPending = true
    this.pending.push(use)
  }

  /** The counts of a request's values; null without dimensions. */
  private usesOf({
    accountId,
    dimensions,
  }: Pick<Identity, 'accountId' | 'dimensions'>): readonly Use[] | null {
    if (dimensions === undefined) return null
    const known = this.byDimensions.get(dimensions)
    if (known !== undefined) return known
    // Those of a batch, which the store had.
    return this.settings().flatMap(({ name: dimension, keepMs }) => {
      const value = dimensions[dimension]
      return value === undefined ? [] : [this.useOf({ accountId, dimension, value }, keepMs)]
    })
  }

  private useOf(name: ValueName, keepMs: number): Use {
    const text = nameOf(name)
    const known = this.uses.get(text)
    if (known?.keepMs === keepMs) return known
    const counts = { requests: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0 }
    const use = { name, keepMs, ...counts, tools: null, atMs: 0, isPending: false }
    this.uses.set(text, use)
    return use
  }

  /** The state of the value in memory; null: it must be looked up. */
  private stateIn(name: ValueName, { keepMs }: DimensionConfig): KnownValue | null {
    const known = this.known.get(nameOf(name))
    return known !== undefined && isCurrent(known, keepMs, this.nowMs()) ? known : null
  }

  private async claim(name: ValueName, { maxValues, keepMs }: DimensionConfig): Promise<KnownValue> {
    const nowMs = this.nowMs()
    try {
      const state = await this.store.dimensionValues.claim(name, { maxValues, keepMs }, nowMs)
      const known = { ...state, usedAtMs: nowMs, isStale: false }
      this.known.set(nameOf(name), known)
      return known
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      // As limits, which this process enforces alone meanwhile.
      return { hasPlace: true, endedAtMs: null, usedAtMs: nowMs, isStale: true }
    }
  }

  private runOf(name: ValueName): RunOfRequest {
    const digest = valueDigest(name)
    this.runs.set(digest, name)
    return { digest, name }
  }

  /** A run was ended, or null: any may have been. */
  private changed(digest: string | null): void {
    if (digest === null) {
      this.known.clear()
      this.combinations.clear()
    } else {
      const name = this.runs.get(digest)
      if (name === undefined) return
      const known = this.known.get(nameOf(name))
      if (known !== undefined) known.isStale = true
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

/** Whether what is known of the value holds; each use of one with a place renews it. */
function isCurrent(known: KnownValue, keepMs: number, nowMs: number): boolean {
  if (known.isStale) return false
  const isInUse = known.hasPlace && known.endedAtMs === null
  if (nowMs - known.usedAtMs > (isInUse ? keepMs / 2 : AGAIN_MS)) return false
  if (isInUse) known.usedAtMs = nowMs
  return true
}

function withDimensions(identity: Identity, combination: Combination): Identity {
  const { distinguished } = combination
  if (distinguished !== null && combination.identity === identity) return distinguished
  const own = { ...identity, dimensions: combination.dimensions }
  combination.identity = identity
  combination.distinguished = own
  return own
}

function addCalls(use: Use, calls: ReadonlyMap<string, number>): void {
  if (calls.size === 0) return
  const tools = (use.tools ??= new Map<string, number>())
  for (const [tool, count] of calls) tools.set(tool, (tools.get(tool) ?? 0) + count)
}

/** What was used, which the store gets. */
function takeFrom(use: Use): ValueUse {
  const { name, keepMs, requests, inputTokens, outputTokens, costNanoUsd, atMs } = use
  const tools = use.tools === null ? [] : byName(use.tools)
  use.requests = 0
  use.inputTokens = 0
  use.outputTokens = 0
  use.costNanoUsd = 0
  use.tools = null
  use.isPending = false
  return { ...name, keepMs, requests, inputTokens, outputTokens, costNanoUsd, tools, atMs }
}
