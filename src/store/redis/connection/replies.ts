/**
 * Parses replies of the server, and limits their time.
 */

/** The value of a key of the primary; `writeError` is why it accepts no writes, or null. */
export interface PrimaryValue {
  readonly value: unknown
  readonly writeError: string | null
}

/** No reply within the time limit. */
export class ReplyTimeout extends Error {}

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

/**
 * Rejects with `ReplyTimeout` after the time limit. A delayed event loop runs timers before it reads sockets, so the
 * sockets are read again before the timeout counts. ioredis has a longer time limit of its own (`commandTimeout`), which
 * may end first when the event loop was delayed.
 */
export function withTimeout<T>(reply: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(new ReplyTimeout(`no answer within ${timeoutMs} ms`))
    const timer = setTimeout(() => setImmediate(late), timeoutMs)
    const failed = (error: unknown): void => {
      if (messageOf(error) === 'Command timed out') late()
      else reject(error instanceof Error ? error : new Error(messageOf(error)))
    }
    reply.then(resolve, failed).finally(() => clearTimeout(timer))
  })
}

/** The message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
