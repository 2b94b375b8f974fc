/** Dialogs of a key: edit, rotate, revoke. */
import { useEffect, useState } from 'react'
import type {
  CreatedKeyReply,
  Key,
  KeyDetailReply,
  Plan,
} from '../../../../control/dashboard/schema/schema.js'
import { useResource } from '../../api/use-resource.js'
import { change, read } from '../../api/endpoints.js'
import { Button } from '../../components/button.js'
import { CodeBlock, CopyButton } from '../../components/copy-button.js'
import { Dialog, FormDialog } from '../../components/dialog.js'
import { ReasonField, SelectField, type Bound } from '../../components/form.js'
import { report } from '../../components/notices.js'
import { useExampleModel, RequestCode } from '../../components/request-code.js'
import { Tabs } from '../../components/tabs.js'
import { baseOf } from '../../format/request-formats.js'
import { kindText } from '../../format/failure-texts.js'
import { Failed } from '../../components/loading-states.js'
import { Ago } from '../../components/values.js'
import { dollars, duration, plural } from '../../format/number.js'
import { clockTime, fullTime, HOUR_MS } from '../../format/time.js'
import { Link } from '../../routing.js'
import { useAccount, useRights, useScope, useSession } from '../../shell/session.js'
import { changeBody, draftOf, faultsOf, maskOf, BLANK, createBody } from './key-draft.js'
import { AccountField } from '../accounts/account-dialogs.js'
import { KeyFields } from './key-form.js'

/** What a dialog does with a key; `limits` edits it, beginning with its limits. */
export type KeyAct = 'edit' | 'limits' | 'rotate' | 'revoke'

interface KeyDialogProps {
  readonly act: KeyAct
  readonly id: string
  /** The account of the key; null: the user's own. */
  readonly account: string | null
  readonly onClose: () => void
}

/** The dialog of an action, once the key with its account's plan is loaded. */
export function KeyDialog({ act, id, account, onClose }: KeyDialogProps) {
  const { data, problem, reload } = useResource('/keys/{id}', { id, account })
  if (data?.key.id !== id) {
    if (problem === null) return null
    return (
      <Dialog title="Key" onClose={onClose}>
        <Failed what="The key" problem={problem} unaffected="Keys keep working." retry={reload} />
      </Dialog>
    )
  }
  const shown = { detail: data, onClose }
  if (act === 'rotate') return <RotateKey {...shown} />
  if (act === 'revoke') return <RevokeKey {...shown} />
  return <EditKey {...shown} atLimits={act === 'limits'} />
}

interface KeyProps {
  readonly detail: KeyDetailReply
  readonly onClose: () => void
}

/** The account of the key, for its change. */
function of({ accountId }: Key): { readonly account: string } {
  return { account: accountId }
}

/** Changes the name, expiry, models, limits or labels of a key. */
function EditKey({ detail: { key, plan }, atLimits, onClose }: KeyProps & { atLimits: boolean }) {
  const initial = draftOf(key)
  return (
    <FormDialog
      title={`Edit ${key.name}`}
      description={<AccountNote apiKey={key} />}
      verb="Save"
      {...(atLimits ? { focus: '.limit-fields input' } : {})}
      initial={{ ...initial, limited: atLimits ? 'own' : initial.limited, reason: '' }}
      check={(draft) => faultsOf(draft, plan, Date.now())}
      send={async ({ reason, ...draft }) => {
        const body = { ...changeBody(draft, Date.now()), reason }
        await change('PATCH /keys/{id}', body, key.id, of(key))
        report(`Saved. ${draft.name} has the new settings.`)
      }}
      onClose={onClose}
    >
      {(form) => (
        <>
          <KeyFields form={form} plan={plan} endsAtMs={key.expiresAtMs} isInside={atLimits} />
          <ReasonOfAdministrator {...form.field('reason')} />
        </>
      )}
    </FormDialog>
  )
}

/** How long a key works after its end was decided. */
const OVERLAPS = [
  { value: '0', label: 'now' },
  { value: String(HOUR_MS), label: 'after 1 hour' },
  { value: String(24 * HOUR_MS), label: 'after 24 hours' },
  { value: String(168 * HOUR_MS), label: 'after 7 days' },
] as const

