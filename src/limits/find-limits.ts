/**
 * Finds the limits that apply to a request: the rules of the configuration, those of its account's plan, of
 * the account and of those above it, and of its key. The ledger counts and decides.
 */
import { hash } from 'node:crypto'
import { accountNameOf, type Identity, type KeyLimits, type PlanName } from '../accounts/account.js'
import { limitsAt } from '../accounts/limit-raises.js'
import { planMissing, planNamed } from '../accounts/plans.js'
import {
  dimensionOf,
  LIMIT_MEMBERS,
  isUnitRate,
  UNIT_MEMBERS,
  unitOfKind,
  type LimitKind,
} from '../base/limit-members.js'
import { namedKeyId } from '../base/named-key-id.js'
import type { Config, LimitConfig } from '../config/config.js'
import type { UnitCounts } from '../formats/chat/usage.js'
import type { Demand } from '../store/ledger.js'

/** The properties of a request that rules select by. */
export interface LimitedRequest {
  readonly identity: Identity
  /** The model that the client requested. */
  readonly model: string
  /** The same without the start that its route strips. A rule holds for both names. */
  readonly strippedModel: string
  /** The name in counters: the catalogue's id of the model, else its route; a closed set. */
  readonly modelName: string
  readonly upstream: string
}

/** Amounts that one subject may use. */
export interface Limit {
  /**
   * As in `Demand`: identifies a rule with its subject and selectors, regardless of its position in the file.
   */
  readonly subject: string
  readonly shared: boolean
  /** The subject in messages: `this key`, `the model 'gpt-5.5'`. */
  readonly whose: string
  readonly amounts: KeyLimits
  /** For how long amounts that never reset are kept without requests; absent: always. */
  readonly keepMs?: number
}

/** The maximum that a request may use, in the units of the limits. */
interface Need {
  /** The tokens that it is likely to need, for limits per minute. */
  readonly tokens: number
  /** The most tokens that it may need, for days, weeks and months, and amounts that never reset. */
  readonly mostTokens: number
  readonly nanoUsd: number
  /** Other units than tokens; absent: none. */
  readonly units?: UnitCounts
  /** `nanoUsd` is calculated with `limiting.assumed_price`. */
  readonly isAssumed?: boolean
  readonly advice?: Advice
}

/** What a client can change if a limit refuses its request. */
interface Advice {
  /** The field of its format with the maximum of output tokens; null if it has none. */
  readonly outputField: string | null
  /** The part that may cost most; null if it is not known. */
  readonly largestPart: () => string | null
}

/** Maximum length of a subject (`Demand`). */
const MAX_SUBJECT = 300
/** The limits of a plan without any. */
const NO_AMOUNTS: KeyLimits = {}
/** The result if no limit applies. */
export const NO_LIMITS: readonly Limit[] = []

/** The rules of one generation of the configuration. */
export class Rules {
  /**
   * Rules without a key, account or value of a label. The others are indexed, so that other requests do not
   * check them.
   */
  private readonly unindexed: LimitConfig[] = []
  private readonly byAccount = new Map<string, LimitConfig[]>()
  private readonly byKey = new Map<string, LimitConfig[]>()
  /** By `NAME=VALUE`. */
  private readonly byLabel = new Map<string, LimitConfig[]>()
  /** By the name of a dimension. */
  private readonly keepMs = new Map<string, number>()
  private readonly plans: Config['plans']
  private readonly planLimits = new Map<PlanName, KeyLimits>()

  constructor({ limits, plans, dimensions }: Pick<Config, 'limits' | 'plans' | 'dimensions'>) {
    for (const { name, keepMs } of dimensions) this.keepMs.set(name, keepMs)
    for (const rule of limits) {
      if (rule.key !== null) listIn(this.byKey, rule.key).push(rule)
      else if (rule.account !== null) listIn(this.byAccount, rule.account).push(rule)
      else if (rule.value !== null) {
        listIn(this.byLabel, `${labelOf(rule.scope) ?? ''}=${rule.value}`).push(rule)
      } else this.unindexed.push(rule)
    }
    this.plans = plans
    for (const name of Object.keys(plans)) this.planLimits.set(name, this.limitsOfPlan(name))
  }

