/** The page on which a person lets a program act for one of her accounts: `/auth/device`. */
import { useState } from 'react'
import type { DeviceReply } from '../../../control/dashboard/schema/schema.js'
import { change, read } from '../api/endpoints.js'
import { Button } from '../components/button.js'
import { Fact, Facts } from '../components/facts.js'
import { Form, SelectField, TextField, useForm } from '../components/form.js'
import { useLocation } from '../routing.js'
import { useSession } from '../shell/session.js'
import { SignIn, SignInFrame } from './sign-in.js'

/** A program that waits, with its code. */
interface Waiting {
  readonly code: string
  readonly device: DeviceReply
}

/** The code is looked up, and the program approved, only when the user presses a button. */
export function DevicePage() {
  const { session } = useSession()
  const [waiting, setWaiting] = useState<Waiting | null>(null)
  const [isApproved, setApproved] = useState<boolean | null>(null)
  if (session.account === null) return <SignIn />
  if (isApproved !== null) {
    return (
      <SignInFrame
        title={isApproved ? 'Approved' : 'Denied'}
        text={
          isApproved
            ? 'The program signs in within a few seconds. You may close this page.'
            : 'The program gets nothing. You may close this page.'
        }
      >
        {isApproved ? (
          <p className="soft">
            <a href="/dashboard/me">What you used, and what is left</a>
          </p>
        ) : null}
      </SignInFrame>
    )
  }
  return waiting === null ? (
    <EnterCode onFound={setWaiting} />
  ) : (
    <Decide waiting={waiting} onDecided={setApproved} />
  )
}

function EnterCode({ onFound }: { readonly onFound: (waiting: Waiting) => void }) {
  const { query } = useLocation()
  const form = useForm({ code: query.get('user_code') ?? '' }, async ({ code }) => {
    const id = code.trim().toUpperCase()
    onFound({ code: id, device: await read('/device/{id}', { id: encodeURIComponent(id) }) })
  })
  return (
    <SignInFrame
      title="Let a program act for you"
      text="Compare the code with the one that the program shows. Continue only if you have started it yourself."
    >
      <Form form={form} verb="Continue">
        <TextField
          label="Code"
          name="code"
          autoComplete="off"
          spellCheck={false}
          required
          {...form.field('code')}
        />
      </Form>
      <Person />
    </SignInFrame>
  )
}

interface DecideProps {
  readonly waiting: Waiting
  readonly onDecided: (isApproved: boolean) => void
}

function Decide({ waiting: { code, device }, onDecided }: DecideProps) {
  const { query } = useLocation()
  const { program, address, accounts, expires_at: end } = device
  const named = query.get('account')
  const first = accounts.find(({ id, name }) => id === named || name === named) ?? accounts[0]
  const form = useForm({ account: first?.id ?? '' }, async ({ account }) => {
    await change('POST /device/{id}', { approve: true, account }, code)
    onDecided(true)
  })
  const denial = useForm({}, async () => {
    await change('POST /device/{id}', { approve: false }, code)
    onDecided(false)
  })
  return (
    <SignInFrame
      title={`Let ${program === 'none' || program === 'other' ? 'a program' : program} act for you?`}
      text="It makes requests that count for you and the account, until you sign out everywhere."
    >
      <Facts>
        <Fact name="Code">
          <code>{code}</code>
        </Fact>
        <Fact name="Program">{program}</Fact>
        <Fact name="Started at">{address}</Fact>
        <Fact name="Expires">{new Date(end).toLocaleTimeString()}</Fact>
      </Facts>
      {first === undefined ? (
        <p className="problem warn">
          You are no owner or member of an account, so that no program can act for you. Ask an administrator.
        </p>
      ) : (
        <Form form={form} verb="Approve">
          <SelectField
            label="Account"
            options={accounts.map(({ id, name }) => ({ value: id, label: name }))}
            {...form.field('account')}
          />
        </Form>
      )}
      <Form form={denial} verb="Deny" tone="plain">
        {null}
      </Form>
      <Person />
    </SignInFrame>
  )
}

function Person() {
  const { session, signOut } = useSession()
  return (
    <p className="soft">
      Signed in as {session.user?.email}.{' '}
      <Button tone="plain" onClick={() => void signOut(false)}>
        Sign out
      </Button>
    </p>
  )
}
