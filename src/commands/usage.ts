/**
 * `sluice usage`: what requests used and cost, row by row or in sums.
 * Knows what to print; the columns are `ledger/export.ts`.
 */
import { parseArgs } from 'node:util'
import { figuresOf } from '../dashboard/figures.js'
import { csvHeader, csvLine, jsonLine, usd } from '../ledger/export.js'
import type { UsageSum } from '../store/ledger.js'
import type { Store } from '../store/store.js'
import { actionOf, UsageError, type Command } from './command.js'
import { configPath } from './config-option.js'
import { processTerminal, table, withStore, type StoreSession } from './with-store.js'

/** `sluice usage`. */
export const command: Command = {
  name: 'usage',
  summary: 'export what requests used and cost, or sum it up',
  help: `
Usage: sluice usage export  --format jsonl|csv [--since TIME] [--until TIME] [--config FILE]
       sluice usage summary [--by model|key|account] [--since TIME] [--until TIME] [--json]
                            [--config FILE]

Reads the ledger of the store that the configuration names, whether or not a gateway is running. export
prints one line for each request, oldest first, request_id first; docs/operations.md has the columns.
summary adds up whole days (UTC), the days of --since and --until included, and shows names beside ids.

Options:
  --config FILE   the configuration file; without it, the one that SLUICE_CONFIG names
  --format FORMAT jsonl (one JSON object a line) or csv (with a line of names first)
  --since TIME    a day or time (2026-11-20, 2026-11-20T08:00:00Z), or so long ago (90m, 24h, 7d);
                  export: all that is kept, summary: 30d
  --until TIME    the end, in the same forms; requests that arrived before it are included (default: now)
  --by WHAT       what a line of the summary is for: model (the default), key or account
  --json          print JSON

Example:
  sluice usage export --config config/gateway.yaml --format csv --since 24h > usage.csv
`,
  run(argv) {
    const { action, values } = parseUsage(argv)
    const opening = {
      configPath: configPath(values.config, 'sluice usage'),
      terminal: processTerminal,
      mustExist: true,
    }
    return withStore(opening, (session) => runUsage(session, action, values, Date.now()))
  },
}

/** The word after `usage`. */
export type UsageAction = 'export' | 'summary'

/** The options as they were given. */
export interface UsageValues {
  config?: string | undefined
  format?: string | undefined
  since?: string | undefined
  until?: string | undefined
  by?: string | undefined
  json?: boolean | undefined
}

const ALLOWED: Record<UsageAction, readonly string[]> = {
  export: ['config', 'format', 'since', 'until'],
  summary: ['config', 'by', 'since', 'until', 'json'],
}

const KEYS = ['model', 'key', 'account'] as const
type Key = (typeof KEYS)[number]

/** The action and its options, checked as far as the words go. Throws `UsageError` or parseArgs's. */
export function parseUsage(argv: readonly string[]): { action: UsageAction; values: UsageValues } {
  const parsed = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      format: { type: 'string' },
      since: { type: 'string' },
      until: { type: 'string' },
      by: { type: 'string' },
      json: { type: 'boolean' },
    },
  })
  const { values } = parsed
  const action = actionOf('usage', parsed, ALLOWED)
  if (action === 'export' && values.format !== 'jsonl' && values.format !== 'csv') {
    throw new UsageError("'sluice usage export' needs --format jsonl or --format csv")
  }
  if (values.by !== undefined && !KEYS.some((key) => key === values.by)) {
    throw new UsageError('--by takes model, key or account')
  }
  return { action, values }
}

/** Does the work; `nowMs` is where `--since 24h` counts from. */
export function runUsage(
  session: StoreSession,
  action: UsageAction,
  values: UsageValues,
  nowMs: number,
): Promise<number> {
  return action === 'export'
    ? exportRows(session, values, nowMs)
    : summarise(session, values, nowMs)
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Ms since 1970. Throws `UsageError` naming the option if the text is no time. */
export function sinceOf(text: string, nowMs: number, option = '--since'): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (unit !== '') return nowMs - Number(count) * (UNIT_MS[unit] ?? 0)
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs)) {
    throw new UsageError(
      `${option} takes a day (2026-11-20), a time, or a duration before now: 90m, 24h, 7d`,
    )
  }
  return atMs
}

/** How often a long export says how far it is. */
const PROGRESS_MS = 5_000

function untilOf(text: string | undefined, nowMs: number): number | null {
  return text === undefined ? null : sinceOf(text, nowMs, '--until')
}

