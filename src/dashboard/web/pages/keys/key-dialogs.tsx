/** Dialogs of a key: edit, rotate, revoke. */
import { useState } from 'react'
import type { Key, RotatedKeyReply, CreatedKeyReply } from '../../../server/schema/schema.js'
import { change } from '../../api/endpoints.js'
import { CopyButton } from '../../components/copy-button.js'
import { Confirm, Dialog, SavedFoot } from '../../components/dialog.js'
import { report } from '../../components/notices.js'
import { useExampleModel, RequestCode } from '../../components/request-code.js'
import { baseOf } from '../../format/request-formats.js'
import { fullTime } from '../../format/time.js'
import { Link } from '../../routing.js'
import { useAccount, useSession } from '../../shell/session.js'
import { changeBody, draftOf, maskOf, BLANK, createBody } from './key-draft.js'
import { KeyForm } from './key-form.js'

interface KeyProps {
  readonly apiKey: Key
  readonly onClose: () => void
}

/** Changes the name, expiry, models or limits of a key. */
export function EditKey({ apiKey: key, onClose }: KeyProps) {
  return (
    <Dialog title={`Edit ${key.name}`} onClose={onClose}>
      <KeyForm
        initial={draftOf(key)}
        endsAtMs={key.expiresAtMs}
        verb="Save"
        onClose={onClose}
        send={async (draft) => {
          await change('PATCH /keys/{id}', changeBody(draft, Date.now()), key.id)
          report(`Saved. ${draft.name} has the new settings.`)
          onClose()
        }}
      />
    </Dialog>
  )
}

/** Creates a replacement with the same settings. Both keys work until the old one is revoked or expires. */
export function RotateKey({ apiKey: key, onClose }: KeyProps) {
  const { plan, liveKeys } = useAccount()
  const [made, setMade] = useState<RotatedKeyReply | null>(null)
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
        <p>
          Rotating creates a new key with the same name, models, limits and labels.{' '}
          <code>{maskOf(key)}</code>{' '}
          {isFull
            ? `works for 24 more hours: the plan allows ${plan.maxKeys ?? 0} keys, and a rotation may exceed it for that time.`
            : 'works until you revoke it.'}
        </p>
      }
      verb="Rotate"
      tone="primary"
      keepOpen
      act={async () => setMade(await change('POST /keys/{id}/rotate', {}, key.id))}
      onClose={onClose}
    />
  )
}

/** Revokes a key. */
export function RevokeKey({ apiKey: key, onClose, onDone }: KeyProps & { onDone: () => void }) {
  return (
    <Confirm
      title={`Revoke ${key.name}?`}
      consequence={
        <p>
          Requests with <code>{maskOf(key)}</code> fail within 1 second. This cannot be undone.
        </p>
      }
      verb="Revoke"
      act={async () => {
        await change('DELETE /keys/{id}', undefined, key.id)
        onDone()
      }}
      onClose={onClose}
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
  const [made, setMade] = useState<CreatedKeyReply | null>(null)
  if (made !== null) return <Secret made={made} onClose={onClose} />
  return (
    <Dialog title="Create key" onClose={onClose}>
      <KeyForm
        initial={BLANK}
        endsAtMs={null}
        withLabels
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
