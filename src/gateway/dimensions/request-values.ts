/**
 * The values of dimensions of the requests of this process. What does that work is loaded by the first
 * request of a configuration with `dimensions`; before that, requests cost nothing here.
 */
import type { Identity } from '../../accounts/account.js'
import type { DimensionConfig } from '../../config/schema/dimensions-schema.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { Store } from '../../store/store.js'
import type { Exchange } from '../client-exchange.js'
import type { UnreadLine, UnreadRequest } from '../phases/read-values.js'
import type { CalledTools } from './called-tools.js'
import type { LiveValues, RunningRuns } from './live-values.js'

interface Loaded {
  readonly live: LiveValues
  readonly readValues: (
    x: Exchange,
    request: UnreadRequest,
    values: LiveValues,
  ) => Identity | Promise<Identity>
  readonly readValuesOfLine: (
    line: UnreadLine,
    dimensions: readonly DimensionConfig[],
    values: LiveValues,
  ) => Identity | Promise<Identity>
}

/** Opens `LiveValues` when it is needed. */
export class RequestValues {
  private readonly store: Pick<Store, 'dimensionValues' | 'subscribe'>
  private readonly settings: () => readonly DimensionConfig[]
  private loaded: Loaded | null = null
  private loading: Promise<Loaded> | null = null
  private running: RunningRuns | null = null

  constructor(
    store: Pick<Store, 'dimensionValues' | 'subscribe'>,
    settings: () => readonly DimensionConfig[],
  ) {
    this.store = store
    this.settings = settings
  }

  /** Sets the list of running requests. */
  watch(running: RunningRuns): void {
    this.running = running
    this.loaded?.live.watch(running)
  }

  /** As `readValues`. */
  read(x: Exchange, request: UnreadRequest): Identity | Promise<Identity> {
    const { loaded } = this
    if (loaded !== null) return loaded.readValues(x, request, loaded.live)
    return (this.loading ??= this.load()).then(({ live, readValues }) => readValues(x, request, live))
  }

  /** As `readValuesOfLine`, by these dimensions. */
  async readLine(line: UnreadLine, dimensions: readonly DimensionConfig[]): Promise<Identity> {
    if (dimensions.length === 0) return line.identity
    const { live, readValuesOfLine } = this.loaded ?? (await (this.loading ??= this.load()))
    return readValuesOfLine(line, dimensions, live)
  }

  /** Whether the run of these dimensions was ended; false if the store does not reply. */
  async isOfEndedRun(of: Parameters<LiveValues['isOfEndedRun']>[0]): Promise<boolean> {
    const { live } = this.loaded ?? (await (this.loading ??= this.load()))
    return live.isOfEndedRun(of)
  }

  /** Counts an admitted request. */
  admitted(identity: Pick<Identity, 'accountId' | 'dimensions'>): void {
    if (identity.dimensions !== undefined) this.loaded?.live.admitted(identity)
  }

  /** Counts what a request used. */
  used(
    identity: Pick<Identity, 'accountId' | 'dimensions'>,
    entry: Pick<LedgerEntry, 'usage' | 'costNanoUsd' | 'source'>,
    tools: CalledTools | null = null,
  ): void {
    if (identity.dimensions !== undefined) this.loaded?.live.used(identity, entry, tools)
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    await this.loaded?.live.close()
  }

  private async load(): Promise<Loaded> {
    const [{ LiveValues: Opened }, { readValues, readValuesOfLine }] = await Promise.all([
      import('./live-values.js'),
      import('../phases/read-values.js'),
    ])
    const live = new Opened(this.store, this.settings)
    if (this.running !== null) live.watch(this.running)
    this.loaded = { live, readValues, readValuesOfLine }
    return this.loaded
  }
}
