/** Creates and finds denials of workload identities, with their audit entries. */
import { malformed } from '../errors.js'
import type { JsonObject } from '../base/json.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Denial, DenialSubject } from '../store/denials.js'
import type { Page, Store } from '../store/store.js'
import { randomBase62 } from './key-secret.js'

/** Longer values of `sub` and `jti` cannot be denied. */
const MAX_DENIED_CHARS = 4_096
const MAX_REASON = 500
const PAGE = 500

/** The settings of a new denial. */
type NewDenial = DenialSubject & Pick<Denial, 'reason' | 'expiresAtMs'>

/**
 * Denies an identity on all gateways of the store. Throws `malformed_request` with the field, also if the
 * store has its maximum of denials.
 */
export async function denyIdentity(
  store: Pick<Store, 'denials'>,
  { identity, sub, jti, reason, expiresAtMs }: NewDenial,
  audit: (made: Denial) => readonly AuditEntry[] = () => [],
): Promise<Denial> {
  if ((sub === null) === (jti === null)) throw malformed('Set exactly one of sub and jti.', 'sub')
  const [field, value] = sub === null ? ['jti', jti ?? ''] : ['sub', sub]
  if (value === '' || value.length > MAX_DENIED_CHARS) {
    throw malformed(`${field} must have 1 to ${MAX_DENIED_CHARS} characters.`, field)
  }
  if (reason.length > MAX_REASON) {
    throw malformed(`reason must have at most ${MAX_REASON} characters.`, 'reason')
  }
  const id = `den_${randomBase62(16)}`
  const denial = { id, identity, sub, jti, reason, expiresAtMs, createdAtMs: Date.now() }
  if ((await store.denials.create(denial, audit(denial))) === 'created') return denial
  const message = 'The store has its maximum of denials: remove those that are no longer needed.'
  throw malformed(message)
}

/** All denials of the `sub` or the `jti`, expired ones included. */
export async function denialsOf(
  store: Pick<Store, 'denials'>,
  { identity, sub, jti }: DenialSubject,
): Promise<Denial[]> {
  const found: Denial[] = []
  for await (const page of denialPages(store)) {
    for (const each of page) {
      if (each.identity === identity && each.sub === sub && each.jti === jti) found.push(each)
    }
  }
  return found
}

/** The denials, newest first, page by page. */
export async function* denialPages({ denials }: Pick<Store, 'denials'>): AsyncGenerator<readonly Denial[]> {
  for (let after: string | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
    const page: Page<Denial> = await denials.list({ order: 'newest_first', after, limit: PAGE })
    yield page.items
    after = page.next
  }
}

/** The fields of a denial for the audit trail, and for programs that read lists. */
export function denialFields({ identity, sub, jti, reason, expiresAtMs }: Denial): JsonObject {
  const expiresAt = expiresAtMs === null ? null : new Date(expiresAtMs).toISOString()
  return { identity, sub, jti, reason, expires_at: expiresAt }
}
