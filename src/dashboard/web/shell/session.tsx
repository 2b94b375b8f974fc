/** The session for all pages, with the CSRF token in memory only. */
import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useState,
  type ReactNode,
} from 'react'
import type { Account, SessionReply } from '../../../control/dashboard/schema/schema.js'
import { problemOf, setToken, setUsualAccount, whenSignedOut, type Problem } from '../api/client.js'
import { read, change } from '../api/endpoints.js'
import { Failed } from '../components/loading-states.js'
import { accountOfPath, useLocation } from '../routing.js'

interface SessionValue {
  readonly session: SessionReply
  /** Applies the reply of a call that signed in or changed the session. */
  readonly adopt: (next: SessionReply) => void
  /** Reloads the number of keys and the plan. */
  readonly refresh: () => Promise<void>
  readonly signOut: (everywhere: boolean) => Promise<void>
}

const Context = createContext<SessionValue | null>(null)

/** The session, signed in or not. */
export function useSession(): SessionValue {
  const value = useContext(Context)
  if (value === null) throw new Error('useSession is called outside of the page')
  return value
}

/** The signed-in account; only for pages that need a session. */
export function useAccount(): Account {
  const { account } = useSession().session
  if (account === null) throw new Error('useAccount is called without a session')
  return account
}

/** Loads the session before anything else is shown. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const [session, setSession] = useState<SessionReply | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const adopt = useCallback((next: SessionReply) => {
    setToken(next.csrf)
    setUsualAccount(typeof next.user?.role === 'string' ? 'all' : null)
    setSession(next)
  }, [])
  const refresh = useCallback(async () => {
    try {
      adopt(await read('/session'))
      setProblem(null)
    } catch (error) {
      setProblem(problemOf(error))
    }
  }, [adopt])
  const signOut = useCallback(
    async (everywhere: boolean) => {
      await change(everywhere ? 'DELETE /sessions' : 'DELETE /session', undefined)
      await refresh()
    },
    [refresh],
  )
  useEffect(() => {
    whenSignedOut(() => void refresh())
    void refresh()
  }, [refresh])
  const value = useMemo(
    () => (session === null ? null : { session, adopt, refresh, signOut }),
    [session, adopt, refresh, signOut],
  )
  // The frame of `index.html` is shown until then.
  const isLoading = value === null && problem === null
  useLayoutEffect(() => {
    if (!isLoading) document.getElementById('boot')?.remove()
  }, [isLoading])
  if (value !== null) return <Context.Provider value={value}>{children}</Context.Provider>
  if (problem === null) return null
  return (
    <main className="alone">
      <Failed
        what="The dashboard"
        problem={problem}
        unaffected="Requests with your keys are not affected."
        retry={() => void refresh()}
      />
    </main>
  )
}

/**
 * The `account` parameter of reads: null for the own account. Administrators and auditors see all accounts
 * unless they choose one.
 */
export function useScope(): string | null {
  const { path, query } = useLocation()
  const { user, accounts } = useSession().session
  const isFree = user?.role !== undefined && user.role !== null
  const named = accountOfPath(path) ?? query.get('account')
  const chosen = isFree || accounts.length > 1 ? named : null
  return chosen ?? (isFree ? 'all' : null)
}

/** What the user may do in the selected account: what a role may not do is not shown. */
export interface Rights {
  /** Administers the gateway. */
  readonly isAdmin: boolean
  /** Reads the whole gateway: administrators and auditors. */
  readonly readsGateway: boolean
  readonly readsKeys: boolean
  readonly makesKeys: boolean
  readonly changesKeys: boolean
  readonly readsMembers: boolean
  /** Sees accounts with their figures: administrators, auditors, and owners of an account. */
  readonly readsAccounts: boolean
  readonly changesMembers: boolean
}

/** The rights in the selected account; the server checks them, too. */
export function useRights(): Rights {
  const scope = useScope()
  const { user, accounts, account } = useSession().session
  const selected = scope ?? account?.id
  const member = accounts.find(({ id, name }) => id === selected || name === selected)
  const role = member?.role ?? null
  const isAdmin = user?.role === 'admin'
  const readsGateway = isAdmin || user?.role === 'auditor'
  const isOwner = role === 'owner'
  const isAbove = role === 'above'
  return {
    isAdmin,
    readsGateway,
    readsKeys: readsGateway || isOwner || isAbove || role === 'member',
    makesKeys: isAdmin || isOwner || role === 'member',
    changesKeys: isAdmin || isOwner || isAbove || role === 'member',
    readsMembers: readsGateway || isOwner || isAbove,
    readsAccounts: readsGateway || accounts.some((each) => each.role === 'owner'),
    changesMembers: scope !== 'all' && (isAdmin || isOwner),
  }
}

/** Whether the page shows the selected account with all below it, and whether it may. */
export function useTree(): { readonly isTree: boolean; readonly mayTree: boolean } {
  const scope = useScope()
  const { readsMembers } = useRights()
  const isOwn = useLocation().query.get('own') !== null
  const mayTree = readsMembers && scope !== 'all'
  return { mayTree, isTree: mayTree && !isOwn }
}

/** Adds the selected account to a path; all accounts need no name. */
export function withScope(path: string, scope: string | null): string {
  if (scope === null || scope === 'all') return path
  return `${path}${path.includes('?') ? '&' : '?'}account=${encodeURIComponent(scope)}`
}
