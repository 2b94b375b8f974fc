/**
 * Keyboard shortcuts of all pages: `/` focuses the search, `c` starts the page's main action, `[` and `]`
 * zoom, `g` and a letter open another page, `?` lists them. They are off in text fields and open dialogs.
 * Ctrl+K (or Cmd+K) opens the command palette, in text fields too.
 */
import { useEffect, useRef } from 'react'
import { go } from '../routing.js'
import { isShown, SECTIONS } from './navigation-rail.js'
import type { Rights } from './session.js'

const CHORD_MS = 1_200
/** Keys that press the button of the page that names them. */
const PRESSED = ['c', '[', ']']

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  )
}

function isCovered(): boolean {
  return document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null
}

function press(selector: string, act: (element: HTMLElement) => void): boolean {
  const element = document.querySelector<HTMLElement>(selector)
  if (element === null) return false
  act(element)
  return true
}

/** Focuses and clicks the button, so that its dialog returns focus to it. */
function begin(button: HTMLElement): void {
  button.focus()
  button.click()
}

interface Shortcuts {
  /** Shows the list of shortcuts. */
  readonly help: () => void
  /** Opens the command palette. */
  readonly find: () => void
}

/** Installs the shortcuts. */
export function useKeyboard(rights: Rights, { help, find }: Shortcuts): void {
  const chordMs = useRef(0)
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k' && !isCovered()) {
        event.preventDefault()
        find()
        return
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (isWriting(event.target) || isCovered()) return
      const now = Date.now()
      if (now - chordMs.current < CHORD_MS) {
        chordMs.current = 0
        const section = SECTIONS.find(({ key }) => key === event.key)
        if (section === undefined || !isShown(section, rights)) return
        event.preventDefault()
        go(section.path)
        return
      }
      if (event.key === 'g') chordMs.current = now
      else if (event.key === '?') help()
      else if (event.key === '/' && press('[data-key="/"]', (field) => field.focus())) {
        event.preventDefault()
      } else if (PRESSED.includes(event.key) && press(`[data-key="${event.key}"]`, begin)) {
        event.preventDefault()
      }
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [rights, help, find])
}
