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
