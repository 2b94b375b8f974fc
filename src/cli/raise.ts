/** The options of `sluice accounts raise` and `sluice keys raise`. */
import type { Command, OptionValues } from '@commander-js/extra-typings'
import { BUDGETS } from '../accounts/changes/raise-limit.js'
import { comingTimeOf, timeIn } from './time-range.js'

/** The values of the options. */
export interface RaiseOptions {
  readonly budget: string
  readonly usd: string
  readonly until: string
  readonly reason: string
}

/** Adds them. */
export function withRaise<Arguments extends unknown[], Options extends OptionValues>(
  action: Command<Arguments, Options>,
) {
  return action
    .requiredOption('--budget <NAME>', `the budget: ${[...BUDGETS.keys()].join(', ')}`)
    .requiredOption('--usd <USD>', 'the higher amount, within the budgets of the accounts above')
    .requiredOption(
      '--until <WHEN>',
      'when the former budget holds again: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z, at most 366d',
    )
    .requiredOption('--reason <TEXT>', 'why, for the audit trail; at most 200 characters')
}

/** What is wanted, for `accounts/changes`, which checks it. Throws `UsageError`. */
export function raiseOf({ budget, usd, until, reason }: RaiseOptions, nowMs: number) {
  const amount = /^\d+(\.\d+)?$/.test(usd) ? Number(usd) : Number.NaN
  const atMs = Date.parse(timeIn(until, nowMs))
  const untilMs = Number.isNaN(atMs) ? comingTimeOf(until, nowMs, '--until') : atMs
  return { budget, usd: amount, untilMs, reason }
}

/** `usd_per_month $500 until 2026-12-01T00:00:00.000Z` */
export function raiseText({ budget, usd, untilMs }: ReturnType<typeof raiseOf>): string {
  return `${budget} $${usd} until ${new Date(untilMs).toISOString()}`
}
