/**
 * A ledger whose older part is in an archive, for the dashboard, the admin API and commands; requests never
 * use it. The store has every entry from `hotFromMs` on, the archive the confirmed ones before; what the
 * store still has of these (late entries) is added. An entry leaves the store only after the archive has it,
 * and `hotFromMs` moves first: a read during which it moved is repeated.
 */
import { DAY_MS, HOUR_MS } from '../../base/time-units.js'
import { unitFiguresOf } from '../../base/unit-counts.js'
import type { Config } from '../../config/config.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { GatewayError } from '../../errors.js'
import { timeOfRequestId } from '../../http/request-id.js'
import { isErased, type ArchiveProgress } from '../archive-feed.js'
import { comparePlaces, cursorOfPlace, NEWEST_FIRST, placeOfCursor, valueOfEntry } from '../entry-order.js'
import type { Ledger } from '../ledger.js'
import { monthOf } from '../limit-arithmetic.js'
import { EntryCells } from '../records/count-cells.js'
import { addUse } from '../records/count-usage.js'
import type { Store } from '../store.js'
import {
  AccountUses,
  isByProperty,
  negative,
  useOfEntry,
  valuesOf,
  type AccountUse,
  type AccountUseQuery,
  type CellQuery,
  type EntryPage,
  type EntryQuery,
  type GroupUse,
  type GroupUseQuery,
  type SumQuery,
  type UsageCell,
  type UsageSum,
} from '../usage-queries.js'
import { archiveUnavailable, requireComplete, type ArchiveEngine } from './archive-engine.js'
import { measured, type ObserveRequest } from './measure-engine.js'
import { openArchiveEngine } from './open-archive-engine.js'
import { compareTimes, cursorOf, placeIn, type Place } from './page-places.js'
import { ArchivedEntries, type TimePlace } from './read-entries.js'
import { ArchivedSums } from './read-sums.js'
import { pageByOwner } from './sort-by-owner.js'

/** Reads are repeated while entries leave the store. */
const MOST_READS = 5
/** Longer than sums are kept. */
const ALL_MS = 36_500 * DAY_MS
/** Entries of an export that are read at once. */
const EXPORTED = 1_000

type Settings = Pick<Config, 'archive' | 'ledger'>

/** The store with a ledger that also reads the archive, if one is configured. */
export function withArchive(
  store: Store,
  settings: () => Settings,
  observe: ObserveRequest = () => undefined,
): Store {
  const archived = new ArchivedLedger(store, settings, observe)
  // The methods of the store's own ledger are found behind those of the joint one.
  const own: object = Object.create(store.ledger) as object
  const ledger = Object.assign(own as Ledger, {
    entries: (query: EntryQuery) => archived.entries(query),
    entry: (accountId: string | null, requestId: string) => archived.entry(accountId, requestId),
    export: (sinceMs: number) => archived.export(sinceMs),
    accountUse: (query: AccountUseQuery) => archived.accountUse(query),
    sums: (query: SumQuery) => archived.sums(query),
    groupUse: (query: GroupUseQuery) => archived.groupUse(query),
    cells: (query: CellQuery) => archived.cells(query),
  })
  return {
    ...store,
    ledger,
    async close() {
      await archived.close()
      await store.close()
    },
  }
}

/** Reads of one store and its archive. */
class ArchivedLedger {
  private readonly store: Store
  private readonly hot: Ledger
  private readonly settings: () => Settings
  private readonly observe: ObserveRequest
  private opened: { readonly name: string; readonly engine: Promise<ArchiveEngine> } | null = null

  constructor(store: Store, settings: () => Settings, observe: ObserveRequest) {
    this.store = store
    this.hot = store.ledger
    this.observe = observe
    this.settings = settings
  }

  async close(): Promise<void> {
    const engine = await this.opened?.engine.catch(() => null)
    await engine?.close()
  }

