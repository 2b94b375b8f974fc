/** A month of days in a popup: by pointer, or with the arrows, Home, End, Page Up and Page Down. */
import { Popover } from '@base-ui/react/popover'
import { useEffect, useRef, useState, type KeyboardEvent, type RefObject } from 'react'
import { DAY_MS, inputTime, monthName } from '../format/time.js'
import { IconButton } from './button.js'
import { placeOf } from './content.js'

interface CalendarProps {
  readonly label: string
  /** The chosen day, or the first and the last one of a range, each as `2026-11-12`. */
  readonly days: readonly [first: string, last?: string]
  /** The first day that can be chosen. */
  readonly min?: string
  /** Of a range, after its second day; else both are the same day. */
  readonly onPick: (first: string, last: string) => void
}

/** The button and its popup. */
export function Calendar(props: CalendarProps) {
  const trigger = useRef<HTMLButtonElement>(null)
  const [place] = useState(() => placeOf(trigger))
  const [open, setOpen] = useState(false)
  const grid = useRef<HTMLTableElement>(null)
  return (
    <Popover.Root open={open} onOpenChange={setOpen}>
      <Popover.Trigger ref={trigger} render={<IconButton icon="calendar" label={props.label} />} />
      <Popover.Portal container={place}>
        <Popover.Positioner className="menu-place" sideOffset={4} align="end">
          <Popover.Popup
            className="menu calendar"
            aria-label={props.label}
            initialFocus={() => dayWithFocus(grid.current)}
          >
            <Month
              {...props}
              grid={grid}
              onPick={(first, last) => {
                setOpen(false)
                props.onPick(first, last)
              }}
            />
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  )
}

function dayWithFocus(grid: HTMLElement | null): HTMLElement | null {
  return grid?.querySelector<HTMLElement>('[tabindex="0"]') ?? null
}

const WEEK = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su']
const NAME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' })

/** The days between the current one and that of a key; Page Up and Page Down: months. */
const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }
const MONTHS: Readonly<Record<string, number>> = { PageUp: -1, PageDown: 1 }

interface MonthProps extends CalendarProps {
  readonly grid: RefObject<HTMLTableElement>
}

function Month({ days, min = '', onPick, grid }: MonthProps) {
  const isRange = days.length === 2
  const today = inputTime(Date.now()).slice(0, 10)
  const known = days.at(-1) ?? ''
  const [at, setAt] = useState(Number.isNaN(Date.parse(known)) ? today : known)
  const [start, setStart] = useState<string | null>(null)
  const isMoved = useRef(false)
  useEffect(() => {
    if (isMoved.current) dayWithFocus(grid.current)?.focus()
    isMoved.current = false
  }, [at, grid])
  const first = start ?? days[0]
  const last = start ?? days[1] ?? days[0]
  const pick = (day: string): void => {
    setAt(day)
    if (isRange && start === null) setStart(day)
    else if (start !== null && start > day) onPick(day, start)
    else onPick(start ?? day, day)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = dayAfterKey(at, event.key)
    if (next === null) return
    event.preventDefault()
    isMoved.current = true
    setAt(next)
  }
  return (
    <>
      <div className="row line spread">
        <IconButton icon="left" label="Month before" onClick={() => setAt(inMonth(at, -1))} />
        <b aria-live="polite">{monthName(Date.parse(at))}</b>
        <IconButton icon="right" label="Month after" onClick={() => setAt(inMonth(at, 1))} />
      </div>
      <table ref={grid} role="grid" aria-label={monthName(Date.parse(at))} onKeyDown={onKeyDown}>
        <thead>
          <tr>
            {WEEK.map((name) => (
              <th key={name} scope="col" className="soft small">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeksOf(at).map((week) => (
            <tr key={week[0]}>
              {week.map((day) => (
                <td key={day} role="gridcell" aria-selected={day >= first && day <= last}>
                  <button
                    type="button"
                    className="bare"
                    tabIndex={day === at ? 0 : -1}
                    disabled={day < min}
                    aria-label={NAME.format(Date.parse(day))}
                    aria-current={day === today ? 'date' : undefined}
                    data-other={day.slice(0, 7) === at.slice(0, 7) ? undefined : true}
                    onClick={() => pick(day)}
                  >
                    {Number(day.slice(8))}
                  </button>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {isRange ? (
        <p className="note">{start === null ? 'Choose the first day.' : 'Choose the last day.'}</p>
      ) : null}
    </>
  )
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** Days since Monday. */
function weekday(ms: number): number {
  return (new Date(ms).getUTCDay() + 6) % 7
}

/** The same day of another month, or its last one. */
function inMonth(day: string, months: number): string {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number)
  const days = new Date(Date.UTC(year, month + months, 0)).getUTCDate()
  return dayText(Date.UTC(year, month - 1 + months, Math.min(date, days)))
}

function dayAfterKey(day: string, key: string): string | null {
  const ms = Date.parse(day)
  if (key in STEPS) return dayText(ms + (STEPS[key] ?? 0) * DAY_MS)
  if (key in MONTHS) return inMonth(day, MONTHS[key] ?? 0)
  if (key === 'Home') return dayText(ms - weekday(ms) * DAY_MS)
  return key === 'End' ? dayText(ms + (6 - weekday(ms)) * DAY_MS) : null
}

/** The weeks of the month of a day, from Monday to Sunday. */
function weeksOf(day: string): string[][] {
  const firstMs = Date.parse(`${day.slice(0, 7)}-01`)
  const fromMs = firstMs - weekday(firstMs) * DAY_MS
  const endMs = Date.parse(inMonth(`${day.slice(0, 7)}-01`, 1))
  const weeks = Math.ceil((endMs - fromMs) / (7 * DAY_MS))
  return Array.from({ length: weeks }, (_, week) =>
    Array.from({ length: 7 }, (_, at) => dayText(fromMs + (week * 7 + at) * DAY_MS)),
  )
}
