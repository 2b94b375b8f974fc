/** The model, the client format and the settings of the playground. */
import { FORMATS, type Format } from '../../format/request-formats.js'
import { SelectField, TextArea, TextField } from '../../components/forms/field.js'
import { setQuery } from '../../routing/location.js'
import type { Settings } from './conversation.js'

interface SettingsProps {
  readonly served: readonly string[]
  readonly model: string
  readonly format: Format
  readonly settings: Settings
  readonly setSettings: (settings: Settings) => void
}

/** The settings. Model and format are in the address. */
export function SettingsColumn(props: SettingsProps) {
  const { served, model, format, settings, setSettings } = props
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
      <SelectField
        label="Client format"
        hint={format === 'gemini' ? 'Replies in this format are shown whole.' : undefined}
        value={format}
        onChange={(event) => setQuery({ format: event.target.value }, { replace: true })}
      >
        {FORMATS.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </SelectField>
      <TextArea
        label="System message"
        rows={4}
        placeholder="none"
        value={settings.system}
        onChange={(event) => setSettings({ ...settings, system: event.target.value })}
      />
      <div className="field-grid">
        <TextField
          label="Temperature"
          type="number"
          min={0}
          max={2}
          step={0.1}
          placeholder="default"
          value={settings.temperature}
          onChange={(event) => setSettings({ ...settings, temperature: event.target.value })}
        />
        <TextField
          label="Max. tokens"
          type="number"
          min={1}
          step={1}
          placeholder="default"
          value={settings.maxTokens}
          onChange={(event) => setSettings({ ...settings, maxTokens: event.target.value })}
        />
      </div>
    </div>
  )
}
