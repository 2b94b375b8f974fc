/** The element that had focus before a dialog. It gets focus back after the last of nested dialogs. */

let origin: HTMLElement | null = null

/** Saves the focused element unless it is in a dialog; for a menu, the button that opened it. */
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

/** The element to focus after the last dialog: the saved one, or the page if that was removed. */
export function originOfFocus(): HTMLElement | null {
  const isThere = origin?.isConnected === true && origin !== document.body
  return isThere ? origin : document.getElementById('content')
}
