/** A link within the dashboard: a real address, followed without loading the page anew. */
import type { AnchorHTMLAttributes, MouseEvent } from 'react'
import { address, go } from './location.js'

interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> {
  /** The path below `/dashboard`, with its query. */
  readonly to: string
}

/** A link to a path of the dashboard; with a modifier key it opens a tab, as links do. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event)
    const plain = !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0
    if (event.defaultPrevented || !plain) return
    event.preventDefault()
    go(to)
  }
  return <a href={address(to)} onClick={follow} {...rest} />
}
