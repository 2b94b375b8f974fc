/** A search field that is kept in the address; `/` focuses it. */
import { useEffect, useState } from 'react'
import { setQuery } from '../../routing/location.js'
import { Icon } from '../actions/icon.js'

const PAUSE_MS = 200

interface SearchProps {
  readonly label: string
  /** The placeholder; the label by default. */
  readonly hint?: string
  readonly value: string
}

/** The search starts after a short pause in typing. */
export function Search({ label, hint = label, value }: SearchProps) {
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
        placeholder={hint}
        title={hint === label ? undefined : hint}
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
