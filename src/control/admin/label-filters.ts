/** The filter of lists by labels: `label=NAME=VALUE` or `label=NAME`; several must all hold. */
import { LABEL_NAME, type Labels } from '../../accounts/labels.js'
import type { JsonValue } from '../../base/json.js'
import { textType } from '../../accounts/changes/field-types.js'
import type { Parameter } from './route.js'

export const LABEL_FILTER: Parameter = {
  type: textType((text) => LABEL_NAME.test(text.split('=', 1)[0] ?? ''), {
    fix: 'Send NAME=VALUE or NAME.',
  }),
  means: 'NAME=VALUE or NAME; repeated: all must hold.',
  isRepeatable: true,
}

/** A label that must be there. `value` null: with any value. */
interface LabelFilter {
  readonly name: string
  readonly value: string | null
}

/** The filters in the values of the parameter. */
export function readLabelFilters(values: JsonValue | undefined): LabelFilter[] {
  const texts = Array.isArray(values) ? values.map(String) : []
  return texts.map((text) => {
    const at = text.indexOf('=')
    return at === -1 ? { name: text, value: null } : { name: text.slice(0, at), value: text.slice(at + 1) }
  })
}

/** Whether the labels pass all filters. */
export function matchesLabels(labels: Labels = {}, filters: readonly LabelFilter[]): boolean {
  return filters.every(({ name, value }) => {
    return Object.hasOwn(labels, name) && (value === null || labels[name] === value)
  })
}
