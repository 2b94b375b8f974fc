/**
 * What a page shows of the server: asked for once, again on demand, and again and again while the page
 * is live and looked at. What is shown stays until the next answer is here, so nothing flickers.
 */
import { useCallback, useEffect, useRef, useState } from 'react'
import { read, type Reads } from './endpoints.js'
import { useConnection } from './connection.js'
import { problemOf, urlOf, type Problem, type Query } from './client.js'

/** The last answer, and what went wrong since. */
export interface Resource<T> {
  readonly data: T | null
  readonly problem: Problem | null
  /** The answer shown is not to the question asked now. */
  readonly stale: boolean
  /** Asks again; by hand unless it is passive. */
  readonly reload: (passive?: boolean) => void
}

interface State<T> {
  readonly url: string
  readonly data: T | null
  readonly problem: Problem | null
}

interface Options {
  /** Asked again this often while the page is visible. */
  readonly everyMs?: number | undefined
  /** False asks nothing. */
  readonly enabled?: boolean
}

/** Follows what a call answers. */
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
