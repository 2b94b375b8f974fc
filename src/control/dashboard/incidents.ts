/**
 * Outages of upstreams, from the ledger: which are open, since when, whom they hit, and those of the last 24
 * hours. Only failures of the provider and of the gateway count; limits and errors of clients never do.
 */
import { DAY_MS, HOUR_MS } from '../../base/time-units.js'
import { causeOf, type Cause } from '../../errors.js'
import { adminTurns } from '../../base/turn-queue.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { GatewayStatus } from '../gateway-status.js'
import type * as schema from './schema/schema.js'
import type { Services } from '../services.js'
import { healthOf, upstreamHealth, type UpstreamHealth } from './upstream-health.js'

const MINUTE_MS = 60_000
/** An incident opens with this number of attempts in a minute, of which this share failed. */
const OPENS = { attempts: 5, share: 0.25 } as const
/** It ends below this share. */
const ENDS_SHARE = 0.05
/** Failures that are closer together are of the same incident. */
const SAME_MS = 5 * MINUTE_MS
/** A recovery is reported for this long. */
const REPORTED_MS = 10 * MINUTE_MS
/** The state is read again after this time, for all pages together. */
const KEPT_MS = 4_000
/** The newest attempts of a minute that are read; more are a sample of it. */
const MAX_RECENT = 1_000
/** The failures that are read of one incident. */
const MAX_FAILURES = 5_000
const READ_AT_ONCE = 1_000
const CAUSES: readonly Cause[] = ['provider', 'gateway']

/** An outage, for everybody. */
export interface Incident {
  readonly upstream: string
  readonly sinceMs: number
  /** Of the attempts of the last minute that failed; null without an attempt. */
  readonly share: number | null
  readonly attemptsPerMinute: number
  /** The most frequent status of the upstream, or the kind of failure. */
  readonly what: string | null
  readonly cause: Cause
  readonly breaker: 'closed' | 'half_open' | 'open' | null
  /** Failed requests since the start. */
  readonly failed: readonly LedgerEntry[]
  /** There are more. */
  readonly isPart: boolean
}

/** What is open now, and what ended in the last minutes. */
interface Outages {
  readonly open: readonly Incident[]
  readonly recovered: readonly schema.Recovered[]
  readonly refused: GatewayStatus['refused']
}

interface Known {
  readMs: number
  outages: Promise<Outages> | null
  /** The open ones by upstream, as at the last reading. */
  open: Map<string, Incident>
  recovered: schema.Recovered[]
}

const known = new WeakMap<object, Known>()

type Sources = Pick<Services, 'ledger' | 'snapshot' | 'gatewayStatus' | 'now'>

/** The outages of the gateway, read at most every few seconds. */
export function outages(services: Sources): Promise<Outages> {
  const { ledger, now } = services
  const state = known.get(ledger) ?? { readMs: 0, outages: null, open: new Map(), recovered: [] }
  known.set(ledger, state)
  if (state.outages !== null && Math.abs(now() - state.readMs) < KEPT_MS) return state.outages
  state.readMs = now()
  state.outages = read(services, state)
  state.outages.catch(() => (state.outages = null))
  return state.outages
}

async function read(services: Sources, state: Known): Promise<Outages> {
  const { ledger, snapshot, gatewayStatus, now } = services
  const nowMs = now()
  const [{ entries }, status] = await Promise.all([
    ledger.entries({ accountId: null, fromMs: nowMs - MINUTE_MS, after: null, limit: MAX_RECENT }),
    gatewayStatus(),
  ])
  const healths = upstreamHealth(entries)
  const open = new Map<string, Incident>()
  for (const upstream of Object.keys(snapshot().config.upstreams)) {
    const before = state.open.get(upstream)
    const health = healths.get(upstream)
    const breaker = status?.breakers[upstream] ?? null
    if (!isOpen(health, breaker, before !== undefined)) continue
    const rows = entries.filter((row) => row.upstream === upstream && row.outcome !== 'ok')
    const changedMs = status?.breakersChangedMs[upstream]
    const startMs = before?.sinceMs ?? changedMs ?? rows.at(-1)?.atMs ?? nowMs
    open.set(upstream, await incidentOf(services, { upstream, health, breaker, startMs, before }))
  }
  for (const [upstream, { sinceMs, failed }] of state.open) {
    if (open.has(upstream)) continue
    const lastMs = Math.max(sinceMs, ...failed.map(({ atMs }) => atMs))
    state.recovered.push({ upstream, atMs: nowMs, lengthMs: lastMs - sinceMs, requests: failed.length })
  }
  state.open = open
  state.recovered = state.recovered.filter(
    ({ atMs, upstream }) => nowMs - atMs < REPORTED_MS && !open.has(upstream),
  )
  return {
    open: [...open.values()].sort((a, b) => b.failed.length - a.failed.length),
    recovered: state.recovered,
    refused: status?.refused ?? null,
  }
}

