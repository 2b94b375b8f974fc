/** A button that copies a text, and a block of code with such a button. */
import { useEffect, useState } from 'react'
import { announce } from './notices.js'
import { Icon } from './button.js'

const SHOWN_MS = 1_600

interface CopyProps {
  readonly text: string
  /** The kind of text: `key`, `request id`. */
  readonly what: string
  readonly label?: boolean
}

/** Copies a text. The text is in no attribute of the page. */
export function CopyButton({ text, what, label = false }: CopyProps) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return undefined
    const timer = setTimeout(() => setState('idle'), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [state])
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setState('copied')
      announce(`Copied the ${what}.`)
    } catch {
      setState('failed')
      announce(`The browser does not allow copying. Select the ${what} and copy it.`)
    }
  }
  const words = state === 'copied' ? 'Copied' : state === 'failed' ? 'Copying not allowed' : 'Copy'
  return (
    <button
      type="button"
      className={label ? 'button plain copy' : 'button quiet square copy'}
      aria-label={`Copy ${what}`}
      title={label ? undefined : `Copy ${what}`}
      onClick={(event) => {
        event.stopPropagation()
        void copy()
      }}
    >
      <Icon name={state === 'copied' ? 'check' : 'copy'} size={14} />
      {label ? words : null}
    </button>
  )
}

/** Lines of code with a copy button. */
export function CodeBlock({ code, what }: { readonly code: string; readonly what: string }) {
  return (
    <div className="code panel">
      <pre>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} what={what} />
    </div>
  )
}
