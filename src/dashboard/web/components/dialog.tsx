/** Dialogs and drawers. Both trap focus and return it when they close. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { isValidElement, useRef, useState, type ReactElement, type ReactNode } from 'react'
import type { Problem } from '../api/client.js'
import { Button, IconButton } from './button.js'
import { CONTENT } from './content.js'
import { CopyButton } from './copy-button.js'
import { Form, useForm, type Faults, type FormState } from './form.js'
import { stepRows } from './row-steps.js'

interface DialogProps {
  readonly title: string
  readonly description?: ReactNode
  readonly onClose: () => void
  /** False if closing would lose data: Esc and clicks outside do not close it. */
  readonly closable?: boolean
  /** A question: clicks outside do not close it. */
  readonly isQuestion?: boolean
  readonly side?: boolean
  readonly wide?: boolean
  /** A selector of what has focus at first; by default the first control, in a drawer the drawer itself. */
  readonly focus?: string
  readonly children: ReactNode
}

/** An open dialog. The caller removes it when it closes. */
export function Dialog(props: DialogProps) {
  const { title, description, onClose, closable = true, side = false, wide = false, focus } = props
  const { isQuestion = false } = props
  useState(saveFocusOrigin)
  const popup = useRef<HTMLDivElement>(null)
  const className = side ? 'drawer' : wide ? 'dialog wide stack gap-16' : 'dialog stack gap-16'
  return (
    <Base.Root
      open
      disablePointerDismissal={!closable || isQuestion}
      onOpenChange={(open, details) => {
        if (open) return
        if (closable) onClose()
        else details.cancel()
      }}
    >
      <Base.Portal>
        <Base.Backdrop className="veil" />
        <Base.Popup
          ref={popup}
          className={className}
          role={isQuestion ? 'alertdialog' : 'dialog'}
          onKeyDown={side ? stepRows : undefined}
          finalFocus={originOfFocus}
          // Enter after a pasted key must not press the button that closes the drawer.
          initialFocus={() => {
            if (focus !== undefined) return document.querySelector<HTMLElement>(focus)
            return side ? popup.current : true
          }}
        >
          <header className="dialog-head row line spread gap-12">
            <Base.Title>{title}</Base.Title>
            {closable && !isQuestion ? (
              <Base.Close render={<IconButton icon="close" label="Close" />} />
            ) : null}
          </header>
          {description === undefined ? null : (
            <Base.Description className="soft" render={<div />}>
              {description}
            </Base.Description>
          )}
          {side ? <div className="drawer-body stack gap-20">{props.children}</div> : props.children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

interface FormDialogProps<Values extends object> extends Pick<
  DialogProps,
  'title' | 'description' | 'focus' | 'onClose'
> {
  /** The verb of the title, as the text of the button. */
  readonly verb: string
  readonly tone?: 'primary' | 'danger'
  /** A question about an action that cannot be undone: clicks outside do not close it. */
  readonly isQuestion?: boolean
  readonly initial: Values
  /** Resolves with what the dialog becomes, or with nothing, which closes it. */
  readonly send: ((values: Values) => Promise<ReactElement | undefined>) | ((values: Values) => Promise<void>)
  /** The faults of the values; without it the browser checks the fields. */
  readonly check?: (values: Values) => Faults
  readonly advice?: (problem: Problem) => ReactNode
  /** The fields. */
  readonly children?: (form: FormState<Values>) => ReactNode
}

/** A form in a dialog. It stays open and shows the problem if the action fails. */
export function FormDialog<Values extends object>(props: FormDialogProps<Values>) {
  const { title, description, focus, verb, tone, isQuestion = false, initial, send, check, advice } = props
  const { onClose, children } = props
  const [made, setMade] = useState<ReactElement | null>(null)
  const act = async (values: Values): Promise<void> => {
    const next = await send(values)
    if (isValidElement(next)) setMade(next)
    else onClose()
  }
  const form = useForm(initial, act, check)
  if (made !== null) return made
  return (
    <Dialog {...{ title, description, isQuestion, onClose }} {...(focus === undefined ? {} : { focus })}>
      <Form
        {...{ form, verb, advice }}
        tone={tone ?? (isQuestion ? 'danger' : 'primary')}
        noValidate={check !== undefined}
        className={check === undefined ? '' : 'long'}
        onCancel={onClose}
      >
        {children?.(form)}
      </Form>
    </Dialog>
  )
}

type ConfirmProps = Omit<FormDialogProps<object>, 'initial' | 'isQuestion' | 'children'>

/** Confirms an action. The title is a question with the object's name, the description is the effect. */
export function Confirm(props: ConfirmProps) {
  return <FormDialog {...props} isQuestion initial={{}} />
}

interface ShownOnceProps extends Pick<DialogProps, 'title' | 'description' | 'onClose'> {
  /** What is shown: `key`, `link`. */
  readonly what: string
  readonly secret: string
  readonly children?: ReactNode
}

/** A secret that cannot be shown again. The dialog closes only by its button. */
export function ShownOnce({ what, secret, children, ...rest }: ShownOnceProps) {
  return (
    <Dialog {...rest} closable={false} wide>
      <div className="row line">
        <code className="secret-text">{secret}</code>
        <CopyButton text={secret} what={what} label />
      </div>
      {children}
      <footer className="dialog-foot row">
        <Button tone="primary" onClick={rest.onClose}>
          I have saved it
        </Button>
      </footer>
    </Dialog>
  )
}

/** Opens the dialog that `make` makes; it gets the function that closes it. */
export type OpenDialog = (make: (onClose: () => void) => ReactElement) => void

/** The open dialog of a page, and the function that opens one. */
export function useDialog(): readonly [dialog: ReactElement | null, open: OpenDialog] {
  const [dialog, setDialog] = useState<ReactElement | null>(null)
  return [dialog, (make) => setDialog(make(() => setDialog(null)))]
}

let origin: HTMLElement | null = null

/**
 * Saves the focused element unless it is in a dialog; for a menu, the button that opened it. It gets focus
 * back after the last of nested dialogs.
 */
function saveFocusOrigin(): void {
  const active = document.activeElement
  if (!(active instanceof HTMLElement)) return
  if (active.closest('[role="dialog"], [role="alertdialog"]') !== null) return
  const menu = active.closest('[role="menu"]')
  origin =
    menu === null ? active : document.querySelector<HTMLElement>(`[aria-controls="${CSS.escape(menu.id)}"]`)
}

/** The element to focus after the last dialog: the saved one, or the page if that was removed. */
function originOfFocus(): HTMLElement | null {
  const isThere = origin?.isConnected === true && origin !== document.body
  return isThere ? origin : CONTENT.current
}
