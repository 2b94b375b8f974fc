/** A new key's secret, shown once. The dialog closes only by its button. */
import type { CreatedKeyReply } from '../../../server/schema/schema.js'
import { useExampleModel } from '../../api/example-model.js'
import { baseOf } from '../../format/request-formats.js'
import { CopyButton } from '../../components/actions/copy-button.js'
import { SavedFoot } from '../../components/dialogs/dialog-foot.js'
import { Dialog } from '../../components/dialogs/dialog.js'
import { RequestCode } from '../../components/code/request-code.js'
import { useSession } from '../../shell/session.js'

interface SecretProps {
  readonly made: CreatedKeyReply
  /** How long the replaced key works. */
  readonly note?: string
  readonly onClose: () => void
}

/** The dialog of the secret. */
export function Secret({ made: { key, secret }, note, onClose }: SecretProps) {
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
