/** Options of selections and filters. */

/** One of them. */
export interface Option {
  readonly value: string
  readonly label: string
  /** Shown on hover. */
  readonly title?: string
}

/** Options whose labels are their values. */
export function optionsOf(values: readonly string[]): readonly Option[] {
  return values.map((value) => ({ value, label: value }))
}