  /** A page of the store, then of the archive. The cursor has the place of the last entry. */
  async entries(query: EntryQuery): Promise<EntryPage> {
    let progress = await this.progress()
    if (progress === null) return this.hot.entries(query)
    const { column, isDescending } = query.order ?? NEWEST_FIRST
    if (column !== 'atMs') return this.sortedEntries(query, progress)
    const place = placeIn(query.after)
    if (query.after !== null && place === null) return { entries: [], next: null }
    for (let reads = 0; reads < MOST_READS; reads += 1) {
      const page = isDescending
        ? await this.newestFirst(query, place, progress)
        : await this.oldestFirst(query, place, progress)
      const after = await this.progress()
      if (after === null || after.hotFromMs === progress.hotFromMs) return page
      progress = after
    }
    throw new GatewayError('archive_unavailable', 'Entries are leaving the store: try again.')
  }

  private async newestFirst(
    query: EntryQuery,
    place: Place | null,
    progress: ArchiveProgress,
  ): Promise<EntryPage> {
    const { hotFromMs } = progress
    const { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, limit } = query
    let found: readonly LedgerEntry[] = []
    let from: TimePlace = place ?? { atMs: Math.min(toMs, hotFromMs), requestId: '' }
    // A place without a cursor of the store is before what it has.
    if (toMs > hotFromMs && (place === null || (place.store !== null && place.atMs >= hotFromMs))) {
      const page = await this.hot.entries({
        ...query,
        fromMs: Math.max(fromMs, hotFromMs),
        after: place?.store ?? null,
      })
      found = page.entries.filter((entry) => !isErased(entry, progress))
      const last = found.at(-1)
      const at = last === undefined ? (place?.atMs ?? toMs) : last.atMs
      if (page.next !== null) {
        const next = cursorOf({
          atMs: at,
          requestId: last?.requestId ?? place?.requestId ?? '',
          store: page.next,
        })
        return { entries: found, next }
      }
      from = { atMs: hotFromMs, requestId: '' }
    }
    if (fromMs >= hotFromMs) return { entries: found, next: null }
    if (found.length >= limit) return { entries: found, next: cursorOf({ ...from, store: null }) }
    const rest = { progress, limit: limit - found.length }
    const cold = await this.cold(query, from, rest).catch((error: unknown) => {
      // What the store has is shown; the next page tells that the archive is away.
      if (found.length === 0) throw error
      return { entries: [], next: cursorOf({ ...from, store: null }) }
    })
    return { entries: [...found, ...cold.entries], next: cold.next }
  }

  private async oldestFirst(
    query: EntryQuery,
    place: Place | null,
    progress: ArchiveProgress,
  ): Promise<EntryPage> {
    const { hotFromMs } = progress
    const { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, limit } = query
    let found: readonly LedgerEntry[] = []
    if (fromMs < hotFromMs && (place === null || place.atMs < hotFromMs)) {
      const cold = await this.cold(query, place, { progress, limit })
      if (cold.next !== null) return cold
      found = cold.entries
    }
    if (toMs <= hotFromMs) return { entries: found, next: null }
    if (found.length >= limit) {
      return { entries: found, next: cursorOf({ atMs: hotFromMs, requestId: '', store: null }) }
    }
    const hot = { ...query, fromMs: Math.max(fromMs, hotFromMs), limit: limit - found.length }
    const page = await this.hot.entries({ ...hot, after: place?.store ?? null })
    const last = page.entries.at(-1)
    const next =
      page.next === null
        ? null
        : cursorOf({
            atMs: last?.atMs ?? place?.atMs ?? hotFromMs,
            requestId: last?.requestId ?? place?.requestId ?? '',
            store: page.next,
          })
    const kept = page.entries.filter((entry) => !isErased(entry, progress))
    return { entries: [...found, ...kept], next }
  }

