/** Choices side by side, of which one is pressed. */
import { Icon, type IconName } from './button.js'

interface Choice<Value> {
  readonly value: Value
  readonly label: string
  /** Shown instead of the label, which is then its name. */
  readonly icon?: IconName
}

interface SwitchProps<Value> {
  readonly label: string
  readonly options: readonly Choice<Value>[]
  /** Null: none. */
  readonly value: string | null
  readonly onChange: (value: Value) => void
}

/** The group of buttons. */
export function Switch<Value extends string>({ label, options, value, onChange }: SwitchProps<Value>) {
  return (
    <span className="switch" role="group" aria-label={label}>
      {options.map(({ value: each, label: text, icon }) => (
        <button
          key={each}
          type="button"
          aria-pressed={each === value}
          {...(icon === undefined ? {} : { 'aria-label': text, title: text })}
          onClick={() => onChange(each)}
        >
          {icon === undefined ? text : <Icon name={icon} />}
        </button>
      ))}
    </span>
  )
}
