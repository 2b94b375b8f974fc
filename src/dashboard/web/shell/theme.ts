/**
 * Light, dark, or the theme of the system. The choice is kept in the storage of this browser; the page reads the
 * result from `data-theme` of the root.
 */
import { useSyncExternalStore } from 'react'

/** What the reader chose. */
export type ThemeChoice = 'system' | 'light' | 'dark'

const KEY = 'sluice-theme'
const dark = window.matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()
let choice: ThemeChoice = stored()

function stored(): ThemeChoice {
  try {
    const text = window.localStorage.getItem(KEY)
    return text === 'light' || text === 'dark' ? text : 'system'
  } catch {
    // Storage is refused in some private windows; the choice then lasts as long as the page.
    return 'system'
  }
}

function apply(): void {
  const theme = choice === 'system' ? (dark.matches ? 'dark' : 'light') : choice
  document.documentElement.dataset['theme'] = theme
  for (const listener of listeners) listener()
}

dark.addEventListener('change', apply)
apply()

/** Takes effect at once and at the next visit. */
export function chooseTheme(next: ThemeChoice): void {
  choice = next
  try {
    if (next === 'system') window.localStorage.removeItem(KEY)
    else window.localStorage.setItem(KEY, next)
  } catch {
    // As above.
  }
  apply()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The choice, for the control that shows it. */
export function useThemeChoice(): ThemeChoice {
  return useSyncExternalStore(subscribe, () => choice)
}

/** The theme that is shown; what paints by hand is painted again when it changes. */
export function useTheme(): 'light' | 'dark' {
  return useSyncExternalStore(subscribe, () =>
    document.documentElement.dataset['theme'] === 'dark' ? 'dark' : 'light',
  )
}
