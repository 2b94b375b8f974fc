/** A button that opens a searchable list. The caller finds the entries for the typed text. */
import { Combobox } from '@base-ui/react/combobox'
import type { KeyboardEvent, ReactElement } from 'react'
import { CONTENT } from './content.js'
import { withoutSecret } from './pasted-secret.js'

/** An entry of the list. */
export interface Entry {
  readonly id: string
  readonly label: string
  /** At the end of the entry, such as an amount. */
  readonly note?: string
}

interface PickerProps<Item extends Entry> {
  /** The button. */
  readonly trigger: ReactElement
  /** What is listed, in the plural: `filters`. */
  readonly label: string
  readonly hint: string
  readonly entries: readonly Item[]
  readonly isLoading?: boolean
  readonly text: string
  readonly setText: (text: string) => void
  readonly open: boolean
  readonly setOpen: (open: boolean) => void
  /** Also closes the list if the choice is complete. */
  readonly take: (entry: Item) => void
  readonly onKeyDown?: (event: KeyboardEvent<HTMLInputElement>) => void
}

/** The button with its list. */
export function Picker<Item extends Entry>(props: PickerProps<Item>) {
  const { trigger, label, hint, entries, isLoading = false, text, setText, open, setOpen } = props
  return (
    <Combobox.Root<Item>
      items={entries}
      filter={null}
      value={null}
      onValueChange={(entry) => (entry === null ? undefined : props.take(entry))}
      inputValue={text}
      onInputValueChange={(next, { reason }) => {
        if (reason === 'input-change') setText(withoutSecret(next))
      }}
      open={open}
      onOpenChange={(next, { reason }) => {
        // A press on an item is handled with its value, which may open a further list.
        if (reason !== 'item-press') setOpen(next)
      }}
      itemToStringLabel={(entry) => entry.label}
      autoHighlight
    >
      {/* A button with a popup: a combobox takes no name from its text. */}
      <Combobox.Trigger role="button" render={trigger} />
      <Combobox.Portal container={CONTENT}>
        <Combobox.Positioner className="menu-place" sideOffset={4} align="start">
          <Combobox.Popup className="menu options" aria-label={label}>
            <Combobox.Input
              className="filter"
              aria-label={`Search ${label}`}
              placeholder={hint}
              onKeyDown={props.onKeyDown}
            />
            <Combobox.Empty className="options-empty">
              {isLoading ? 'Searching …' : 'Nothing matches.'}
            </Combobox.Empty>
            <Combobox.List className="options-list">
              {(entry: Item) => (
                <Combobox.Item key={entry.id} value={entry} className="menu-item">
                  <span className="cut" title={entry.label}>
                    {entry.label}
                  </span>
                  {entry.note === undefined ? null : <span className="soft end">{entry.note}</span>}
                </Combobox.Item>
              )}
            </Combobox.List>
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  )
}
