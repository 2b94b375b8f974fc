/** One turn of the playground: what was asked, the answer, and its bill under it. */
import { useState } from 'react'
import type { Ended } from '../../api/chat.js'
import { useResource } from '../../api/resource.js'
import { count, duration } from '../../format/number.js'
import { Button } from '../../parts/actions/button.js'
import { CopyButton } from '../../parts/actions/copy.js'
import { Money } from '../../parts/tables/figure.js'
import { Waterfall } from '../../parts/charts/waterfall.js'

/** A question and its answer so far; `ended` is null until it is complete. */
export interface Turn {
  readonly id: string
  readonly model: string
  readonly asked: string
  readonly text: string
  readonly thinking: string
  readonly ended: Ended | null
}

/** The turn as it is read. */
export function Answer({ turn, busy }: { readonly turn: Turn; readonly busy: boolean }) {
  const { asked, model, text, thinking, ended } = turn
  return (
    <article className="turn">
      <p className="turn-who">You</p>
      <p className="turn-text asked">{asked}</p>
      <p className="turn-who">
        {model}
        {text === '' || busy ? null : <CopyButton text={text} what="answer" />}
      </p>
      {thinking === '' ? null : (
        <details className="thinking">
          <summary>Thinking</summary>
          <p className="turn-text">{thinking}</p>
        </details>
      )}
      <p className={busy ? 'turn-text growing' : 'turn-text'}>{text}</p>
      {ended === null || ended.requestId === null ? null : (
        <Bill id={ended.requestId} ended={ended} />
      )}
    </article>
  )
}

/** What the gateway recorded of it. */
function Bill({ id, ended }: { readonly id: string; readonly ended: Ended }) {
  const [open, setOpen] = useState(false)
  const row = useResource('/requests/{id}', { id }).data?.row
  if (row === undefined) return null
  const { usage, costNanoUsd, hops, durationMs } = row
  return (
    <div className="bill">
      <p className="bill-line">
        <span>
          {count(usage.input ?? 0)} in · {count(usage.output ?? 0)} out
          {usage.reasoning === undefined ? '' : ` (${count(usage.reasoning)} reasoning)`} tokens
        </span>
        <span>
          <Money nano={costNanoUsd} />
        </span>
        <span>
          {hops.firstContent === undefined ? '' : `first token ${duration(hops.firstContent)}, `}
          whole {duration(durationMs)}
        </span>
        {ended.finish === null || ended.finish === 'stop' ? null : (
          <span>finish {ended.finish}</span>
        )}
        {ended.lost.length === 0 ? null : <span>lost {ended.lost.join(', ')}</span>}
        <Button tone="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          Times
        </Button>
      </p>
      {open ? <Waterfall hops={hops} totalMs={durationMs} /> : null}
    </div>
  )
}
