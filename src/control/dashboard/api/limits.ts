/** The current state of the limits and budgets of an account and its keys. Reading it consumes nothing. */
import { HOUR_MS } from '../../../base/time-units.js'
import { accountPart } from '../../../accounts/authentication/authentication-result.js'
import type { Account, ApiKey, Identity } from '../../../accounts/account.js'
import type { Snapshot } from '../../../config/config.js'
import { GatewayError } from '../../../errors.js'
import { limitDemandsOf, ownSubject, Rules, type LimitDemand } from '../../../limits/find-limits.js'
import { isBudgetKind, isWindowKind, leftOf, spanOf } from '../../../store/limit-arithmetic.js'
import { LIMIT_NAMES } from '../../../limits/limit-refusal.js'
import type { Demand, LimitState } from '../../../store/ledger.js'
import type { GroupUse } from '../../../store/usage-queries.js'
import { countedSince } from '../limit-levels.js'
import { withBelow } from '../../../usage/account-selection.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import { notFound } from '../routing/access.js'
import * as schema from '../schema/schema.js'
import { scopeOf, type Services } from '../../services.js'

const MAX_KEYS = 100
/** Only this many of the newest keys are searched for limits. */
const MAX_SEARCHED_KEYS = 500

export function limitRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/limits', {
      credential: 'usage',
      query: schema.limitsQuery,
      reply: schema.limitsReply,
      handle: (request) => limits(services, request),
    }),
  ]
}

/** A limit and its key; null: the account. */
interface Owned {
  readonly claim: LimitDemand
  readonly key: ApiKey | null
}

async function limits(
  services: Services,
  { session }: SignedInRequest<ReturnType<typeof schema.limitsQuery.parse>, undefined>,
): Promise<Reply> {
  const { store, now } = services
  const accountId = scopeOf(session)
  if (accountId === null) {
    const message = 'Set "account": limits are shown for one account.'
    throw new GatewayError('malformed_request', message, { param: 'account' })
  }
  const account = accountId === session.account.id ? session.account : await store.accountById(accountId)
  if (account === null) throw notFound()
  const page = { order: 'newest_first', after: null, limit: MAX_SEARCHED_KEYS } as const
  const keys = (await store.listKeys(accountId, page)).items.filter(
    ({ revokedAtMs }) => revokedAtMs === undefined,
  )
  const levels = await limitLevels(services, account, keys)
  const json: schema.LimitsReply = { nowMs: now(), limits: levels }
  return { status: 200, json }
}

/**
 * The state of the limits of an account and of those of these keys that have limits of their own. A budget
 * that has counted no request yet has the spend of its period in the ledger, as after its first request.
 */
export async function limitLevels(
  services: Pick<Services, 'ledger' | 'snapshot' | 'now' | 'store'>,
  account: Account,
  keys: readonly ApiKey[],
): Promise<schema.LimitLevel[]> {
  const { ledger, snapshot, now } = services
  const owned = ownedLimits(rulesOf(snapshot()), account, keys)
  const limitStates = await ledger.limitStates(
    account.id,
    owned.map(({ claim }) => claim.demand),
  )
  const sinceMs = await countedSince(
    ledger,
    owned.map(({ claim }) => ({ accountId: account.id, demand: claim.demand })),
  )
  const nowMs = now()
  const unused = owned.filter((_, at) => limitStates[at]?.remaining === limitStates[at]?.limit)
  const spentOf = await spentBefore(services, account, unused)
  return owned.flatMap((each, at) => {
    const limitState = limitStates[at]
    if (limitState === undefined) return []
    const { limit, remaining } = limitState
    const left = { ...limitState, remaining: Math.min(remaining, limit - spentOf(each)) }
    return [{ ...view(each, left, nowMs), sinceMs: sinceMs[at] ?? null }]
  })
}