/** What ends with the key: its last use, and its requests of the last day. */
function UseNow({ apiKey }: { readonly apiKey: Key }) {
  const { id, accountId, lastUsedAtMs } = apiKey
  const usage = useResource('/usage', { account: accountId, keyId: id, range: '24h' })
  const requests = usage.data?.total.requests
  if (lastUsedAtMs === null) return <>It was never used.</>
  return (
    <>
      Last used <Ago ms={lastUsedAtMs} />
      {requests === undefined ? '' : `; ${plural(requests, 'request')} in the last 24 hours`}.
    </>
  )
}

/** Creates a replacement with the same settings; the old key works beside it for a time. */
function RotateKey({ detail: { key }, onClose }: KeyProps) {
  return (
    <FormDialog
      isQuestion
      title={`Rotate ${key.name}?`}
      description={
        <>
          A new key with the same name, models, limits and labels replaces <code>{maskOf(key)}</code>.{' '}
          <UseNow apiKey={key} />
        </>
      }
      verb="Rotate"
      tone="primary"
      initial={{ reason: '', overlap: String(24 * HOUR_MS) }}
      send={async ({ reason, overlap }) => {
        const body = { reason, overlapSeconds: Number(overlap) / 1_000 }
        const made = await change('POST /keys/{id}/rotate', body, key.id, of(key))
        const end = made.oldEndsAtMs === null ? 'you revoke it' : fullTime(made.oldEndsAtMs)
        const note = overlap === '0' ? `${maskOf(key)} has ended.` : `${maskOf(key)} works until ${end}.`
        return <Secret made={made} note={note} onClose={onClose} />
      }}
      onClose={onClose}
    >
      {(form) => (
        <>
          <SelectField label="The old key ends" options={OVERLAPS} {...form.field('overlap')} />
          <ReasonOfAdministrator {...form.field('reason')} />
        </>
      )}
    </FormDialog>
  )
}

/** Revokes a key, now or after a time. */
function RevokeKey({ detail: { key }, onClose }: KeyProps) {
  return (
    <FormDialog
      isQuestion
      title={`Revoke ${key.name}?`}
      description={
        <>
          Requests with <code>{maskOf(key)}</code> of the account {key.accountName} fail within 1 second of
          its end. <UseNow apiKey={key} />
        </>
      }
      verb="Revoke"
      initial={{ reason: '', overlap: '0' }}
      send={async ({ reason, overlap }) => {
        if (overlap === '0') {
          await change('DELETE /keys/{id}', undefined, key.id, { ...of(key), reason })
          report(`Revoked. ${key.name} stopped working at ${clockTime(Date.now())}.`)
          return
        }
        const expiresAtMs = Date.now() + Number(overlap)
        await change('PATCH /keys/{id}', { expiresAtMs, reason }, key.id, of(key))
        report(`${key.name} ends ${fullTime(expiresAtMs)}.`)
      }}
      onClose={onClose}
    >
      {(form) => (
        <>
          <SelectField label="Ends" options={OVERLAPS} {...form.field('overlap')} />
          <ReasonOfAdministrator {...form.field('reason')} />
        </>
      )}
    </FormDialog>
  )
}

/** Names the account if it is not the user's own. */
function AccountNote({ apiKey }: { readonly apiKey: Key }) {
  const me = useAccount()
  return apiKey.accountId === me.id ? null : `A key of the account ${apiKey.accountName}.`
}

/** Administrators act for others, so they can say why. */
function ReasonOfAdministrator(field: Bound) {
  const { isAdmin } = useRights()
  return isAdmin ? <ReasonField {...field} /> : null
}

/** Creates a key and then shows its secret once, which is kept only in the state of this dialog. */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const scope = useScope()
  const own = useAccount()
  const isOwn = scope === null || scope === 'all'
  const { data } = useResource('/account', { account: scope }, { enabled: !isOwn })
  if (scope === 'all') return <ChooseAccount onClose={onClose} />
  const plan = isOwn ? own.plan : data?.plan
  return plan === undefined ? null : <NewKey account={scope} plan={plan} onClose={onClose} />
}

/** Of all accounts, a new key needs one. */
function ChooseAccount({ onClose }: { readonly onClose: () => void }) {
  return (
    <FormDialog
      title="Create key"
      description="Whose usage, limits and bill are those of the key?"
      verb="Continue"
      focus='[role="dialog"] input'
      initial={{ account: '' }}
      send={async ({ account: wanted }) => {
        const { name, plan } = await read('/account', { account: wanted.trim() })
        return <NewKey account={name} plan={plan} onClose={onClose} />
      }}
      onClose={onClose}
    >
      {({ field }) => <AccountField label="Account" required {...field('account')} />}
    </FormDialog>
  )
}

