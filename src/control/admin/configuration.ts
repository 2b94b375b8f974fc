/** The configuration in the admin API: in force, its generations, rollbacks, comparisons with another. */
import * as z from 'zod'
import { configurationChange } from '../../accounts/changes/audit-text.js'
import { entryOf } from '../../accounts/changes/decide.js'
import { MAX_REASON, REASON } from '../../accounts/changes/fields.js'
import { invalid } from '../../accounts/changes/refusal.js'
import { maskedConfig } from '../../config/masked-config.js'
import type { Override } from '../../config/generations/config-source.js'
import type { GenerationRecord } from '../../config/generations/history.js'
import type { JsonObject } from '../../base/json.js'
import { unmet } from './conditional-requests.js'
import {
  textIn,
  textType,
  TIME,
  type Fields,
  type FieldType,
  readFields,
} from '../../accounts/changes/field-types.js'
import { notFound, Problem } from '../problem-details.js'
import { anyObject, replyForm, replyObject, wholeNumber } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute } from './route.js'
import { timeText } from '../../base/time-units.js'
import { actorOf, type AdminServices } from './services.js'

const YAML = textType((text) => text !== '', { fix: 'Send the text of a configuration file.' })
const GENERATION_NUMBER: FieldType = textType((text) => /^\d{1,15}$/.test(text), {
  fix: 'Send the number of a generation.',
})

/** The body of a rollback. */
const ROLLBACK_FIELDS: Fields = {
  reason: {
    type: REASON.meta({ maxLength: MAX_REASON }),
    means: 'Why, for the list of generations.',
    default: '',
  },
}

/** The body of a comparison. */
const PLAN_FIELDS: Fields = {
  config: {
    type: YAML,
    means:
      'The YAML text of the other configuration. It may use the placeholders and files of the configuration in force, each at its own place; any other placeholder becomes the text `placeholder`.',
  },
}

const HELD = ['rollback', 'last_good'] as const satisfies readonly Override[]
const held = () =>
  z.enum(HELD).nullable().meta({ description: 'Why it differs from the files; null: it does not' })
const lastError = () => z.array(z.string()).nullable().meta({ description: 'The problems of the files' })
const record = () => ({
  ...{ generation: wholeNumber(), hash: z.string(), at: TIME, author: z.string(), reason: z.string() },
  ...{ origin: z.string(), content_of: wholeNumber().nullable(), in_force: z.boolean() },
})

/** The configuration in the spelling of its file, with the members `held` and `last_error`. */
const CONFIG = replyForm('Config', anyObject)
const GENERATIONS = replyForm('Generations', () => {
  return replyObject({
    file: z.string(),
    generation: wholeNumber().meta({ description: 'The one in force' }),
    started_generation: wholeNumber().meta({ description: 'That of the settings that need a restart' }),
    ...{ held: held(), last_error: lastError(), waiting_for_restart: z.array(z.string()) },
    generations: z.array(replyObject(record())).meta({ description: 'Newest first' }),
  })
})
const GENERATION = replyForm('Generation', () => {
  const [before, after] = [z.string().nullable(), z.string().nullable()]
  return replyObject({
    ...record(),
    compared_with: wholeNumber().nullable(),
    changes: z
      .array(replyObject({ path: z.string(), before, after }))
      .meta({ description: 'The settings that differ, as JSON; null: there is none' }),
    config: anyObject().meta({ description: 'All values; secrets are masked' }),
  })
})
const ROLLED_BACK = replyForm('RolledBack', () => {
  return replyObject({
    ...{ generation: wholeNumber(), content_of: wholeNumber(), scope: z.literal('gateway') },
    gateway: z.string().meta({ description: 'The only gateway that has rolled back' }),
    message: z.string(),
  })
})
/** As `sluice plan --json` prints it. */
const PLAN_RESULT = replyForm('PlanResult', anyObject)

