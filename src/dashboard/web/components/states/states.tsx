/** The states that are not the data: on its way, none yet, failed. Each says what to do. */
import { useEffect, useState, type ReactNode } from 'react'
import type { Problem } from '../../api/client.js'
import { Button } from '../actions/button.js'
import { Icon } from '../actions/icon.js'
import { CopyButton } from '../actions/copy.js'

const SKELETON_AFTER_MS = 150

/** Shows its content only when the wait is long enough to be noticed. */
export function Late({ children }: { readonly children: ReactNode }) {
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

/** Rows of a table that is on its way. */
export function TableSkeleton({ rows = 6 }: { readonly rows?: number }) {
  return (
    <Late>
      <div className="skeleton-table">
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

/** A chart or another block that is on its way. */
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

/** Nothing yet: what will be here, and the line that makes it so. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2 className="empty-title">{title}</h2>
      {children}
    </div>
  )
}

interface FailedProps {
  /** What could not be shown: `The list of keys`. */
  readonly what: string
  readonly problem: Problem
  readonly retry: () => void
  /** What still holds: `Keys keep working.` */
  readonly holds?: string
}

/** Could not be loaded: what failed, what still holds, once more, and the id to ask about. */
export function Failed({ what, problem, retry, holds }: FailedProps) {
  return (
    <div className="failed" role="alert">
      <h2 className="empty-title">
        <Icon name="alert" /> {what} could not be loaded
      </h2>
      <p>
        {problem.message} {holds}
      </p>
      <RequestId id={problem.requestId} />
      <Button onClick={retry}>Retry</Button>
    </div>
  )
}

/** What an action answered when it was refused, within a form. */
export function ProblemLine({ problem }: { readonly problem: Problem }) {
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
    <p className="request-id">
      Request <code>{id}</code> <CopyButton text={id} what="request id" />
    </p>
  )
}