/** What the ledger has of the periods of budgets, as a function. */
async function spentBefore(
  { ledger, store, now }: Pick<Services, 'ledger' | 'now' | 'store'>,
  account: Account,
  unused: readonly Owned[],
): Promise<(of: Owned) => number> {
  const spent = new Map<Owned, number>()
  const read = new Map<string, Promise<readonly GroupUse[]>>()
  const toMs = Math.ceil((now() + 1) / HOUR_MS) * HOUR_MS
  for (const owned of unused) {
    const { claim, key } = owned
    const { kind, subject } = claim.demand
    if (!isBudgetKind(kind)) continue
    const ids =
      subject === ownSubject(account.id) ? await withBelow({ store }, account.id) : new Set([account.id])
    const { fromMs } = spanOf(kind, now())
    const accountId = ids.size > 1 ? null : account.id
    const name = `${fromMs} ${accountId ?? ''}`
    const uses = read.get(name) ?? ledger.groupUse({ accountId, fromMs, toMs, by: 'key' })
    read.set(name, uses)
    const counted = (await uses).filter((use) =>
      key === null ? ids.has(use.accountId) : use.keyId === key.id,
    )
    spent.set(
      owned,
      counted.reduce((sum, { costNanoUsd }) => sum + Number(costNanoUsd), 0),
    )
  }
  return (of) => spent.get(of) ?? 0
}

const rules = new WeakMap<Snapshot, Rules>()

/** The rules of a generation of the configuration. */
export function rulesOf(snapshot: Snapshot): Rules {
  const known = rules.get(snapshot)
  if (known !== undefined) return known
  const made = new Rules(snapshot.config)
  rules.set(snapshot, made)
  return made
}

/**
 * The limits of the account and of those keys that have any. Limits that depend on the model or upstream of a
 * request are not listed.
 */
export function ownedLimits(rules: Rules, account: Account, keys: readonly ApiKey[]): Owned[] {
  const of = (key: ApiKey | null, prefix: string): Owned[] => {
    const none = { model: '', strippedModel: '', modelName: '', upstream: '' }
    const scope = { identity: identityOf(account, key), ...none }
    const found = rules.of(scope).filter(({ subject, shared }) => {
      // Of the limits that accounts share, only those of the account itself.
      return (!shared || subject === ownSubject(account.id)) && subject.startsWith(prefix)
    })
    return limitDemandsOf(found, { tokens: 0, mostTokens: 0, nanoUsd: 0 }).map((claim) => ({ claim, key }))
  }
  const limited: Owned[][] = []
  for (const key of keys) {
    const own = of(key, 'key:')
    if (own.length > 0) limited.push(own)
    if (limited.length === MAX_KEYS) break
  }
  return [...of(null, 'account:'), ...limited.flat()]
}

function identityOf(account: Account, key: ApiKey | null): Identity {
  return {
    keyId: key?.id ?? '',
    ...accountPart(account, []),
    digest: null,
    expiresAtMs: null,
    models: null,
    allowTools: null,
    limits: key?.limits ?? null,
    ...(key?.raises === undefined ? {} : { raises: key.raises }),
    labels: key?.labels ?? {},
  }
}

function view(
  { claim, key }: Owned,
  limitState: LimitState,
  nowMs: number,
): Omit<schema.LimitLevel, 'sinceMs'> {
  const { subject, kind } = claim.demand
  const { limit, remaining, resetMs } = limitState
  const left = Math.max(0, Math.min(limit, Math.floor(remaining)))
  return {
    scope: key !== null ? 'key' : subject.endsWith(';of-plan') ? 'plan' : 'account',
    keyId: key?.id ?? null,
    keyName: key?.name ?? null,
    kind: LIMIT_NAMES[kind],
    limit,
    used: limit - left,
    left,
    resetsAtMs: resetMs > 0 ? nowMs + timeToReset(kind, resetMs, nowMs) : null,
  }
}

/** Budgets are reset at midnight by the clock of the reply: `resetMs` is from the store's, read earlier. */
function timeToReset(kind: Demand['kind'], resetMs: number, nowMs: number): number {
  return isWindowKind(kind) ? (leftOf(kind, nowMs) ?? 0) : Math.ceil(resetMs)
}
