/** Ledger entries as rows of the page and of the CSV file. */
import { causeOf } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { csvCell, usd } from '../../ledger/export-columns.js'
import type * as schema from './schema/schema.js'
import { PLAYGROUND, type Services } from './services.js'

/** Names of keys and accounts by id that were looked up. */
interface RowNames {
  readonly keys: Map<string, string | null>
  readonly accounts: Map<string, string | null>
}

/** No names yet. */
export function newRowNames(): RowNames {
  return { keys: new Map([[PLAYGROUND, PLAYGROUND]]), accounts: new Map() }
}

/** One row per entry, with the current names of its key and account, and the cause of a failure. */
export async function rowViews(
  { store }: Services,
  rows: readonly LedgerEntry[],
  { keys, accounts } = newRowNames(),
): Promise<schema.RequestRow[]> {
  for (const { accountId, keyId } of rows) {
    if (!keys.has(keyId)) {
      keys.set(keyId, (await store.keyById(accountId, keyId))?.name ?? null)
    }
    if (!accounts.has(accountId)) {
      accounts.set(accountId, (await store.accountById(accountId))?.name ?? null)
    }
  }
  return rows.map((row) => ({
    ...row,
    keyName: keys.get(row.keyId) ?? null,
    accountName: accounts.get(row.accountId) ?? null,
    cause: causeOf(row.outcome),
  }))
}

type Cell = string | number | boolean | null | undefined

const COLUMNS: readonly [title: string, cell: (row: schema.RequestRow) => Cell][] = [
  ['request_id', (row) => row.requestId],
  ['time', (row) => new Date(row.atMs).toISOString()],
  ['account_id', (row) => row.accountId],
  ['key_id', (row) => row.keyId],
  ['key_name', (row) => row.keyName],
  ['model_asked', (row) => row.modelAsked],
  ['model_answered', (row) => row.modelAnswered],
  ['upstream', (row) => row.upstream],
  ['attempts', (row) => row.attempts],
  ['stream', (row) => row.stream],
  ['status', (row) => row.status],
  ['outcome', (row) => row.outcome],
  ['finish', (row) => row.finish],
  ['input_tokens', (row) => row.usage.input],
  ['cached_tokens', (row) => row.usage.cacheRead],
  ['output_tokens', (row) => row.usage.output],
  ['reasoning_tokens', (row) => row.usage.reasoning],
  ['source', (row) => row.source],
  ['cost_usd', (row) => usd(row.costNanoUsd)],
  ['duration_ms', (row) => Math.round(row.durationMs)],
  ['first_token_ms', (row) => rounded(row.hops.firstContent)],
  ['overhead_ms', (row) => row.hops.overhead],
  ['losses', (row) => row.losses.join(' ')],
  ['error_message', (row) => row.errorMessage],
  ['limit', (row) => row.limit],
  ['upstream_status', (row) => row.upstreamStatus],
  ['upstream_request_id', (row) => row.upstreamRequestId],
  ['attempted', (row) => row.attempted],
  ['labels', (row) => row.labels],
  ['client_request_id', (row) => row.clientRequestId],
  ['price_version', (row) => row.priceVersion],
  ['client_format', (row) => row.ingress],
  ['cause', (row) => row.cause],
  ['gateway', (row) => row.gateway],
  ['generation_hash', (row) => row.generationHash],
  ['cache_hit', (row) => row.cacheHit],
  ['saved_usd', (row) => usd(row.savedNanoUsd)],
  ['account_path', (row) => row.accountPath],
  ['identity', (row) => row.identity],
  ['guardrails', (row) => row.guardrails],
  ['cache_marks', (row) => row.cacheMarks],
  ['cache_marks_saved_usd', (row) => usd(row.cacheMarksSavedNanoUsd)],
  ['recorded', (row) => row.recorded],
  ['account_name', (row) => row.accountName],
]

/** The header line of the CSV file. */
export function csvHead(): string {
  return `${COLUMNS.map(([title]) => title).join(',')}\r\n`
}

/** One line of the CSV file (RFC 4180). */
export function csvLine(row: schema.RequestRow): string {
  return `${COLUMNS.map(([, cell]) => csvCell(cell(row) ?? null)).join(',')}\r\n`
}

function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms)
}
