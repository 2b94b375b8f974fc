/** The time limit of a command: the store stops waiting for a reply that takes longer than `timeout_ms`. */
import { messageOf } from './script.js'

/** No reply within the time limit. */
export class ReplyTimeout extends Error {}

/**
 * Rejects with `ReplyTimeout` after the time limit. A delayed event loop runs timers before it reads sockets,
 * so the sockets are read again before the timeout counts. ioredis has a longer time limit of its own
 * (`commandTimeout`), which may end first when the event loop was delayed.
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
