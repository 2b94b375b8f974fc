/** Dialogs and drawers. Both trap focus and return it when they close. */
import { AlertDialog } from '@base-ui/react/alert-dialog'
import { Dialog as Base } from '@base-ui/react/dialog'
import { useState, type ReactNode } from 'react'
import { problemOf, type Problem } from '../../api/client.js'
import { Button, IconButton } from '../actions/button.js'
import { originOfFocus, saveFocusOrigin } from './focus-origin.js'
import { ProblemLine } from '../states/states.js'

interface DialogProps {
  readonly title: string
  readonly description?: ReactNode
  readonly onClose: () => void
  /** False if closing would lose data: Esc and clicks outside do not close it. */
  readonly closable?: boolean
  readonly side?: boolean
  readonly wide?: boolean
  readonly children: ReactNode
}

/** An open dialog. The caller removes it when it closes. */
export function Dialog(props: DialogProps) {
  const { title, description, onClose, closable = true, side = false, wide = false } = props
  useState(saveFocusOrigin)
  const className = side ? 'drawer' : wide ? 'dialog wide' : 'dialog'
  return (
    <Base.Root
      open
      disablePointerDismissal={!closable}
      onOpenChange={(open, details) => {
        if (open) return
        if (closable) onClose()
        else details.cancel()
      }}
    >
      <Base.Portal>
        <Base.Backdrop className="veil" />
        <Base.Popup className={className} finalFocus={originOfFocus}>
          <header className="dialog-head">
            <Base.Title className="dialog-title">{title}</Base.Title>
            {closable ? <Base.Close render={<IconButton icon="close" label="Close" />} /> : null}
          </header>
          {description === undefined ? null : (
            <Base.Description className="dialog-text">{description}</Base.Description>
          )}
          {props.children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

interface ConfirmProps {
  /** The question with the object's name: `Revoke ci-runner?` */
  readonly title: string
  /** The effect of the action. */
  readonly consequence: ReactNode
  /** The verb of the title, as the button's text. */
  readonly verb: string
  readonly tone?: 'danger' | 'primary'
  readonly act: () => Promise<void>
  /** Called after the action. */
  readonly keepOpen?: boolean
  readonly onClose: () => void
}

/** Confirms an irreversible action. It stays open and shows the problem if the action fails. */
export function Confirm(props: ConfirmProps) {
  const { title, consequence, verb, tone = 'danger', act, keepOpen = false, onClose } = props
  useState(saveFocusOrigin)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const confirm = async (): Promise<void> => {
    setBusy(true)
    setProblem(null)
    try {
      await act()
      if (!keepOpen) onClose()
    } catch (error) {
      setProblem(problemOf(error))
      setBusy(false)
    }
  }
  return (
    <AlertDialog.Root open onOpenChange={(open) => (open ? undefined : onClose())}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className="veil" />
        <AlertDialog.Popup className="dialog" finalFocus={originOfFocus}>
          <AlertDialog.Title className="dialog-title">{title}</AlertDialog.Title>
          <AlertDialog.Description className="dialog-text" render={<div />}>
            {consequence}
          </AlertDialog.Description>
          <ProblemLine problem={problem} />
          <footer className="dialog-foot">
            <AlertDialog.Close render={<Button>Cancel</Button>} />
            <Button tone={tone} busy={busy} onClick={() => void confirm()}>
              {verb}
            </Button>
          </footer>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  )
}
