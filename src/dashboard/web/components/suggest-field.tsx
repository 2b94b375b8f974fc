/** A text field with a list of proposals below it: any text is a value, Enter takes the first proposal. */
import { Autocomplete } from '@base-ui/react/autocomplete'
import { useRef, useState } from 'react'
import { placeOf } from './content.js'
import { Field, type Bound, type FieldTexts } from './form.js'

interface SuggestFieldProps extends Omit<FieldTexts, 'error'>, Bound {
  /** What matches the text. */
  readonly proposals: readonly string[]
  readonly required?: boolean
}

/** The field with its label and its list. */
export function SuggestField({
  label,
  hint,
  error,
  proposals,
  value,
  onChange,
  required,
}: SuggestFieldProps) {
  const input = useRef<HTMLInputElement>(null)
  const [place] = useState(() => placeOf(input))
  return (
    <Field
      {...{ label, hint, error }}
      control={(shared) => (
        <Autocomplete.Root
          items={proposals}
          filter={null}
          value={value}
          onValueChange={(next) => onChange({ target: { value: next } })}
          autoHighlight
        >
          <Autocomplete.Input
            ref={input}
            className="input"
            {...shared}
            required={required}
            autoComplete="off"
            spellCheck={false}
          />
          <Autocomplete.Portal container={place}>
            <Autocomplete.Positioner className="menu-place" sideOffset={4} align="start">
              <Autocomplete.Popup className="menu of-select">
                <Autocomplete.List className="options-list" aria-label={label}>
                  {(name: string) => (
                    <Autocomplete.Item key={name} value={name} className="menu-item">
                      <span className="cut">{name}</span>
                    </Autocomplete.Item>
                  )}
                </Autocomplete.List>
              </Autocomplete.Popup>
            </Autocomplete.Positioner>
          </Autocomplete.Portal>
        </Autocomplete.Root>
      )}
    />
  )
}
