/**
 * What the handlers of the dashboard's API depend on, and functions that several of them share.
 */
import { counted } from '../base/counted.js'
import type { JsonObject, JsonValue } from '../base/json.js'
import { DAY_MS } from '../base/time-units.js'
import { roleOf, type Account, type User } from '../accounts/account.js'
import { endWhatAnotherMade } from '../accounts/former-holder.js'
import type { Changing } from '../accounts/changes/change-keys.js'
import { checkedReason } from '../accounts/changes/fields.js'
import type { PasswordQueue } from '../accounts/password-queue.js'
import { planNamed } from '../accounts/plans.js'
import type { PlanConfig, Snapshot } from '../config/config.js'
import { newRequestId } from '../http/request-id.js'
import type { Logger } from '../observe/log.js'
import type { Ledger } from '../store/ledger.js'
import type { FleetMember, Store } from '../store/store.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { ExactUsage, type UsageOwner } from '../usage/exact-usage.js'
import { chartRange, rangeOf, type AskedRange, type KeptSince } from '../usage/ranges.js'
import type { ConfigControl } from './config-control.js'
import type { GatewayStatus } from './gateway-status.js'
import type { SignedInRequest } from './dashboard/routing/route.js'
import type * as schema from './dashboard/schema/schema.js'
import type { AccountSession, Session, Sessions } from './sign-in/sessions.js'
import { providerOf } from './sign-in/bound-users.js'
import type { AttemptLimits } from './sign-in/attempt-limits.js'
import {
  draftLink,
  makeLink,
  type DraftLink,
  type LinkParts,
  type NewLink,
  type LinkOrder,
} from './sign-in/links.js'

/** The dependencies of the handlers. */
export interface Services extends LinkParts {
  readonly ledger: Pick<
    Ledger,
    | 'archive'
    | 'sums'
    | 'cells'
    | 'entries'
    | 'entry'
    | 'export'
    | 'keyUse'
    | 'groupUse'
    | 'lastUse'
    | 'limitStates'
    | 'budgetMarks'
    | 'memory'
  >
  readonly sessions: Sessions
  readonly passwords: PasswordQueue
  readonly attemptLimits: AttemptLimits
  readonly log: Logger
  readonly version: string
  /** Whether accounts, keys and past requests are made up, as in `sluice demo`. */
  readonly hasSampleData: boolean
  /** Serves the request on a path of the data plane as the account. The body must be unread. */
  readonly chat: (exchange: ChatExchange, as: ChatAs) => void
  /** Null if the state is unknown. */
  readonly gatewayStatus: () => Promise<GatewayStatus | null>
  readonly configControl: ConfigControl
  /** Explains a request under the configuration in force, as `sluice explain --json`; sends nothing. */
  readonly explain: (asked: AskedModel) => JsonObject
  /** The gateways that share the store; null if the store is on one machine, or does not reply. */
  readonly fleet: () => readonly FleetMember[] | null
}

/** A request that is explained. */
interface AskedModel {
  readonly model: string
  /** By its name; null: a chat. */
  readonly operation: string | null
  /** Of the key, for the conditions of routes. */
  readonly labels: Readonly<Record<string, string>>
  readonly hasImages: boolean
  readonly hasTools: boolean
  readonly promptTokens: number
  /** The bytes of a chat-completions request; null without one. */
  readonly body: Buffer | null
}

/** The `keyId` of the playground's ledger entries. */
export const PLAYGROUND = 'playground'

/** The period of the figures beside keys and accounts. */
export const RECENT_MS = 30 * 86_400_000

/** The account of a read: an id, or null for all accounts. */
export function scopeOf({ account, isAll }: Pick<AccountSession, 'account' | 'isAll'>): string | null {
  return isAll ? null : account.id
}

/** The parts that usage is read from. */
export interface UsageParts extends Pick<Services, 'snapshot' | 'now'> {
  readonly store: Pick<Store, 'ledger'>
}

/** The usage in the requested range, of all or some accounts. Throws `malformed_request` if it is wrong. */
export async function usageIn(
  services: UsageParts,
  asked: AskedRange,
  owners: readonly UsageOwner[] | null = null,
): Promise<ExactUsage> {
  const kept = await keptSince(services)
  return new ExactUsage(services.store.ledger, chartRange(asked, services.now(), kept), { owners })
}

/** The same for a range of any length. */
export async function usageOf(services: UsageParts, asked: AskedRange): Promise<ExactUsage> {
  const kept = await keptSince(services)
  return new ExactUsage(services.store.ledger, rangeOf(asked, services.now(), kept))
}

/** From when on the parts of the ledger are kept. */
export async function keptSince({ store, snapshot, now }: UsageParts): Promise<KeptSince> {
  const nowMs = now()
  const { archive, ledger: settings } = snapshot().config
  const { keepDays, maxMemory: max } = settings
  // Entries that leave memory early are those before the oldest one.
  const memory = await store.ledger.memory({ max, keepDays })
  const leftMs = memory === null || memory.fullInMs === null ? null : memory.oldestAtMs
  if (archive !== null) {
    return { entriesMs: nowMs - archive.keepDays * DAY_MS, hoursMs: nowMs - archive.sumsDays * DAY_MS }
  }
  return {
    entriesMs: Math.max(nowMs - keepDays * DAY_MS, leftMs ?? 0),
    hoursMs: nowMs - settings.hoursDays * DAY_MS,
  }
}

