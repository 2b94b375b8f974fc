/** The change of a figure against the period before. */
import { fullTime } from '../format/time.js'

interface ChangeProps {
  /** Null: there is no value. */
  readonly now: number | null
  readonly before: number | null
  /** More is worse, such as failures: from a tenth on, the change has a colour. */
  readonly isBad?: boolean
  /** What hover shows: the value before with its period. */
  readonly title?: string
}

/** `+12 %`, `−3 %`; `new` after nothing, `–` without a value to compare with. */
export function changeText(now: number | null, before: number | null): string {
  if (now === null || before === null || (now === 0 && before === 0)) return '–'
  if (before === 0) return 'new'
  const percent = Math.round(((now - before) / before) * 100)
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toLocaleString('en-US')} %`
}

/** From this share on, a change is good or bad. */
const NOTABLE = 0.1

/** The change in its colour. */
export function Change({ now, before, isBad = false, title }: ChangeProps) {
  const share = now === null || before === null || before === 0 ? 0 : (now - before) / before
  const tone = !isBad || Math.abs(share) < NOTABLE ? 'soft' : share > 0 ? 'bad-text' : 'good-text'
  return (
    <span className={`change ${tone}`} title={title}>
      {changeText(now, before)}
    </span>
  )
}

/** `before: $1.20, 22 Nov 2026, 00:00:00 UTC to …`. */
export function beforeTitle(
  text: string,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): string {
  return `before: ${text}, ${fullTime(fromMs)} to ${fullTime(toMs)}`
}
