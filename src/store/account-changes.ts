/**
 * Changes of an account, its members and its keys in one atomic step with their audit entries: all of it is
 * written, or nothing. A change reads what it names, decides, and writes; if another process changes the
 * account in between, it reads and decides again. So a decision may compare what it read with an expected
 * state (`If-Match`), and no other change comes between the comparison and the write.
 */
import { hasName, type Account, type ApiKey, type Member, type User } from '../accounts/account.js'
import type { Steps } from '../base/steps.js'
import type { AuditEntry } from './audit-trail.js'
import type { ChangedSignIns } from './sign-in-tokens.js'

/** What a change reads beside the account; nothing by default. */
export interface AccountReads {
  /** Addresses in lower case, or all members. */
  readonly members?: readonly string[] | 'all'
  /** Names of keys. */
  readonly keys?: readonly string[]
  /** Ids of keys, also of those that no longer have a name. */
  readonly keyIds?: readonly string[]
}

/** What a change has read. */
export interface AccountState {
  /** Null if it does not exist; then there are no members and keys. */
  readonly account: Account | null
  /** By e-mail address. */
  readonly members: ReadonlyMap<string, Member>
  /** The keys that have the names of `AccountReads` (`hasName`), by name. */
  readonly keys: ReadonlyMap<string, ApiKey>
  /** The keys that have the ids of `AccountReads`. */
  readonly keysById: ReadonlyMap<string, ApiKey>
  /** The keys that are not revoked. */
  readonly liveKeys: number
}

/** What a change writes. Records have the account's id; whole records replace those that were read. */
export interface AccountWrites extends ChangedSignIns {
  /** Creates the account if it does not exist. Its name cannot change. */
  readonly account?: Account
  /** New users, each of them one of `members`; the id of one may be that of a new account. */
  readonly users?: readonly User[]
  /** Their users must exist, or be new. */
  readonly members?: readonly Member[]
  /** Addresses of the members to remove. */
  readonly removedMembers?: readonly string[]
  /** Each takes its name, from an expired key too. */
  readonly newKeys?: readonly ApiKey[]
  /** Replaced records of keys that were read; `revokedAtMs` revokes one. They take names as new ones do. */
  readonly keys?: readonly ApiKey[]
  /**
   * Removes the account with its members and keys; the other writes are ignored. Refused while it has
   * children. Ledger entries and audit entries stay, and its name may be used again.
   */
  readonly purge?: true
  readonly audit: readonly AuditEntry[]
}

/** Writes, or a reason of the caller for writing nothing. */
export type AccountDecision<Reason> = { readonly write: AccountWrites } | { readonly refuse: Reason }

/** A decision about many members and keys. */
type DecisionSteps<Reason> = Steps<AccountDecision<Reason>>

/** The steps of any decision. */
export function* decisionSteps<Reason>(
  decision: AccountDecision<Reason> | DecisionSteps<Reason>,
): DecisionSteps<Reason> {
  return 'next' in decision ? yield* decision : decision
}

/** More members and keys than this are read, decided and written in several turns of the event loop. */
const MOST_AT_ONCE = 100

/** Whether a change reads more than that. */
export function isLarge({ members = [], keys = [], keyIds = [] }: AccountReads): boolean {
  return (members === 'all' ? 0 : members.length) + keys.length + keyIds.length > MOST_AT_ONCE
}

/** The state of an account that does not exist. */
export const NO_ACCOUNT: AccountState = {
  account: null,
  members: new Map(),
  keys: new Map(),
  keysById: new Map(),
  liveKeys: 0,
}

/**
 * A rule of the store that refuses the writes. `bad_name`: an id that an engine cannot store. `id_taken`: the
 * id or digest of a new key is in use. `name_taken`: another account, or another key of this account that has
 * not expired, has the name. `no_parent`, `parent_loop`, `too_deep`: the parent does not exist, is below the
 * account, or has too many levels (`MAX_LEVELS`). `no_user`: the user of a member does not exist.
 * `email_taken`: another user has the address of a new one.
 */
export type AccountConflict =
  | 'bad_name'
  | 'name_taken'
  | 'no_parent'
  | 'parent_loop'
  | 'too_deep'
  | 'has_children'
  | 'id_taken'
  | 'account_full'
  | 'no_user'
  | 'email_taken'

/** How a change ended. Only `written` changed the store. */
export type AccountChangeResult<Reason> =
  | { readonly kind: 'written'; readonly before: AccountState; readonly writes: AccountWrites }
  | { readonly kind: 'refused'; readonly reason: Reason }
  | { readonly kind: 'conflict'; readonly conflict: AccountConflict }

export interface AccountChange<Reason> {
  readonly accountId: string
  readonly reads?: AccountReads
  /** Pure: an engine may call it several times, each time with the newest state. */
  readonly decide: (state: AccountState) => AccountDecision<Reason> | DecisionSteps<Reason>
  /** Ms since 1970, to find out whether the key with a name has expired. */
  readonly nowMs: number
}

/** Selects a page of accounts in the order of their names. */
export interface AccountsByName {
  /** The name before the first of the page, which need not exist; null: the first page. */
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

/** Selects a page of users in the order of their e-mail addresses. */
export interface UsersByEmail {
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

/**
 * Whether two keys that have not expired have one name after a change: `written` are the new and the replaced
 * records, `holders` have the names now. A key that has expired leaves its name to another one.
 */
export function isAnyNameTaken(
  written: readonly ApiKey[],
  holders: ReadonlyMap<string, ApiKey>,
  nowMs: number,
): boolean {
  const isLive = ({ expiresAtMs = Infinity }: ApiKey): boolean => expiresAtMs > nowMs
  const ids = new Set(written.map(({ id }) => id))
  const names = new Set<string>()
  return written
    .filter((key) => hasName(key) && isLive(key))
    .some(({ name }) => {
      const holder = holders.get(name)
      const isTaken = names.has(name) || (holder !== undefined && !ids.has(holder.id) && isLive(holder))
      names.add(name)
      return isTaken
    })
}
