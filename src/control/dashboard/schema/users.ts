/** The people who can sign in, for administrators and auditors. */
import * as z from 'zod'
import { link } from './accounts.js'
import { accountRole, gatewayRole } from './members.js'
import { cursor, id, numberText, search, timeMs, wanted } from './shared-types.js'

/** `pending`: a role waits for proof of the address. `invited`: has not signed in yet. */
export const userState = z.enum(['active', 'invited', 'pending', 'disabled'])

export const userRow = z.strictObject({
  id,
  email: z.string(),
  /** In the whole gateway, given by hand; null for none. */
  role: gatewayRole.nullable(),
  /** The role that a group of the identity provider gives; null for none. */
  groupRole: gatewayRole.nullable(),
  state: userState,
  /** By name. */
  accounts: z.array(z.strictObject({ name: z.string(), role: accountRole })),
  /** The identity provider that signs the user in; null: a password. */
  provider: z.string().nullable(),
  hasPassword: z.boolean(),
  createdAtMs: timeMs,
  /** As far as the audit log reaches; null: never, or earlier. */
  lastSignInAtMs: timeMs.nullable(),
})

/** `GET /users`: by e-mail address. */
export const usersQuery = z.strictObject({
  /** Part of the address. */
  search: search.optional(),
  role: gatewayRole.optional(),
  state: userState.optional(),
  after: cursor.optional(),
  /** 1 to 200; default 50. */
  limit: numberText(1, 200).optional(),
})
/** The number of all users is not known. */
export const usersReply = z.strictObject({
  users: z.array(userRow),
  next: z.string().nullable(),
  total: z.null(),
})

/**
 * `POST /users` → 201 `invitedUserReply`: invites a person, or gives one who is here a role: in the whole
 * gateway, or with `account` in an account.
 */
export const inviteUserBody = z.strictObject({
  email: z.string(),
  role: wanted.optional(),
  /** The name or id of an account. */
  account: z.string().optional(),
  /** The role there; default: member. */
  accountRole: wanted.optional(),
})
/** `link` is null for a user whose address is proven. */
export const invitedUserReply = z.strictObject({ user: userRow, link: link.nullable() })

/** `PATCH /users/{id}` → `userReply`. A disabled user is signed out with the next request. */
export const changeUserBody = z.strictObject({
  role: wanted.optional(),
  disabled: wanted.optional(),
})
export const userReply = z.strictObject({ user: userRow })

/** `POST /users/{id}/invite` with `{}` → 201: a new link; older ones stop working. */
export const userLinkBody = z.strictObject({})
export const userLinkReply = z.strictObject({ link })

/** `POST /users/{id}/unbind` with `{}` → `userReply`: another identity of the provider may get the user. */
export const unbindUserBody = z.strictObject({})

export type UserRow = z.output<typeof userRow>
/** A page of users. */
export type UsersReply = z.output<typeof usersReply>
/** An invitation. */
export type InviteUserBody = z.input<typeof inviteUserBody>
export type InvitedUserReply = z.output<typeof invitedUserReply>
/** A change of a user. */
export type ChangeUserBody = z.input<typeof changeUserBody>
export type UserReply = z.output<typeof userReply>
/** A one-time link for a user. */
export type UserLinkReply = z.output<typeof userLinkReply>