  /** A page of entries before `hotFromMs`: those of the archive, and late ones that the store has. */
  private async cold(
    query: EntryQuery,
    after: TimePlace | null,
    { progress, limit }: ColdPage,
  ): Promise<EntryPage> {
    const { order = NEWEST_FIRST, fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, ...filter } = query
    const { isDescending } = order
    const end = Math.min(toMs, progress.hotFromMs)
    const found = await this.archive(progress, async (engine) => {
      const entries = new ArchivedEntries(engine)
      const oldest = fromMs > 0 ? fromMs : ((await entries.oldestMs()) ?? end)
      return entries.page(
        { fromMs: oldest, toMs: end, after, isDescending, limit: limit + 1, filter },
        progress,
      )
    })
    const late = await this.lateEntries({ ...query, fromMs, toMs: end }, after, {
      progress,
      limit: limit + 1,
    })
    const ids = new Set(late.map(({ requestId }) => requestId))
    // The store's entry is the later version, if they differ.
    const all = [...late, ...found.filter(({ requestId }) => !ids.has(requestId))]
    all.sort((a, b) => (isDescending ? -1 : 1) * compareTimes(a, b))
    const entries = all.slice(0, limit)
    const last = entries.at(-1)
    const next = all.length > limit && last !== undefined ? cursorOf({ ...last, store: null }) : null
    const reached = next === null ? undefined : last?.atMs
    requireComplete(progress, {
      fromMs: isDescending ? (reached ?? fromMs) : Math.max(fromMs, after?.atMs ?? fromMs),
      toMs: isDescending ? Math.min(end, (after?.atMs ?? end) + 1) : Math.min(end, (reached ?? end) + 1),
    })
    return { entries, next }
  }

  /** Entries that the store has after a place of the order of time. */
  private async lateEntries(
    query: EntryQuery,
    after: TimePlace | null,
    { progress, limit }: ColdPage,
  ): Promise<LedgerEntry[]> {
    const { isDescending } = query.order ?? NEWEST_FIRST
    const found: LedgerEntry[] = []
    const { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER } = query
    const range = {
      fromMs: after !== null && !isDescending ? Math.max(fromMs, after.atMs) : fromMs,
      toMs: after !== null && isDescending ? Math.min(toMs, after.atMs + 1) : toMs,
    }
    if (range.fromMs >= range.toMs) return []
    for (let cursor: string | null = null; ;) {
      const page: EntryPage = await this.hot.entries({
        ...query,
        ...range,
        after: cursor,
        limit: Math.min(1_000, limit),
      })
      for (const entry of page.entries) {
        const order = after === null ? 1 : compareTimes(entry, after) * (isDescending ? -1 : 1)
        const isAfter = after?.requestId === '' && isDescending ? entry.atMs < after.atMs : order > 0
        if (isAfter && !isErased(entry, progress)) found.push(entry)
      }
      cursor = page.next
      if (cursor === null || found.length >= limit) return found
    }
  }

  /** Another order: the first entries of the archive and of the store together. */
  private async sortedEntries(query: EntryQuery, progress: ArchiveProgress): Promise<EntryPage> {
    const {
      order = NEWEST_FIRST,
      after,
      limit,
      fromMs = 0,
      toMs = Number.MAX_SAFE_INTEGER,
      ...filter
    } = query
    const { column, isDescending } = order
    const { hotFromMs } = progress
    if (fromMs >= hotFromMs) return this.hot.entries(query)
    if (column === 'atMs') return this.entries(query)
    if (column === 'key' || column === 'account') {
      return pageByOwner(query, {
        column,
        owners: await this.owners(column, query, progress),
        nameOf: async (id) => {
          const { store } = this
          const owner = await (column === 'key' ? store.keyById(null, id) : store.accountById(id))
          return owner?.name ?? null
        },
        page: (own) => this.entries(own),
      })
    }
    const place = after === null ? null : placeOfCursor(after)
    if (after !== null && place === null) return { entries: [], next: null }
    const range = { fromMs, toMs: Math.min(toMs, hotFromMs), filter }
    requireComplete(progress, range)
    const cold = await this.archive(progress, (engine) =>
      new ArchivedEntries(engine).sorted(
        { ...range, column, isDescending, place, limit: limit + 1 },
        progress,
      ),
    )
    // Late entries before `hotFromMs` are in both.
    const hot = await this.hot.entries({ ...query, limit: Math.min(1_000, limit + 1) })
    if (hot.mostSorted !== undefined) return hot
    const own = hot.entries.filter((entry) => !isErased(entry, progress))
    const ids = new Set(own.map(({ requestId }) => requestId))
    const placeOf = (entry: LedgerEntry) => ({ ...entry, value: valueOfEntry(entry, column) })
    const all = [...own, ...cold.filter(({ requestId }) => !ids.has(requestId))]
    all.sort((a, b) => comparePlaces(placeOf(a), placeOf(b), isDescending))
    const entries = all.slice(0, limit)
    const last = entries.at(-1)
    const next = all.length > limit && last !== undefined ? cursorOfPlace(placeOf(last)) : null
    return { entries, next }
  }

