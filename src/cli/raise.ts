/** The options of `sluice accounts raise` and `sluice keys raise`. */
import type { Command, OptionValues } from '@commander-js/extra-typings'
import { BUDGETS } from '../accounts/changes/raise-limit.js'
import { timeIn } from './time-range.js'
import type { JsonObject } from '../base/json.js'
import type { Account, ApiKey } from '../accounts/account.js'
import { amountOf } from './option-names.js'

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

/** What is wanted, for `accounts/changes`, which checks it. */
export function raiseOf({ budget, usd, until, reason }: RaiseOptions, nowMs: number): JsonObject {
  return { budget, usd: amountOf(usd), until: timeIn(until, nowMs), reason }
}

/** `usd_per_month $500 until 2026-12-01T00:00:00.000Z` */
export function raiseText({ raises = [] }: Account | ApiKey): string {
  const { budget, nanoUsd = 0, untilMs = 0 } = raises.at(-1) ?? {}
  const name = [...BUDGETS].find(([, field]) => field === budget)?.[0] ?? ''
  return `${name} $${nanoUsd / 1e9} until ${new Date(untilMs).toISOString()}`
}
