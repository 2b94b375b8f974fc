/**
 * Writes and reads one line of the spool: a ledger entry, and the budget amounts that its settlement
 * corrects.
 *
 * A line is the row's text, then, after a tab (which the text of a row never has), the reservation as JSON,
 * `["nothing",[["usd_day","key:…",0,LIMIT,COST],…]]`. Rates are left out: they are whole again by the time
 * that the store is back.
 */
import { isBudget, isBudgetKind } from '../limits/arithmetic/budget-period.js'
import type { BudgetDemand, Reservation } from '../store/ledger.js'
import { readEntry, writeEntry } from '../store/records/entry-text.js'
import type { LedgerEntry } from './entry.js'

/** A spooled entry and the reservation of its request. */
export interface SpooledEntry {
  readonly row: LedgerEntry
  readonly reservation: Reservation | undefined
}

/** The text of a line, without line breaks. */
export function writeSpoolLine({ row, reservation }: SpooledEntry): string {
  const text = writeEntry(row)
  // A reservation in the store is corrected by the store.
  if (reservation === undefined || reservation.takenFrom === 'reserved') return text
  const budgets = reservation.demands.filter(isBudget)
  if (budgets.length === 0) return text
  const parts = budgets.map(({ kind, subject, shared, limitNanoUsd, costNanoUsd }) => [
    kind,
    subject,
    shared ? 1 : 0,
    limitNanoUsd,
    costNanoUsd,
  ])
  return `${text}\t${JSON.stringify([reservation.takenFrom, parts])}`
}

/** Reads a line. Throws an Error that names the damaged part and contains no values. */
export function readSpoolLine(line: string): SpooledEntry {
  const tab = line.indexOf('\t')
  if (tab < 0) return { row: readEntry(line), reservation: undefined }
  return { row: readEntry(line.slice(0, tab)), reservation: readReservation(line.slice(tab + 1)) }
}

function readReservation(text: string): Reservation {
  const [taken, parts] = listOf(parsed(text))
  if (taken !== 'slice' && taken !== 'nothing') throw damaged()
  return { takenFrom: taken, demands: listOf(parts).map(readBudget) }
}

function readBudget(part: unknown): BudgetDemand {
  const [kind, subject, shared, limitNanoUsd, costNanoUsd] = listOf(part)
  if (!isBudgetKind(kind) || typeof subject !== 'string') throw damaged()
  if (typeof limitNanoUsd !== 'number' || typeof costNanoUsd !== 'number') throw damaged()
  return { kind, subject, shared: shared === 1, limitNanoUsd, costNanoUsd }
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw damaged()
  return value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text.
    throw damaged()
  }
}

function damaged(): Error {
  return new Error('the reservation of a spooled entry is not a list of budgets')
}