  /** The archive also has the entries that are in the store, except the newest ones. */
  private async owners(
    column: 'key' | 'account',
    query: EntryQuery,
    progress: ArchiveProgress,
  ): Promise<readonly string[]> {
    const { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, ...filter } = query
    const { oldestAtMs } = await this.hot.archive.waiting()
    const toEndMs = Math.min(toMs, Date.now() + DAY_MS)
    const known = await this.archive(progress, (engine) =>
      new ArchivedEntries(engine).owners(column, { fromMs, toMs: toEndMs, filter }, progress),
    )
    const owners = new Set(known)
    if (oldestAtMs !== null && oldestAtMs < toEndMs) {
      const waiting = { accountId: query.accountId, fromMs: Math.max(fromMs, oldestAtMs), toMs: toEndMs }
      const cells = await this.hot.cells({ ...waiting, stepMs: DAY_MS })
      const keys = query.keyId === undefined ? null : valuesOf(query.keyId)
      for (const { accountId, keyId } of cells) {
        if (keys?.includes(keyId) !== false) owners.add(column === 'key' ? keyId : accountId)
      }
    }
    return [...owners]
  }

  async entry(accountId: string | null, requestId: string): Promise<LedgerEntry | null> {
    const found = await this.hot.entry(accountId, requestId)
    const progress = await this.progress()
    if (progress === null) return found
    if (found !== null) return isErased(found, progress) ? null : found
    const idMs = timeOfRequestId(requestId)
    // It would be in the store.
    if (idMs !== null && idMs - HOUR_MS > progress.hotFromMs) return null
    const archived = await this.archive(progress, (engine) =>
      new ArchivedEntries(engine).entry(accountId, requestId, progress),
    )
    if (archived !== null) return archived
    // A request may have begun a while before the id that a client sees was made.
    const span = idMs === null ? null : { fromMs: idMs - HOUR_MS, toMs: idMs + HOUR_MS }
    requireComplete(progress, span ?? { fromMs: 0, toMs: progress.hotFromMs })
    return null
  }

  /** The entries of the archive hour by hour, then those of the store. */
  async *export(sinceMs: number): AsyncGenerator<readonly LedgerEntry[]> {
    let fromMs = sinceMs
    let seen = new Set<string>()
    for (;;) {
      const progress = await this.progress()
      if (progress !== null && fromMs < progress.hotFromMs) {
        const entries = await this.coldHour(fromMs, progress)
        const fresh = entries.found.filter(({ requestId }) => !seen.has(requestId))
        if (fresh.length > 0) yield fresh
        fromMs = entries.toMs
        seen = new Set()
        continue
      }
      const rest = this.hot.export(fromMs)[Symbol.asyncIterator]()
      for (;;) {
        const read = await rest.next()
        if (read.done === true) return
        const { value } = read
        const now = await this.progress()
        const fresh = value.filter((entry) => {
          return !seen.has(entry.requestId) && (now === null || !isErased(entry, now))
        })
        const first = fresh[0]
        if (now !== null && first !== undefined && now.hotFromMs > Math.max(fromMs, first.atMs)) {
          // Entries leave the store while it is read: what follows is read from the archive.
          await rest.return?.()
          break
        }
        if (fresh.length > 0) yield fresh
        const last = fresh.at(-1)
        if (last !== undefined) {
          seen = new Set(
            value.filter(({ atMs }) => atMs > last.atMs - 1_000).map(({ requestId }) => requestId),
          )
          fromMs = Math.max(fromMs, last.atMs - 1_000)
        }
      }
    }
  }