  /**
   * All limits that apply to a request, those of the configuration first; `NO_LIMITS` if there are none.
   * Throws `forbidden` if the configuration does not have the plan of the account.
   */
  of(request: LimitedRequest): readonly Limit[] {
    const { identity } = request
    const { keyId, accountId, email, plan } = identity
    const applying: Limit[] = []
    if (this.unindexed.length > 0) this.collect(applying, this.unindexed, request)
    const ofAccount = this.byAccount.get(accountId)
    if (ofAccount !== undefined) this.collect(applying, ofAccount, request)
    const ofEmail = email === undefined ? undefined : this.byAccount.get(email)
    if (ofEmail !== undefined) this.collect(applying, ofEmail, request)
    const name = this.byAccount.size === 0 ? undefined : accountNameOf(identity)
    const ofName = name === undefined ? undefined : this.byAccount.get(name)
    if (ofName !== undefined) this.collect(applying, ofName, request)
    const ofKey = this.byKey.get(keyId)
    if (ofKey !== undefined) this.collect(applying, ofKey, request)
    if (this.byLabel.size > 0) {
      for (const [name, value] of Object.entries(identity.labels)) {
        const ofLabel = this.byLabel.get(`${name}=${value}`)
        if (ofLabel !== undefined) this.collect(applying, ofLabel, request)
      }
    }
    const ofPlan = this.planLimits.get(plan) ?? this.limitsOfPlan(plan)
    if (ofPlan !== NO_AMOUNTS) {
      const subject = `account:${accountId};of-plan`
      applying.push({ subject, shared: false, whose: `the plan '${plan}'`, amounts: ofPlan })
    }
    const { limits, raises, accountLimits } = identity
    if (accountLimits !== undefined) {
      for (const each of accountLimits) {
        // Requests of all accounts below count towards it.
        const subject = ownSubject(each.id)
        const amounts = limitsAt(each, Date.now())
        applying.push({ subject, shared: true, whose: `the account '${each.name}'`, amounts })
      }
    }
    if (limits !== null) {
      applying.push({
        subject: `key:${keyId};own`,
        shared: false,
        whose: 'this key',
        amounts: limitsAt({ limits, raises }, Date.now()),
      })
    }
    return applying.length === 0 ? NO_LIMITS : applying
  }

  private collect(applying: Limit[], rules: readonly LimitConfig[], request: LimitedRequest): void {
    for (const rule of rules) {
      if (!matches(rule, request)) continue
      const { scope, amounts } = rule
      const dimension = dimensionOf(scope)
      const keepMs = dimension === null ? undefined : this.keepMs.get(dimension)
      applying.push({
        subject: subjectOf(rule, request),
        // The values of a dimension belong to their account.
        shared: scope !== 'key' && scope !== 'account' && dimension === null,
        whose: whoseOf(rule, request),
        amounts,
        ...(keepMs === undefined ? {} : { keepMs }),
      })
    }
  }

  private limitsOfPlan(name: PlanName): KeyLimits {
    const plan = planNamed(this.plans, name)
    if (plan === null) throw planMissing(name)
    return Object.keys(plan.limits).length === 0 ? NO_AMOUNTS : plan.limits
  }
}

/** The subject of an account's own limits. */
export function ownSubject(accountId: string): string {
  return `account:${accountId};own`
}

/** The subject as ledger entries name it: an account's own limit is that of the account. */
export function shownSubject(subject: string): string {
  return subject.startsWith('account:') && subject.endsWith(';own') ? subject.slice(0, -4) : subject
}

/** Whether the amounts include a budget. */
export function limitsMoney(amounts: KeyLimits): boolean {
  return BUDGETS.some(({ field }) => amounts[field] !== undefined)
}

const BUDGETS = LIMIT_MEMBERS.filter(({ counts }) => counts === 'usd')
const TOKEN_QUOTAS = LIMIT_MEMBERS.filter(({ counts, window }) => counts === 'tokens' && window !== 'minute')

