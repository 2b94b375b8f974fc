/** Programs that wait for their user: the page at `/auth/device`. */
import * as z from 'zod'
import { id } from './shared-types.js'

/**
 * `GET /device/{user_code}`: 404 if no program waits with this code; after five wrong codes of an address 429
 * for a minute.
 */
export const deviceReply = z.strictObject({
  /** By its user agent. */
  program: z.string(),
  /** The address that it asked from. */
  address: z.string(),
  /** RFC 3339. */
  expires_at: z.string(),
  /** The accounts that the user may choose, by name; empty: none. */
  accounts: z.array(z.strictObject({ id, name: z.string() })),
})

/** `POST /device/{user_code}` → `doneReply` */
export const deviceBody = z.strictObject({
  approve: z.boolean(),
  /** A name or id of `accounts`; absent or null: the first. */
  account: z.string().min(1).max(100).nullable().optional(),
})

/** A program that waits. */
export type DeviceReply = z.output<typeof deviceReply>
/** A decision. */
export type DeviceBody = z.input<typeof deviceBody>
