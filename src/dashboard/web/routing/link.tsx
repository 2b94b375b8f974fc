/** A link within the dashboard, followed without reloading the page. */
import type { AnchorHTMLAttributes, MouseEvent } from 'react'
import { address, go } from './location.js'

interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> {
  /** The path below `/dashboard`, with its query. */
  readonly to: string
}

/** A link to a path of the dashboard. With a modifier key it opens a tab. */
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
