/** Dialogs of a key: edit, rotate, revoke. */
import type { CreatedKeyReply, Key, KeyDetailReply } from '../../../server/schema/schema.js'
import { useResource } from '../../api/use-resource.js'
import { change } from '../../api/endpoints.js'
import { Dialog, FormDialog, ShownOnce } from '../../components/dialog.js'
import { TextField, type Bound } from '../../components/form.js'
import { report } from '../../components/notices.js'
import { useExampleModel, RequestCode } from '../../components/request-code.js'
import { baseOf } from '../../format/request-formats.js'
import { Failed } from '../../components/loading-states.js'
import { clockTime, fullTime } from '../../format/time.js'
import { Link } from '../../routing.js'
import { useAccount, useRights, useSession } from '../../shell/session.js'
import { changeBody, draftOf, faultsOf, maskOf, BLANK, createBody } from './key-draft.js'
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
          <ReasonField {...form.field('reason')} />
        </>
      )}
    </FormDialog>
  )
}

/** Creates a replacement with the same settings. Both keys work until the old one is revoked or expires. */
function RotateKey({ detail: { key, plan, liveKeys }, onClose }: KeyProps) {
  const isFull = plan.maxKeys !== null && liveKeys >= plan.maxKeys
  return (
    <FormDialog
      isQuestion
      title={`Rotate ${key.name}?`}
      description={
        <>
          Rotating creates a new key with the same name, models, limits and labels. <code>{maskOf(key)}</code>{' '}
          {isFull
            ? `works for 24 more hours: the plan allows ${plan.maxKeys ?? 0} keys, and a rotation may exceed it for that time.`
            : 'works until you revoke it.'}
        </>
      }
      verb="Rotate"
      tone="primary"
      initial={{ reason: '' }}
      send={async ({ reason }) => {
        const made = await change('POST /keys/{id}/rotate', { reason }, key.id, of(key))
        const end = made.oldEndsAtMs === null ? 'you revoke it' : fullTime(made.oldEndsAtMs)
        return <Secret made={made} note={`${maskOf(key)} works until ${end}.`} onClose={onClose} />
      }}
      onClose={onClose}
    >
      {(form) => <ReasonField {...form.field('reason')} />}
    </FormDialog>
  )
}

/** Revokes a key. */
function RevokeKey({ detail: { key }, onClose }: KeyProps) {
  return (
    <FormDialog
      isQuestion
      title={`Revoke ${key.name}?`}
      description={
        <>
          Requests with <code>{maskOf(key)}</code> of the account {key.accountName} fail within 1 second. This
          cannot be undone.
        </>
      }
      verb="Revoke"
      initial={{ reason: '' }}
      send={async ({ reason }) => {
        await change('DELETE /keys/{id}', undefined, key.id, { ...of(key), reason })
        report(`Revoked. ${key.name} stopped working at ${clockTime(Date.now())}.`)
      }}
      onClose={onClose}
    >
      {(form) => <ReasonField {...form.field('reason')} />}
    </FormDialog>
  )
}

/** Names the account if it is not the user's own. */
function AccountNote({ apiKey }: { readonly apiKey: Key }) {
  const me = useAccount()
  return apiKey.accountId === me.id ? null : `A key of the account ${apiKey.accountName}.`
}

/** Administrators act for others, so they can say why. */
function ReasonField(field: Bound) {
  const { isAdmin } = useRights()
  if (!isAdmin) return null
  const hint = 'Optional, for the audit log.'
  return <TextField label="Reason" hint={hint} maxLength={200} autoComplete="off" {...field} />
}

/** Creates a key and then shows its secret once, which is kept only in the state of this dialog. */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const { plan } = useAccount()
  return (
    <FormDialog
      title="Create key"
      verb="Create"
      initial={BLANK}
      check={(draft) => faultsOf(draft, plan, Date.now())}
      send={async (draft) => {
        const made = await change('POST /keys', createBody(draft, Date.now()))
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

/** A new key's secret, shown once. */
function Secret({ made: { key, secret }, note, onClose }: SecretProps) {
  const { session } = useSession()
  const model = useExampleModel(key.models)
  return (
    <ShownOnce
      title={`Key ${key.name}`}
      description={`Copy it now. You will not see it again.${note === undefined ? '' : ` ${note}`}`}
      what="key"
      secret={secret}
      onClose={onClose}
    >
      <RequestCode target={{ base: baseOf(session.publicUrl), model, key: secret }} />
    </ShownOnce>
  )
}
