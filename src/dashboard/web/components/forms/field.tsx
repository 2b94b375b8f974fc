/** Fields of forms: a label that is always there, a hint, and what was wrong beside the field. */
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

/** What a control needs so that its label, its hint and its fault are known to be its own. */
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

/** One line of text. */
export function TextField({
  label,
  hint,
  error,
  ...rest
}: Shared & InputHTMLAttributes<HTMLInputElement>) {
  const control = (shared: Control) => <input className="input" {...shared} {...rest} />
  return <Field {...{ label, hint, error, control }} />
}

/** Several lines of text. */
export function TextArea({
  label,
  hint,
  error,
  ...rest
}: Shared & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const control = (shared: Control) => <textarea className="input" {...shared} {...rest} />
  return <Field {...{ label, hint, error, control }} />
}

/** One of a list: the browser's own control, which is right on every device. */
export function SelectField({
  label,
  hint,
  error,
  ...rest
}: Shared & SelectHTMLAttributes<HTMLSelectElement>) {
  const control = (shared: Control) => <select className="input select" {...shared} {...rest} />
  return <Field {...{ label, hint, error, control }} />
}

/** One choice of a filter. */
export interface Option {
  readonly value: string
  readonly label: string
}

interface FilterProps {
  readonly label: string
  readonly value: string
  /** What stands for no filter, and its words. */
  readonly all: string
  readonly options: readonly Option[]
  readonly onChange: (value: string) => void
}

/** A filter of a row of filters: small, its label for those who do not see it. */
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
