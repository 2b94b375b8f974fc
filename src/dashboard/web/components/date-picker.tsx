/** Dates and times: typed, or chosen in a calendar, whose script is loaded after the page. */
import { useEffect, useState, type InputHTMLAttributes } from 'react'
import { IconButton } from './button.js'
import { Field, type Bound, type FieldTexts } from './form.js'
import { later } from './later.js'

/** The button that opens a calendar. */
export const CalendarButton = later(
  async () => (await import('./calendar.js')).Calendar,
  ({ label }) => <IconButton icon="calendar" label={label} disabled />,
)

const DATE = /^\d{4}-\d\d-\d\d$/
const TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d$/
const FORMS = {
  date: { placeholder: 'YYYY-MM-DD', pattern: DATE.source, maxLength: 10 },
  time: { placeholder: 'YYYY-MM-DD hh:mm', pattern: TIME.source, maxLength: 16 },
} as const

interface DateInputProps extends Omit<InputHTMLAttributes<HTMLInputElement>, 'value' | 'onChange'> {
  /** `2026-11-12T14:00`. */
  readonly value: string
  readonly onChange: (value: string) => void
}

/** A date and time that is taken when it is complete and the field is left or Enter is pressed. */
export function DateInput({ value, onChange, ...rest }: DateInputProps) {
  const { placeholder, maxLength } = FORMS.time
  const shown = value.replace('T', ' ')
  const [text, setText] = useState(shown)
  useEffect(() => setText(shown), [shown])
  const take = (): void => {
    const isTime = TIME.test(text) && !Number.isNaN(Date.parse(text))
    if (isTime && text !== shown) onChange(text.replace(' ', 'T'))
    else setText(shown)
  }
  return (
    <input
      {...rest}
      {...{ placeholder, maxLength }}
      autoComplete="off"
      value={text}
      onChange={({ target }) => setText(target.value)}
      onBlur={take}
      onKeyDown={({ key }) => {
        if (key === 'Enter') take()
      }}
    />
  )
}

interface DateFieldProps extends FieldTexts, Pick<Bound, 'value' | 'onChange'> {
  /** With a time: `2026-11-12T14:00`; else a date. */
  readonly withTime?: boolean
  /** The first day of the calendar that can be chosen. */
  readonly min?: string
  readonly required?: boolean
}

/** A field of a form for a date, with its label. */
export function DateField({
  label,
  hint,
  error,
  value,
  onChange,
  withTime = false,
  ...rest
}: DateFieldProps) {
  const { min, required } = rest
  const [date, time] = [value.slice(0, 10), value.slice(10)]
  const set = (next: string): void => onChange({ target: { value: next } })
  return (
    <Field
      {...{ label, hint, error }}
      control={(shared) => (
        <span className="row line gap-4">
          <input
            className="input"
            {...shared}
            {...FORMS[withTime ? 'time' : 'date']}
            title={FORMS[withTime ? 'time' : 'date'].placeholder}
            autoComplete="off"
            required={required}
            value={date + time.replace('T', ' ')}
            onChange={({ target }) => set(target.value.replace(/^(.{10}) /, '$1T'))}
          />
          <CalendarButton
            label={`Choose: ${label}`}
            days={[date]}
            {...(min === undefined ? {} : { min })}
            onPick={(day) => set(withTime ? day + (time === '' ? 'T00:00' : time) : day)}
          />
        </span>
      )}
    />
  )
}
