/** A new key's secret, shown once; the only way out is to say that it is saved. */
import type { CreatedKeyReply } from '../../../server/schema/schema.js'
import { useExampleModel } from '../../api/served-model.js'
import { baseOf } from '../../format/snippets.js'
import { Button } from '../../parts/actions/button.js'
import { CopyButton } from '../../parts/actions/copy.js'
import { Dialog } from '../../parts/dialogs/dialog.js'
import { SnippetTabs } from '../../parts/code/snippet-tabs.js'
import { useSession } from '../../shell/session.js'

interface SecretProps {
  readonly made: CreatedKeyReply
  /** What else there is to know, such as what becomes of the key before. */
  readonly note?: string
  readonly onClose: () => void
}

/** The dialog of the secret. */
export function Secret({ made: { key, secret }, note, onClose }: SecretProps) {
  const { session } = useSession()
  const example = useExampleModel()
  const model = key.models?.find((allowed) => !allowed.endsWith('*')) ?? example
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
      <SnippetTabs target={{ base: baseOf(session.publicUrl), model, key: secret }} />
      <footer className="dialog-foot">
        <Button tone="primary" onClick={onClose}>
          I have saved it
        </Button>
      </footer>
    </Dialog>
  )
}
