/** What happened, said once: a line at the foot of the page, and to screen readers. */
import { useEffect, useSyncExternalStore } from 'react'

const SHOWN_MS = 6_000

interface Notice {
  readonly text: string
  readonly shown: boolean
  readonly id: number
}

let notice: Notice = { text: '', shown: false, id: 0 }
const listeners = new Set<() => void>()

function publish(text: string, shown: boolean): void {
  notice = { text, shown, id: notice.id + 1 }
  for (const listener of listeners) listener()
}

/** Tells screen readers alone: what the eye sees anyway. */
export function announce(text: string): void {
  publish(text, false)
}

/** Tells everybody what an action did: `Revoked. ci-runner stopped working at 14:02:11.` */
export function report(text: string): void {
  publish(text, true)
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The place where both are said; there is one of it. */
export function Notices() {
  const now = useSyncExternalStore(subscribe, () => notice)
  useEffect(() => {
    if (!now.shown) return undefined
    const timer = setTimeout(() => publish('', false), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [now])
  return (
    <div role="status" aria-live="polite" className={now.shown ? 'notice' : 'unseen'}>
      {now.text}
    </div>
  )
}
