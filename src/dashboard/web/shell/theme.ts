/**
 * The theme: light, dark, or that of the system. The choice is stored in the browser; styles read
 * `data-theme` of the root element.
 */
import { useSyncExternalStore } from 'react'
import { keep, kept } from '../components/kept-text.js'
import { Listeners } from '../listeners.js'

/** The user's choice. */
type ThemeChoice = 'system' | 'light' | 'dark'

const KEY = 'sluice-theme'
const dark = window.matchMedia('(prefers-color-scheme: dark)')
const listeners = new Listeners()
let choice: ThemeChoice = stored()

function stored(): ThemeChoice {
  const text = kept(KEY)
  return text === 'light' || text === 'dark' ? text : 'system'
}

function apply(): void {
  const theme = choice === 'system' ? (dark.matches ? 'dark' : 'light') : choice
  document.documentElement.dataset['theme'] = theme
  listeners.tell()
}

dark.addEventListener('change', apply)
apply()

/** Applies and stores the choice. */
export function chooseTheme(next: ThemeChoice): void {
  choice = next
  keep(KEY, next === 'system' ? null : next)
  apply()
}

/** The current choice. */
export function useThemeChoice(): ThemeChoice {
  return useSyncExternalStore(listeners.subscribe, () => choice)
}

/** The current theme; a change re-renders the caller. */
export function useTheme(): 'light' | 'dark' {
  return useSyncExternalStore(listeners.subscribe, () =>
    document.documentElement.dataset['theme'] === 'dark' ? 'dark' : 'light',
  )
}
