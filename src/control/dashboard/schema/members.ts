/** The members of an account, for owners, administrators and auditors. */
import * as z from 'zod'
import { link } from './accounts.js'
import { timeMs, wanted } from './shared-types.js'

export const accountRole = z.enum(['owner', 'member', 'viewer'])
/** A role in the whole gateway. */
export const gatewayRole = z.enum(['admin', 'auditor'])

export const member = z.strictObject({
  email: z.string(),
  role: accountRole,
  /** The role that a group of the identity provider gives; null for none. */
  groupRole: accountRole.nullable(),
  /**
   * `invited`: has not signed in yet. `pending`: the role waits for proof of the address; for owners of the
   * account, the user has not signed in since it has the role.
   */
  state: z.enum(['active', 'invited', 'pending']),
  createdAtMs: timeMs,
})

/** `GET /members`: by e-mail address. */
export const membersReply = z.strictObject({ members: z.array(member) })

/** `PUT /members/{email}` → 200, or 201 for a new member. */
export const memberBody = z.strictObject({ role: wanted.optional() })
/**
 * The member, and a one-time link for a new member. Null for a former one; for administrators also for a user
 * whose address is proven.
 */
export const memberReply = z.strictObject({ member, link: link.nullable() })

/** `POST /members/{email}/invite` with `{}` → 201 `inviteReply`: a new link; older ones stop working. */
export const inviteBody = z.strictObject({})
/** A one-time link to set a password. */
export const inviteReply = z.strictObject({ link })

export type Member = z.output<typeof member>
/** The members of an account. */
export type MembersReply = z.output<typeof membersReply>
/** The body that gives a role. */
export type MemberBody = z.input<typeof memberBody>
/** A member with the link of a new user. */
export type MemberReply = z.output<typeof memberReply>
/** A link to set a password. */
export type InviteReply = z.output<typeof inviteReply>
