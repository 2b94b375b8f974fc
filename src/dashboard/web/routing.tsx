/** The page's address: reads it, changes it without loading a page, and links within the dashboard. */
import { useMemo, useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from 'react'
import type { Key } from '../../control/dashboard/schema/schema.js'
import { hasCredential } from './format/secret-text.js'
import { Listeners } from './listeners.js'

const BASE = '/dashboard'
const listeners = new Listeners()

window.addEventListener('popstate', listeners.tell)

function current(): string {
  return window.location.pathname + window.location.search
}

/** The location; `path` starts with `/` and does not include `/dashboard`. */
interface PageLocation {
  readonly path: string
  readonly query: URLSearchParams
}

/** The account of the page of an account, `/accounts/NAME`; null for other pages. */
export function accountOfPath(path: string): string | null {
  return /^\/accounts\/([\w-]+)$/.exec(path)?.[1] ?? null
}

/** The path below `/dashboard` of the address. */
export function pathNow(): string {
  return window.location.pathname.slice(BASE.length)
}

/** The current location; re-renders the caller when it changes. */
export function useLocation(): PageLocation {
  const text = useSyncExternalStore(listeners.subscribe, current)
  return useMemo(() => {
    const url = new URL(text, window.location.origin)
    const path = url.pathname.startsWith(BASE) ? url.pathname.slice(BASE.length) : url.pathname
    return { path: path === '' ? '/' : path, query: url.searchParams }
  }, [text])
}

/** The address of a path, for links. */
function address(path: string): string {
  return BASE + path
}

/** Navigates to a path of the dashboard with its query; `replace` adds no history entry. */
export function go(path: string, options: { readonly replace?: boolean } = {}): void {
  const target = address(path)
  if (options.replace === true) window.history.replaceState(null, '', target)
  else window.history.pushState(null, '', target)
  listeners.tell()
}

/** Changes parameters of the query and keeps the others; null removes one. */
export function setQuery(
  changes: Readonly<Record<string, string | null>>,
  options: { readonly replace?: boolean } = {},
): void {
  const query = new URLSearchParams(window.location.search)
  for (const [name, value] of Object.entries(changes)) {
    // No credential becomes part of an address or of the history, from any field.
    if (value === null || value === '' || hasCredential(value)) query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  const path = window.location.pathname.slice(BASE.length)
  go(text === '' ? path : `${path}?${text}`, options)
}

/** Changes filters of a list, which then starts at its first page. */
export function setFilter(
  changes: Readonly<Record<string, string | null>>,
  options: { readonly replace?: boolean } = {},
): void {
  const isPlace = (name: string): boolean => /(?:^|\.)(?:after|page)$/.test(name)
  const places = [...new URLSearchParams(window.location.search).keys()].filter(isPlace)
  setQuery({ ...Object.fromEntries(places.map((name) => [name, null])), ...changes }, options)
}

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

/** Part of the form that the page opens with the key. */
type KeyEdit = 'all' | 'limits'

/**
 * `/keys?account=acc_1&key=key_1`, with `&edit=limits` to open the form at its limits. The account is that of
 * the key, so that the list behind the drawer has it.
 */
export function keyLink({ accountId, id }: Pick<Key, 'accountId' | 'id'>, edit?: KeyEdit): string {
  const query = new URLSearchParams({ account: accountId, key: id })
  if (edit !== undefined) query.set('edit', edit)
  return `/keys?${query.toString()}`
}
