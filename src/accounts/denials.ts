/** Creates and finds denials of workload identities, with their audit entries. */
import { malformed } from '../errors.js'
import type { JsonObject } from '../base/json.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Denial, DenialSubject } from '../store/denials.js'
import type { Page, Store } from '../store/store.js'
import type { NewDenial } from './changes/decide-denial.js'
import { randomBase62 } from './key-secret.js'

const PAGE = 500

/** Denies an identity on all gateways. Throws `malformed_request` if the store has its maximum of denials. */
export async function denyIdentity(
  store: Pick<Store, 'denials'>,
  { identity, sub, jti, reason, expiresAtMs }: NewDenial,
  audit: (made: Denial) => readonly AuditEntry[] = () => [],
): Promise<Denial> {
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
