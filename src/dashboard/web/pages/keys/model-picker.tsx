/** Selects the models of a key: served models, their families, and other ids. */
import { useId, useState } from 'react'
import type { ModelsReply } from '../../../server/schema/schema.js'
import { useResource } from '../../api/load-resource.js'
import { plural } from '../../format/number.js'
import { Button } from '../../components/actions/button.js'
import { modelFault } from './check-draft.js'

interface PickerProps {
  readonly chosen: readonly string[]
  readonly onChange: (chosen: readonly string[]) => void
  readonly error: string | undefined
}

/** The choices: `*` patterns of routes, then aliases, then models. */
function choicesOf({ models, aliases }: ModelsReply): string[] {
  const served = models.filter(({ route }) => route?.configured === true)
  const prefixes = served.flatMap(({ route }) => {
    const label = route?.label ?? ''
    return label.endsWith('-') ? [`${label}*`] : []
  })
  return [...new Set([...prefixes, ...aliases.map(({ id }) => id), ...served.map(({ id }) => id)])]
}

/** Check boxes with a search. A searched id that is not listed can be added. */
export function ModelPicker({ chosen, onChange, error }: PickerProps) {
  const id = useId()
  const { data } = useResource('/models')
  const [search, setSearch] = useState('')
  const listed = data === null ? [] : choicesOf(data)
  const all = [...chosen.filter((model) => !listed.includes(model)), ...listed]
  const wanted = search.trim()
  const shown = all.filter((model) => model.toLowerCase().includes(wanted.toLowerCase()))
  const isNew = wanted !== '' && !all.includes(wanted)
  const fault = isNew && shown.length === 0 ? modelFault(wanted) : null
  const toggle = (model: string): void =>
    onChange(chosen.includes(model) ? chosen.filter((one) => one !== model) : [...chosen, model])
  const add = (): void => {
    onChange([...chosen, wanted])
    setSearch('')
  }
  return (
    <fieldset
      className={error === undefined ? 'field picker' : 'field picker wrong'}
      aria-describedby={`${id}-hint${error === undefined ? '' : ` ${id}-error`}`}
    >
      <legend className="field-label">Allowed models</legend>
      <input
        type="search"
        className="input"
        aria-label="Search models"
        placeholder="Search models"
        value={search}
        onChange={(event) => setSearch(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return
          // Otherwise Enter would submit the form.
          event.preventDefault()
          const [only] = shown
          if (shown.length === 1 && only !== undefined) toggle(only)
          else if (isNew && fault === null) add()
        }}
      />
      <div className="picker-list" tabIndex={-1}>
        {shown.map((model) => (
          <ModelBox
            key={model}
            model={model}
            isChosen={chosen.includes(model)}
            toggle={() => toggle(model)}
          />
        ))}
        {isNew && fault === null ? (
          <Button tone="quiet" icon="plus" onClick={add}>
            Add "{wanted}"
          </Button>
        ) : null}
      </div>
      <Notes id={id} error={fault ?? error} chosen={chosen} />
    </fieldset>
  )
}

interface BoxProps {
  readonly model: string
  readonly isChosen: boolean
  readonly toggle: () => void
}

function ModelBox({ model, isChosen, toggle }: BoxProps) {
  return (
    <label className="picker-item">
      <input type="checkbox" checked={isChosen} onChange={toggle} />
      <span>{model}</span>
      {model.endsWith('*') ? (
        <span className="soft">every id that begins with {model.slice(0, -1)}</span>
      ) : null}
    </label>
  )
}

interface NotesProps {
  readonly id: string
  readonly error: string | undefined
  readonly chosen: readonly string[]
}

function Notes({ id, error, chosen }: NotesProps) {
  return (
    <>
      {error === undefined ? null : (
        <p id={`${id}-error`} className="field-error">
          {error}
        </p>
      )}
      <p id={`${id}-hint`} className="field-hint">
        {plural(chosen.length, 'model')} chosen
        {chosen.length === 0 ? '' : `: ${chosen.join(', ')}`}
      </p>
    </>
  )
}
