/**
 * The statement of a month: what each key of an account, and of all below it, used of each model. Each
 * request counts under the tree at its own time, so that a closed month never changes, and every sum is exact
 * to the nano-dollar. By client format, program, person or dimension, a line is split by the entries that
 * are kept.
 */
import { compareNanoUsd } from '../base/nano-usd.js'
import { adminTurns } from '../base/turn-queue.js'
import { csvText } from '../base/csv.js'
import { unitsOfFigures } from '../base/unit-counts.js'
import { usd } from '../ledger/export-columns.js'
import { monthOf } from '../store/limit-arithmetic.js'
import type { AccountUse } from '../store/usage-queries.js'
import { selectAccount } from './account-selection.js'
import { AT_ONCE, accountUses, type AccountUseSource } from './account-uses.js'
import { KeyNames } from './names.js'
import type { StatementGrouping } from './is-statement-grouping.js'
import { storedAs } from './usage-groups.js'
import { valuesOfEntries } from './values-of-entries.js'
import { monthRange } from './ranges.js'
import {
  addTotals,
  newTotals,
  shownTotals,
  takeTotals,
  unitsCell,
  type ReportFigures,
  type RunningTotals,
  type Totals,
} from './totals.js'

/** What one key of one account used of one model. */
interface StatementLine extends ReportFigures {
  /** The account's name. */
  readonly account: string
  /** The key's name; null if the key was removed from the store. */
  readonly key: string | null
  readonly key_id: string
  readonly model: string
  /**
   * The client format, program, person or value of the dimension, if the statement is split; `(none)` for
   * requests without, `(not kept)` for those whose entries are no longer kept.
   */
  readonly group?: string
}

/** Requests whose entries were removed. */
const NOT_KEPT = '(not kept)'

/** The statement of an account and of all below it, or of all accounts. */
export interface Statement {
  /** The account's name; null: all accounts. */
  readonly account: string | null
  /** `2026-11` (UTC). */
  readonly month: string
  /** By account, key and model. */
  readonly lines: readonly StatementLine[]
  /** The sum of each account, the highest cost first; they add up to the total. */
  readonly accounts: readonly AccountSum[]
  readonly total: ReportFigures
}

/** What one account used. */
interface AccountSum extends ReportFigures {
  /** The account's name. */
  readonly account: string
}

/**
 * The statement of a month, which must be valid, of the account with this name or id, or of all accounts
 * (null); an account that was purged has the lines that it had. The month that is not over has its requests
 * so far. `by` splits the lines.
 */
export async function statementOf(
  store: AccountUseSource,
  nameOrId: string | null,
  month: string,
  by: StatementGrouping | null = null,
): Promise<Statement> {
  const range = monthRange(month) ?? { fromMs: 0, toMs: 1 }
  const selection = nameOrId === null ? null : await selectAccount(store, nameOrId)
  const nameOf = (account: string, { keyId, model }: Pick<AccountUse, 'keyId' | 'model'>): string =>
    `${account}\0${keyId}\0${model}`
  // Before the sums, so that each request that is read here is in them.
  const stored = by === null ? null : storedAs(by)
  const values =
    stored === null ? null : await valuesOfEntries(store, { ...range, by: stored, selection }, nameOf)
  const uses = await accountUses(store, { ...range, by: 'keys' }, { selection, tree: true })
  const keys = await KeyNames.for(store, uses.length)
  // A group of one use, as nearly all are, has no sum of its own.
  const groups = new Map<string, { use: AccountUse; name: string; sum: RunningTotals | null }>()
  const accounts = new Map<string, RunningTotals>()
  const total = newTotals()
  for (const [at, use] of uses.entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) await adminTurns.next()
    if (use.month !== monthOf(range.fromMs)) continue
    const name = use.accountPath.slice(use.accountPath.lastIndexOf('/') + 1)
    const id = nameOf(name, use)
    const group = groups.get(id)
    if (group === undefined) groups.set(id, { use, name, sum: null })
    else addTotals((group.sum ??= { ...group.use }), use)
    const ofAccount = accounts.get(name) ?? newTotals()
    accounts.set(name, ofAccount)
    addTotals(ofAccount, use)
    addTotals(total, use)
  }
  const lines: StatementLine[] = []
  // Without a function that compares: fifty thousand lines would hold the event loop.
  for (const [at, id] of [...groups.keys()].sort().entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) await adminTurns.next()
    const group = groups.get(id)
    if (group === undefined) continue
    const { use, name } = group
    const { keyId, model } = use
    const known = keys.known(use)
    const key = (known === undefined ? await keys.of(use) : known)?.name ?? null
    const line = { account: name, key, key_id: keyId, model }
    if (values === null) lines.push(lineOf(line, group.sum ?? use))
    else {
      const sum = group.sum ?? { ...use }
      for (const [group, own] of [...(values.get(id) ?? [])].sort(byName)) {
        takeTotals(sum, own)
        lines.push({ ...line, group, ...statementFigures(own) })
      }
      const isEmpty = sum.requests === 0 && sum.costNanoUsd === 0
      if (!isEmpty) lines.push({ ...line, group: NOT_KEPT, ...statementFigures(sum) })
    }
  }
  const sums = Array.from(accounts, ([account, sum]) => ({ account, ...statementFigures(sum) }))
  sums.sort(
    (one, other) =>
      compareNanoUsd(other.cost_nano_usd, one.cost_nano_usd) || (one.account < other.account ? -1 : 1),
  )
  return { account: selection?.name ?? null, month, lines, accounts: sums, total: statementFigures(total) }
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1
}

type LineName = Pick<StatementLine, 'account' | 'key' | 'key_id' | 'model'>

/** There are tens of thousands, and an object that is put together of several takes ten times as long. */
function lineOf({ account, key, key_id, model }: LineName, sum: Totals): StatementLine {
  const { requests, inputTokens, outputTokens, costNanoUsd } = sum
  return {
    account,
    key,
    key_id,
    model,
    requests,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost_nano_usd: costNanoUsd,
    cost_usd: usd(costNanoUsd),
    units: unitsOfFigures(sum),
  }
}

/** The figures of a statement: without failed requests and unknown prices. */
function statementFigures(sum: Totals): ReportFigures {
  const { requests, input_tokens, output_tokens, cost_nano_usd, cost_usd, units } = shownTotals(sum)
  return { requests, input_tokens, output_tokens, cost_nano_usd, cost_usd, units }
}

const STATEMENT_COLUMNS = [
  'account',
  'key',
  'key_id',
  'model',
  'requests',
  'input_tokens',
  'output_tokens',
  'cost_nano_usd',
  'cost_usd',
] as const satisfies readonly (keyof StatementLine)[]

/**
 * The lines of a statement as CSV with a line of names; the total is the sum of the lines. A statement that
 * is split has the column `group` after the model.
 */
export function statementCsv(
  { lines }: Pick<Statement, 'lines'>,
  by: StatementGrouping | null = null,
): string {
  const columns = by === null ? STATEMENT_COLUMNS : SPLIT_COLUMNS
  const cells = lines.map((line) => [...columns.map((name) => line[name] ?? null), unitsCell(line.units)])
  return csvText([[...columns, 'units'], ...cells])
}

const SPLIT_COLUMNS = STATEMENT_COLUMNS.flatMap((name) =>
  name === 'model' ? [name, 'group' as const] : [name],
)
