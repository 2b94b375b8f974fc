/** Loading, empty and failed states, and the line that names a lost connection. */
import { useEffect, useState, type ReactNode } from 'react'
import { probe, useConnection, type Problem } from '../api/client.js'
import type { Resource } from '../api/use-resource.js'
import { Button, Icon } from './button.js'
import { CopyButton } from './copy-button.js'
import { clockTime } from '../format/time.js'

const SKELETON_AFTER_MS = 150

/** Shows its content after a delay, so that short waits show no skeleton. */
function Late({ children }: { readonly children: ReactNode }) {
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), SKELETON_AFTER_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className="late" aria-busy="true">
      {late ? children : null}
    </div>
  )
}

export function TableSkeleton({ rows = 6 }: { readonly rows?: number }) {
  return (
    <Late>
      <div className="skeleton-table panel">
        {Array.from({ length: rows }, (_, row) => (
          <div key={row} className="skeleton-row">
            <span className="skeleton" />
            <span className="skeleton" />
            <span className="skeleton" />
            <span className="skeleton" />
          </div>
        ))}
      </div>
    </Late>
  )
}

/** The skeleton of a chart or another block. */
export function BlockSkeleton() {
  return (
    <Late>
      <div className="skeleton skeleton-block" />
    </Late>
  )
}

interface EmptyProps {
  readonly title: string
  readonly children: ReactNode
}

/** An empty state: what the view will show, and the step that fills it. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="empty stack gap-12">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

interface FailedProps {
  /** The name of the missing content: `The list of keys`. */
  readonly what: string
  readonly problem: Problem
  readonly retry: () => void
  /** What is not affected: `Keys keep working.` */
  readonly unaffected?: string
}

/** A failed load: what failed, what is not affected, a retry button, and the request id. */
export function Failed({ what, problem, retry, unaffected }: FailedProps) {
  return (
    <div className="failed stack gap-12" role="alert">
      <h2 className="row">
        <Icon name="alert" /> {what} could not be loaded
      </h2>
      <p>
        {problem.message} {unaffected}
      </p>
      <RequestId id={problem.requestId} />
      <Button onClick={retry}>Retry</Button>
    </div>
  )
}

interface LoadedProps<Reply> extends Pick<FailedProps, 'what' | 'unaffected'> {
  readonly resource: Resource<Reply>
  /** Shown while it loads; default: a block. */
  readonly skeleton?: ReactNode
  readonly children: (data: Reply) => ReactNode
}

/** The content of a loaded reply; a skeleton while it loads, or the problem with a retry button. */
export function Loaded<Reply>(props: LoadedProps<Reply>) {
  const { resource, skeleton = <BlockSkeleton />, children, ...about } = props
  const { data, problem, reload } = resource
  if (data !== null) return <>{children(data)}</>
  if (problem === null) return <>{skeleton}</>
  return <Failed {...about} problem={problem} retry={reload} />
}

/** The error of a refused action within a form; nothing if there is none. */
export function ProblemLine({ problem }: { readonly problem: Problem | null }) {
  if (problem === null) return null
  return (
    <div className="problem" role="alert">
      <p>{problem.message}</p>
      <RequestId id={problem.requestId} />
    </div>
  )
}

function RequestId({ id }: { readonly id: string | undefined }) {
  if (id === undefined) return null
  return (
    <p className="small">
      Request <code>{id}</code> <CopyButton text={id} what="request id" />
    </p>
  )
}

interface PulseProps {
  readonly on: boolean
  /** What is updated: one that fails makes the dot grey. */
  readonly of?: readonly Pick<Resource<unknown>, 'problem'>[]
}

/**
 * A dot and a word: `live`, `not updated` while data cannot be loaded, `paused` while the connection is lost,
 * or `fixed range` for a past range.
 */
export function Pulse({ on, of = [] }: PulseProps) {
  const { isLost } = useConnection()
  const isFailing = of.some(({ problem }) => problem !== null)
  const isLive = on && !isLost && !isFailing
  const [word, title] = isLive
    ? ['live', 'Updated every few seconds']
    : !on
      ? ['fixed range', 'Not updated']
      : isLost
        ? ['paused', 'The connection is lost']
        : ['not updated', 'The last load failed']
  return (
    <span className={`pulse row note end ${isLive ? 'on' : ''}`.trimEnd()} title={title}>
      {word}
      <span className="pulse-dot" aria-hidden="true" />
    </span>
  )
}

const PROBE_MS = 2_000

/** A line at the head of the page while no replies arrive. */
export function ConnectionBanner() {
  const { isLost, lastAtMs } = useConnection()
  useEffect(() => {
    if (!isLost) return undefined
    const timer = setInterval(() => probe(), PROBE_MS)
    return () => clearInterval(timer)
  }, [isLost])
  return (
    <div role="status" className={isLost ? 'connection' : 'unseen'}>
      {isLost ? (
        <>
          <b>Reconnecting…</b> Figures are as of {clockTime(lastAtMs)}.
        </>
      ) : null}
    </div>
  )
}
