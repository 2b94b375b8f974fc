/**
 * Generations for operators: the list, one generation with its changes, and a rollback. Serves the ops port and,
 * through `ConfigControl`, the dashboard.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isObject, type JsonObject } from '../../chat/json.js'
import { differencesOf } from '../../config/generations/differences.js'
import type { GenerationRecord } from '../../config/generations/history.js'
import type { ConfigSource } from '../../config/generations/reload-config.js'
import { formatProblem } from '../../config/problem.js'
import type {
  ConfigControl,
  GenerationList,
  ControlRequest,
  RollbackResult,
} from '../../dashboard/server/config-control.js'
import { GatewayError } from '../../errors.js'

/** Serves generations from this process, which reads the configuration. */
export function localConfigControl(source: ConfigSource): ConfigControl {
  return {
    list: () => Promise.resolve(listOf(source)),
    async show(generation, from) {
      const record = source.history.find(generation)
      const content = await source.history.content(generation)
      if (record === null || content === null) return null
      const comparedWith = from ?? before(source, generation)
      const former = comparedWith === null ? null : await source.history.content(comparedWith)
      const changes = former === null ? [] : differencesOf(former.shown, content.shown)
      return { record, comparedWith: former === null ? null : comparedWith, changes }
    },
    async rollBack({ generation, author, reason }) {
      return answerOf(generation, await source.rollBack(generation, { author, reason }))
    },
  }
}

/** The reply to a worker's request about generations; undefined for other requests. */
export async function answerControlRequest(
  control: ConfigControl,
  request: unknown,
): Promise<unknown> {
  if (!isControlRequest(request)) return undefined
  switch (request.type) {
    case 'generations':
      return control.list()
    case 'generation':
      return control.show(request.generation, request.from)
    case 'rollback':
      return control.rollBack(request)
    case 'gatewayStatus':
      return undefined
    default:
      return request satisfies never
  }
}

/** A check of the type is enough, since the other process is the same program. */
function isControlRequest(value: unknown): value is ControlRequest {
  return isObject(value) && typeof value['type'] === 'string'
}

function listOf(source: ConfigSource): GenerationList {
  const { override, lastError, history } = source
  const { generation, waitingForRestart } = source.current()
  return {
    inForce: generation,
    held: override,
    problems: lastError === null ? null : lastError.map(formatProblem),
    waitingForRestart,
    generations: history.list(),
  }
}

/** The generation that was in force before it, if it is stored. */
function before({ history }: ConfigSource, generation: number): number | null {
  return history.list().find((each) => each.generation < generation)?.generation ?? null
}

function answerOf(
  generation: number,
  outcome: Awaited<ReturnType<ConfigSource['rollBack']>>,
): RollbackResult {
  switch (outcome.result) {
    case 'applied':
      return { result: 'applied', generation: outcome.snapshot.generation }
    case 'unknown':
      return {
        result: 'unknown',
        message: `There is no generation ${generation}: GET /generations lists the stored ones.`,
      }
    case 'current':
      return { result: 'refused', message: `Generation ${generation} is in force already.` }
    case 'unreadable':
      return {
        result: 'refused',
        message: `The files of generation ${generation} cannot be read: choose another one.`,
      }
    case 'refused': {
      const problems = outcome.errors.map(formatProblem).join('; ')
      return {
        result: 'refused',
        message: `Generation ${generation} cannot be put in force now: ${problems}`,
      }
    }
    default:
      return outcome satisfies never
  }
}

/** The page `/generations` of the ops port. */
export function generationsPage(source: ConfigSource): JsonObject {
  const { inForce, held, problems, waitingForRestart, generations } = listOf(source)
  return {
    file: source.path,
    generation: inForce,
    started_generation: source.startedGeneration,
    held,
    last_error: problems === null ? null : [...problems],
    waiting_for_restart: [...waitingForRestart],
    generations: generations.map((record) => ({
      ...shownRecord(record),
      in_force: record.generation === inForce,
    })),
  }
}

/** The page of one generation, with all its values, secrets masked. Rejects with `not_found`. */
export async function generationPage(
  source: ConfigSource,
  generation: number,
  from: number | null,
): Promise<JsonObject> {
  const detail = await localConfigControl(source).show(generation, from)
  const content = await source.history.content(generation)
  if (detail === null || content === null) {
    throw new GatewayError(
      'not_found',
      `There is no generation ${generation}: GET /generations lists the stored ones.`,
    )
  }
  return {
    ...shownRecord(detail.record),
    in_force: source.current().generation === generation,
    compared_with: detail.comparedWith,
    changes: detail.changes.map(({ path, before, after }) => ({ path, before, after })),
    config: content.shown,
  }
}

function shownRecord(record: GenerationRecord): JsonObject {
  const { generation, hash, atMs, author, reason, origin, contentOf } = record
  const at = new Date(atMs).toISOString()
  return { generation, hash, at, author, reason, origin, content_of: contentOf }
}

/**
 * Rolls back for a request with this `authorization` header. Rejects with `forbidden` without `server.admin_token`,
 * with `unauthenticated` for another token, with `not_found` and `malformed_request` as in `RollbackResult`.
 */
export async function rollBackAs(
  source: ConfigSource,
  authorization: string | undefined,
  request: { readonly generation: number; readonly author: string; readonly reason: string },
): Promise<JsonObject> {
  const { adminToken } = source.current().config.server
  if (adminToken === null) {
    throw new GatewayError(
      'forbidden',
      'Rollbacks on this port need server.admin_token in the configuration; administrators can use the dashboard.',
    )
  }
  if (!hasAdminToken(source, authorization)) {
    throw new GatewayError(
      'unauthenticated',
      'Send the value of server.admin_token as "Authorization: Bearer TOKEN".',
    )
  }
  const answer = await localConfigControl(source).rollBack(request)
  if (answer?.result === 'applied') {
    return { generation: answer.generation, content_of: request.generation }
  }
  const kind = answer?.result === 'unknown' ? 'not_found' : 'malformed_request'
  throw new GatewayError(kind, answer?.message ?? 'The rollback got no reply.')
}

/** Whether the `authorization` header carries `server.admin_token`; false if none is set. Compares in constant time. */
export function hasAdminToken(source: ConfigSource, authorization: string | undefined): boolean {
  const { adminToken } = source.current().config.server
  const given = /^bearer (\S+)$/i.exec(authorization ?? '')?.[1]
  if (adminToken === null || given === undefined) return false
  return timingSafeEqual(digest(given), digest(adminToken))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