  /** The entries of at most an hour before `hotFromMs`, oldest first. */
  private async coldHour(fromMs: number, progress: ArchiveProgress) {
    const oldest = await this.archive(progress, (engine) => new ArchivedEntries(engine).oldestMs())
    const late = await this.lateEntries(
      { accountId: null, fromMs, toMs: progress.hotFromMs, after: null, limit: 1, order: OLDEST_FIRST },
      null,
      { progress, limit: 1 },
    )
    const start = Math.max(fromMs, Math.min(oldest ?? Infinity, late[0]?.atMs ?? Infinity))
    const toMs = Math.min(progress.hotFromMs, start + HOUR_MS)
    const found: LedgerEntry[] = []
    if (start < toMs) {
      const query: EntryQuery = {
        accountId: null,
        fromMs: start,
        toMs,
        after: null,
        limit: EXPORTED,
        order: OLDEST_FIRST,
      }
      for (let place: TimePlace | null = null; ;) {
        const page: EntryPage = await this.cold(query, place, { progress, limit: EXPORTED })
        found.push(...page.entries)
        place = placeIn(page.next)
        if (place === null) break
      }
    }
    return { found, toMs: Math.max(toMs, fromMs + 1) }
  }

  /**
   * The progress, and the entries before `hotFromMs` that the archive has not confirmed. Those that replace
   * one of the archive are read from the store alone.
   */
  private async withUnconfirmed(): Promise<(ArchiveProgress & Unconfirmed) | null> {
    for (let reads = 0; reads < MOST_READS; reads += 1) {
      const progress = await this.progress()
      if (progress === null) return null
      const { entries, corrected } = await this.hot.archive.unconfirmed(progress.hotFromMs)
      const after = await this.progress()
      if (after?.confirmed !== progress.confirmed || after.hotFromMs !== progress.hotFromMs) continue
      const unconfirmed = entries.filter((entry) => !isErased(entry, progress))
      return { ...progress, unconfirmed, without: corrected }
    }
    throw new GatewayError('archive_unavailable', 'Entries are leaving the store: try again.')
  }

  /**
   * Whole months are complete in the store as long as it keeps the sums of days; older ones are read from the
   * archive. Parts of one are counted from entries.
   */
  async accountUse(query: AccountUseQuery): Promise<AccountUse[]> {
    const progress = await this.progress()
    if (progress === null) return this.hot.accountUse(query)
    if (!isWholeMonths(query)) return this.useOfEntries(query)
    const keptMs = Date.UTC(1970, monthOf(this.keptMs(DAY_MS) - DAY_MS))
    if (query.fromMs >= keptMs) return this.hot.accountUse(query)
    const old = await this.useOfEntries({ ...query, toMs: Math.min(query.toMs, keptMs) })
    return query.toMs <= keptMs ? old : [...old, ...(await this.hot.accountUse({ ...query, fromMs: keptMs }))]
  }

