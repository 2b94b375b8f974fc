/** Runs in the admin API: what one has used, and its end, which cuts its requests on every gateway. */
import * as z from 'zod'
import type { Account } from '../../accounts/account.js'
import { FLAG, textIn, TIME, type Fields, readFields } from '../../accounts/changes/field-types.js'
import { REASON } from '../../accounts/changes/fields.js'
import { invalid } from '../../accounts/changes/refusal.js'
import { WRITTEN_AFTER_MS, type ValueRecord } from '../../store/dimension-values.js'
import { endRun, isRun, isUnused, runDimension, runName, shownRun } from '../runs.js'
import { notFound } from '../problem-details.js'
import { replyForm, replyObject, wholeNumber } from './reply-forms.js'
import type { AdminRequest, AdminRoute, JsonReply, Parameters } from './route.js'
import { actorOf, type AdminServices } from './services.js'
import { accountNamed } from './token-access.js'
import { ANY } from './usage.js'

/** The body of `PUT`. */
const RUN_END_FIELDS: Fields = {
  ended: { type: FLAG, means: '`true`: the run is ended.' },
  reason: { type: REASON, means: 'Why, for the audit trail.', default: '' },
}

const OF_ACCOUNT: Parameters = {
  account: {
    type: ANY,
    means: 'The name of the account of the run; a token of an account may leave it out for its own.',
  },
}
const ENDING: Parameters = { ...OF_ACCOUNT, reason: { type: REASON, means: 'Why, for the audit trail.' } }

/** A limit that is younger than the run. */
const SINCE = TIME.nullable().meta({ description: 'It counts from this time on; null: all of the run' })

const RUN = replyForm('Run', () => {
  const [amount, used, remaining] = [z.number(), z.number(), z.number()]
  return replyObject({
    account: z.string(),
    run: z.string(),
    state: z.enum(['live', 'ended']),
    requests: wholeNumber().meta({ description: 'Admitted requests' }),
    input_tokens: wholeNumber(),
    output_tokens: wholeNumber(),
    cost_nano_usd: wholeNumber(),
    cost_usd: z.string().meta({ description: 'The same in dollars, with nine digits' }),
    tools: z
      .array(replyObject({ name: z.string(), calls: wholeNumber() }))
      .meta({ description: 'The tools that the model called, the most frequent first' }),
    limits: z.array(replyObject({ limit: z.string(), amount, used, remaining, counts_since: SINCE })),
    first_at: TIME.nullable(),
    last_at: TIME.nullable(),
    ended_at: TIME.nullable(),
  })
})

export function runRoutes(services: AdminServices): AdminRoute[] {
  const path = '/runs/{id}'
  return [
    {
      ...{ method: 'GET', path, scopes: ['usage:read'], query: OF_ACCOUNT },
      summary: 'What a run has used, and what is left of its limits',
      replies: { 200: RUN },
      handle: async (request) => {
        const { account, run } = await runOf(services, request)
        const record = await services.store.dimensionValues.find(runName(account, run), services.now())
        if (record === null || isUnused(record)) throw notFound()
        return replyOf(services, account, run, record)
      },
    },
    {
      ...{ method: 'DELETE', path, scopes: ['keys:write'], query: ENDING },
      summary: 'End a run: its requests are cut within a second on every gateway, and later ones are refused',
      replies: { 200: RUN },
      handle: async (request) => {
        const { account, run } = await runOf(services, request)
        const record = await services.store.dimensionValues.find(runName(account, run), services.now())
        if (record === null || isUnused(record)) throw notFound()
        const reason = textIn(request.query['reason'])
        return end(services, request, { account, run, reason })
      },
    },
    {
      ...{ method: 'PUT', path, scopes: ['keys:write'], query: ENDING },
      summary: 'End a run, also before its first request',
      body: { name: 'RunEnd', fields: RUN_END_FIELDS },
      replies: { 200: RUN },
      handle: async (request) => {
        const { account, run } = await runOf(services, request)
        const { ended, reason } = readFields(RUN_END_FIELDS, request.body)
        if (ended !== true) throw invalid('ended', 'A run can only be ended.', 'Send {"ended": true}.')
        return end(services, request, { account, run, reason: textIn(reason) })
      },
    },
  ]
}

async function runOf(
  services: AdminServices,
  { token, path, query }: AdminRequest,
): Promise<{ readonly account: Account; readonly run: string }> {
  if (runDimension(services.snapshot().config) === null) throw notFound()
  // Gateways may just be writing what the run has used.
  await new Promise((resolve) => setTimeout(resolve, 2 * WRITTEN_AFTER_MS))
  const run = path['id'] ?? ''
  const { account } = query
  if (typeof account === 'string') {
    const found = await accountNamed(services, token, account)
    if (!isRun(run)) throw notFound()
    return { account: found, run }
  }
  if (token.accountId === null) {
    throw invalid('account', 'The account of the run is missing.', 'Add "account" with its name.')
  }
  const own = await services.store.accountById(token.accountId)
  if (own === null || !isRun(run)) throw notFound()
  return { account: own, run }
}

/** A run to end, and why. */
interface EndingRun {
  readonly account: Account
  readonly run: string
  readonly reason: string
}

async function end(
  services: AdminServices,
  request: AdminRequest,
  { account, run, reason }: EndingRun,
): Promise<JsonReply> {
  const { store, now, snapshot } = services
  const actor = { ...actorOf(request), reason }
  const ended = await endRun(store, snapshot().config, { account, run, nowMs: now(), actor })
  return replyOf(services, account, run, ended)
}

async function replyOf(
  { store, snapshot }: AdminServices,
  account: Account,
  run: string,
  record: ValueRecord,
): Promise<JsonReply> {
  return { status: 200, json: await shownRun(store, snapshot().config, { account, run, record }) }
}
