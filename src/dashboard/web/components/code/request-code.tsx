/** A request as code to paste, in a selected language and client format. */
import { useState } from 'react'
import {
  FORMATS,
  HELLO,
  inFormat,
  type Format,
  type FormatRequest,
  type Target,
} from '../../format/request-formats.js'
import { LANGUAGES, snippet } from '../../format/snippets.js'
import { CodeBlock } from '../actions/copy-button.js'
import { SelectField } from '../forms/field.js'
import { Tabs } from './tabs.js'

interface RequestCodeProps {
  readonly target: Target
  readonly request?: FormatRequest
  /** The format that is selected initially. */
  readonly format?: Format
}

/** One tab per language, and a selection of the format. */
export function RequestCode({ target, request = HELLO, format = 'chat' }: RequestCodeProps) {
  const [chosen, setChosen] = useState<Format>(format)
  const formatted = inFormat(chosen, target, request)
  return (
    <div className="request-code">
      <SelectField
        label="Client format"
        value={chosen}
        onChange={(event) => {
          const next = FORMATS.find(({ id }) => id === event.target.value)
          if (next !== undefined) setChosen(next.id)
        }}
      >
        {FORMATS.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </SelectField>
      <Tabs
        label="Languages"
        tabs={LANGUAGES.map((language) => ({
          name: language,
          content: <CodeBlock what={language} code={snippet(language, formatted)} />,
        }))}
      />
    </div>
  )
}
