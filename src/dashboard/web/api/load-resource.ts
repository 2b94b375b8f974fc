/**
 * Loads data of the server once, on demand, and periodically while the page is visible. The previous reply
 * stays visible until the next one arrives, so that the page does not flicker.
 */
import { useCallback, useEffect, useRef, useState } from 'react'
import type { LiveReply } from '../../server/schema/schema.js'
import { useConnection, problemOf, urlOf, type Problem, type Query } from './client.js'
import { read, type Reads } from './endpoints.js'

/** The last reply, and the last problem. */
export interface Resource<T> {
  readonly data: T | null
  readonly problem: Problem | null
  /** The reply belongs to a previous query. */
  readonly stale: boolean
  /** Loads again; a passive reload does not extend the session. */
  readonly reload: (passive?: boolean) => void
}

interface State<T> {
  readonly url: string
  readonly data: T | null
  readonly problem: Problem | null
}

interface Options {
  /** Interval of reloads while the page is visible. */
  readonly everyMs?: number | undefined
  /** False disables loading. */
  readonly enabled?: boolean
}

/** Loads the reply of an endpoint. */
export function useResource<P extends keyof Reads>(
  path: P,
  query: Query = {},
  { everyMs, enabled = true }: Options = {},
): Resource<Reads[P]> {
  const [state, setState] = useState<State<Reads[P]>>({ url: '', data: null, problem: null })
  const [round, setRound] = useState({ count: 0, passive: false })
  const url = urlOf(path, query)
  const { returns } = useConnection()
  const asked = useRef(query)
  asked.current = query
  useEffect(() => {
    if (!enabled) return undefined
    const gone = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async (passive: boolean): Promise<void> => {
      try {
        if (!passive || !document.hidden) {
          const data = await read(path, asked.current, { signal: gone.signal, passive })
          setState({ url, data, problem: null })
        }
      } catch (error) {
        if (gone.signal.aborted) return
        const problem = problemOf(error)
        setState((last) => ({ url, problem, data: last.url === url ? last.data : null }))
      }
      if (everyMs === undefined || gone.signal.aborted) return
      timer = setTimeout(() => void load(true), everyMs)
    }
    void load(round.passive)
    return () => {
      gone.abort()
      clearTimeout(timer)
    }
  }, [path, url, everyMs, enabled, round, returns])
  const reload = useCallback((passive = false) => {
    setRound((last) => ({ count: last.count + 1, passive }))
  }, [])
  const stale = enabled && state.url !== url
  return { data: state.data, problem: stale ? null : state.problem, stale, reload }
}

/** A reply with a cursor for the next page. */
interface Paged {
  readonly next: string | null
}

/** The paths of lists. */
type Lists = { [P in keyof Reads]: Reads[P] extends Paged ? P : never }[keyof Reads]

/** The loaded pages. */
export interface Pages<Reply> {
  /** Null while the first page is loading. */
  readonly replies: readonly Reply[] | null
  readonly problem: Problem | null
  /** Loads the next page; null after the last one. */
  readonly more: (() => void) | null
  readonly isLoading: boolean
  readonly reload: () => void
}

interface Later<Reply> {
  /** The first page of the list that these follow. */
  readonly first: Reply | null
  readonly replies: readonly Reply[]
  readonly problem: Problem | null
}

interface ListOptions<Reply> {
  /** Recognises a reply without items. */
  readonly isEmpty: (reply: Reply) => boolean
  /** Default: true. */
  readonly enabled?: boolean
}

/** Loads a list. A search continues automatically until it finds an item or the list ends. */
export function usePages<P extends Lists>(
  path: P,
  query: Query,
  { isEmpty, ...options }: ListOptions<Reads[P]>,
): Pages<Reads[P]> {
  const { data, problem, stale, reload } = useResource(path, query, options)
  const [later, setLater] = useState<Later<Reads[P]>>({ first: null, replies: [], problem: null })
  const [isLoading, setLoading] = useState(false)
  const shown = useRef<Reads[P] | null>(data)
  shown.current = data
  const own = later.first === data ? later : { replies: [], problem: null }
  const replies = data === null ? null : [data, ...own.replies]
  const next = replies?.at(-1)?.next ?? null
  const load = async (): Promise<void> => {
    setLoading(true)
    try {
      const reply = await read(path, { ...query, after: next })
      // Another list may be shown by now.
      if (shown.current === data) {
        setLater({ first: data, replies: [...own.replies, reply], problem: null })
      }
    } catch (error) {
      setLater({ first: data, replies: own.replies, problem: problemOf(error) })
    } finally {
      setLoading(false)
    }
  }
  const isSearching =
    replies !== null && next !== null && !stale && own.problem === null && replies.every(isEmpty)
  const place = urlOf('', { ...query, after: next })
  useEffect(() => {
    if (isSearching && !isLoading) void load()
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [isSearching, isLoading, place])
  return {
    replies: isSearching ? null : replies,
    problem: problem ?? own.problem,
    more: next === null || stale ? null : () => void load(),
    isLoading,
    reload: () => reload(),
  }
}

const EVERY_MS = 1_000
/** Minimum interval between reloads of sums, which cost the server more than the latest requests. */
const AGAIN_AFTER_MS = 2_000

/** The latest requests and the sums of this hour; null before the first reply. */
export function useLive(account: string | null, enabled: boolean): LiveReply | null {
  const { data } = useResource('/live', { account }, { everyMs: EVERY_MS, enabled })
  return enabled ? data : null
}

/** Calls `act` after new requests, at most once per interval. */
export function useOnTraffic(live: LiveReply | null, act: () => void): void {
  const latest = useRef(act)
  latest.current = act
  const seen = useRef<string | null>(null)
  const lastMs = useRef(0)
  const mark = live === null ? null : `${live.hour.startMs} ${live.hour.requests}`
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
