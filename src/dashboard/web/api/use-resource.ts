/**
 * The data of the page: one cache of replies (TanStack Query). A reply is loaded once for all parts of the
 * page that show it, and failed loads are repeated. The last reply to a query stays visible until the next
 * one arrives; the reply to another query is never shown, except the other pages of the same list.
 * Every change of the page (`change`) makes the cache load again what is shown.
 */
import { useQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useRef } from 'react'
import type { LiveReply } from '../../../control/dashboard/schema/schema.js'
import { useLocation } from '../routing.js'
import { cache, problemOf, urlOf, type Problem, type Query } from './client.js'
import { read, type Reads } from './endpoints.js'

/** The last reply, and the last problem. */
export interface Resource<T> {
  readonly data: T | null
  readonly problem: Problem | null
  /** The reply is another part of the same list or statement. */
  readonly stale: boolean
  /** Loads again. */
  readonly reload: () => void
}

interface Options {
  /** Interval of reloads while the page is visible. */
  readonly everyMs?: number | undefined
  /** False disables loading. */
  readonly enabled?: boolean
  /** Queries with the same text ask for parts of the same: the last part is shown until another arrives. */
  readonly partOf?: string
}

let lastInputMs = Date.now()
for (const event of ['pointerdown', 'keydown']) {
  window.addEventListener(event, () => (lastInputMs = Date.now()), { capture: true, passive: true })
}
const ACTIVE_MS = 2_000

/** Loads that repeat an earlier one do not extend the session, unless the user did something just now. */
function isPassive(key: readonly unknown[]): boolean {
  const { dataUpdateCount = 0, errorUpdateCount = 0 } = cache.getQueryState(key) ?? {}
  const isFirst = dataUpdateCount + errorUpdateCount === 0
  return !isFirst && Date.now() - lastInputMs > ACTIVE_MS
}

/** Loads what `load` reads; the key begins with the endpoint's path. */
function useReply<T>(
  key: readonly [path: string, ...rest: readonly string[]],
  load: (options: { readonly signal: AbortSignal; readonly passive: boolean }) => Promise<T>,
  { everyMs, enabled = true, partOf }: Options,
): Resource<T> {
  const whole = partOf === undefined ? null : `part of ${partOf}`
  const { data, error, isPlaceholderData, refetch } = useQuery({
    queryKey: whole === null ? key : [...key, whole],
    queryFn: ({ signal }) => load({ signal, passive: isPassive(key) }),
    enabled,
    placeholderData: (previous, query) =>
      whole !== null && query?.queryKey.at(-1) === whole ? previous : undefined,
    refetchInterval: everyMs ?? false,
  })
  const reload = useCallback(() => void refetch(), [refetch])
  return {
    data: data ?? null,
    problem: error === null ? null : problemOf(error),
    stale: isPlaceholderData,
    reload,
  }
}

/** Loads the reply of an endpoint. */
export function useResource<P extends keyof Reads>(
  path: P,
  query: Query = {},
  options: Options = {},
): Resource<Reads[P]> {
  return useReply([path, urlOf(path, query)], (how) => read(path, query, how), options)
}

/** A reply with a cursor for the next page. */
interface Paged {
  readonly next: string | null
  /** The number of rows that match; null or absent if it is unknown. */
  readonly total?: number | null
}

/** The paths of lists. */
type Lists = { [P in keyof Reads]: Reads[P] extends Paged ? P : never }[keyof Reads]

interface ListOptions extends Options {
  /** The part before `sort`, `after` and `page` in the address, for a second list of the same page. */
  readonly name?: string
  /** The server sorts this list: the columns with `sort` can be clicked. */
  readonly sortable?: boolean
  /** The order of the server without `sort`, such as `-createdAt`. */
  readonly usualSort?: string
}

/** One page of a list of the server, as in the address. */
export interface List<Row> extends Omit<Resource<unknown>, 'data'> {
  /** Null while the first reply is loading. */
  readonly rows: readonly Row[] | null
  readonly total: number | null
  /** The cursor of the next page; null on the last. */
  readonly next: string | null
  readonly name: string
  readonly sortable: boolean
  /** The order that is shown. */
  readonly sort: string | null
}

/**
 * Loads the page of a list that the address names by `sort` and `after`. A search whose reply has no row yet
 * goes on until it finds one or the list ends.
 */
export function useList<P extends Lists, Row>(
  path: P,
  query: Query,
  rowsOf: (reply: Reads[P]) => readonly Row[],
  { name = '', sortable = false, usualSort, ...options }: ListOptions = {},
): List<Row> {
  const { query: address } = useLocation()
  const sort = sortable ? address.get(`${name}sort`) : null
  const asked = { ...query, sort, after: address.get(`${name}after`) }
  const { data, ...state } = useReply(
    [path, urlOf(path, asked), 'list'],
    async (how) => {
      let reply: Reads[P] = await read(path, asked, how)
      for (let next = nextOf(reply); next !== null && rowsOf(reply).length === 0;) {
        reply = await read(path, { ...asked, after: next }, how)
        next = nextOf(reply)
      }
      return reply
    },
    { ...options, partOf: urlOf(path, query) },
  )
  const paged: Paged | null = data
  return {
    ...state,
    name,
    sortable,
    sort: sort ?? usualSort ?? null,
    rows: data === null ? null : rowsOf(data),
    total: paged?.total ?? null,
    next: paged?.next ?? null,
  }
}

function nextOf({ next }: Paged): string | null {
  return next
}

const EVERY_MS = 1_000
/** Minimum interval between reloads of sums, which cost the server more than the latest requests. */
const AGAIN_AFTER_MS = 2_000

/** The latest requests of the account; with `tree`, of those below it, too. */
export function useLive(
  query: { readonly account: string | null; readonly tree: 'true' | null },
  enabled = true,
): Resource<LiveReply> {
  return useResource('/live', query, { everyMs: EVERY_MS, enabled })
}

/** Calls `act` after new requests, at most once per interval. */
export function useOnTraffic({ data: live }: Resource<LiveReply>, act: () => void): void {
  const latest = useRef(act)
  latest.current = act
  const seen = useRef<string | null>(null)
  const lastMs = useRef(0)
  const mark = live?.rows.map(({ requestId }) => requestId).join(' ') ?? null
  useEffect(() => {
    if (mark === null || mark === seen.current) return undefined
    const first = seen.current === null
    seen.current = mark
    if (first) return undefined
    const wait = Math.max(0, lastMs.current + AGAIN_AFTER_MS - Date.now())
    const timer = setTimeout(() => {
      lastMs.current = Date.now()
      latest.current()
    }, wait)
    return () => clearTimeout(timer)
  }, [mark])
}
