/** Dialogs of a key: edit, rotate, revoke. */
import { useState } from 'react'
import type {
  CreatedKeyReply,
  Key,
  KeyDetailReply,
  RotatedKeyReply,
} from '../../../server/schema/schema.js'
import { useResource } from '../../api/cache.js'
import { change } from '../../api/endpoints.js'
import { CopyButton } from '../../components/copy-button.js'
import { Confirm, Dialog, SavedFoot } from '../../components/dialog.js'
import { TextField } from '../../components/form.js'
import { report } from '../../components/notices.js'
import { useExampleModel, RequestCode } from '../../components/request-code.js'
import { baseOf } from '../../format/request-formats.js'
import { Failed } from '../../components/states.js'
import { clockTime, fullTime } from '../../format/time.js'
import { Link } from '../../routing.js'
import { useAccount, useRights, useSession } from '../../shell/session.js'
import { changeBody, draftOf, maskOf, BLANK, createBody } from './key-draft.js'
import { KeyForm } from './key-form.js'

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
        <Failed what="The key" problem={problem} holds="Keys keep working." retry={reload} />
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
  const [reason, setReason] = useState('')
  const initial = draftOf(key)
  return (
    <Dialog
      title={`Edit ${key.name}`}
      description={<AccountNote apiKey={key} />}
      {...(atLimits ? { focus: '.limit-fields input' } : {})}
      onClose={onClose}
    >
      <KeyForm
        initial={atLimits ? { ...initial, limited: true } : initial}
        plan={plan}
        endsAtMs={key.expiresAtMs}
        isInside={atLimits}
        verb="Save"
        onClose={onClose}
        send={async (draft) => {
          const body = { ...changeBody(draft, Date.now()), reason }
          await change('PATCH /keys/{id}', body, key.id, of(key))
          report(`Saved. ${draft.name} has the new settings.`)
          onClose()
        }}
      >
        <ReasonField value={reason} onChange={setReason} />
      </KeyForm>
    </Dialog>
  )
}

/** Creates a replacement with the same settings. Both keys work until the old one is revoked or expires. */
function RotateKey({ detail: { key, plan, liveKeys }, onClose }: KeyProps) {
  const [made, setMade] = useState<RotatedKeyReply | null>(null)
  const [reason, setReason] = useState('')
  if (made !== null) {
    const { oldEndsAtMs } = made
    const end = oldEndsAtMs === null ? 'you revoke it' : fullTime(oldEndsAtMs)
    return <Secret made={made} note={`${maskOf(key)} works until ${end}.`} onClose={onClose} />
  }
  const isFull = plan.maxKeys !== null && liveKeys >= plan.maxKeys
  return (
    <Confirm
      title={`Rotate ${key.name}?`}
      consequence={
        <>
          <p>
            Rotating creates a new key with the same name, models, limits and labels.{' '}
            <code>{maskOf(key)}</code>{' '}
            {isFull
              ? `works for 24 more hours: the plan allows ${plan.maxKeys ?? 0} keys, and a rotation may exceed it for that time.`
              : 'works until you revoke it.'}
          </p>
          <ReasonField value={reason} onChange={setReason} />
        </>
      }
      verb="Rotate"
      tone="primary"
      keepOpen
      act={async () => {
        setMade(await change('POST /keys/{id}/rotate', { reason }, key.id, of(key)))
      }}
      onClose={onClose}
    />
  )
}

/** Revokes a key. */
function RevokeKey({ detail: { key }, onClose }: KeyProps) {
  const [reason, setReason] = useState('')
  return (
    <Confirm
      title={`Revoke ${key.name}?`}
      consequence={
        <>
          <p>
            Requests with <code>{maskOf(key)}</code> of the account {key.accountName} fail within 1
            second. This cannot be undone.
          </p>
          <ReasonField value={reason} onChange={setReason} />
        </>
      }
      verb="Revoke"
      act={async () => {
        await change('DELETE /keys/{id}', undefined, key.id, { ...of(key), reason })
        report(`Revoked. ${key.name} stopped working at ${clockTime(Date.now())}.`)
      }}
      onClose={onClose}
    />
  )
}

/** Names the account if it is not the user's own. */
function AccountNote({ apiKey }: { readonly apiKey: Key }) {
  const me = useAccount()
  return apiKey.accountId === me.id ? null : `A key of the account ${apiKey.accountName}.`
}

interface ReasonProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

/** Administrators act for others, so they can say why. */
function ReasonField({ value, onChange }: ReasonProps) {
  const { isAdmin } = useRights()
  if (!isAdmin) return null
  return (
    <TextField
      label="Reason"
      hint="Optional, for the audit log."
      maxLength={200}
      autoComplete="off"
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/**
 * Creates a key and then shows its secret once.
 *
 * Creates a key: one dialog for the settings and then for the secret. The secret is kept only in the state of
 * this dialog.
 */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const { plan } = useAccount()
  const [made, setMade] = useState<CreatedKeyReply | null>(null)
  if (made !== null) return <Secret made={made} onClose={onClose} />
  return (
    <Dialog title="Create key" onClose={onClose}>
      <KeyForm
        initial={BLANK}
        plan={plan}
        endsAtMs={null}
        verb="Create"
        onClose={onClose}
        send={async (draft) => setMade(await change('POST /keys', createBody(draft, Date.now())))}
        advice={(problem) =>
          problem.kind === 'plan_limit' ? (
            <p className="soft">
              <Link to="/keys" onClick={onClose}>
                See which keys are not used
              </Link>
            </p>
          ) : null
        }
      />
    </Dialog>
  )
}

interface SecretProps {
  readonly made: CreatedKeyReply
  /** How long the replaced key works. */
  readonly note?: string
  readonly onClose: () => void
}

/**
 * The dialog of the secret.
 *
 * A new key's secret, shown once. The dialog closes only by its button.
 */
function Secret({ made: { key, secret }, note, onClose }: SecretProps) {
  const { session } = useSession()
  const model = useExampleModel(key.models)
  return (
    <Dialog
      title={`Key ${key.name}`}
      description={`Copy it now. You will not see it again.${note === undefined ? '' : ` ${note}`}`}
      closable={false}
      wide
      onClose={onClose}
    >
      <div className="secret">
        <code className="secret-text">{secret}</code>
        <CopyButton text={secret} what="key" label />
      </div>
      <RequestCode target={{ base: baseOf(session.publicUrl), model, key: secret }} />
      <SavedFoot onClose={onClose} />
    </Dialog>
  )
}
