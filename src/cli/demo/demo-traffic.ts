/**
 * A day of traffic for the demo: ledger entries of the last 24 hours, so that every page of the dashboard has something
 * to show. The same times of day, models and failures in each demo; nothing is sent to an upstream.
 */
import type { Catalogue } from '../../config/config.js'
import { diceOf, type Dice } from '../../emulator/seed.js'
import { newRequestId } from '../../http/id.js'
import { costNanoUsd } from '../../ledger/price.js'
import { Prices } from '../../ledger/prices.js'
import { UNEXPLAINED, type UsageRow } from '../../ledger/row.js'
import type { Ledger } from '../../store/ledger.js'

/** A program of the demo: its key, the model it asks for, and its share of the requests. */
export interface DemoApp {
  readonly keyId: string
  readonly labels: string
  readonly share: number
}

/** Whose traffic it is, and what it costs. */
export interface DemoTraffic {
  readonly accountId: string
  readonly apps: readonly DemoApp[]
  readonly catalogue: Catalogue
  readonly nowMs: number
}

const REQUESTS = 900
const HOUR_MS = 3_600_000
/** Requests in each hour of the day (UTC), as shares. */
const DAILY = [2, 1, 1, 1, 1, 2, 3, 5, 8, 10, 11, 11, 9, 10, 11, 10, 9, 7, 5, 4, 3, 3, 2, 2]

type Served = Pick<UsageRow, 'upstream' | 'dialect'> & { readonly model: string }
const MODELS: readonly Served[] = [
  { model: 'claude-sonnet-5-5', upstream: 'anthropic', dialect: 'anthropic' },
  { model: 'gpt-5.4-mini', upstream: 'openai', dialect: 'openai-chat' },
  { model: 'gemini-3.5-flash', upstream: 'google', dialect: 'gemini' },
  { model: 'claude-haiku-4-5', upstream: 'anthropic', dialect: 'anthropic' },
  { model: 'gpt-5.4', upstream: 'openai', dialect: 'openai-responses' },
]

type Failure = Pick<UsageRow, 'status' | 'outcome' | 'errorMessage' | 'upstreamStatus' | 'limit'>
/** One request in 60 fails with each of these. */
const FAILURES: readonly Failure[] = [
  failure(429, 'upstream_busy', 'The upstream is busy; try again later.', 429),
  failure(502, 'upstream_failed', 'The upstream failed with status 500.', 500),
  failure(504, 'upstream_timeout', 'The upstream did not begin to answer in time.', null),
]
const ONE_IN = 60

function failure(
  status: number,
  outcome: Failure['outcome'],
  errorMessage: string,
  upstreamStatus: number | null,
): Failure {
  return { status, outcome, errorMessage, upstreamStatus, limit: null }
}

/** Writes the entries. Rejects with `GatewayError` if the store fails. */
export async function writeDemoTraffic(ledger: Ledger, traffic: DemoTraffic): Promise<void> {
  const dice = diceOf(7)
  const prices = new Prices(traffic.catalogue.models, [])
  const rows = Array.from({ length: REQUESTS }, () => rowOf(traffic, prices, dice))
  await Promise.all(rows.map((row) => ledger.settle(row)))
}

function rowOf(traffic: DemoTraffic, prices: Prices, dice: Dice): UsageRow {
  const { accountId, apps, nowMs } = traffic
  const app = picked(
    apps,
    apps.map(({ share }) => share),
    dice,
  )
  const { model, upstream, dialect } = picked(MODELS, [9, 8, 6, 4, 2], dice)
  const hoursAgo = picked(
    DAILY.map((_, at) => at),
    sharesBefore(nowMs),
    dice,
  )
  const atMs = Math.floor(nowMs - hoursAgo * HOUR_MS - below(dice, HOUR_MS))
  const failed = dice() % ONE_IN < FAILURES.length ? FAILURES[dice() % FAILURES.length] : undefined
  const [input, output] = [
    200 + below(dice, 3_000),
    failed === undefined ? 40 + below(dice, 700) : 0,
  ]
  const cacheRead = dice() % 3 === 0 ? Math.floor(input * 0.6) : 0
  const usage = failed === undefined ? { input, output, cacheRead } : {}
  const price = upstream === null ? null : prices.find(upstream, model, null)
  const firstContent = 180 + below(dice, 900)
  const durationMs = firstContent + output * 9
  return {
    requestId: newRequestId(atMs),
    ...{ atMs, durationMs, accountId, keyId: app.keyId },
    ...{ modelAsked: model, modelAnswered: failed === undefined ? model : null, model },
    ...{ upstream, dialect, attempts: 1, stream: dice() % 3 > 0, status: 200, outcome: 'ok' },
    finish: failed === undefined ? 'stop' : null,
    usage,
    source: failed === undefined ? 'reported' : 'none',
    costNanoUsd: price === null || failed !== undefined ? 0 : costNanoUsd(price, usage),
    ...{ tokensAfterDisconnect: 0, losses: [], generation: 1 },
    hops: {
      authenticate: 0.05,
      receive: 0.2,
      connect: 1,
      firstByte: firstContent - 3,
      firstContent,
    },
    ...UNEXPLAINED,
    ...{ ingress: 'chat', labels: app.labels, upstreamStatus: 200 },
    attempted: `${upstream ?? ''}:${failed?.outcome ?? 'ok'}`,
    ...failed,
  }
}

/** The shares of the 24 hours before `nowMs`, the latest first. */
function sharesBefore(nowMs: number): number[] {
  const hour = new Date(nowMs).getUTCHours()
  return DAILY.map((_, hoursAgo) => DAILY[(hour - hoursAgo + 24) % 24] ?? 1)
}

function below(dice: Dice, limit: number): number {
  return dice() % limit
}

/** One of the items, with a chance in proportion to its share. */
function picked<T>(items: readonly T[], shares: readonly number[], dice: Dice): T {
  let left = below(
    dice,
    shares.reduce((sum, share) => sum + share, 0),
  )
  for (const [at, item] of items.entries()) {
    left -= shares[at] ?? 0
    if (left < 0) return item
  }
  const [first] = items
  if (first === undefined) throw new RangeError('there is nothing to pick from')
  return first
}
