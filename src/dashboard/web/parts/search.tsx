/** A search that lives in the address; `/` goes to it. */
import { useEffect, useState } from 'react'
import { setQuery } from '../routing/place.js'
import { Icon } from './icon.js'

const PAUSE_MS = 200

/** What is written is searched for after a short pause. */
export function Search({ label, value }: { readonly label: string; readonly value: string }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return undefined
    const timer = setTimeout(() => setQuery({ search: text }, { replace: true }), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text, value])
  return (
    <span className="search">
      <Icon name="search" size={14} />
      <input
        type="search"
        className="filter"
        data-key="/"
        aria-keyshortcuts="/"
        aria-label={label}
        placeholder={label}
        maxLength={100}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur()
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </span>
  )
}
