/** Model, format and settings of the requests. Models and format are in the address. */
import { SelectField, TextArea, TextField } from '../../components/form.js'
import { optionsOf } from '../../components/options.js'
import { FORMATS, type Format } from '../../format/request-formats.js'
import { setQuery } from '../../routing.js'
import type { Settings } from './turns.js'
import { schemaIn, toolsIn } from './tools.js'

interface SettingsProps {
  readonly served: readonly string[]
  readonly models: readonly string[]
  readonly format: Format
  readonly settings: Settings
  readonly setSettings: (settings: Settings) => void
}

const TOOLS_HINT =
  '[{ "name": "weather", "parameters": { "type": "object", "properties": { "city": { "type": "string" } } } }]'

/** What is wrong with the JSON of the settings. */
export function errorsIn({ tools, schema }: Settings): { tools?: string; schema?: string } {
  const [readTools, readSchema] = [toolsIn(tools), schemaIn(schema)]
  return {
    ...('error' in readTools ? { tools: readTools.error } : {}),
    ...('error' in readSchema ? { schema: readSchema.error } : {}),
  }
}

export function SettingsColumn({ served, models, format, settings, setSettings }: SettingsProps) {
  const [first = '', second] = models
  const change = (name: keyof Settings) => (event: { target: { value: string } }) =>
    setSettings({ ...settings, [name]: event.target.value })
  return (
    <div className="playground-settings stack gap-16">
      <SelectField
        label="Model"
        options={optionsOf(served.includes(first) ? served : [first, ...served])}
        value={first}
        onChange={(event) => setQuery({ model: event.target.value }, { replace: true })}
      />
      <SelectField
        label="Compare with"
        options={[{ value: '', label: 'No second model' }, ...optionsOf(served)]}
        value={second ?? ''}
        onChange={(event) => setQuery({ with: event.target.value }, { replace: true })}
      />
      <SelectField
        label="Client format"
        hint={format === 'gemini' ? 'Replies in this format are shown whole.' : undefined}
        options={FORMATS.map(({ id, name }) => ({ value: id, label: name }))}
        value={format}
        onChange={(event) => setQuery({ format: event.target.value }, { replace: true })}
      />
      <TextArea
        label="System message"
        rows={4}
        placeholder="none"
        value={settings.system}
        onChange={change('system')}
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
          onChange={change('temperature')}
        />
        <TextField
          label="Max. tokens"
          type="number"
          min={1}
          step={1}
          placeholder="default"
          value={settings.maxTokens}
          onChange={change('maxTokens')}
        />
      </div>
      <JsonFields settings={settings} change={change} />
    </div>
  )
}

interface JsonProps {
  readonly settings: Settings
  readonly change: (name: keyof Settings) => (event: { target: { value: string } }) => void
}

/** Tools and schema, with what is wrong with them. */
function JsonFields({ settings, change }: JsonProps) {
  const errors = errorsIn(settings)
  return (
    <>
      <TextArea
        label="Tools"
        rows={4}
        spellCheck={false}
        placeholder={TOOLS_HINT}
        hint="JSON: a list of tools with name, description and parameters. You answer the calls."
        error={errors.tools}
        value={settings.tools}
        onChange={change('tools')}
      />
      <TextArea
        label="JSON schema of the reply"
        rows={4}
        spellCheck={false}
        placeholder='{ "type": "object", "properties": { … } }'
        error={errors.schema}
        value={settings.schema}
        onChange={change('schema')}
      />
    </>
  )
}
