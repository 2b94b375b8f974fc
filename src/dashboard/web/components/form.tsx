/** Form fields with a permanent label, a hint, and an error beside the field. */
import {
  useId,
  useEffect,
  useState,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  type FormEvent,
} from 'react'
import { problemOf, type Problem } from '../api/client.js'
import { setFilter } from '../routing.js'
import { Icon } from './button.js'

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
    const timer = setTimeout(() => setFilter({ search: text }, { replace: true }), PAUSE_MS)
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

/** The state of a form and its `onSubmit` handler. */
export interface Submit {
  readonly busy: boolean
  readonly problem: Problem | null
  readonly submit: (event: FormEvent) => void
}

/** Runs `act` when the form is submitted. */
export function useSubmit(act: () => Promise<void>): Submit {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const run = async (): Promise<void> => {
    setBusy(true)
    setProblem(null)
    try {
      await act()
    } catch (error) {
      setProblem(problemOf(error))
    } finally {
      setBusy(false)
    }
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    void run()
  }
  return { busy, problem, submit }
}
