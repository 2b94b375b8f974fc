/** Whether the window is as narrow as on a phone or a small tablet. */
import { useSyncExternalStore } from 'react'

const narrow = window.matchMedia('(max-width: 899px)')

function subscribe(listener: () => void): () => void {
  narrow.addEventListener('change', listener)
  return () => narrow.removeEventListener('change', listener)
}

/** True if the window is too narrow for the rail. */
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => narrow.matches)
}
