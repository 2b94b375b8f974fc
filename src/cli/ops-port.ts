/** Asks the running gateway of a configuration file on its ops port. */
import { isIPv6 } from 'node:net'
import type { ServerConfig } from '../config/config.js'

/** Longer than a busy primary takes. */
const ANSWER_MS = 10_000

/** The URL of the ops port as this machine reaches it. */
export function opsUrl({ opsHost, opsPort }: Pick<ServerConfig, 'opsHost' | 'opsPort'>): string {
  const reached: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const host = reached[opsHost] ?? opsHost
  return `http://${isIPv6(host) ? `[${host}]` : host}:${String(opsPort)}`
}

/** The JSON of a page. Throws an `Error` that names the address if no gateway answers. */
export async function askOps(url: string, path: string): Promise<unknown> {
  try {
    const response = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) })
    if (response.ok) return await response.json()
    throw new Error(`status ${String(response.status)}`)
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `No gateway answers on ${url} (server.ops_host and server.ops_port): ${why}`
    throw new Error(message, { cause: error })
  }
}