export function configurationRoutes(services: AdminServices): AdminRoute[] {
  return [
    {
      ...{ method: 'GET', path: '/config', scopes: ['config:read'] },
      summary: 'The configuration in force; secrets are masked',
      replies: { 200: CONFIG },
      handle: () => configuration(services),
    },
    {
      ...{ method: 'GET', path: '/generations', scopes: ['config:read'] },
      summary: 'The kept generations of the configuration',
      replies: { 200: GENERATIONS },
      handle: () => generations(services),
    },
    {
      ...{ method: 'GET', path: '/generations/{n}', scopes: ['config:read'] },
      summary: 'One generation with its values and its differences; secrets are masked',
      query: { from: { type: GENERATION_NUMBER, means: 'The generation to compare it with.' } },
      replies: { 200: GENERATION },
      handle: (request) => generation(services, request),
    },
    {
      ...{ method: 'POST', path: '/generations/{n}/rollback', scopes: ['config:write'] },
      summary: 'Make the content of a generation the configuration in force',
      body: { name: 'Rollback', fields: ROLLBACK_FIELDS, isOptional: true },
      replies: { 200: ROLLED_BACK },
      handle: (request) => rollBack(services, request),
    },
    {
      ...{ method: 'POST', path: '/plan', scopes: ['config:read'] },
      summary: 'Compare a configuration with the one in force on recent requests',
      body: { name: 'Plan', fields: PLAN_FIELDS },
      replies: { 200: PLAN_RESULT },
      handle: (request) => plan(services, request),
    },
  ]
}

async function configuration({ configControl, snapshot }: AdminServices): Promise<AdminReply> {
  const list = await configControl.list()
  if (list === null) throw unanswered()
  const { held, problems } = list
  const last = problems === null ? null : [...problems]
  return { status: 200, json: { ...maskedConfig(snapshot()), held, last_error: last } }
}

async function generations({ configControl }: AdminServices): Promise<AdminReply> {
  const list = await configControl.list()
  if (list === null) throw unanswered()
  const { inForce, held, problems, waitingForRestart } = list
  const json: JsonObject = {
    file: list.file,
    generation: inForce,
    started_generation: list.startedGeneration,
    held,
    last_error: problems === null ? null : [...problems],
    waiting_for_restart: [...waitingForRestart],
    generations: list.generations.map((record) => {
      return { ...shownRecord(record), in_force: record.generation === inForce }
    }),
  }
  return { status: 200, json }
}

function shownRecord(record: GenerationRecord): JsonObject {
  const { generation: n, hash, atMs, author, reason, origin, contentOf } = record
  return { generation: n, hash, at: timeText(atMs), author, reason, origin, content_of: contentOf }
}

async function generation(
  { configControl }: AdminServices,
  { path, query }: AdminRequest,
): Promise<AdminReply> {
  const { from } = query
  const detail = await configControl.show(numberIn(path), typeof from === 'string' ? Number(from) : null)
  if (detail === null) throw notFound()
  const { record, comparedWith, changes, isInForce, values } = detail
  const json: JsonObject = {
    ...shownRecord(record),
    in_force: isInForce,
    compared_with: comparedWith,
    changes: changes.map(({ path: setting, before, after }) => ({ path: setting, before, after })),
    config: values,
  }
  return { status: 200, json }
}

async function rollBack(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const values = readFields(ROLLBACK_FIELDS, request.body)
  const failed = unmet(request.conditions, null)
  if (failed !== null) throw failed
  const number = numberIn(request.path)
  const reason = textIn(values['reason']).trim()
  const { actor } = actorOf(request)
  const answer = await services.configControl.rollBack({
    generation: number,
    author: actor,
    reason,
    isRecorded: true,
  })
  if (answer === null) throw unanswered()
  if (answer.result === 'unknown') throw notFound()
  if (answer.result !== 'applied') throw invalid('n', answer.message, 'Choose another generation.')
  const { generation: made, gateway, message, changes } = answer
  const nowMs = services.now()
  await services.store.auditTrail.add(
    entryOf(nowMs, actorOf(request), {
      accountId: '',
      action: 'configuration.rollback',
      target: String(number),
      detail: `generation ${made} of ${gateway}: ${reason}`,
      ...configurationChange(changes),
    }),
  )
  const json = { generation: made, content_of: number, scope: 'gateway', gateway, message }
  return { status: 200, json }
}

async function plan(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const values = readFields(PLAN_FIELDS, request.body)
  const answer = await services.configControl.plan(textIn(values['config']))
  if (answer === null) throw unanswered()
  if ('problems' in answer) {
    const detail = `The configuration is not valid: ${answer.problems.join('; ')}`
    throw invalid('config', detail, 'Correct the file; `sluice check` shows the same problems.')
  }
  return { status: 200, json: answer.plan }
}

function numberIn({ n = '' }: AdminRequest['path']): number {
  if (!/^\d{1,15}$/.test(n)) throw notFound()
  return Number(n)
}

function unanswered(): Problem {
  const detail = 'The process that reads the configuration does not answer.'
  return new Problem('store_unavailable', detail, { fix: 'Try again.' }, ['retry-after', '1'])
}
