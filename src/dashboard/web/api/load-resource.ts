/**
 * Loads data of the server once, on demand, and periodically while the page is visible. The previous reply
 * stays visible until the next one arrives, so that the page does not flicker.
 */
import { useCallback, useEffect, useRef, useState } from 'react'
import { read, type Reads } from './endpoints.js'
import { useConnection } from './connection-state.js'
import { problemOf, urlOf, type Problem, type Query } from './client.js'

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