/** Failures of the provider and the gateway at the upstream. */
function failuresOf(health: UpstreamHealth | undefined): number {
  return health === undefined ? 0 : health.failures.provider + health.failures.gateway
}

function shareOf(health: UpstreamHealth | undefined): number | null {
  if (health === undefined) return null
  const all = Math.max(health.attempts, failuresOf(health))
  return all === 0 ? null : failuresOf(health) / all
}

function isOpen(health: UpstreamHealth | undefined, breaker: Incident['breaker'], wasOpen: boolean): boolean {
  if (breaker !== null && breaker !== 'closed') return true
  const share = shareOf(health) ?? 0
  if (wasOpen) return share >= ENDS_SHARE
  return (health?.attempts ?? 0) >= OPENS.attempts && share >= OPENS.share
}

interface Seen {
  readonly upstream: string
  readonly health: UpstreamHealth | undefined
  readonly breaker: Incident['breaker']
  /** The known start, before the failures are read. */
  readonly startMs: number
  readonly before: Incident | undefined
}

async function incidentOf(
  services: Sources,
  { upstream, health, breaker, startMs, before }: Seen,
): Promise<Incident> {
  const nowMs = services.now()
  const { rows, isPart } = await failuresSince(services, upstream, nowMs - DAY_MS)
  const run = before === undefined ? runBack(rows, startMs) : rows.filter(({ atMs }) => atMs >= startMs)
  const sinceMs = Math.min(startMs, ...run.map(({ atMs }) => atMs))
  const ofGateway = run.filter(({ outcome }) => causeOf(outcome) === 'gateway')
  return {
    ...{ upstream, sinceMs, breaker, share: shareOf(health), failed: run },
    attemptsPerMinute: health?.attempts ?? 0,
    what: mostFrequent(run.map(({ upstreamStatus, outcome }) => String(upstreamStatus ?? outcome))),
    cause: ofGateway.length * 2 > run.length ? 'gateway' : 'provider',
    isPart: isPart && run.length === rows.length,
  }
}

/** The newest failures of the upstream, the newest first. */
async function failuresSince(
  { ledger }: Pick<Services, 'ledger'>,
  upstream: string,
  fromMs: number,
): Promise<{ readonly rows: readonly LedgerEntry[]; readonly isPart: boolean }> {
  const rows: LedgerEntry[] = []
  const query = { accountId: null, upstream, failed: true, cause: CAUSES, fromMs, limit: READ_AT_ONCE }
  for (let after: string | null = null; ;) {
    const page = await ledger.entries({ ...query, after })
    rows.push(...page.entries)
    if (page.next === null || rows.length >= MAX_FAILURES) return { rows, isPart: page.next !== null }
    after = page.next
    await adminTurns.next()
  }
}

