/**
 * Creates a key: one dialog for the settings and then for the secret. The secret is kept only in the state of
 * this dialog.
 */
import { useState } from 'react'
import type { CreatedKeyReply } from '../../../server/schema/schema.js'
import { change } from '../../api/endpoints.js'
import { Dialog } from '../../components/dialogs/dialog.js'
import { Link } from '../../routing/link.js'
import { BLANK, createBody } from './key-draft.js'
import { KeyForm } from './key-form.js'
import { Secret } from './secret.js'

/** Creates a key and then shows its secret once. */
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
