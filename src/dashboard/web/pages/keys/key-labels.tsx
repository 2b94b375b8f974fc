/** The labels of a new key, as one line of text: `team=research env=ci`. */
import type { CreateKeyBody } from '../../../server/schema/schema.js'
import type { Problem } from '../../api/client.js'
import { TextField } from '../../parts/forms/field.js'

/** The labels in the text. A word without `=` has no value, which the server refuses by name. */
export function labelsIn(text: string): NonNullable<CreateKeyBody['labels']> {
  const words = text.split(/[\s,]+/).filter((word) => word !== '')
  return Object.fromEntries(
    words.map((word): [string, string] => {
      const at = word.indexOf('=')
      return at === -1 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)]
    }),
  )
}

interface LabelsProps {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly problem: Problem | null
}

/** The field. */
export function LabelsField({ value, onChange, problem }: LabelsProps) {
  const error = problem?.param?.startsWith('labels') === true ? problem.message : undefined
  return (
    <TextField
      label="Labels"
      hint="Optional, for sums and routing: team=research env=ci. They cannot be changed later."
      autoComplete="off"
      spellCheck={false}
      error={error}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
