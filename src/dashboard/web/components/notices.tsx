/** Notices about actions: a line at the foot of the page, and a live region for screen readers. */
import { useEffect, useSyncExternalStore } from 'react'
import { Listeners } from '../listeners.js'

const SHOWN_MS = 6_000

interface Notice {
  readonly text: string
  readonly shown: boolean
  readonly id: number
}

let notice: Notice = { text: '', shown: false, id: 0 }
const listeners = new Listeners()

function publish(text: string, shown: boolean): void {
  notice = { text, shown, id: notice.id + 1 }
  listeners.tell()
}

/** Announces a text to screen readers only. */
export function announce(text: string): void {
  publish(text, false)
}

/** Shows and announces the result of an action: `Revoked. ci-runner stopped working at 14:02:11.` */
export function report(text: string): void {
  publish(text, true)
}

/** The live region and the visible line. The page has one of each. */
export function Notices() {
  const now = useSyncExternalStore(listeners.subscribe, () => notice)
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
