/** Raises a budget of an account or key until a time, with a reason. */
import type { BudgetRow } from '../../../control/dashboard/schema/schema.js'
import { change } from '../api/endpoints.js'
import { Button } from '../components/button.js'
import { DateField } from '../components/date-picker.js'
import { FormDialog, type OpenDialog } from '../components/dialog.js'
import { TextField } from '../components/form.js'
import { report } from '../components/notices.js'
import { dollars } from '../format/number.js'
import { DAY_MS, endTime, fullTime, inputTime } from '../format/time.js'

const USD = 1e9
const WEEK_MS = 7 * DAY_MS

interface RaiseProps {
  readonly row: BudgetRow
  readonly open: OpenDialog
}

/** The button that raises a budget until a time; nothing if it never resets, or the user may not. */
export function RaiseButton({ row, open }: RaiseProps) {
  const { period, toMs } = row
  if (!row.mayChange || period === 'total' || toMs === null) return null
  return (
    <Button
      className="small"
      onClick={() => open((onClose) => <Raise {...{ row, period, toMs, onClose }} />)}
    >
      Raise<span className="unseen"> the budget of {row.name}</span>
    </Button>
  )
}

/** `raised from $8 until 1 Dec: “launch”, ada@example.com`. */
export function RaiseNote({ row: { raise } }: Pick<RaiseProps, 'row'>) {
  if (raise === null) return null
  const { fromNanoUsd, untilMs, reason, by } = raise
  return (
    <span className="soft small cut" title={`${reason} (${fullTime(untilMs)})`}>
      raised from {dollars(fromNanoUsd)} until {endTime(untilMs, Date.now())}: “{reason}”, {by}
    </span>
  )
}

interface FormProps extends Pick<RaiseProps, 'row'> {
  readonly period: Exclude<BudgetRow['period'], 'total'>
  /** The end of the period. */
  readonly toMs: number
  readonly onClose: () => void
}

/** The former budget holds again afterwards. */
function Raise({ row, period, toMs, onClose }: FormProps) {
  const { kind, ofId, name, limitNanoUsd, forecastNanoUsd, raise } = row
  const former = raise?.fromNanoUsd ?? limitNanoUsd
  const wanted = Math.max(former * 1.5, forecastNanoUsd ?? 0)
  return (
    <FormDialog
      title={`Raise the budget of ${name}`}
      description={`${dollars(former)} a ${period} holds again afterwards. The reason is in the audit log.`}
      verb="Raise"
      initial={{
        usd: wanted < USD ? (wanted / USD).toFixed(2) : String(Math.ceil(wanted / USD)),
        until: inputTime(toMs),
        reason: '',
      }}
      send={async ({ usd, until, reason }) => {
        const body = {
          ...({ budget: `usd_per_${period}`, usd: Number(usd), reason } as const),
          untilMs: new Date(until).getTime(),
        }
        if (kind === 'key') await change('POST /keys/{id}/raise', body, ofId, { account: row.account })
        else await change('POST /accounts/{id}/limits/raise', body, ofId)
        report(`The budget of ${name} is $${usd} until ${endTime(body.untilMs, Date.now())}.`)
      }}
      onClose={onClose}
    >
      {({ field, set }) => (
        <>
          <TextField
            label={`US dollars a ${period}`}
            type="number"
            min={0}
            step={0.01}
            inputMode="decimal"
            required
            autoFocus
            {...field('usd')}
          />
          <DateField label="Until" withTime required {...field('until', 'untilMs')} />
          <p className="row">
            <Button className="small" onClick={() => set({ until: inputTime(toMs) })}>
              End of the {period}
            </Button>
            <Button className="small" onClick={() => set({ until: inputTime(Date.now() + WEEK_MS) })}>
              7 days
            </Button>
          </p>
          <TextField label="Reason" required maxLength={200} placeholder="launch" {...field('reason')} />
        </>
      )}
    </FormDialog>
  )
}
