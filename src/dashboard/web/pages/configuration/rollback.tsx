/** The dialog of a rollback. The reason is recorded. */
import { useState } from 'react'
import type { GenerationRecord } from '../../../server/schema/schema.js'
import { change } from '../../api/endpoints.js'
import { FormFoot } from '../../components/dialogs/dialog-foot.js'
import { Dialog } from '../../components/dialogs/dialog.js'
import { TextField } from '../../components/forms/field.js'
import { ProblemLine } from '../../components/states/states.js'
import { useSubmit } from '../../components/forms/submit-form.js'

interface RollbackProps {
  readonly target: GenerationRecord
  readonly onClose: () => void
  /** Called with the number of the new generation. */
  readonly onDone: (generation: number) => void
}

/** Requires a reason and rolls back. */
export function Rollback({ target, onClose, onDone }: RollbackProps) {
  const [reason, setReason] = useState('')
  const { generation } = target
  const { busy, problem, submit } = useSubmit(async () => {
    const what = 'POST /configuration/{id}/rollback'
    const done = await change(what, { reason }, String(generation))
    onDone(done.generation)
    onClose()
  })
  return (
    <Dialog
      title={`Roll back to generation ${generation}?`}
      description="Its content becomes a new generation on every worker. Running requests keep theirs. It stays in force until the file changes or the gateway gets SIGHUP."
      onClose={onClose}
    >
      <form className="form" onSubmit={submit}>
        <TextField
          label="Reason"
          hint="Recorded with the generation and in the audit trail."
          value={reason}
          maxLength={500}
          required
          autoFocus
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <ProblemLine problem={problem} />
        <FormFoot verb="Roll back" busy={busy} tone="danger" onCancel={onClose} />
      </form>
    </Dialog>
  )
}
