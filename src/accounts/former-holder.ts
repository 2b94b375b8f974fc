/**
 * What a person has made in the name of a user whose address was not proven, and which ends when another
 * person proves the address: keys, and roles in the account that was made with the user. Otherwise a visitor
 * who signed up with the address of a colleague could use and read the colleague's account from then on.
 */
import type { AuditEntry } from '../store/audit-trail.js'
import { keyPages } from '../store/list-all.js'
import type { Store } from '../store/store.js'
import type { ApiKey, Member, User } from './account.js'
import { isUnproven } from './address-proof.js'
import { decideRevocation, memberRemoval, type Actor, type ChangeContext } from './changes/decide.js'
import { isSelfMade } from './names.js'

/** Keys that one step revokes. */
const KEYS_AT_ONCE = 100

/** Who proves the address of a user. */
interface Proof {
  /** The user before the proof. */
  readonly user: User
  /** Whether the person had the sign-in of before: a session, or the password. */
  readonly isSameHolder: boolean
  readonly nowMs: number
  readonly actor: Actor
}

/** What ended. */
interface Ended {
  readonly keys: number
  readonly members: number
}

/**
 * To be called after the address was proven and the sessions of before have ended. What the same person made
 * stays, except in accounts that she has not entered.
 */
export async function endWhatAnotherMade(
  store: Pick<Store, 'users' | 'accountById' | 'membersOf' | 'listKeys' | 'transact'>,
  { user, isSameHolder, nowMs, actor }: Proof,
): Promise<Ended> {
  const ended = { keys: 0, members: 0 }
  // Without a sign-in nothing was made in her name.
  if (!isUnproven(user) || user.signedInAtMs === undefined) return ended
  for (const role of await store.users.memberships(user.id)) {
    if (isSameHolder && role.accepted === true) continue
    const account = await store.accountById(role.accountId)
    if (account === null) continue
    const context = { nowMs, actor, accountId: account.id, account: account.name }
    const isOwn = account.id === user.id && isSelfMade(account.name)
    const isMade = (key: ApiKey): boolean => isOwn || key.createdBy === user.email
    ended.keys += await revokeKeys(store, context, isMade)
    if (isOwn) ended.members += await removeOthers(store, context, role)
  }
  return ended
}

/** Revokes the live keys of an account that fit; their number. */
async function revokeKeys(
  store: Pick<Store, 'listKeys' | 'transact'>,
  context: ChangeContext,
  fits: (key: ApiKey) => boolean,
): Promise<number> {
  const { accountId, nowMs } = context
  const isMeant = (key: ApiKey): boolean => key.revokedAtMs === undefined && fits(key)
  const ids: string[] = []
  for await (const page of keyPages(store, accountId)) ids.push(...page.filter(isMeant).map(({ id }) => id))
  for (let at = 0; at < ids.length; at += KEYS_AT_ONCE) {
    const keyIds = ids.slice(at, at + KEYS_AT_ONCE)
    await store.transact<null>({
      ...{ accountId, nowMs, reads: { keyIds } },
      decide({ account, keysById }) {
        const revoked = [...keysById.values()].filter(isMeant).map((key) => decideRevocation(key, context))
        if (account === null || revoked.length === 0) return { refuse: null }
        return { write: { keys: revoked.map(({ key }) => key), audit: revoked.map(({ audit }) => audit) } }
      },
    })
  }
  return ids.length
}

/** Removes all members of an account but one; their number. */
async function removeOthers(
  store: Pick<Store, 'membersOf' | 'transact'>,
  context: ChangeContext,
  { accountId, userId }: Member,
): Promise<number> {
  const result = await store.transact<null>({
    ...{ accountId, nowMs: context.nowMs, reads: { members: 'all' } },
    decide({ account, members }) {
      const others = [...members.values()].filter((member) => member.userId !== userId)
      if (account === null || others.length === 0) return { refuse: null }
      const audit: AuditEntry[] = others.map((member) => memberRemoval(member, context))
      return { write: { removedMembers: others.map(({ email }) => email), audit } }
    },
  })
  return result.kind === 'written' ? (result.writes.removedMembers ?? []).length : 0
}
