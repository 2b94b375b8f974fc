/** Raises of budgets in the admin API: an account's or key's budget is higher until a time. */
import { readFields, textIn, TIME, type Fields } from '../../accounts/changes/field-types.js'
import { SHOWN_TEXT, timeOfMs } from '../../accounts/changes/fields.js'
import { RAISE_TYPES, raiseAccountLimit, raiseKeyLimit } from '../../accounts/changes/raise-limit.js'
import type { Account, ApiKey } from '../../accounts/account.js'
import { LIMIT_MEMBERS } from '../../base/limit-members.js'
import { unmet } from './conditional-requests.js'
import { keyTag, limitsObject } from './objects.js'
import { notFound } from '../problem-details.js'
import { fieldsObject, replyForm } from './reply-forms.js'
import type { AdminRequest, AdminRoute, JsonReply } from './route.js'
import type { AdminServices } from './services.js'
import { accountNamed, assertNotOwn } from './token-access.js'
import { changingOf } from './token-bounds.js'

/** A raise, in requests and in replies. */
const RAISE_FIELDS: Fields = {
  account: { type: SHOWN_TEXT, means: 'The name of the account.', readOnly: true },
  key: {
    type: SHOWN_TEXT,
    means: 'The name of the key; absent: the account.',
    optional: true,
    readOnly: true,
  },
  ...RAISE_TYPES,
  by: { type: SHOWN_TEXT, means: 'Who raised it.', readOnly: true },
  created_at: { type: TIME, means: 'When it was raised.', readOnly: true },
}

const RAISE = replyForm('Raise', () => fieldsObject(RAISE_FIELDS))

export function raiseRoutes(services: AdminServices): AdminRoute[] {
  const body = { name: 'Raise', fields: RAISE_FIELDS }
  return [
    {
      ...{ method: 'POST', path: '/accounts/{name}/limits/raise', scopes: ['accounts:write'], body },
      summary: 'Raise a budget of an account until a time',
      replies: { 201: RAISE },
      handle: (request) => raiseAccount(services, request),
    },
    {
      ...{ method: 'POST', path: '/accounts/{name}/keys/{key_name}/raise', scopes: ['keys:write'], body },
      summary: 'Raise a budget of a key until a time',
      replies: { 201: RAISE },
      handle: (request) => raiseKey(services, request),
    },
  ]
}

async function raiseAccount(services: AdminServices, request: AdminRequest): Promise<JsonReply> {
  const { token, path, conditions } = request
  const account = await accountNamed(services, token, path['name'] ?? '')
  assertNotOwn(token, account)
  const wish = readFields(RAISE_FIELDS, request.body)
  const check = (record: Account | ApiKey) => {
    return 'accountId' in record ? null : unmet(conditions, textIn(limitsObject(record)['etag']))
  }
  const raised = await raiseAccountLimit(await changingOf(services, request), account, wish, check)
  return replyOf(raised, { account: account.name })
}

async function raiseKey(services: AdminServices, request: AdminRequest): Promise<JsonReply> {
  const { token, path, conditions } = request
  const account = await accountNamed(services, token, path['name'] ?? '')
  const wish = readFields(RAISE_FIELDS, request.body)
  const key = await services.store.keyByName(account.id, path['key_name'] ?? '')
  if (key === null) throw notFound()
  const check = (record: Account | ApiKey) =>
    'accountId' in record ? unmet(conditions, keyTag(record)) : null
  const changing = await changingOf(services, request)
  const raised = await raiseKeyLimit(changing, account, { key, wish, check })
  return replyOf(raised, { account: account.name, key: raised.name })
}

function replyOf({ raises = [] }: Account | ApiKey, of: { account: string; key?: string }): JsonReply {
  const raise = raises.at(-1)
  if (raise === undefined) throw notFound()
  const { budget, nanoUsd, untilMs, reason, by, atMs } = raise
  return {
    status: 201,
    json: {
      ...of,
      budget: LIMIT_MEMBERS.find(({ field }) => field === budget)?.name ?? '',
      usd: nanoUsd / 1e9,
      until: timeOfMs(untilMs),
      reason,
      by,
      created_at: timeOfMs(atMs),
    },
  }
}
