/**
 * Generations as JSON of the ops port: the list, one generation with its changes, and the result of a
 * rollback.
 */
import type { JsonObject } from '../../chat/json.js'
import type { GenerationRecord } from '../../config/generations/history.js'
import type { ConfigSource } from '../../config/generations/reload-and-roll-back.js'
import type { ConfigControl, RollbackRequest } from '../../dashboard/server/config-control.js'
import { GatewayError } from '../../errors.js'
import { generationList } from './answer-control-requests.js'

/** The page `/generations` of the ops port. */
export function generationsPage(source: ConfigSource): JsonObject {
  const { inForce, held, problems, waitingForRestart, generations } = generationList(source)
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
  control: ConfigControl,
  { generation, from }: { readonly generation: number; readonly from: number | null },
): Promise<JsonObject> {
  const detail = await control.show(generation, from)
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
 * Throws `forbidden` if `server.admin_token` is not set, and `unauthenticated` if the request does not have
 * it.
 */
export function assertAdmin(source: ConfigSource, hasToken: boolean): void {
  const { adminToken } = source.current().config.server
  if (adminToken === null) {
    throw new GatewayError(
      'forbidden',
      'Rollbacks on this port need server.admin_token in the configuration; administrators can use the dashboard.',
    )
  }
  if (!hasToken) {
    throw new GatewayError(
      'unauthenticated',
      'Send the value of server.admin_token as "Authorization: Bearer TOKEN".',
    )
  }
}

/** Rolls back. Rejects with `not_found` and `malformed_request` as in `RollbackResult`. */
export async function rollBack(
  control: ConfigControl,
  request: RollbackRequest,
): Promise<JsonObject> {
  const answer = await control.rollBack(request)
  if (answer?.result === 'applied') {
    return { generation: answer.generation, content_of: request.generation }
  }
  const kind = answer?.result === 'unknown' ? 'not_found' : 'malformed_request'
  throw new GatewayError(kind, answer?.message ?? 'The rollback got no reply.')
}
