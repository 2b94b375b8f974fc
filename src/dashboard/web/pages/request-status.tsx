/** The status of a request, and its model. */
import type { RequestRow } from '../../../control/dashboard/schema/schema.js'
import { kindText } from '../format/failure-texts.js'

/** The model, as asked if it is unknown. */
export function modelOf({ model, modelAsked }: RequestRow): string {
  return model === 'other' ? (modelAsked ?? 'unknown model') : model
}

/** The status, and in words what is wrong with it: `502 upstream failed`, `200 truncated`. */
export function Status({ row: { status, outcome } }: { readonly row: RequestRow }) {
  const tone = outcome === 'ok' ? 'good' : status === 499 ? 'warn' : 'bad'
  const isHead = status < 400
  const words = isHead ? kindText(outcome).replace(/^upstream /, '') : kindText(outcome)
  return (
    <span className={`status ${tone}`} title={kindText(outcome)}>
      {status}
      {outcome === 'ok' ? null : <span className={isHead ? '' : 'status-kind'}> {words}</span>}
    </span>
  )
}
