/**
 * What servers answer, and when: looks at a key, refusals of replicas, and answers that come too late.
 */

/** What stands at a key; `refusal` is why the primary takes no writes now, null where it does. */
export interface PrimaryValue {
  readonly value: unknown
  readonly writeError: string | null
}

/** A server that let a command wait for as long as that. */
export class ReplyTimeout extends Error {}

/** Whether a replica refused a write; older servers put the place in the script before it. */
export function isReadOnly(message: string): boolean {
  return message.includes('READONLY ')
}

/** The answer to a look at a key. Throws an Error where a replica gave it. */
export function parsePrimaryValue(answer: unknown): PrimaryValue {
  const [value, refusal] = Array.isArray(answer) ? (answer as unknown[]) : []
  const why = typeof refusal === 'string' ? refusal : ''
  if (isReadOnly(why)) throw new Error(why)
  return { value, writeError: why === '' ? null : why }
}

/**
 * A process that was held up runs its timers before it reads its sockets: what is late by then may
 * have been answered long ago, and is looked for before anybody is blamed.
 */
export function withTimeout<T>(reply: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(new ReplyTimeout(`no answer within ${timeoutMs} ms`))
    const timer = setTimeout(() => setImmediate(late), timeoutMs)
    reply.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** What an error says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
