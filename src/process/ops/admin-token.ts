/** Compares the token of administrators of the ops port. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { ConfigSource } from '../../config/generations/reload-and-roll-back.js'

/**
 * Whether the `authorization` header carries `server.admin_token`; false if none is set. Compares in constant
 * time.
 */
export function hasAdminToken(source: ConfigSource, authorization: string | undefined): boolean {
  const { adminToken } = source.current().config.server
  const given = /^bearer (\S+)$/i.exec(authorization ?? '')?.[1]
  if (adminToken === null || given === undefined) return false
  return timingSafeEqual(digest(given), digest(adminToken))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
