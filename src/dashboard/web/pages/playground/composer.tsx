/** The message to send, with its files. */
import { useRef, useState } from 'react'
import { Button } from '../../components/button.js'
import { ACCEPTED, attach, AttachmentList } from './attachments.js'
import type { Draft } from './turns.js'

interface ComposerProps {
  readonly draft: Draft
  readonly setDraft: (draft: Draft) => void
  readonly isBusy: boolean
  /** The settings cannot be sent. */
  readonly isBlocked: boolean
  readonly send: () => void
  readonly stop: () => void
}

/** Whether there is something to send. */
export function isEmpty({ text, files }: Draft): boolean {
  return text.trim() === '' && files.length === 0
}

/** The composer. Files can be chosen, pasted and dropped. */
export function Composer({ draft, setDraft, isBusy, isBlocked, send, stop }: ComposerProps) {
  const [error, setError] = useState<string | null>(null)
  const choice = useRef<HTMLInputElement>(null)
  const add = async (given: readonly File[]): Promise<void> => {
    if (given.length === 0) return
    const { files, error: refused } = await attach(given, draft.files)
    setDraft({ ...draft, files })
    setError(refused)
  }
  return (
    <form
      className="composer stack"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        void add([...event.dataTransfer.files])
      }}
    >
      <textarea
        className="input"
        rows={3}
        aria-label="Message"
        placeholder="Message"
        data-key="/"
        value={draft.text}
        onChange={(event) => setDraft({ ...draft, text: event.target.value })}
        onPaste={(event) => void add([...event.clipboardData.files])}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
          event.preventDefault()
          send()
        }}
      />
      <AttachmentList
        files={draft.files}
        remove={(file) => setDraft({ ...draft, files: draft.files.filter((one) => one !== file) })}
      />
      {error === null ? null : (
        <p className="field-error small" role="alert">
          {error}
        </p>
      )}
      <div className="row line spread small">
        <Button icon="plus" onClick={() => choice.current?.click()}>
          Attach
        </Button>
        <input
          ref={choice}
          type="file"
          multiple
          hidden
          aria-label="Files"
          accept={ACCEPTED}
          onChange={(event) => {
            void add([...(event.target.files ?? [])])
            event.target.value = ''
          }}
        />
        <span className="soft end">Enter to send, Shift+Enter for a new line</span>
        {isBusy ? (
          <Button icon="stop" onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button type="submit" tone="primary" icon="send" disabled={isEmpty(draft) || isBlocked}>
            Send
          </Button>
        )}
      </div>
    </form>
  )
}
