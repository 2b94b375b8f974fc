/** Reads the JSON texts of records. Errors name the damaged field and never contain a value of the record. */
import type * as z from 'zod'

/** The value of a JSON text. Throws an Error if it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text, which may contain a password hash.
    throw new Error('not JSON')
  }
}

/** The value with the type of the schema. Throws an Error that names the field. */
export function checkFields<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  return parsed(schema.safeParse(value))
}

/** What was parsed. Throws an Error that names the field that is not valid. */
export function parsed<Value>({ success, data, error }: z.ZodSafeParseResult<Value>): Value {
  if (success) return data
  const names = (error.issues[0]?.path ?? []).filter((step) => typeof step === 'string')
  const field = names.map((name) => `'${name}'`).reverse()
  throw new Error(`field ${field.join(' of ')} is not valid`)
}
