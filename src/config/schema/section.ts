/**
 * A section of the file as the code reads it: the values of its schema, with names in camelCase and null for
 * an absent key. The types of the configuration come from the schemas, so that a key is declared once.
 */
import type * as z from 'zod'

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name

type Settled<Value> = undefined extends Value ? Immutable<Exclude<Value, undefined>> | null : Immutable<Value>

/** The value, and everything in it, as readonly. */
export type Immutable<Value> = Value extends object
  ? { readonly [Name in keyof Value]: Immutable<Value[Name]> }
  : Value

/** The resolved form of a section with these values. Keys below its own keys are not renamed. */
export type Section<Values> = {
  readonly [Name in keyof Values & string as CamelCase<Name>]-?: Settled<Values[Name]>
}

/** The values of a section in this form. */
export function section<Schema extends z.ZodObject>(
  schema: Schema,
  values: z.output<Schema>,
): Section<z.output<Schema>> {
  const given: Readonly<Record<string, unknown>> = values
  const entries = Object.keys(schema.shape).map((name) => [camelCase(name), given[name] ?? null])
  // The schema has checked the values, and both forms have the same names.
  return Object.fromEntries(entries) as Section<z.output<Schema>>
}

function camelCase(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
}
