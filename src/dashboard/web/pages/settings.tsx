/** The account: its plan, its password and its sessions. */
import { useState } from 'react'
import type { SessionReply } from '../../server/schema/schema.js'
import { change } from '../api/endpoints.js'
import { Button } from '../components/button.js'
import { Confirm } from '../components/dialog.js'
import { Day } from '../components/values.js'
import { report } from '../components/notices.js'
import { ProblemLine } from '../components/states.js'
import { Block, Page } from '../shell/page.js'
import { planText } from '../shell/navigation-rail.js'
import { useAccount, useRights, useSession } from '../shell/session.js'
import { Link } from '../routing.js'
import { useSubmit } from '../components/form.js'
import { Password } from './sign-in.js'

/** The settings of the signed-in account. */
export function SettingsPage() {
  const account = useAccount()
  const { session } = useSession()
  const { readsMembers } = useRights()
  const { plan } = account
  return (
    <Page title="Settings" purpose="Your account, its password and its sessions.">
      <Block title="Account">
        <dl className="facts">
          <dt>E-mail</dt>
          <dd>{account.email}</dd>
          <dt>Role</dt>
          <dd>{roleText(session)}</dd>
          <dt>Plan</dt>
          <dd>
            {planText(plan.name, account.liveKeys, plan.maxKeys)} · ${plan.priceUsd} a month
          </dd>
          <dt>Since</dt>
          <dd>
            <Day ms={account.createdAtMs} />
          </dd>
        </dl>
      </Block>
      <PasswordBlock />
      <SessionsBlock />
      {readsMembers ? (
        <Block title="Audit log">
          <p>
            <Link to="/audit">Who changed this account and its keys</Link>
          </p>
        </Block>
      ) : null}
    </Page>
  )
}

/** `administrator; owner of research`. */
function roleText({ user, accounts }: SessionReply): string {
  const gateway = { admin: 'administrator', auditor: 'auditor' } as const
  const first = user?.role === null || user === null ? [] : [gateway[user.role]]
  return [...first, ...accounts.map(({ name, role }) => `${role} of ${name}`)].join('; ')
}

function PasswordBlock() {
  const { hasPassword } = useAccount()
  const { adopt } = useSession()
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const { busy, problem, submit } = useSubmit(async () => {
    adopt(await change('PUT /password', hasPassword ? { current, next } : { next }))
    setCurrent('')
    setNext('')
    report('Password changed. All other sessions were signed out.')
  })
  const wrong = problem?.param === 'current' ? problem.message : undefined
  return (
    <Block title={hasPassword ? 'Change password' : 'Set a password'}>
      <form className="form narrow" onSubmit={submit}>
        {hasPassword ? (
          <Password
            label="Current password"
            error={wrong}
            value={current}
            onChange={setCurrent}
            isNew={false}
          />
        ) : null}
        <Password label="New password" value={next} onChange={setNext} isNew />
        {problem === null || wrong !== undefined ? null : <ProblemLine problem={problem} />}
        <div>
          <Button type="submit" busy={busy}>
            {hasPassword ? 'Change password' : 'Set password'}
          </Button>
        </div>
      </form>
    </Block>
  )
}

function SessionsBlock() {
  const { signOut } = useSession()
  const [asking, setAsking] = useState(false)
  return (
    <Block title="Sessions">
      <p className="soft">
        A session ends after 30 minutes without use, and after 12 hours in any case. Keys are not
        affected.
      </p>
      <div>
        <Button onClick={() => setAsking(true)}>Sign out everywhere</Button>
      </div>
      {asking ? (
        <Confirm
          title="Sign out everywhere?"
          consequence="Every browser that is signed in to this account has to sign in again, including this one. Keys keep working."
          verb="Sign out"
          act={() => signOut(true)}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </Block>
  )
}
