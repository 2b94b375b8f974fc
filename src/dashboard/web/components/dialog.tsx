/** Dialogs and drawers. Both trap focus and return it when they close. */
import { AlertDialog } from '@base-ui/react/alert-dialog'
import { Dialog as Base } from '@base-ui/react/dialog'
import { useState, type ReactNode } from 'react'
import { problemOf, type Problem } from '../api/client.js'
import { Button, IconButton } from './button.js'
import { ProblemLine } from './states.js'

interface DialogProps {
  readonly title: string
  readonly description?: ReactNode
  readonly onClose: () => void
  /** False if closing would lose data: Esc and clicks outside do not close it. */
  readonly closable?: boolean
  readonly side?: boolean
  readonly wide?: boolean
  /** A selector of what has focus at first; the first control by default. */
  readonly focus?: string
  readonly children: ReactNode
}

/** An open dialog. The caller removes it when it closes. */
export function Dialog(props: DialogProps) {
  const { title, description, onClose, closable = true, side = false, wide = false, focus } = props
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
        <Base.Popup
          className={className}
          finalFocus={originOfFocus}
          initialFocus={() =>
            focus === undefined ? true : document.querySelector<HTMLElement>(focus)
          }
        >
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

let origin: HTMLElement | null = null

/**
 * Saves the focused element unless it is in a dialog; for a menu, the button that opened it.
 *
 * The element that had focus before a dialog. It gets focus back after the last of nested dialogs.
 */
function saveFocusOrigin(): void {
  const active = document.activeElement
  if (!(active instanceof HTMLElement)) return
  if (active.closest('[role="dialog"], [role="alertdialog"]') !== null) return
  const menu = active.closest('[role="menu"]')
  origin =
    menu === null
      ? active
      : document.querySelector<HTMLElement>(`[aria-controls="${CSS.escape(menu.id)}"]`)
}

/** The element to focus after the last dialog: the saved one, or the page if that was removed. */
function originOfFocus(): HTMLElement | null {
  const isThere = origin?.isConnected === true && origin !== document.body
  return isThere ? origin : document.getElementById('content')
}
