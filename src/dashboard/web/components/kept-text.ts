/** What the user has chosen in this browser, by name; without storage a choice lasts as long as the page. */

/** Null: nothing, or private windows that refuse storage. */
export function kept(name: string): string | null {
  try {
    return window.localStorage.getItem(name)
  } catch {
    return null
  }
}

/** Null removes it. */
export function keep(name: string, text: string | null): void {
  try {
    if (text === null) window.localStorage.removeItem(name)
    else window.localStorage.setItem(name, text)
  } catch {
    // Private windows refuse storage, and a full one takes nothing more.
  }
}