/** What limits count, so that the request's maximum of it must be estimated. */
export interface Needs {
  /** Tokens per minute. */
  readonly tokens: boolean
  /** Tokens of a day, week or month, or in all. */
  readonly mostTokens: boolean
  readonly money: boolean
  /** Other units than tokens. */
  readonly units: boolean
}

/** What of a request the limits count. */
export function needsOf(limits: readonly Limit[]): Needs {
  let [tokens, mostTokens, money, units] = [false, false, false, false]
  for (const { amounts } of limits) {
    tokens ||= amounts.tokensPerMinute !== undefined
    mostTokens ||= TOKEN_QUOTAS.some(({ field }) => amounts[field] !== undefined)
    money ||= limitsMoney(amounts)
    units ||= UNIT_MEMBERS.some(({ field }) => amounts[field] !== undefined)
  }
  return { tokens, mostTokens, money, units }
}

/** A demand on a limit, and the subject of the limit for messages. */
export interface LimitDemand {
  readonly demand: Demand
  readonly whose: string
  /** The cost of the demand is calculated with `limiting.assumed_price`. */
  readonly isAssumed?: boolean
  readonly advice?: Advice
}

/** The demands on the ledger for a request that uses at most `need`. */
export function limitDemandsOf(limits: readonly Limit[], need: Need): LimitDemand[] {
  const limitDemands: LimitDemand[] = []
  for (const limit of limits) {
    const { whose, amounts } = limit
    const { isAssumed = false, advice } = need
    for (const member of LIMIT_MEMBERS) {
      const amount = amounts[member.field]
      if (amount === undefined) continue
      // A request without the unit is not limited by it.
      if ('unit' in member && (need.units?.[member.unit] ?? 0) === 0) continue
      const demand = demandOf(limit, member.kind, { amount, need })
      limitDemands.push({ demand, whose, isAssumed, ...(advice && { advice }) })
    }
  }
  return limitDemands
}

function demandOf(
  { subject, shared, keepMs }: Limit,
  kind: LimitKind,
  { amount, need }: { readonly amount: number; readonly need: Need },
): Demand {
  const of = { subject, shared }
  const kept = keepMs === undefined ? of : { ...of, keepMs }
  if (isUnitRate(kind)) {
    const unit = unitOfKind(kind)
    return { kind, ...of, perMinute: amount, cost: need.units?.[unit] ?? 0 }
  }
  switch (kind) {
    case 'requests':
      return { kind, ...of, perMinute: amount, cost: 1 }
    case 'tokens':
      return { kind, ...of, perMinute: amount, cost: need.tokens }
    case 'concurrent':
      return { kind, ...of, limit: amount }
    case 'usd_day':
    case 'usd_week':
    case 'usd_month':
      return { kind, ...of, limitNanoUsd: amount, costNanoUsd: need.nanoUsd }
    case 'usd_total':
      return { kind, ...kept, limitNanoUsd: amount, costNanoUsd: need.nanoUsd }
    case 'tokens_day':
    case 'tokens_week':
    case 'tokens_month':
      return { kind, ...of, limit: amount, cost: need.mostTokens }
    case 'tokens_total':
      return { kind, ...kept, limit: amount, cost: need.mostTokens }
    case 'requests_total':
      return { kind, ...kept, limit: amount, cost: 1 }
    default:
      return kind satisfies never
  }
}

function matches(rule: LimitConfig, request: LimitedRequest): boolean {
  const { identity, model, strippedModel, modelName, upstream } = request
  const label = labelOf(rule.scope)
  const dimension = dimensionOf(rule.scope)
  return (
    (rule.scope !== 'user' || identity.user !== undefined) &&
    (dimension === null || dimensionValue(dimension, identity) !== '') &&
    (label === null || Object.hasOwn(identity.labels, label)) &&
    (rule.value === null || rule.value === labelValue(label, identity)) &&
    (rule.plan === null || rule.plan === identity.plan) &&
    (rule.account === null ||
      rule.account === identity.accountId ||
      rule.account === identity.email ||
      rule.account === accountNameOf(identity)) &&
    (rule.key === null || rule.key === identity.keyId) &&
    (rule.upstream === null || rule.upstream === upstream) &&
    (rule.model === null || [model, strippedModel, modelName].includes(rule.model)) &&
    (rule.prefix === null || model.startsWith(rule.prefix) || strippedModel.startsWith(rule.prefix))
  )
}

