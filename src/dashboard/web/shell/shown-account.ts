/** The account whose figures are shown: the own one, or for administrators another one or all. */
import { useLocation } from '../routing/location.js'
import { useSession } from './session.js'

/** The `account` parameter of reads: null for the own account. */
export function useScope(): string | null {
  const { query } = useLocation()
  const { account } = useSession().session
  return account?.role === 'admin' ? query.get('account') : null
}

/** Adds the selected account to a path. */
export function withScope(path: string, scope: string | null): string {
  if (scope === null) return path
  return `${path}${path.includes('?') ? '&' : '?'}account=${encodeURIComponent(scope)}`
}
