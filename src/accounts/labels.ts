/**
 * Validates the labels of keys, such as `team=research`, which routes (`when`), limits (`label:NAME`),
 * priorities and sums use. A label is not a permission: account holders choose the labels of their keys in
 * the dashboard.
 */

/** Values by name. */
export type Labels = Readonly<Record<string, string>>

/** Maximum labels of one key. */
export const MAX_LABELS = 16
/** A valid name; `__proto__` is excluded because objects have it already. */
export const LABEL_NAME = /^(?!__proto__$)[a-z0-9_.-]{1,32}$/
/** Maximum length of a value. */
export const MAX_LABEL_VALUE = 64
/** A valid value: printable ASCII without spaces and commas. */
export const LABEL_VALUE = /^[!-+\--~]{1,64}$/
/** The label that sets the priority under overload: `high`, `low`, or any other value for normal. */
export const PRIORITY = 'priority'

/** The label with the name of who made an object for `sluice apply`. */
export const MANAGED_BY = 'managed-by'

export const NO_LABELS: Labels = Object.freeze({})

/** `k=v` separated by spaces, as in the ledger; null for no labels. */
export function labelsText(labels: Labels): string | null {
  const text = Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
  return text === '' ? null : text
}

/** The name and value of a label that is written as `NAME=VALUE`. */
export function readLabel(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf('=')
  return { name: text.slice(0, Math.max(0, at)), value: text.slice(at + 1) }
}

/** Whether the text is a valid label, written as `NAME=VALUE`. */
export function isLabel(text: string): boolean {
  const { name, value } = readLabel(text)
  return LABEL_NAME.test(name) && LABEL_VALUE.test(value)
}
