/** The rows behind an open drawer: `j` and `k` in the drawer open the next and the previous one. */
import type { KeyboardEvent } from 'react'

/** Opens the row at a place of the table; the places outside of it have none. */
type OpenAt = (place: number) => void

interface Opened {
  readonly openAt: OpenAt
  readonly place: number
  readonly count: number
  /** The page of the table. */
  readonly path: string
}

let behind: Opened | null = null

/** Keeps the place of the row that was opened. */
export function keepRow(openAt: OpenAt, place: number, count: number): void {
  behind = { openAt, place, count, path: window.location.pathname }
}

const STEPS: Readonly<Record<string, number>> = { j: 1, k: -1 }

/** Handles the keys in the drawer itself, outside of its fields and of dialogs over it. */
export function stepRows(event: KeyboardEvent<HTMLElement>): void {
  const { target, currentTarget } = event
  const step = event.ctrlKey || event.metaKey || event.altKey ? undefined : STEPS[event.key]
  if (behind === null || step === undefined || !(target instanceof HTMLElement)) return
  if (target.matches('input, textarea') || target.closest('[role$=dialog]') !== currentTarget) return
  const { openAt, place, count, path } = behind
  const next = place + step
  if (path !== window.location.pathname || next < 0 || next >= count) return
  event.preventDefault()
  openAt(next)
}
