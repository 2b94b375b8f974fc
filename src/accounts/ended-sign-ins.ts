/**
 * Which sign-ins of users end with a change of their roles. It is read before the change, decided with it and
 * written with it, so that no failure leaves a role without the end, or an end without the role.
 */
import type { EndedTokens, SignInTokenKind } from '../store/sign-in-tokens.js'
import type { Account, Member } from './account.js'
import { isRaised, isUnproven } from './address-proof.js'
import { mayGive, readLink, type LinkStore } from './link-makers.js'
import { LOGIN_KINDS } from './logins/login-records.js'
import { isSelfMade } from './names.js'

/** A person's sessions and known devices, links, and the sign-ins of programs. */
const ALL_KINDS: readonly SignInTokenKind[] = ['session', 'device', 'reset', ...LOGIN_KINDS]

/** Users that are read at the same time. */
const READ_AT_ONCE = 16

/** All sign-ins of a user, except those with these ids. */
export function allSignIns(accountId: string, except: readonly string[] = []): EndedTokens {
  return { kinds: ALL_KINDS, accountId, except }
}

/** The sign-ins of a user whose account or whole sign-in is disabled. */
export function sessionsOf(accountId: string): EndedTokens {
  return { kinds: ['session', ...LOGIN_KINDS], accountId }
}

/** A change of one member; null: it was none, or is none any more. */
interface RoleChange {
  readonly before: Member | null
  readonly after: Member | null
}

/** What is known of the sign-ins of a user. */
interface SignIns {
  readonly isUnproven: boolean
  /** Whether the user has a role elsewhere. */
  readonly hasOtherRole: boolean
  /** Ids of the links that stay: their makers may give the role, or have not seen the link. */
  readonly kept: readonly string[]
}

/** Decides about the users whose sign-ins were read. */
export class EndedSignIns {
  private readonly store: LinkStore
  private readonly account: Account | null
  private readonly nowMs: number
  private readonly known = new Map<string, SignIns>()

  /** `account`: that of the roles, also if it does not exist yet; null: the whole gateway. */
  constructor(store: LinkStore, account: Account | null, nowMs: number) {
    this.store = store
    this.account = account
    this.nowMs = nowMs
  }

  /** Reads the sign-ins of users. */
  async read(...userIds: readonly string[]): Promise<this> {
    for (let at = 0; at < userIds.length; at += READ_AT_ONCE) {
      const some = userIds.slice(at, at + READ_AT_ONCE)
      const found = await Promise.all(some.map(async (id) => [id, await this.found(id)] as const))
      for (const [id, signIns] of found) this.known.set(id, signIns)
    }
    return this
  }

  /** Ids of the users that must be read before `withRoles` can decide about these changes. */
  unread(changes: readonly RoleChange[]): string[] {
    return changes.flatMap((change) => {
      const { userId } = change.after ?? change.before ?? {}
      return userId === undefined || this.known.has(userId) || !this.endsAny(change) ? [] : [userId]
    })
  }

  /**
   * What ends with these changes in the account: the sessions of a user who has no role any more; the links
   * whose makers could not give the new role; of an unproven user the sessions, known devices and programs.
   * What a user gives in an account that she made for herself ends nothing: any visitor can do that.
   */
  withRoles(changes: readonly RoleChange[]): EndedTokens[] {
    return changes
      .filter((change) => this.endsAny(change))
      .flatMap(({ before, after }) => {
        const accountId = (after ?? before)?.userId ?? ''
        const { hasOtherRole = true } = this.known.get(accountId) ?? {}
        if (after === null) return hasOtherRole ? [] : [{ kinds: ['session'], accountId }]
        // A higher role in an account that the user has entered comes from those who let it in.
        return this.withGain(accountId, before?.accepted === true)
      })
  }

  /** What ends when the user gets a role in the whole gateway. */
  withGain(accountId: string, hasEntered = false): EndedTokens[] {
    const known = this.known.get(accountId)
    if (known === undefined) return []
    const links: EndedTokens = { kinds: ['reset'], accountId, except: known.kept }
    if (hasEntered || !known.isUnproven) return [links]
    return [links, { kinds: ['session', 'device', ...LOGIN_KINDS], accountId }]
  }

  private endsAny({ before, after }: RoleChange): boolean {
    return after === null || (!isSelfMade(this.account?.name ?? '') && isRaised(before, after))
  }

  private async found(userId: string): Promise<SignIns> {
    const { store, account, nowMs } = this
    const kept: string[] = []
    for (const token of await store.signInTokens.tokensOf('reset', userId, nowMs)) {
      const link = readLink(token)
      // The maker of a mailed link has not seen it.
      if (link === null) continue
      if (link.isMailed || (await mayGive(store, link.maker, account, nowMs))) kept.push(token.id)
    }
    const user = await store.users.byId(userId)
    const hasOtherRole =
      user !== null &&
      (user.role !== null ||
        user.groupRole !== undefined ||
        (await store.users.memberships(userId)).some(({ accountId }) => accountId !== account?.id))
    return { isUnproven: user !== null && isUnproven(user), hasOtherRole, kept }
  }
}