async function exportRows(
  { store, terminal }: StoreSession,
  { format, since, until }: UsageValues,
  nowMs: number,
): Promise<number> {
  const isCsv = format === 'csv'
  const sinceMs = sinceOf(since ?? '1970-01-01', nowMs)
  const untilMs = untilOf(until, nowMs) ?? Number.POSITIVE_INFINITY
  let rows = 0
  let toldMs = performance.now()
  if (isCsv) terminal.out(csvHeader())
  for await (const exported of store.ledger.export(sinceMs)) {
    if (exported.length === 0) continue
    const batch = exported.filter(({ atMs }) => atMs < untilMs)
    // Rows come oldest first: all that follow are later, too.
    if (batch.length === 0) break
    rows += batch.length
    terminal.out(batch.map((row) => (isCsv ? csvLine(row) : jsonLine(row))).join('\n'))
    if (performance.now() - toldMs < PROGRESS_MS) continue
    toldMs = performance.now()
    terminal.err(`sluice: ${rows} rows so far`)
  }
  return 0
}

async function summarise(
  { store, terminal }: StoreSession,
  { by, since, until, json }: UsageValues,
  nowMs: number,
): Promise<number> {
  const fromMs = sinceOf(since ?? '30d', nowMs)
  const untilMs = untilOf(until, nowMs)
  // A sum belongs to the day of `toMs`, too: midnight as an end excludes the day that begins there.
  const toMs = untilMs === null ? nowMs : untilMs - 1
  const sums = await store.ledger.sums({ accountId: null, by: 'day', fromMs, toMs })
  const key = KEYS.find((each) => each === by) ?? 'model'
  const totals = totalsBy(sums, key)
  const labels = await labelsOf(store, sums, key)
  if (json === true) {
    const lines = totals.map(([name, total]) => {
      const { costNanoUsd, ...counts } = total
      return { [key]: name, ...labels.get(name), ...counts, cost_usd: usd(costNanoUsd) }
    })
    terminal.out(JSON.stringify(lines, undefined, 2))
    return 0
  }
  const names = LABELS[key]
  const counts = ['requests', 'errors', 'input', 'output', 'cost (USD)', 'unpriced', 'estimated']
  const head = [key, ...names, ...counts]
  const rows = totals.map(([name, total]) => [
    name,
    ...names.map((label) => labels.get(name)?.[label] ?? ''),
    String(total.requests),
    String(total.errors),
    String(total.input_tokens),
    String(total.output_tokens),
    usd(total.costNanoUsd) ?? '',
    String(total.unpriced),
    String(total.estimated),
  ])
  terminal.out(table([head, ...rows]))
  return 0
}

/** What stands beside an id. Null: the key was removed, or the account is not there. */
type Labels = Readonly<Partial<Record<'name' | 'email', string | null>>>

const LABELS = {
  model: [],
  key: ['name', 'email'],
  account: ['email'],
} as const satisfies Readonly<Record<Key, readonly (keyof Labels)[]>>

/** By the ids of `key`: the names of keys, the e-mail addresses of accounts. */
async function labelsOf(
  store: Store,
  sums: readonly UsageSum[],
  key: Key,
): Promise<Map<string, Labels>> {
  const labels = new Map<string, Labels>()
  if (key === 'model') return labels
  const emails = new Map<string, string | null>()
  for (const { accountId, keyId } of sums) {
    const id = key === 'key' ? keyId : accountId
    if (labels.has(id)) continue
    const email = emails.get(accountId) ?? (await store.accountById(accountId))?.email ?? null
    emails.set(accountId, email)
    if (key === 'account') labels.set(id, { email })
    else labels.set(id, { name: (await store.keyById(accountId, keyId))?.name ?? null, email })
  }
  return labels
}

interface Total {
  readonly requests: number
  readonly errors: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly costNanoUsd: number
  readonly unpriced: number
  readonly estimated: number
}

/** By name, in order. */
function totalsBy(sums: readonly UsageSum[], key: Key): [name: string, total: Total][] {
  const groups = new Map<string, UsageSum[]>()
  for (const sum of sums) {
    const name = key === 'model' ? sum.model : key === 'key' ? sum.keyId : sum.accountId
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [sum])
    else group.push(sum)
  }
  return [...groups]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, group]) => [name, totalOf(group)])
}

function totalOf(sums: readonly UsageSum[]): Total {
  const total = figuresOf(sums)
  return {
    requests: total.requests,
    errors: total.errors,
    input_tokens: total.inputTokens,
    output_tokens: total.outputTokens,
    costNanoUsd: total.spendNanoUsd,
    unpriced: total.unpricedRequests,
    estimated: total.estimatedRequests,
  }
}
