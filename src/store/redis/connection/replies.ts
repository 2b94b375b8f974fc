/** Parses replies and errors of the server. */

/** The value of a key of the primary; `writeError` is why it accepts no writes, or null. */
export interface PrimaryValue {
  readonly value: unknown
  readonly writeError: string | null
}

/** Whether a replica refused a write; older servers begin the message with the line of the script. */
export function isReadOnly(message: string): boolean {
  return message.includes('READONLY ')
}

/** The reply of `read-from-primary.lua`. Throws an Error if it is a replica's. */
export function parsePrimaryValue(answer: unknown): PrimaryValue {
  const [value, refusal] = Array.isArray(answer) ? (answer as unknown[]) : []
  const why = typeof refusal === 'string' ? refusal : ''
  if (isReadOnly(why)) throw new Error(why)
  return { value, writeError: why === '' ? null : why }
}

/** The message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
