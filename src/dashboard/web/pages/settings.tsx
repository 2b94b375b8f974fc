/** The account: its plan, its password and its sessions. */
import { useState } from 'react'
import type { SessionReply } from '../../../control/dashboard/schema/schema.js'
import { change } from '../api/endpoints.js'
import { Button } from '../components/button.js'
import { Fact, Facts } from '../components/facts.js'
import { Confirm } from '../components/dialog.js'
import { Day } from '../components/values.js'
import { report } from '../components/notices.js'
import { Block, Page } from '../shell/page.js'
import { planText, priceText } from '../shell/navigation-rail.js'
import { useAccount, useRights, useSession } from '../shell/session.js'
import { Link } from '../routing.js'
import { Form, useForm } from '../components/form.js'
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
        <Facts>
          <Fact name="E-mail">{account.email}</Fact>
          <Fact name="Role">{roleText(session)}</Fact>
          <Fact name="Plan">
            {planText(plan.name, account.liveKeys, plan.maxKeys)}
            {priceText(plan.priceUsd)}
          </Fact>
          <Fact name="Since">
            <Day ms={account.createdAtMs} />
          </Fact>
        </Facts>
      </Block>
      {account.provider === null ? (
        <PasswordBlock />
      ) : (
        <Block title="Sign-in">
          <p>You sign in with {account.provider}. There is no password here.</p>
        </Block>
      )}
      <Block title="Programs">
        <p>
          <Link to="/me">What programs that you signed in used, and what is left</Link>
        </p>
      </Block>
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
  return [
    ...first,
    ...accounts.flatMap(({ name, role }) => (role === 'above' ? [] : [`${role} of ${name}`])),
  ].join('; ')
}

function PasswordBlock() {
  const { hasPassword } = useAccount()
  const { adopt } = useSession()
  const verb = hasPassword ? 'Change password' : 'Set password'
  const form = useForm({ current: '', next: '' }, async ({ current, next }) => {
    adopt(await change('PUT /password', hasPassword ? { current, next } : { next }))
    form.set({ current: '', next: '' })
    report('Password changed. All other sessions were signed out.')
  })
  return (
    <Block title={hasPassword ? 'Change password' : 'Set a password'}>
      <Form form={form} verb={verb} tone="plain" className="narrow">
        {hasPassword ? <Password label="Current password" {...form.field('current')} /> : null}
        <Password label="New password" isNew {...form.field('next')} />
      </Form>
    </Block>
  )
}

function SessionsBlock() {
  const { signOut } = useSession()
  const [asking, setAsking] = useState(false)
  return (
    <Block title="Sessions">
      <p className="soft">
        A session ends after 30 minutes without use, and after 12 hours in any case. Keys are not affected.
      </p>
      <div>
        <Button onClick={() => setAsking(true)}>Sign out everywhere</Button>
      </div>
      {asking ? (
        <Confirm
          title="Sign out everywhere?"
          description="Every browser that is signed in to this account has to sign in again, including this one. Keys keep working."
          verb="Sign out"
          send={() => signOut(true)}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </Block>
  )
}