interface NewKeyProps {
  /** Null: the user's own. */
  readonly account: string | null
  readonly plan: Plan
  readonly onClose: () => void
}

function NewKey({ account, plan, onClose }: NewKeyProps) {
  return (
    <FormDialog
      title="Create key"
      verb="Create"
      initial={BLANK}
      check={(draft) => faultsOf(draft, plan, Date.now())}
      send={async (draft) => {
        const query = account === null ? {} : { account }
        const made = await change('POST /keys', createBody(draft, Date.now()), undefined, query)
        return <Secret made={made} onClose={onClose} />
      }}
      advice={(problem) =>
        problem.kind === 'plan_limit' ? (
          <p className="soft">
            <Link to="/keys" onClick={onClose}>
              See which keys are not used
            </Link>
          </p>
        ) : null
      }
      onClose={onClose}
    >
      {(form) => <KeyFields form={form} plan={plan} endsAtMs={null} />}
    </FormDialog>
  )
}

interface SecretProps {
  readonly made: CreatedKeyReply
  /** How long the replaced key works. */
  readonly note?: string
  readonly onClose: () => void
}

/** A new key with what a client needs of it, shown once, and its first request when it comes. */
function Secret({ made: { key, secret }, note, onClose }: SecretProps) {
  const { session } = useSession()
  const model = useExampleModel(key.models)
  const base = baseOf(session.publicUrl)
  const url = new URL(base).origin
  const { data } = useResource('/keys/{id}/clients', { id: key.id, account: key.accountId, url })
  const target = { base, model, key: secret }
  const tabs = (data?.clients ?? []).map(({ title, text }) => ({
    name: title,
    content: <CodeBlock what={title} code={`export ${KEY_ENV}='${secret}'\n\n${text}`} />,
  }))
  const env = Object.entries(data?.env ?? {}).map(
    ([name, value]) => `${name}=${value.replace(`\${${KEY_ENV}}`, secret)}`,
  )
  if (env.length > 0) tabs.unshift({ name: '.env', content: <CodeBlock what=".env" code={env.join('\n')} /> })
  return (
    <Dialog
      title={`Key ${key.name}`}
      description={`Copy it now. You will not see it again.${note === undefined ? '' : ` ${note}`}`}
      closable={false}
      wide
      onClose={onClose}
    >
      <div className="copy-rows">
        <span className="strong">Base URL</span>
        <code>{base}</code>
        <CopyButton text={base} what="base URL" label />
        <span className="strong">Key</span>
        <code className="secret-text">{secret}</code>
        <CopyButton text={secret} what="key" label />
      </div>
      <Tabs
        label="Clients"
        tabs={[{ name: 'curl and SDKs', content: <RequestCode target={target} /> }, ...tabs]}
      />
      <footer className="dialog-foot row">
        <FirstRequest apiKey={key} />
        <Button tone="primary" onClick={onClose}>
          I have saved it
        </Button>
      </footer>
    </Dialog>
  )
}

/** As in `sluice connect`. */
const KEY_ENV = 'SLUICE_KEY'
const FIRST_EVERY_MS = 1_000

/** Waits for the first request with the key. */
function FirstRequest({ apiKey: { id, accountId } }: { readonly apiKey: Key }) {
  const [seen, setSeen] = useState(false)
  const asked = { account: accountId, keyId: id, limit: 1 }
  const { data } = useResource('/requests', asked, seen ? {} : { everyMs: FIRST_EVERY_MS })
  const [row] = data?.rows ?? []
  useEffect(() => {
    if (row !== undefined) setSeen(true)
  }, [row])
  return (
    <p className="first-request" role="status">
      {row === undefined ? (
        <span className="soft">Waiting for the first request …</span>
      ) : (
        <>
          <span className={`status ${row.outcome === 'ok' ? 'good' : 'bad'}`}>
            {row.status}, {row.model}, {duration(row.durationMs)}
            {row.costNanoUsd === null ? '' : `, ${dollars(row.costNanoUsd)}`}
            {row.outcome === 'ok' ? '' : `: ${row.errorMessage ?? kindText(row.outcome)}`}
          </span>{' '}
          <Link to={`/requests?account=${accountId}&request=${row.requestId}`} target="_blank">
            Open request
          </Link>
        </>
      )}
    </p>
  )
}
