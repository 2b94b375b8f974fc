/**
 * The theme: light, dark, or that of the system. The choice is stored in the browser; styles read
 * `data-theme` of the root element.
 */
import { useSyncExternalStore } from 'react'

/** The user's choice. */
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
    // Private windows may refuse storage; the choice then lasts as long as the page.
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

/** Applies and stores the choice. */
export function chooseTheme(next: ThemeChoice): void {
  choice = next
  try {
    if (next === 'system') window.localStorage.removeItem(KEY)
    else window.localStorage.setItem(KEY, next)
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
  apply()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The current choice. */
export function useThemeChoice(): ThemeChoice {
  return useSyncExternalStore(subscribe, () => choice)
}

/** The current theme; a change re-renders the caller. */
export function useTheme(): 'light' | 'dark' {
  return useSyncExternalStore(subscribe, () =>
    document.documentElement.dataset['theme'] === 'dark' ? 'dark' : 'light',
  )
}