  private async useOfEntries(query: AccountUseQuery): Promise<AccountUse[]> {
    const { fromMs, toMs, by = 'labels' } = query
    const progress = await this.withUnconfirmed()
    if (progress === null) return this.hot.accountUse(query)
    if (fromMs < progress.hotFromMs) requireComplete(progress, query)
    const hotFromMs = Math.max(fromMs, progress.hotFromMs)
    const uses = new AccountUses(by)
    const endMs = Math.min(toMs, progress.hotFromMs)
    if (fromMs < endMs) {
      const cold = await this.archive(progress, async (engine) => {
        // There may be hundreds of months before the first one.
        const oldestMs = (await new ArchivedEntries(engine).oldestMs()) ?? endMs
        const firstMs = Math.min(oldestMs, progress.sumsFromMs > 0 ? progress.sumsFromMs : endMs)
        const startMs = Math.max(fromMs, Date.UTC(1970, monthOf(firstMs)))
        return new ArchivedSums(engine).accountUse(startMs, endMs, by, progress)
      })
      for (const use of cold) uses.add(use)
    }
    for (const entry of progress.unconfirmed) {
      if (entry.atMs >= fromMs && entry.atMs < endMs) uses.add(useOfEntry(entry, monthOf(entry.atMs)))
    }
    if (toMs <= hotFromMs) return uses.all()
    for (let reads = 0; reads < MOST_READS; reads += 1) {
      const pruned = await this.hot.prunedUse()
      const kept = await this.hot.accountUse({ ...query, fromMs: hotFromMs })
      if (requestsOf(await this.hot.prunedUse()) !== requestsOf(pruned)) continue
      const [first, last] = [monthOf(hotFromMs), monthOf(toMs - 1)]
      for (const use of kept) uses.add(use)
      // Months of entries that have left are in what the store counts.
      for (const use of pruned) if (use.month >= first && use.month <= last) uses.add(negative(use))
      return uses.all().filter(({ requests }) => requests > 0)
    }
    throw new GatewayError('archive_unavailable', 'Entries are leaving the store: try again.')
  }

  /** Cells of the archive's entries and of those that the store has; a step may be in both. */
  async cells(query: CellQuery): Promise<UsageCell[]> {
    for (let reads = 0; reads < MOST_READS; reads += 1) {
      const known = await this.progress()
      if (known === null || query.fromMs >= known.hotFromMs) return this.hot.cells(query)
      const progress = (await this.withUnconfirmed()) ?? {
        ...known,
        unconfirmed: [],
        without: new Set<string>(),
      }
      const { hotFromMs } = progress
      requireComplete(progress, query)
      const toMs = Math.min(query.toMs, hotFromMs)
      const late = new EntryCells(query.stepMs)
      for (const entry of progress.unconfirmed) {
        const isOfAccount = query.accountId === null || entry.accountId === query.accountId
        if (isOfAccount && entry.atMs >= query.fromMs && entry.atMs < toMs) late.add(entry)
      }
      const archived = await this.archive(progress, (engine) =>
        new ArchivedSums(engine).cells({ ...query, toMs }, progress),
      )
      const cold = [...archived, ...late.all()]
      if (query.toMs <= hotFromMs) return cold
      const hot = await this.hot.cells({ ...query, fromMs: hotFromMs })
      if ((await this.progress())?.hotFromMs === hotFromMs) return [...cold, ...hot]
    }
    throw new GatewayError('archive_unavailable', 'Entries are leaving the store: try again.')
  }

  /** From when on the store keeps the sums of hours or of days: it removes them some time after. */
  private keptMs(length: number): number {
    const { ledger } = this.settings()
    const days = length === HOUR_MS ? ledger.hoursDays : ledger.daysDays
    return Math.ceil((Date.now() - days * DAY_MS) / length) * length + length
  }

  /** Groups of a time whose sums the store no longer keeps are made of those of the archive. */
  async groupUse(query: GroupUseQuery): Promise<GroupUse[]> {
    const progress = await this.progress()
    const { by, accountId, model, keyId, fromMs, toMs } = query
    const isDays = fromMs % DAY_MS === 0 && (toMs % DAY_MS === 0 || toMs > Date.now())
    const keptMs = this.keptMs(isDays ? DAY_MS : HOUR_MS)
    if (progress === null || fromMs >= keptMs || progress.sumsToMs <= fromMs) return this.hot.groupUse(query)
    const endMs = Math.min(keptMs, toMs)
    const selection: SumQuery = {
      ...{ accountId, by: 'hour' as const, fromMs, toMs: endMs - 1 },
      ...(model === undefined ? {} : { model }),
      ...(keyId === undefined ? {} : { keyId }),
      ...(by === 'model' && keyId === undefined ? { per: 'model' as const } : {}),
      ...(isByProperty(by) ? { property: by } : {}),
    }
    const steps = { fromMs, toMs: endMs, stepMs: ALL_MS }
    const cold = await this.archive(progress, (engine) =>
      new ArchivedSums(engine).sums(selection, steps, progress),
    )
    const uses = new Map<string, GroupUse>()
    for (const sum of cold) addUse(uses, groupOf(sum, by))
    if (endMs < toMs) {
      for (const use of await this.hot.groupUse({ ...query, fromMs: endMs })) addUse(uses, use)
    }
    return [...uses.values()]
  }

