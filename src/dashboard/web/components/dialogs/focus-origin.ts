/** Where focus was before a dialog, which gets it back after the last of several dialogs. */

let origin: HTMLElement | null = null

/** Remembers where focus is, unless that is in a dialog itself; of a menu, the button that opened it. */
export function saveFocusOrigin(): void {
  const active = document.activeElement
  if (!(active instanceof HTMLElement)) return
  if (active.closest('[role="dialog"], [role="alertdialog"]') !== null) return
  const menu = active.closest('[role="menu"]')
  origin =
    menu === null
      ? active
      : document.querySelector<HTMLElement>(`[aria-controls="${CSS.escape(menu.id)}"]`)
}

/** What to focus when the last dialog is gone: where focus was, or the page where that is gone, too. */
export function originOfFocus(): HTMLElement | null {
  const isThere = origin?.isConnected === true && origin !== document.body
  return isThere ? origin : document.getElementById('content')
}
