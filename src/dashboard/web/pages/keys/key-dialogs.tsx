/** Dialogs of a key: edit, rotate, revoke. */
import { useState } from 'react'
import type { Key, RotatedKeyReply } from '../../../server/schema/schema.js'
import { change } from '../../api/endpoints.js'
import { Confirm, Dialog } from '../../components/dialogs/dialog.js'
import { report } from '../../components/states/notices.js'
import { fullTime } from '../../format/time.js'
import { useAccount } from '../../shell/session.js'
import { changeBody, draftOf } from './key-draft.js'
import { KeyForm } from './key-form.js'
import { maskOf } from './key-name.js'
import { Secret } from './secret.js'

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
