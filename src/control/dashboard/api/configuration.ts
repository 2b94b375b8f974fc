/** The configuration for administrators: generations, rollbacks, the fleet. */
import { configurationChange } from '../../../accounts/changes/audit-text.js'
import { checkedReason } from '../../../accounts/changes/fields.js'
import { GatewayError } from '../../../errors.js'
import { maskedConfig } from '../../../config/masked-config.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import { notFound } from '../routing/access.js'
import * as schema from '../schema/schema.js'
import { entryOf, type Services } from '../../services.js'

export function configurationRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/configuration', {
      credential: 'read gateway',
      reply: schema.configurationReply,
      handle: () => configuration(services),
    }),
    signedRoute('GET', '/configuration/{id}', {
      credential: 'read gateway',
      query: schema.generationQuery,
      reply: schema.generationReply,
      handle: ({ id, query }) => generation(services, id, query.from ?? null),
    }),
    signedRoute('POST', '/configuration/{id}/rollback', {
      credential: 'admin',
      body: schema.rollbackBody,
      reply: schema.rollbackReply,
      handle: (request) =>
        rollBack(services, request, {
          generation: numberOf(request.id),
          reason: checkedReason(request.body.reason ?? ''),
        }),
    }),
  ]
}

async function configuration({ configControl, fleet, snapshot }: Services): Promise<Reply> {
  const list = await configControl.list()
  if (list === null) throw unanswered()
  const current = snapshot()
  const json: schema.ConfigurationReply = {
    inForce: list.inForce,
    hash: current.fileHash,
    held: list.held,
    problems: list.problems === null ? null : [...list.problems],
    waitingForRestart: [...list.waitingForRestart],
    generations: [...list.generations],
    fleet: fleet()?.map((member) => ({ ...member })) ?? null,
    values: JSON.stringify(maskedConfig(current), null, 2),
  }
  return { status: 200, json }
}

async function generation({ configControl }: Services, id: string, from: number | null): Promise<Reply> {
  const detail = await configControl.show(numberOf(id), from)
  if (detail === null) throw notFound()
  const { record, comparedWith, changes } = detail
  const json: schema.GenerationReply = { record, comparedWith, changes: [...changes] }
  return { status: 200, json }
}

/** Rolls back and stores an audit entry. */
async function rollBack(
  services: Services,
  actor: Pick<SignedInRequest<unknown, unknown>, 'session' | 'address' | 'requestId'>,
  { generation, reason }: { readonly generation: number; readonly reason: string },
): Promise<Reply> {
  const { account, user } = actor.session
  const wish = { generation, author: user.email, reason, isRecorded: true }
  const answer = await services.configControl.rollBack(wish)
  if (answer === null) throw unanswered()
  if (answer.result !== 'applied') {
    throw answer.result === 'unknown' ? notFound() : new GatewayError('malformed_request', answer.message)
  }
  const what = {
    accountId: account.id,
    action: 'configuration.rollback',
    target: String(generation),
    detail: `generation ${String(answer.generation)} of ${answer.gateway}: ${reason}`,
    ...configurationChange(answer.changes),
  }
  await services.store.auditTrail.add(entryOf(services, actor, what))
  const { gateway, message } = answer
  const json: schema.RollbackReply = { generation: answer.generation, gateway, message }
  return { status: 200, json }
}

function numberOf(id: string): number {
  if (!/^\d{1,15}$/.test(id)) throw notFound()
  return Number(id)
}

function unanswered(): GatewayError {
  const message = 'The process that reads the configuration does not answer; try again.'
  return new GatewayError('overloaded', message, { retryAfterSeconds: 1 })
}
