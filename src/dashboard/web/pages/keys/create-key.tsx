/**
 * Making a key: one dialog that asks, and then turns into the secret. The secret is in the state of this
 * dialog and nowhere else, so it is gone with it.
 */
import { useState } from 'react'
import type { CreatedKeyReply } from '../../../server/schema/schema.js'
import { change } from '../../api/calls.js'
import { Button } from '../../parts/actions/button.js'
import { Dialog } from '../../parts/dialogs/dialog.js'
import { Link } from '../../routing/link.js'
import { useSubmit } from '../sign-in/door.js'
import { BLANK, createBody, KeyFields } from './key-form.js'
import { LabelsField, labelsIn } from './key-labels.js'
import { Secret } from './secret.js'

/** Asks for a name and makes a key; afterwards shows its secret once. */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const [made, setMade] = useState<CreatedKeyReply | null>(null)
  return made === null ? (
    <Dialog title="Create key" onClose={onClose}>
      <Form onMade={setMade} onClose={onClose} />
    </Dialog>
  ) : (
    <Secret made={made} onClose={onClose} />
  )
}

interface FormProps {
  readonly onMade: (made: CreatedKeyReply) => void
  readonly onClose: () => void
}

function Form({ onMade, onClose }: FormProps) {
  const [draft, setDraft] = useState(BLANK)
  const [labels, setLabels] = useState('')
  const { busy, problem, submit } = useSubmit(async () => {
    onMade(await change('POST /keys', { ...createBody(draft), labels: labelsIn(labels) }))
  })
  return (
    <form className="form" onSubmit={submit}>
      <KeyFields {...{ draft, setDraft, problem }} endsAtMs={null} />
      <LabelsField value={labels} onChange={setLabels} problem={problem} />
      {problem?.kind === 'plan_limit' ? (
        <p className="soft">
          <Link to="/keys" onClick={onClose}>
            See which keys are not used
          </Link>
        </p>
      ) : null}
      <footer className="dialog-foot">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" tone="primary" busy={busy}>
          Create
        </Button>
      </footer>
    </form>
  )
}
