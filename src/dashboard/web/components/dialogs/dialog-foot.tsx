/** The feet of dialogs: the buttons of a form, and the button of a dialog that shows a secret once. */
import { Button } from '../actions/button.js'

interface FormFootProps {
  /** The verb of the form, as the text of its button. */
  readonly verb: string
  /** The form is being sent. */
  readonly busy: boolean
  readonly tone?: 'primary' | 'danger'
  /** Stays visible while the form scrolls. */
  readonly sticky?: boolean
  readonly onCancel: () => void
}

/** Cancels or submits the form that contains it. */
export function FormFoot(props: FormFootProps) {
  const { verb, busy, tone = 'primary', sticky = false, onCancel } = props
  return (
    <footer className={sticky ? 'dialog-foot sticky' : 'dialog-foot'}>
      <Button onClick={onCancel}>Cancel</Button>
      <Button type="submit" tone={tone} busy={busy}>
        {verb}
      </Button>
    </footer>
  )
}

/** Closes a dialog whose content cannot be shown again. */
export function SavedFoot({ onClose }: { readonly onClose: () => void }) {
  return (
    <footer className="dialog-foot">
      <Button tone="primary" onClick={onClose}>
        I have saved it
      </Button>
    </footer>
  )
}
