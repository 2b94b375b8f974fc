/** `POST /admin/v1/apply`: what `sluice apply --server` sends. */
import { type FieldFault, faulty } from '../../accounts/changes/refusal.js'
import type { Account } from '../../accounts/account.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { unmet } from './conditional-requests.js'
import { documentSteps, importWarnings, titleOf, type DocumentFault, type WantedObject } from './documents.js'
import * as z from 'zod'
import { FLAG, rule, textIn, textType, readFields } from '../../accounts/changes/field-types.js'
import type { Fields, FieldType } from '../../accounts/changes/field-types.js'
import { NO_SECRET, planApply, runApply, type Applied, type Plan } from './plan-and-apply.js'
import { Problem } from '../problem-details.js'
import { anyObject, replyForm, replyObject, wholeNumber } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute } from './route.js'
import { actorOf, type AdminServices } from './services.js'
import type { AccountView, ApplyOptions, Holdings } from './group-documents.js'
import { isLive, misnamed, sees } from './token-access.js'
import { tokenBounds } from './token-bounds.js'
import { isOwnName, ownNameStart } from '../../accounts/names.js'
import { LABEL_VALUE, MAX_LABEL_VALUE } from '../../accounts/labels.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import { adminTurns } from '../../base/turn-queue.js'

/** The most documents of one request. */
const MAX_DOCUMENTS = 10_000
/** About as many documents with a few labels and limits each. */
const MAX_APPLY_BYTES = 4 * 1024 * 1024

const DOCUMENTS: FieldType = z
  .array(z.custom<JsonValue>(), rule(`Send a list of at most ${MAX_DOCUMENTS}.`, '$PATH is not valid.'))
  .max(MAX_DOCUMENTS, rule(`Send a list of at most ${MAX_DOCUMENTS}.`, '$PATH is not valid.'))
  .meta({ items: { type: 'object' } })

/** The body. */
const APPLY_FIELDS: Fields = {
  documents: { type: DOCUMENTS, means: 'Documents of the kinds Account, Member and Key.' },
  dry_run: { type: FLAG, means: 'Only plan.', default: false },
  prune: { type: FLAG, means: 'Remove what has the label and no document.', default: false },
  adopt: {
    type: FLAG,
    means: 'Take over accounts without the label, which are refused otherwise.',
    default: false,
  },
  managed_by: {
    type: textType((text) => LABEL_VALUE.test(text), {
      fix: 'Send 1 to 64 printable ASCII characters without spaces and commas.',
    }),
    means: 'The value of the label `managed-by`.',
    default: 'apply',
  },
}

const APPLY_RESULT = replyForm('ApplyResult', () => {
  const [file, line, column] = [z.null(), z.null(), z.null()]
  const planned = () => {
    const adopts = 'The keys, members and parent of an account that is taken over'
    const change = replyObject({
      kind: z.enum(['Account', 'Member', 'Key']),
      name: z.string(),
      account: z.string(),
      changes: anyObject().meta({ description: 'Old and new value by field' }),
      adopts: anyObject().optional().meta({ description: adopts }),
    })
    return z.array(change)
  }
  return replyObject({
    ...{ create: planned(), change: planned(), remove: planned(), unchanged: wholeNumber() },
    applied: z.boolean(),
    errors: z.array(
      replyObject({
        ...{ file, line, column, account: z.string(), message: z.string() },
        may_be_applied: z.boolean().meta({ description: 'The store did not say whether it was' }),
      }),
    ),
    warnings: z
      .array(z.string())
      .optional()
      .meta({ description: 'What is applied and does not work yet; absent if there is nothing.' }),
  })
})

export function applyRoutes(services: AdminServices): AdminRoute[] {
  return [
    {
      ...{
        method: 'POST',
        path: '/apply',
        scopes: ['accounts:write', 'keys:write'],
        needsAll: true,
      },
      summary: 'Make accounts, members and keys as the documents describe them',
      body: { name: 'Apply', fields: APPLY_FIELDS, maxBytes: MAX_APPLY_BYTES },
      replies: { 200: APPLY_RESULT },
      handle: (request) => apply(services, request),
    },
  ]
}