/**
 * The subject contains the rule's selectors: two rules for one key with different selectors have separate
 * counts. The name of the plan is left out for keys and accounts, so that a change of the plan does not reset
 * their counts.
 */
function subjectOf(rule: LimitConfig, { identity, modelName, upstream }: LimitedRequest): string {
  let subject: string
  switch (rule.scope) {
    case 'key':
      subject = `key:${identity.keyId}`
      break
    case 'account':
      subject = `account:${identity.accountId}`
      break
    case 'user':
      subject = userSubject(identity.user ?? '')
      break
    case 'model':
      subject = `model:${modelName}`
      break
    case 'upstream':
      subject = `upstream:${upstream}`
      break
    default: {
      const dimension = dimensionOf(rule.scope)
      subject =
        dimension === null
          ? `${rule.scope}=${labelValue(labelOf(rule.scope), identity)}`
          : `${rule.scope}=${encodeURIComponent(dimensionValue(dimension, identity))}`
    }
  }
  if (rule.plan !== null) {
    const isForOneSubject = rule.scope === 'key' || rule.scope === 'account'
    subject += isForOneSubject ? ';plan' : `;plan=${rule.plan}`
  }
  // A rule for all values of the label counts by itself.
  if (rule.value !== null) subject += ';value'
  if (rule.account !== null) subject += `;account=${rule.account}`
  if (rule.key !== null) subject += `;key=${rule.key}`
  if (rule.model !== null) subject += `;model=${rule.model}`
  if (rule.prefix !== null) subject += `;prefix=${rule.prefix}`
  if (rule.upstream !== null) subject += `;upstream=${rule.upstream}`
  return subject.length <= MAX_SUBJECT ? subject : shortened(subject)
}

/** The address has the form that ids of keys have. */
function userSubject(email: string): string {
  return namedKeyId('user', email).replace('/', ':')
}

function shortened(subject: string): string {
  return `${subject.slice(0, MAX_SUBJECT - 65)}#${hash('sha256', subject, 'hex')}`
}

/** The name in `label:NAME`; null for every other scope. */
function labelOf(scope: LimitConfig['scope']): string | null {
  return scope.startsWith('label:') ? scope.slice('label:'.length) : null
}

function labelValue(label: string | null, { labels }: Identity): string {
  return labels[label ?? ''] ?? ''
}

function dimensionValue(dimension: string, { dimensions }: Identity): string {
  return dimensions?.[dimension] ?? ''
}

/** The start of the subjects of the limits of a dimension. */
export function dimensionSubject(dimension: string): string {
  return `dimension:${dimension}=`
}

function whoseOf({ scope }: LimitConfig, { identity, modelName, upstream }: LimitedRequest): string {
  switch (scope) {
    case 'key':
      return 'this key'
    case 'account':
      return 'this account'
    case 'user':
      return `the user '${identity.user ?? ''}'`
    case 'model':
      return `the model '${modelName}'`
    case 'upstream':
      return `the upstream '${upstream}'`
    default: {
      const dimension = dimensionOf(scope)
      if (dimension !== null) return `the ${dimension} '${dimensionValue(dimension, identity)}'`
      return `the label '${labelOf(scope) ?? ''}=${labelValue(labelOf(scope), identity)}'`
    }
  }
}

function listIn(lists: Map<string, LimitConfig[]>, name: string): LimitConfig[] {
  const existing = lists.get(name)
  if (existing !== undefined) return existing
  const created: LimitConfig[] = []
  lists.set(name, created)
  return created
}
