/**
 * Finds the gateway that runs with a configuration file: by the file that it writes to its data folder, else
 * by the ops port in the configuration file.
 */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { isObject, numberOf, stringOf, type JsonObject } from '../base/json.js'
import { historyOf, opsAddressIn, contentIn } from '../config/generations/history.js'
import { readRunning } from '../config/generations/running-gateway-file.js'
import { loadConfig, type Env, type Loaded, type LoadResult } from '../config/load-config.js'

const ANSWER_MS = 2_000
/** Time for loading, testing and publishing a generation. */
const CHANGE_MS = 15_000

export interface FoundGateway {
  /** The origin of its ops port. */
  readonly origin: string
  /** The page `/generations`. */
  readonly page: JsonObject
  /** The folder of its history; null if it is not on disk. */
  readonly folder: string | null
  /** The generation in force; null if it is unknown. */
  readonly generation: number | null
  /** The generation whose values are in force for settings that need a restart: port, workers, store. */
  readonly startedGeneration: number | null
}

/** The gateway that runs with the file, which may be broken; null if none replies. */
export async function findGateway(loaded: LoadResult, env: Env): Promise<FoundGateway | null> {
  const folder = historyOf(loaded, env)
  const running = folder === null ? null : readRunning(folder)
  const named = loaded.ok ? loaded.config.server : opsAddressIn(loaded.sources, env)
  for (const { opsHost, opsPort } of running === null ? [named] : [running, named]) {
    const origin = originOf(opsHost, opsPort)
    const page = await requestGateway(origin, '/generations').catch(() => null)
    if (page?.status !== 200 || page.json['file'] !== loaded.sources.path) continue
    const startedGeneration = numberOf(page.json['started_generation']) ?? null
    const generation = numberOf(page.json['generation']) ?? null
    return { origin, page: page.json, folder, generation, startedGeneration }
  }
  return null
}

/** The configuration of a stored generation, with the current secrets; null if it cannot be loaded. */
export async function loadGeneration(
  loaded: LoadResult,
  { folder }: Pick<FoundGateway, 'folder'>,
  generation: number | null,
): Promise<Loaded | null> {
  if (folder === null || generation === null) return null
  const content = await contentIn(folder, generation)
  if (content === null) return null
  const stored = loadConfig(loaded.sources.path, process.env, content)
  return stored.ok ? stored : null
}

/** A reply of the ops port. */
interface OpsReply {
  readonly status: number
  readonly json: JsonObject
}

/** Sends a request to the ops port. Rejects without a reply within two seconds, or 15 for a POST. */
export async function requestGateway(
  origin: string,
  path: string,
  post?: { readonly token: string; readonly body: object },
): Promise<OpsReply> {
  const signal = AbortSignal.timeout(post === undefined ? ANSWER_MS : CHANGE_MS)
  const options =
    post === undefined
      ? {}
      : {
          method: 'POST',
          headers: { authorization: `Bearer ${post.token}`, 'content-type': 'application/json' },
        }
  // Not `fetch`: loading it takes a fifth of the time of a command.
  const req = request(`${origin}${path}`, { ...options, agent: false, signal })
  req.end(post === undefined ? undefined : JSON.stringify(post.body))
  const [reply] = (await once(req, 'response')) as [IncomingMessage]
  const json: unknown = JSON.parse(await text(reply))
  return { status: reply.statusCode ?? 0, json: isObject(json) ? json : {} }
}

/** The message of an error reply. */
export function messageOf({ status, json }: OpsReply): string {
  const { error } = json
  return (isObject(error) ? stringOf(error['message']) : undefined) ?? `status ${String(status)}`
}

/** The origin of an ops port from this machine. */
export function originOf(host: string, port: number): string {
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${String(port)}`
}