  /** Sums older than those that the store keeps are those of the archive. */
  async sums(query: SumQuery): Promise<UsageSum[]> {
    const progress = await this.progress()
    const isHours = query.by === 'hour' || query.offsets !== undefined
    const length = isHours ? HOUR_MS : DAY_MS
    const keptMs = this.keptMs(length)
    const firstMs = Math.floor(query.fromMs / length) * length
    if (progress === null || firstMs >= keptMs || progress.sumsToMs <= firstMs) return this.hot.sums(query)
    const endMs = Math.min(keptMs, Math.floor(query.toMs / length) * length + length)
    const steps = { fromMs: firstMs, toMs: endMs, stepMs: length }
    const cold = await this.archive(progress, (engine) =>
      new ArchivedSums(engine).sums(query, steps, progress),
    )
    if (query.toMs < keptMs) return cold
    return [...cold, ...(await this.hot.sums({ ...query, fromMs: keptMs }))]
  }

  /** Null if there is no archive, or no entry has left the store. */
  private async progress(): Promise<ArchiveProgress | null> {
    if (this.settings().archive === null) return null
    const progress = await this.hot.archive.progress()
    return progress === null || (progress.hotFromMs === 0 && progress.erased.length === 0) ? null : progress
  }

  /** Reads from the archive. Rejects with `GatewayError(archive_unavailable)`. */
  private async archive<T>(
    { hotFromMs }: ArchiveProgress,
    read: (engine: ArchiveEngine) => Promise<T>,
  ): Promise<T> {
    try {
      return await read(await this.engine())
    } catch (error) {
      throw archiveUnavailable(error, hotFromMs)
    }
  }

  private async engine(): Promise<ArchiveEngine> {
    const { archive } = this.settings()
    if (archive === null) throw new Error('there is no archive')
    const name = JSON.stringify(archive)
    if (this.opened?.name !== name) {
      const before = this.opened
      const engine = openArchiveEngine(archive).then((each) => measured(each, 'read', this.observe))
      this.opened = { name, engine }
      void before?.engine.then((engine) => engine.close()).catch(() => undefined)
    }
    return this.opened.engine
  }
}

/** What is not in the archive, or not in its present form. */
interface Unconfirmed {
  readonly unconfirmed: readonly LedgerEntry[]
  readonly without: ReadonlySet<string>
}

const OLDEST_FIRST = { column: 'atMs', isDescending: false } as const

/** How much is read of what is before `hotFromMs`. */
interface ColdPage {
  readonly progress: ArchiveProgress
  readonly limit: number
}

function isWholeMonths({ fromMs, toMs }: AccountUseQuery): boolean {
  const isStart = (ms: number) => Date.UTC(1970, monthOf(ms)) === ms
  return isStart(fromMs) && (isStart(toMs) || toMs > Date.now())
}

/** What a sum of the archive adds to its group. */
function groupOf(sum: UsageSum, by: GroupUseQuery['by']): GroupUse {
  const { accountId, keyId, model, requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced } = sum
  const figures = {
    requests,
    failed,
    inputTokens,
    outputTokens,
    costNanoUsd,
    unpriced,
    ...unitFiguresOf(sum),
  }
  if (by === 'key') return { ...figures, accountId, keyId }
  if (by === 'key model') return { ...figures, accountId, keyId: `${keyId}\t${model}` }
  return { ...figures, accountId: '', keyId: by === 'model' ? model : keyId.slice(keyId.indexOf('=') + 1) }
}

/** The number of requests that have left, which changes with each. */
function requestsOf(uses: readonly AccountUse[]): number {
  return uses.reduce((sum, { requests }) => sum + requests, 0)
}
