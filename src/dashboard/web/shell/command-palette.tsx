/**
 * The command palette: finds pages, saved views, keys, accounts, models and requests by name or id. The
 * results are links: Enter opens the first one, arrows move between them.
 */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import { useResource } from '../api/use-resource.js'
import { read } from '../api/endpoints.js'
import { Dialog } from '../components/dialog.js'
import { withoutSecret } from '../components/pasted-secret.js'
import { plural } from '../format/number.js'
import { listTime } from '../format/time.js'
import { go, Link, keyLink } from '../routing.js'
import { isShown, SECTIONS } from './navigation-rail.js'
import { useRights, useScope, withScope } from './session.js'

const PAUSE_MS = 120

/** A result. */
interface Found {
  readonly to: string
  readonly text: string
  readonly note?: string
}

interface Group {
  readonly title: string
  readonly items: readonly Found[]
}

/** The palette. The caller removes it when it closes. */
export function CommandPalette({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState('')
  const asked = usePaused(text.trim())
  const groups = useFound(text.trim(), asked)
  const list = useRef<HTMLDivElement>(null)
  const items = groups.flatMap((group) => group.items)
  const onKey = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.key === 'Enter' && event.target instanceof HTMLInputElement) {
      const [first] = items
      // Results of an earlier text must not be opened, and no page after a pasted key has left the field.
      if (first === undefined || text.trim() === '' || asked !== text.trim()) return
      event.preventDefault()
      go(first.to)
      onClose()
      return
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    moveFocus(event.currentTarget, step)
  }
  return (
    <Dialog title="Find" wide onClose={onClose}>
      <div className="palette stack" ref={list} onKeyDown={onKey}>
        <input
          type="search"
          className="input"
          autoFocus
          aria-label="Find pages, keys, accounts, models and requests"
          placeholder="Name or id of a page, key, account, model or request"
          maxLength={2_000}
          value={text}
          onChange={({ target }) => setText(withoutSecret(target.value, onClose).slice(0, 128))}
        />
        <p className="unseen" role="status">
          {text.trim() === '' || asked !== text.trim() ? '' : plural(items.length, 'result')}
        </p>
        {groups.map(({ title, items: found }) => (
          <section key={title} aria-label={title}>
            <h3 className="note">{title}</h3>
            <ul>
              {found.map(({ to, text: name, note }) => (
                <li key={to}>
                  <Link to={to} className="menu-item" onClick={onClose}>
                    <span className="cut" title={name}>
                      {name}
                    </span>
                    {note === undefined ? null : <span className="soft cut">{note}</span>}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        ))}
        {items.length === 0 && text.trim() !== '' && asked === text.trim() ? (
          <p className="soft">Nothing matches.</p>
        ) : null}
      </div>
    </Dialog>
  )
}

/** The text after a short pause in typing. */
function usePaused(text: string): string {
  const [paused, setPaused] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return paused
}

function moveFocus(frame: HTMLElement, step: number): void {
  const stops = [...frame.querySelectorAll<HTMLElement>('input, a[href]')]
  const at = stops.findIndex((stop) => stop === document.activeElement)
  stops[Math.min(Math.max(at + step, 0), stops.length - 1)]?.focus()
}

/** Pages and views at once; the rest from the server. */
function useFound(text: string, asked: string): readonly Group[] {
  const rights = useRights()
  const scope = useScope()
  const { isAdmin, readsGateway } = rights
  const views = useResource('/views').data?.views ?? []
  // Administrators and auditors find everything, with any account on the page.
  const account = readsGateway || isAdmin ? 'all' : scope
  const { data } = useQuery({
    queryKey: ['/search', account, asked],
    queryFn: ({ signal }) => read('/search', { account, q: asked }, { signal }),
    enabled: asked !== '',
  })
  const words = text.toLowerCase()
  const named = (name: string): boolean => name.toLowerCase().includes(words)
  const found = asked === '' ? undefined : data
  const groups: readonly Group[] = [
    {
      title: 'Pages',
      items: SECTIONS.filter((section) => isShown(section, rights) && named(section.name)).map(
        ({ path, name }) => ({ to: withScope(path, scope), text: name }),
      ),
    },
    {
      title: 'Saved views',
      items: views.filter(({ name }) => named(name)).map(({ name, url }) => ({ to: url, text: name })),
    },
    {
      title: 'Requests',
      items: (found?.requests ?? []).map(({ requestId, accountId, atMs, model, status }) => ({
        to: `/requests?request=${requestId}&account=${accountId}`,
        text: requestId,
        note: `${status} · ${model === 'other' ? 'unknown model' : model} · ${listTime(atMs, Date.now())}`,
      })),
    },
    {
      title: 'Keys',
      items: (found?.keys ?? []).map((key) => ({
        to: keyLink(key),
        text: key.name,
        note: `…${key.lastFour} · ${key.accountName}${key.state === 'live' ? '' : ` · ${key.state}`}`,
      })),
    },
    {
      title: 'Accounts',
      items: (found?.accounts ?? []).map(({ id, name, email }) => ({
        to: `/?account=${id}`,
        text: name,
        note: email,
      })),
    },
    {
      title: 'Models',
      items: (found?.models ?? []).map(({ id }) => ({
        to: `/models?search=${encodeURIComponent(id)}`,
        text: id,
      })),
    },
  ]
  return groups.filter(({ items }) => items.length > 0)
}