async function apply(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, snapshot, now } = services
  const values = readFields(APPLY_FIELDS, request.body)
  const failed = unmet(request.conditions, null)
  if (failed !== null) throw failed
  const documents = Array.isArray(values['documents']) ? values['documents'] : []
  const { plans } = snapshot().config
  const read = await adminTurns.start(documentSteps(documents, plans))
  const { objects, faultyAccounts } = read
  const bounds = await tokenBounds(services, request.token)
  const { accountId } = request.token
  const own = accountId === null ? null : await store.accountById(accountId)
  const options = {
    ...{ store, plans, now, objects, faultyAccounts, actor: actorOf(request) },
    prune: values['prune'] === true,
    managedBy: managerFor(own, textIn(values['managed_by'])),
    adopt: values['adopt'] === true,
    ...(accountId === null ? {} : { view: await viewOf(services, request.token, own) }),
    permissionFor: permissions(services, request.token),
    bounds,
  }
  assertPrune(options.prune, request)
  const plan = await planApply(options)
  await adminTurns.next()
  const references = [...plan.faults, ...withoutSecret(plan, objects)]
  refuseFaults([...read.faults, ...localSecrets(documents), ...references])
  await adminTurns.next()
  const isDryRun = values['dry_run'] === true
  const json = isDryRun ? planJson(plan, false) : appliedJson(await runApply(options, plan))
  await adminTurns.next()
  const warnings = importWarnings(objects, snapshot().config.auth.acceptImportedKeys)
  return { status: 200, json: { ...json, ...warningsJson(warnings) } }
}

/** Why a name is no value of the label `managed-by` for who acts on the whole gateway. */
export const RESERVED_MANAGER = 'names with "--" are those of tokens with an account'

/**
 * The value of the label `managed-by`: that of a token with an account (`own`) starts as the names that it
 * gives, so that no document of the whole gateway removes or takes over what the token made. Throws
 * `invalid_field` for one of this form without an account.
 */
function managerFor(own: Account | null, wanted: string): string {
  if (own !== null) return `${ownNameStart(own.name)}${wanted}`.slice(0, MAX_LABEL_VALUE)
  if (!isOwnName(wanted)) return wanted
  throw new Problem('invalid_field', `managed_by: ${RESERVED_MANAGER}.`, {
    field: 'managed_by',
    fix: 'Send a name without "--".',
  })
}

/** What a token with an account sees; nothing if the account is gone. */
async function viewOf(services: AdminServices, token: AdminToken, own: Account | null): Promise<AccountView> {
  const above = own === null ? [] : await services.store.ancestorsOf(own)
  return { sees: (account) => sees(services, token, account), levelsAbove: above.length }
}

/** A token with an account would remove objects of accounts that it does not see. */
function assertPrune(prune: boolean, { token }: AdminRequest): void {
  if (!prune || token.accountId === null) return
  throw new Problem('forbidden', 'A token with an account cannot prune.', {
    field: 'prune',
    fix: 'Use a token without an account.',
  })
}

/**
 * Which accounts a token may change: read for one account, before the transaction that applies it. Many
 * documents take a while, in which the token may be revoked.
 */
export function permissions(
  services: Pick<AdminServices, 'store' | 'now'>,
  token: AdminToken,
): NonNullable<ApplyOptions['permissionFor']> {
  return async (account, objects) => {
    if (!(await isLive(services, token))) {
      const ended = new Problem('forbidden', 'the token has ended')
      return () => ended
    }
    if (token.accountId === null) return () => null
    const own = await services.store.accountById(token.accountId)
    const isSeen = account === null || (await sees(services, token, account))
    const parents = new Map<string, Account | null>()
    const seen = new Set<string>()
    for (const { kind, values } of objects) {
      const { parent } = values
      if (kind !== 'Account' || typeof parent !== 'string') continue
      const above = await services.store.accountByName(parent)
      parents.set(parent, above)
      if (above !== null && (await sees(services, token, above))) seen.add(parent)
    }
    return (object) => {
      const { kind, values } = object
      const title = titleOf(object)
      const isNamed = kind === 'Account'
      if (!isSeen && !isNamed) return new Problem('not_found', `${title}: there is no such account`)
      const wrongName = isNamed && !(isSeen && account !== null) ? misnamed(own, object.name) : null
      if (wrongName !== null) return wrongName
      if (!isSeen) return new Problem('name_taken', `${title}: the name "${object.account}" is in use`)
      if (!isNamed) return null
      if (account?.id === token.accountId) {
        return new Problem('forbidden', `${title}: a token does not change its own account`)
      }
      const { parent } = values
      const isNew = typeof parent === 'string' && parents.get(parent) === null
      if (typeof parent !== 'string' || !(seen.has(parent) || isNew)) {
        return new Problem('forbidden', `${title}: the parent must be the token's account, or below it`)
      }
      return null
    }
  }
}

