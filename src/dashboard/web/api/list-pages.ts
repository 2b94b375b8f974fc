/**
 * Lists with pages: the first is loaded with the view, the others on demand.
 */
import { useEffect, useRef, useState } from 'react'
import { read, type Reads } from './endpoints.js'
import { problemOf, urlOf, type Problem, type Query } from './client.js'
import { useResource } from './load-resource.js'

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
