/** What can be done to a key that is there: changes, a successor, the end. */
import { useState } from 'react'
import type { CreatedKeyReply, Key } from '../../../server/schema/schema.js'
import { change } from '../../api/calls.js'
import { Button } from '../../parts/actions/button.js'
import { Confirm, Dialog } from '../../parts/dialogs/dialog.js'
import { report } from '../../parts/states/notice.js'
import { useSubmit } from '../sign-in/door.js'
import { changeBody, draftOf, KeyFields } from './key-form.js'
import { maskOf } from './key-name.js'
import { Secret } from './secret.js'

interface KeyProps {
  readonly apiKey: Key
  readonly onClose: () => void
}

/** Another name, end, models or limits for the same key. */
export function EditKey({ apiKey: key, onClose }: KeyProps) {
  const [draft, setDraft] = useState(() => draftOf(key))
  const { busy, problem, submit } = useSubmit(async () => {
    await change('PATCH /keys/{id}', changeBody(draft), key.id)
    report(`Saved. ${draft.name} works as you said from now on.`)
    onClose()
  })
  return (
    <Dialog title={`Edit ${key.name}`} onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <KeyFields {...{ draft, setDraft, problem }} endsAtMs={key.expiresAtMs} />
        <footer className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" busy={busy}>
            Save
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}

/** A successor with the same rights; both work until the old one is revoked. */
export function RotateKey({ apiKey: key, onClose }: KeyProps) {
  const [made, setMade] = useState<CreatedKeyReply | null>(null)
  if (made !== null) {
    return (
      <Secret
        made={made}
        note={`${maskOf(key)} works, too, until you revoke it.`}
        onClose={onClose}
      />
    )
  }
  return (
    <Confirm
      title={`Rotate ${key.name}?`}
      consequence={
        <p>
          A new key with the same name, models and limits is made. <code>{maskOf(key)}</code> goes
          on working until you revoke it, so nothing stops while you change over.
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

/** The end of a key. */
export function RevokeKey({ apiKey: key, onClose, onDone }: KeyProps & { onDone: () => void }) {
  return (
    <Confirm
      title={`Revoke ${key.name}?`}
      consequence={
        <p>
          Requests with <code>{maskOf(key)}</code> fail within 1 second. This cannot be taken back.
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
