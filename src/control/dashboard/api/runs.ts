/** Runs: what one has used, what is left of its limits, and its end. */
import type { Actor } from '../../../accounts/changes/decide.js'
import { checkedReason } from '../../../accounts/changes/fields.js'
import { GatewayError } from '../../../errors.js'
import { WRITTEN_AFTER_MS, type ValueRecord } from '../../../store/dimension-values.js'
import { notFound, permissionIn } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import { endRun, isRun, isUnused, limitsOfRun, mostCalled, runDimension, runName } from '../../runs.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../../services.js'
import type { AccountSession } from '../../sign-in/sessions.js'

export function runRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/run', {
      credential: 'usage',
      query: schema.runQuery,
      reply: schema.runReply,
      handle: async ({ session, query: { run } }) => {
        return replyOf(services, session, run, await known(services, session, run))
      },
    }),
    signedRoute('POST', '/run/end', {
      credential: 'change limits',
      query: schema.endRunQuery,
      body: schema.endRunBody,
      reply: schema.runReply,
      handle: (request) => end(services, request),
    }),
  ]
}

async function end(
  services: Services,
  { session, body: { run, reason = '' }, address, requestId }: SignedInRequest<unknown, schema.EndRunBody>,
): Promise<Reply> {
  await known(services, session, run)
  const { store, snapshot, now } = services
  const actor: Actor = { actor: session.user.email, address, requestId, reason: checkedReason(reason) }
  const ending = { account: session.account, run, nowMs: now(), actor }
  return replyOf(services, session, run, await endRun(store, snapshot().config, ending))
}

/** A run of the account with a request, or that was ended. Throws `not_found`. */
async function known(
  { store, snapshot, now }: Services,
  { account, isAll }: AccountSession,
  run: string,
): Promise<ValueRecord> {
  if (runDimension(snapshot().config) === null || !isRun(run)) throw notFound()
  if (isAll) {
    const message = 'Set "account": a run is of one account.'
    throw new GatewayError('malformed_request', message, { param: 'account' })
  }
  // Gateways may just be writing what the run has used.
  await new Promise((resolve) => setTimeout(resolve, 2 * WRITTEN_AFTER_MS))
  const record = await store.dimensionValues.find(runName(account, run), now())
  if (record === null || isUnused(record)) throw notFound()
  return record
}

async function replyOf(
  { store, snapshot }: Services,
  session: AccountSession,
  run: string,
  record: ValueRecord,
): Promise<Reply> {
  const { account } = session
  const { requests, inputTokens, outputTokens, costNanoUsd, tools } = record
  const { firstAtMs, lastAtMs, endedAtMs } = record
  const json: schema.Sent<typeof schema.runReply> = {
    ...{ account: account.name, run, state: endedAtMs === null ? 'live' : 'ended' },
    ...{ requests, inputTokens, outputTokens, costNanoUsd, firstAtMs, lastAtMs, endedAtMs },
    tools: mostCalled(tools),
    limits: await limitsOfRun(store, snapshot().config, { account, run, firstAtMs }),
    mayEnd: (await permissionIn(store, session, 'change limits')) === 'yes',
  }
  return { status: 200, json }
}
