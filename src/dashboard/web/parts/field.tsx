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

interface FrameProps extends Shared {
  readonly id: string
  readonly children: ReactNode
}

function Frame({ id, label, hint, error, children }: FrameProps) {
  return (
    <div className={error === undefined ? 'field' : 'field wrong'}>
      <label className="field-label" htmlFor={id}>
        {label}
      </label>
      {children}
      {error === undefined ? null : (
        <p className="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint === undefined ? null : (
        <p className="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  )
}

function described(id: string, { hint, error }: Shared): string | undefined {
  const ids = [error === undefined ? '' : `${id}-error`, hint === undefined ? '' : `${id}-hint`]
  const text = ids.filter((part) => part !== '').join(' ')
  return text === '' ? undefined : text
}

/** One line of text. */
export function TextField({
  label,
  hint,
  error,
  ...rest
}: Shared & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId()
  const shared = { label, hint, error }
  return (
    <Frame id={id} {...shared}>
      <input
        id={id}
        className="input"
        aria-invalid={error !== undefined}
        aria-describedby={described(id, shared)}
        {...rest}
      />
    </Frame>
  )
}

/** Several lines of text. */
export function TextArea({
  label,
  hint,
  error,
  ...rest
}: Shared & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const id = useId()
  const shared = { label, hint, error }
  return (
    <Frame id={id} {...shared}>
      <textarea
        id={id}
        className="input"
        aria-invalid={error !== undefined}
        aria-describedby={described(id, shared)}
        {...rest}
      />
    </Frame>
  )
}

/** One of a list: the browser's own control, which is right on every device. */
export function SelectField({
  label,
  hint,
  error,
  children,
  ...rest
}: Shared & SelectHTMLAttributes<HTMLSelectElement>) {
  const id = useId()
  const shared = { label, hint, error }
  return (
    <Frame id={id} {...shared}>
      <select
        id={id}
        className="input select"
        aria-invalid={error !== undefined}
        aria-describedby={described(id, shared)}
        {...rest}
      >
        {children}
      </select>
    </Frame>
  )
}

interface FilterProps {
  readonly label: string
  readonly value: string
  /** What stands for no filter, and its words. */
  readonly all: string
  readonly options: readonly { readonly value: string; readonly label: string }[]
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
