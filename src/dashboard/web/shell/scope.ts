/** Whose figures are shown: one's own, or, for administrators, another account's or everybody's. */
import { useLocation } from '../routing/location.js'
import { useSession } from './session.js'

/** The `account` of reads: null for one's own. */
export function useScope(): string | null {
  const { query } = useLocation()
  const { account } = useSession().session
  return account?.role === 'admin' ? query.get('account') : null
}

/** A path that keeps the account that is looked at. */
export function withScope(path: string, scope: string | null): string {
  if (scope === null) return path
  return `${path}${path.includes('?') ? '&' : '?'}account=${encodeURIComponent(scope)}`
}
