/**
 * The page's main element, as the place of what opens in it: so it is in a landmark. It is looked up when
 * something opens: while a page is first drawn, the element is that of the former page.
 */
import type { RefObject } from 'react'

export const CONTENT: RefObject<HTMLElement | null> = {
  get current() {
    return document.getElementById('content')
  },
}

/**
 * The place of what an element opens: beside the dialog that has it, because the rest is hidden to screen
 * readers then; else the content.
 */
export function placeOf(element: RefObject<HTMLElement | null>): RefObject<HTMLElement | null> {
  return {
    get current() {
      return element.current?.closest('[role$=dialog]')?.parentElement ?? CONTENT.current
    },
  }
}
