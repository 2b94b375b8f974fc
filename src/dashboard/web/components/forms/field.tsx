/** Form fields with a permanent label, a hint, and an error beside the field. */
import {
  useId,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
} from 'react'

interface Shared {
  readonly label: string
  readonly hint?: ReactNode
  readonly error?: string | undefined
}

/** Attributes that connect a control to its label, hint and error. */
interface Control {
  readonly id: string
  readonly 'aria-invalid': boolean
  readonly 'aria-describedby': string | undefined
}

interface FieldProps extends Shared {
  readonly control: (shared: Control) => ReactNode
}

function Field({ label, hint, error, control }: FieldProps) {
  const id = useId()
  const notes = [
    { id: `${id}-error`, className: 'field-error', text: error },
    { id: `${id}-hint`, className: 'field-hint', text: hint },
  ].filter(({ text }) => text !== undefined)
  const describedBy = notes.length === 0 ? undefined : notes.map((note) => note.id).join(' ')
  return (
    <div className={error === undefined ? 'field' : 'field wrong'}>
      <label className="field-label" htmlFor={id}>
        {label}
      </label>
      {control({ id, 'aria-invalid': error !== undefined, 'aria-describedby': describedBy })}
      {notes.map(({ id, className, text }) => (
        <p key={id} id={id} className={className}>
          {text}
        </p>
      ))}
    </div>
  )
}

/** A text field with one line. */
export function TextField({
  label,
  hint,
  error,
  ...rest
}: Shared & InputHTMLAttributes<HTMLInputElement>) {
  const control = (shared: Control) => <input className="input" {...shared} {...rest} />
  return <Field {...{ label, hint, error, control }} />
}

/** A text field with several lines. */
export function TextArea({
  label,
  hint,
  error,
  ...rest
}: Shared & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const control = (shared: Control) => <textarea className="input" {...shared} {...rest} />
  return <Field {...{ label, hint, error, control }} />
}

/** A selection with the browser's own control. */
export function SelectField({
  label,
  hint,
  error,
  ...rest
}: Shared & SelectHTMLAttributes<HTMLSelectElement>) {
  const control = (shared: Control) => <select className="input select" {...shared} {...rest} />
  return <Field {...{ label, hint, error, control }} />
}

/** An option of a filter. */
export interface Option {
  readonly value: string
  readonly label: string
}

interface FilterProps {
  readonly label: string
  readonly value: string
  /** The text of the option without a filter. */
  readonly all: string
  readonly options: readonly Option[]
  readonly onChange: (value: string) => void
}

/** A compact selection in a row of filters; its label is visible to screen readers only. */
export function Filter({ label, value, all, options, onChange }: FilterProps) {
  const known = value === '' || options.some((option) => option.value === value)
  return (
    <select
      className={value === '' ? 'filter' : 'filter set'}
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{all}</option>
      {known ? null : <option value={value}>{value}</option>}
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  )
}
