/** The names of options for the fields that they set, and their values for `accounts/changes`. */
import { PLAIN_LIMITS, UNIT_LIMITS } from '../base/limit-members.js'

/** The options of commands that set the fields of accounts, keys, members and tokens. */
const OPTIONS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(PLAIN_LIMITS.map(({ name, option }) => [`limits.${name}`, `--${option}`])),
  [`limits.${UNIT_LIMITS.name}`]: `--${UNIT_LIMITS.option}`,
  expires_at: '--expires',
  key_name: '--key',
  overlap_seconds: '--overlap',
}

/** `--models` of `models[0]`, `--label team` of `labels.team`, `--units-per-minute image` of that unit. */
export function optionOf(field: string): string {
  const known = OPTIONS[field]
  if (known !== undefined) return known
  const units = `limits.${UNIT_LIMITS.name}.`
  if (field.startsWith(units)) return `--${UNIT_LIMITS.option} ${field.slice(units.length)}`
  const [, label] = /^labels\.(.*)$/s.exec(field) ?? []
  if (label !== undefined) return `--label ${label}`
  const [name = ''] = field.split(/[.[]/, 1)
  return `--${name === 'labels' ? 'label' : name.replaceAll('_', '-')}`
}

/**
 * Whether a wrong value of the field is wrong usage of its option: values that have a form, in contrast to
 * names and to what the store decides.
 */
export function isOptionValue(field: string): boolean {
  return /^(?:limits\.|labels\.|models|allow_tools|expires_at|plan$|role$|scopes|usd$|budget$|until$|reason$|overlap_seconds$|sub$|jti$)/.test(
    field,
  )
}

/** A number, or the text if it is none. */
export function amountOf(text: string): number | string {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
