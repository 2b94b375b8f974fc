/**
 * The data types of accounts, users, members, API keys and identities.
 *
 * An account (a team, an app, a customer) owns keys, a plan, limits and usage. A user is a person who signs
 * in; a member is a user with a role in an account.
 */
import type { JsonObject } from '../base/json.js'
import type { LimitField } from '../base/limit-members.js'
import type { Labels } from './labels.js'

/** The plan of an account, by its name in the configuration, which defines its limits. */
export type PlanName = string

/** An account. Absent members have their default: no limit, no label, no parent. */
export interface Account {
  id: string
  /** Unique; `[a-z0-9-]`, see `names.ts`. It never changes. */
  name: string
  /** Absent: the name. */
  displayName?: string
  /**
   * The e-mail address of the login that was made with the account: limits of the configuration and commands
   * may select the account by it. Its user has the same id as the account.
   */
  email?: string
  plan: PlanName
  /** The id of the account whose limits count for this one, too. At most `MAX_LEVELS` levels. */
  parentId?: string
  /** Sorted by name. */
  labels?: Labels
  /** Limits of the account and of all below it together, in addition to those of its plan. */
  limits?: KeyLimits
  /** Budgets that are higher until a time; see `limit-raises.ts`. */
  raises?: readonly LimitRaise[]
  /** The keys of a disabled account, and of all below it, are refused. */
  disabled: boolean
  createdAtMs: number
  /** Absent: `createdAtMs`. */
  updatedAtMs?: number
}

/** The most levels of a tree of accounts. */
export const MAX_LEVELS = 4

/** What a member may do in an account, the highest first. */
export const ACCOUNT_ROLES = ['owner', 'member', 'viewer'] as const
export type AccountRole = (typeof ACCOUNT_ROLES)[number]
/** Roles in the whole gateway, the highest first. */
export const GATEWAY_ROLES = ['admin', 'auditor'] as const
/** A role in the whole gateway. */
export type GatewayRole = (typeof GATEWAY_ROLES)[number]

/** A person who signs in. */
export interface User {
  /** `usr_…`; the account's id if the user was made together with an account. */
  id: string
  /** Unique; as `comparableEmail` writes it. It follows the address at the identity provider. */
  email: string
  /** The address before, while memberships still have it. */
  formerEmail?: string
  /** Given by an administrator; null: none. See `roleOf`. */
  role: GatewayRole | null
  /** Given by a group of the identity provider, at the last sign-in. */
  groupRole?: GatewayRole
  /** Argon2id in PHC form; empty if the user signs in only with an identity provider. */
  passwordHash: string
  /** The issuer and `sub` of the identity provider, from the first sign-in with it on. */
  issuer?: string
  subject?: string
  disabled: boolean
  createdAtMs: number
  /** The first sign-in; absent: the user is invited. */
  signedInAtMs?: number
  /**
   * It is not proven that the address is the user's: neither by the identity provider, nor by a mail of the
   * gateway, nor by an administrator. See `address-proof.ts`.
   */
  unproven?: true
  /** Views of the dashboard that the user saved; absent: none. */
  views?: readonly SavedView[]
}

/** A page of the dashboard with its filters, under a name. */
export interface SavedView {
  readonly id: string
  readonly name: string
  /** Path and query within the dashboard, such as `/keys?sort=-cost`. */
  readonly url: string
}

/**
 * An e-mail address as the store compares it: without blanks around it, ASCII letters in lower case. Other
 * letters stay, since Unicode maps some of them to ASCII: U+212A, the Kelvin sign, to `k`.
 */
