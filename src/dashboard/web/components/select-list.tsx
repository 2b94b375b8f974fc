/** The button of a selection, which shows its value, and the list that it opens. */
import { Select as Base } from '@base-ui/react/select'
import { useRef, useState } from 'react'
import { Icon } from './button.js'
import { placeOf } from './content.js'
import type { Option } from './options.js'

interface SelectProps {
  readonly className: 'input' | 'filter'
  readonly value: string
  readonly options: readonly Option[]
  readonly onChange: (value: string) => void
  /** Connects its label, hint and error. */
  readonly id?: string
  readonly 'aria-label'?: string
  readonly 'aria-invalid'?: boolean
  readonly 'aria-describedby'?: string | undefined
}

/** The button and its list. A value that is none of the options is listed too. */
export function SelectList({ className, value, options, onChange, ...rest }: SelectProps) {
  const trigger = useRef<HTMLButtonElement>(null)
  const [place] = useState(() => placeOf(trigger))
  const isKnown = options.some((option) => option.value === value)
  const items = isKnown || value === '' ? options : [{ value, label: value }, ...options]
  return (
    <Base.Root
      items={items}
      value={value}
      onValueChange={(next) => (next === null ? undefined : onChange(next))}
      modal={false}
    >
      <Base.Trigger ref={trigger} className={`${className} row line spread`} {...rest}>
        <Base.Value className="cut" />
        <Icon name="down" size={12} />
      </Base.Trigger>
      <Base.Portal container={place}>
        <Base.Positioner className="menu-place" sideOffset={4} align="start" alignItemWithTrigger={false}>
          <Base.Popup className="menu of-select">
            <Base.List className="options-list">
              {items.map(({ value: each, label, title }) => (
                <Base.Item key={each} value={each} className="menu-item" title={title}>
                  <Base.ItemText className="cut">{label}</Base.ItemText>
                  <Base.ItemIndicator>
                    <Icon name="check" size={14} />
                  </Base.ItemIndicator>
                </Base.Item>
              ))}
            </Base.List>
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