/** The failures back to the first gap of five minutes, or to minutes with hardly any. */
function runBack(rows: readonly LedgerEntry[], startMs: number): LedgerEntry[] {
  const perMinute = new Map<number, number>()
  const minuteOf = ({ atMs }: LedgerEntry): number => Math.floor(atMs / MINUTE_MS)
  for (const row of rows) perMinute.set(minuteOf(row), (perMinute.get(minuteOf(row)) ?? 0) + 1)
  const most = Math.max(0, ...[...perMinute.values()].slice(0, 5))
  let lastMs = Math.max(startMs, rows[0]?.atMs ?? startMs)
  const run: LedgerEntry[] = []
  for (const row of rows) {
    const isMany = (perMinute.get(minuteOf(row)) ?? 0) >= most / 10
    if (row.atMs < startMs && (lastMs - row.atMs > SAME_MS || !isMany)) break
    run.push(row)
    lastMs = row.atMs
  }
  return run
}

function mostFrequent(texts: readonly string[]): string | null {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  const [most = null] = [...counts].sort((a, b) => b[1] - a[1])
  return most?.[0] ?? null
}

/** The health of each upstream in each of the last 24 hours, the oldest first, and the outages in them. */
export async function healthHistory(services: Sources): Promise<schema.IncidentsReply['history']> {
  const { ledger, snapshot, now } = services
  const nowMs = now()
  const firstMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS - 23 * HOUR_MS
  const sums = await ledger.sums({
    ...{ accountId: null, by: 'hour', fromMs: firstMs, toMs: nowMs, property: 'upstream' },
  })
  const cells = new Map<string, schema.HealthCell[]>()
  const names = Object.keys(snapshot().config.upstreams)
  for (const name of names) {
    const hours = Array.from({ length: 24 }, (_, at) => {
      return { fromMs: firstMs + at * HOUR_MS, requests: 0, failed: 0, state: 'idle' } as const
    })
    cells.set(name, hours)
  }
  for (const { startMs, keyId, requests, byCause } of sums) {
    const own = cells.get(keyId.slice(keyId.indexOf('=') + 1))
    const at = Math.round((startMs - firstMs) / HOUR_MS)
    const cell = own?.[at]
    if (own === undefined || cell === undefined) continue
    const failed = cell.failed + byCause.provider + byCause.gateway
    const all = cell.requests + requests
    own[at] = { fromMs: cell.fromMs, requests: all, failed, state: healthOf(all, failed) }
  }
  const rows = names.map((upstream) => ({ upstream, cells: cells.get(upstream) ?? [] }))
  const past: schema.PastIncident[] = []
  for (const row of rows) past.push(...(await pastOf(services, row)))
  return { rows, past: past.sort((a, b) => b.fromMs - a.fromMs) }
}

/** The outages of an upstream in hours in which many of its requests failed. */
async function pastOf(
  services: Sources,
  { upstream, cells }: { readonly upstream: string; readonly cells: readonly schema.HealthCell[] },
): Promise<schema.PastIncident[]> {
  const bad = cells.filter(({ failed }) => failed >= OPENS.attempts)
  const first = bad[0]
  if (first === undefined) return []
  const { rows } = await failuresSince(services, upstream, first.fromMs)
  const past: schema.PastIncident[] = []
  let run: LedgerEntry[] = []
  const end = (): void => {
    const [newest, oldest] = [run[0], run.at(-1)]
    if (newest !== undefined && oldest !== undefined && run.length >= OPENS.attempts) {
      const [fromMs, toMs] = [oldest.atMs, newest.atMs]
      const share = run.length / requestsIn(cells, fromMs, toMs)
      if (share >= OPENS.share) past.push({ upstream, fromMs, toMs, requests: run.length })
    }
    run = []
  }
  for (const row of rows) {
    if ((run.at(-1)?.atMs ?? row.atMs) - row.atMs > SAME_MS) end()
    run.push(row)
  }
  end()
  return past
}

/** The requests of a time, as if those of an hour were spread evenly; at least one. */
function requestsIn(cells: readonly schema.HealthCell[], fromMs: number, toMs: number): number {
  let sum = 0
  for (const cell of cells) {
    const shared = Math.min(toMs, cell.fromMs + HOUR_MS) - Math.max(fromMs, cell.fromMs)
    if (shared > 0) sum += (cell.requests * Math.max(shared, MINUTE_MS)) / HOUR_MS
  }
  return Math.max(1, sum)
}