export function comparableEmail(text: string): string {
  return text.trim().replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** The name, id or e-mail address of an account in the configuration, as accounts are compared with it. */
export function accountSelector(text: string): string {
  return text.startsWith('acc_') ? text : comparableEmail(text)
}

/** A user's role in an account. At least one of `role` and `groupRole` is set. */
export interface Member {
  accountId: string
  userId: string
  /** The user's; lower case. */
  email: string
  /** Given by hand; null: none. See `roleOf`. */
  role: AccountRole | null
  /** Given by a group of the identity provider, at the user's last sign-in. */
  groupRole?: AccountRole
  /**
   * The user has entered the account: as the one who made it, by a link of the account, or by a sign-in after
   * the address was proven. Absent: the role of an unproven user is pending.
   */
  accepted?: true
  /** Sorted by name. */
  labels?: Labels
  createdAtMs: number
  /** Absent: `createdAtMs`. */
  updatedAtMs?: number
}

/** The user that is made with an account, as its owner. */
export function firstOwnerOf(account: Account, login: User): Member {
  return { ...ownerOf(account, login), accepted: true }
}

/** A user who exists, as the owner of a new account. */
export function ownerOf(account: Account, { id, email }: User): Member {
  const { createdAtMs } = account
  return { accountId: account.id, userId: id, email, role: 'owner', createdAtMs }
}

/** The role that counts: the higher of the one given by hand and the one of a group. */
export function roleOf<Role extends AccountRole | GatewayRole>({
  role,
  groupRole,
}: {
  readonly role: Role | null
  readonly groupRole?: Role
}): Role | null {
  return highestRole(groupRole === undefined ? [role] : [role, groupRole])
}

/** The highest of several roles of one kind; null if there is none. */
export function highestRole<Role extends AccountRole | GatewayRole>(
  roles: readonly (Role | null)[],
): Role | null {
  const order: readonly string[] = [...GATEWAY_ROLES, ...ACCOUNT_ROLES]
  let highest: Role | null = null
  for (const role of roles) {
    if (role === null) continue
    if (highest === null || order.indexOf(role) < order.indexOf(highest)) highest = role
  }
  return highest
}

/**
 * Whether the key has its name, which is unique in the account: it is neither revoked nor replaced by another
 * key. An expired key has its name until another key takes it.
 */
export function hasName({ revokedAtMs, replacedBy }: Pick<ApiKey, 'revokedAtMs' | 'replacedBy'>): boolean {
  return revokedAtMs === undefined && replacedBy === undefined
}

/** Limits of one key or account, in addition to those of its plan; absent means no limit. */
export type KeyLimits = Partial<Record<LimitField, number>>

/** A budget that is higher until a time, from which on the one of `limits` holds again. */
export interface LimitRaise {
  readonly budget: 'nanoUsdPerDay' | 'nanoUsdPerWeek' | 'nanoUsdPerMonth'
  readonly nanoUsd: number
  /** Exclusive, ms since 1970. */
  readonly untilMs: number
  readonly reason: string
  /** Who raised it, and when. */
  readonly by: string
  readonly atMs: number
}

/** Names a key of an account; an id alone does not select another account's key. */
export interface KeyReference {
  readonly accountId: string
  /** The key's id. */
  readonly id: string
}

/** A key in the store: its digest without the secret. */
export interface ApiKey {
  id: string
  accountId: string
  name: string
  /** SHA-256 of the whole secret, lower-case hex. */
  digest: string
  /** The first and last characters of the secret; empty if only the digest was given. */
  prefix: string
  lastFour: string
  /** The secret may have another form than those of this gateway: another gateway made it. */
  imported?: true
  /**
   * The e-mail address of the user who made it, or what else did (`token:NAME`, `command line`); absent: not
   * known.
   */
  createdBy?: string
  createdAtMs: number
  /** Absent: `createdAtMs`. */
  updatedAtMs?: number
  revokedAtMs?: number
  /**
   * The time from which the key is refused, in ms since 1970; absent: never. An expired key counts for the
   * plan until it is revoked.
   */
  expiresAtMs?: number
  /** The model ids that the key may use; `*` at the end of one matches any suffix. Absent: all. */
  models?: readonly string[]
  /**
   * The tools and options of providers that the key may use, instead of the lists of the upstreams; `*` is
   * all. Absent: the lists of the upstreams.
   */
  allowTools?: readonly string[]
  limits?: KeyLimits
  /** As in `Account`. */
  raises?: readonly LimitRaise[]
  /** Sorted by name. */
  labels?: Labels
  /** The key that this one replaces. */
  replaces?: string
  /** The key that replaces this one. */
  replacedBy?: string
}

/** The limits of one account, which count for all below it. */
interface AccountLimits extends Pick<Account, 'id' | 'name' | 'raises'> {
  readonly limits: KeyLimits
}

/** The account and key, or token, of an authenticated request. */
export interface Identity {
  keyId: string
  accountId: string
  /** `Account.email`, in lower case; absent if the account has none, and for requests of no account. */
  email?: string
  /** The limits of the account and of those above it (`Account.limits`); absent: none has any. */
  accountLimits?: readonly AccountLimits[]
  /** The names from the top of the tree to the account, `/` between them; absent without an account. */
  accountPath?: string
  plan: PlanName
  /** The digest of the key or token, which identifies its running requests. Null without one. */
  digest: string | null
  /** As in `ApiKey`. */
  imported?: true
  /** As in `ApiKey`; null: never, all, the lists of the upstreams, none. */
  expiresAtMs: number | null
  models: readonly string[] | null
  allowTools: readonly string[] | null
  limits: KeyLimits | null
  /** Of the key, as in `ApiKey`; absent: none. */
  raises?: readonly LimitRaise[]
  labels: Labels
  /** The name of the entry of `identity` that accepted the token; absent without a token. */
  workload?: string
  /** The claims of the token; absent without one. */
  claims?: JsonObject
  /** The values of the dimensions of the request, by their names; absent if there are none. */
  dimensions?: Readonly<Record<string, string>>
  /** The e-mail address of the person who signed in; absent for keys and workloads. */
  user?: string
  /** The labels that metrics may have: those without a claim of the token. Absent: all. */
  countedLabels?: Labels
}

/** What begins the digest of an access token of a program; that of a key is hex. */
const ACCESS_DIGEST = 'slt:'

/** The digest by which requests with an access token and its changes are known; `id`: that of its token. */
export function accessDigest(id: string): string {
  return ACCESS_DIGEST + id
}

/** The id of the access token with this digest; null for another digest. */
export function accessTokenId(digest: string): string | null {
  return digest.startsWith(ACCESS_DIGEST) ? digest.slice(ACCESS_DIGEST.length) : null
}

/** The name of the account of a request; undefined without an account. */
export function accountNameOf({ accountPath }: Pick<Identity, 'accountPath'>): string | undefined {
  return accountPath?.slice(accountPath.lastIndexOf('/') + 1)
}

/** Whether a list of `accountSelector` has the account of a request. */
export function hasAccountOf(
  accounts: readonly string[],
  identity: Pick<Identity, 'accountId' | 'email' | 'accountPath'>,
): boolean {
  const { accountId, email } = identity
  const name = accountNameOf(identity)
  return (
    (name !== undefined && accounts.includes(name)) ||
    accounts.includes(accountId) ||
    (email !== undefined && accounts.includes(email))
  )
}
