/** Who is signed in, for every page; and the token that changes carry, which lives nowhere else. */
import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useState,
  type ReactNode,
} from 'react'
import type { Account, SessionReply } from '../../server/schema/schema.js'
import { read, change } from '../api/endpoints.js'
import { problemOf, setToken, whenSignedOut, type Problem } from '../api/client.js'
import { BlockSkeleton, Failed } from '../components/states/states.js'

interface SessionValue {
  readonly session: SessionReply
  /** Takes the reply of a call that signed in or changed the session. */
  readonly adopt: (next: SessionReply) => void
  /** Asks anew: the number of keys, the plan. */
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

/** The account that is signed in; only for what is shown to nobody else. */
export function useAccount(): Account {
  const { account } = useSession().session
  if (account === null) throw new Error('useAccount is called while nobody is signed in')
  return account
}

/** Asks who is signed in before anything else is shown. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const [session, setSession] = useState<SessionReply | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const adopt = useCallback((next: SessionReply) => {
    setToken(next.csrf)
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
  if (value !== null) return <Context.Provider value={value}>{children}</Context.Provider>
  if (problem === null) {
    return (
      <main className="alone">
        <h1 className="unseen">Sluice</h1>
        <BlockSkeleton />
      </main>
    )
  }
  return (
    <main className="alone">
      <Failed
        what="The dashboard"
        problem={problem}
        holds="Requests with your keys are not affected."
        retry={() => void refresh()}
      />
    </main>
  )
}