/** New keys that have no secret. */
export function withoutSecret(
  { changes }: Plan,
  objects: readonly WantedObject[],
  hasOwn: (object: WantedObject) => boolean = () => false,
): DocumentFault[] {
  const byIndex = new Map(objects.map((object) => [object.index, object]))
  return changes.flatMap(({ action, kind, index }) => {
    if (action !== 'create' || kind !== 'Key' || index === null) return []
    const object = byIndex.get(index)
    const hasDigest = object?.digest !== null || object.newDigest !== null
    if (object === undefined || hasDigest || hasOwn(object)) return []
    const message = `${titleOf(object)} ${NO_SECRET}`
    return [{ index, path: ['metadata', 'name'], atKey: false, message }]
  })
}

/** Secrets that only the command can write. */
function localSecrets(documents: readonly JsonValue[]): DocumentFault[] {
  return documents.flatMap((document, index) => {
    const spec = isObject(document) && isObject(document['spec']) ? document['spec'] : {}
    const name = ['secret_file', 'kubernetes_secret'].find((each) => spec[each] !== undefined)
    if (name === undefined) return []
    const message = 'is for `sluice apply`, which writes the secret: send secret_sha256'
    return [{ index, path: ['spec', name], atKey: true, message }]
  })
}

function refuseFaults(faults: readonly DocumentFault[]): void {
  if (faults.length === 0) return
  const inOrder = [...faults].sort((a, b) => a.index - b.index)
  throw faulty(
    inOrder.map(({ index, path, atKey, message }): FieldFault => {
      const field = [`documents[${index}]`, ...path].join('.')
      const isUnknown = atKey && message.startsWith('unknown field')
      const kind = isUnknown ? 'unknown_field' : 'invalid_field'
      return { kind, field, detail: `${field}: ${message}.`, fix: 'Correct the document.' }
    }),
  )
}

/** The plan in the form of `--json`. */
export function planJson(
  { changes, unchanged }: Pick<Plan, 'changes' | 'unchanged'>,
  applied: boolean,
): JsonObject {
  const of = (action: string): JsonObject[] => {
    return changes
      .filter((change) => change.action === action)
      .map(({ kind, name, account, changes: fields, adopts }) => ({
        ...{ kind, name, account },
        changes: Object.fromEntries(Object.entries(fields).map(([field, pair]) => [field, [...pair]])),
        ...(adopts === undefined ? {} : { adopts: shownHoldings(adopts) }),
      }))
  }
  return {
    ...{ create: of('create'), change: of('change'), remove: of('remove'), unchanged },
    ...{ applied, errors: [] },
  }
}

/** The member of a result that has warnings. */
export function warningsJson(warnings: readonly string[]): JsonObject {
  return warnings.length === 0 ? {} : { warnings: [...warnings] }
}

function shownHoldings({ keys, members, parent }: Holdings): JsonObject {
  return { keys: [...keys], members: [...members], parent }
}

/** The result in the same form. */
function appliedJson({ changes, unchanged, failures }: Applied): JsonObject {
  const errors = failures.map(({ account, message, isUnsure }) => {
    return {
      file: null,
      line: null,
      column: null,
      account,
      message: `account ${account}: ${message}`,
      may_be_applied: isUnsure,
    }
  })
  return { ...planJson({ changes, unchanged }, failures.length === 0), errors }
}