/** The account of a chat, those above it, and the path on the data plane. */
export interface ChatAs {
  readonly account: Account
  readonly ancestors: readonly Account[]
  readonly path: string
}

/** The request and reply of a handler with a raw body. */
type ChatExchange = Pick<SignedInRequest<unknown, unknown>, 'req' | 'res'>

/** The account and address behind an action. */
interface Actor extends Pick<SignedInRequest<unknown, unknown>, 'address' | 'requestId'> {
  readonly session: { readonly user: Pick<User, 'email'> }
}

/** An entry of the audit trail for an action. The change itself must store it. */
export function entryOf(
  { now }: Services,
  { session, address, requestId }: Actor,
  what: Pick<AuditEntry, 'accountId' | 'action' | 'target' | 'detail' | 'before' | 'after'>,
): AuditEntry {
  const atMs = now()
  const actor = session.user.email
  const detail = what.detail.slice(0, 1000)
  return { id: newRequestId(atMs), atMs, actor, address, requestId, ...what, detail }
}

/** The store as the user of the request changes it; only administrators may give everything. */
export function changingBy(
  { store, snapshot, now }: Services,
  { session, address, requestId }: Actor & { readonly session: Pick<Session, 'user'> },
  reason: JsonValue = '',
): Changing {
  const actor = { actor: session.user.email, address, requestId, reason: checkedReason(reason) }
  const bounds = roleOf(session.user) === 'admin' ? null : ({ of: 'user' } as const)
  return { store, plans: snapshot().config.plans, nowMs: now(), actor, bounds }
}

/** The entry for an action of a user on the user's own sign-in. */
export function ownEntry(
  services: Services,
  { address, requestId }: Pick<Actor, 'address' | 'requestId'>,
  { user, action }: { readonly user: Pick<User, 'id' | 'email'>; readonly action: string },
): AuditEntry {
  const what = { accountId: user.id, action, target: user.id, detail: '' }
  return entryOf(services, { session: { user }, address, requestId }, what)
}

/** Ends what another person made in the name of the user, whose address the person of the request proves. */
export async function endFormer(
  { store, now, log }: Services,
  { address, requestId }: Pick<Actor, 'address' | 'requestId'>,
  { user, isSameHolder }: { readonly user: User; readonly isSameHolder: boolean },
): Promise<void> {
  const actor = { actor: user.email, address, requestId }
  const { keys, members } = await endWhatAnotherMade(store, { user, isSameHolder, nowMs: now(), actor })
  if (keys === 0 && members === 0) return
  const ended = `${counted(keys, 'key')} and ${counted(members, 'member')} of before`
  const message = 'the address of a user is proven: what another person made with it has ended'
  log.info(message, { account_id: user.id, request_id: requestId, reason: ended })
}

/** Makes a link that invites the user to the account or the gateway, or sets its password. */
export async function newLink(
  services: Services,
  request: Pick<SignedInRequest<unknown, unknown>, 'origin' | 'session'>,
  invited: Pick<LinkOrder, 'user' | 'account' | 'auditEntries'>,
): Promise<NewLink> {
  return makeLink(services, linkOrder(request, invited))
}

/** The same, written by the caller with what it is for. */
export async function newDraft(
  services: Services,
  request: Pick<SignedInRequest<unknown, unknown>, 'origin' | 'session'>,
  invited: Pick<LinkOrder, 'user' | 'account'>,
): Promise<DraftLink> {
  return draftLink(services, linkOrder(request, invited))
}

function linkOrder(
  { origin, session }: Pick<SignedInRequest<unknown, unknown>, 'origin' | 'session'>,
  invited: Pick<LinkOrder, 'user' | 'account' | 'auditEntries'>,
): LinkOrder {
  const as = roleOf(session.user) === 'admin' ? 'administrator' : 'owner'
  const maker = { as, id: session.user.id } as const
  const held =
    as === 'administrator'
      ? session.user.role === 'admin'
      : session.members.some(({ accountId, role }) => accountId === invited.account?.id && role === 'owner')
  // A role by a group ends with the session.
  const end = held ? {} : { endsAtMs: session.endsAtMs }
  // The router has checked that `origin` is the dashboard's own.
  return { ...invited, maker, origin: origin ?? '', ...end }
}

/** A plan, with a price only if the file has it. One that the configuration does not have allows no keys. */
export function planOf(snapshot: Snapshot, name: Account['plan']): schema.Plan {
  const none = { priceUsd: 0, maxKeys: 0, limits: {} }
  const { priceUsd, isPriceSet, maxKeys, limits }: PlanConfig = planNamed(snapshot.config.plans, name) ?? none
  return { name, priceUsd: isPriceSet === true ? priceUsd : 0, maxKeys, limits: { ...limits } }
}

/** The account of a session as its user sees it. */
export async function accountView(
  { store, snapshot }: Services,
  { account, user }: Pick<Session, 'account' | 'user'>,
): Promise<schema.Account> {
  return {
    id: account.id,
    email: user.email,
    role: roleOf(user) === 'admin' ? 'admin' : 'owner',
    plan: planOf(snapshot(), account.plan),
    liveKeys: await store.countKeys(account.id),
    hasPassword: user.passwordHash !== '',
    provider: providerOf(user, snapshot().config.dashboard),
    createdAtMs: account.createdAtMs,
  }
}
