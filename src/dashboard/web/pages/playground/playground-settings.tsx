/** What the playground asks a model with. */
import { SelectField, TextArea, TextField } from '../../parts/forms/field.js'
import { setQuery } from '../../routing/place.js'

/** The settings as they were written. */
export interface Draft {
  readonly system: string
  readonly temperature: string
  readonly maxTokens: string
}

interface SettingsProps {
  readonly served: readonly string[]
  readonly model: string
  readonly draft: Draft
  readonly setDraft: (draft: Draft) => void
}

/** The column of settings; the model is in the address. */
export function Settings({ served, model, draft, setDraft }: SettingsProps) {
  const options = served.includes(model) ? served : [model, ...served]
  return (
    <div className="playground-settings">
      <SelectField
        label="Model"
        value={model}
        onChange={(event) => setQuery({ model: event.target.value }, { replace: true })}
      >
        {options.map((id) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </SelectField>
      <TextArea
        label="System message"
        rows={4}
        placeholder="none"
        value={draft.system}
        onChange={(event) => setDraft({ ...draft, system: event.target.value })}
      />
      <div className="field-grid">
        <TextField
          label="Temperature"
          type="number"
          min={0}
          max={2}
          step={0.1}
          placeholder="default"
          value={draft.temperature}
          onChange={(event) => setDraft({ ...draft, temperature: event.target.value })}
        />
        <TextField
          label="Max. tokens"
          type="number"
          min={1}
          step={1}
          placeholder="default"
          value={draft.maxTokens}
          onChange={(event) => setDraft({ ...draft, maxTokens: event.target.value })}
        />
      </div>
    </div>
  )
}
