/**
 * A day of traffic for the demo: ledger entries of the last 24 hours, so that every page of the dashboard has
 * data. Times of day, models and failures are the same in each demo; no request is sent to an upstream.
 */
import type { Catalogue } from '../config/config.js'
import { seededRandom, type RandomSource } from '../emulator/seeded-random.js'
import { newRequestId } from '../http/request-id.js'
import { costNanoUsd } from '../ledger/price.js'
import { Prices } from '../ledger/find-price.js'
import { UNEXPLAINED, type LedgerEntry } from '../ledger/entry.js'
import { dayOf } from '../store/limit-arithmetic.js'
import type { Ledger } from '../store/ledger.js'
import type { Store } from '../store/store.js'

/** An application of the demo: its key, its model, and its share of the requests. */
export interface DemoApp {
  readonly keyId: string
  readonly labels: string
  readonly share: number
}

/** The applications of the traffic, and the prices. */
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

type Served = Pick<LedgerEntry, 'upstream' | 'dialect'> & { readonly model: string }
const MODELS: readonly Served[] = [
  { model: 'claude-sonnet-5-5', upstream: 'anthropic', dialect: 'anthropic' },
  { model: 'gpt-5.4-mini', upstream: 'openai', dialect: 'openai-chat' },
  { model: 'gemini-3.5-flash', upstream: 'google', dialect: 'gemini' },
  { model: 'claude-haiku-4-5', upstream: 'anthropic', dialect: 'anthropic' },
  { model: 'gpt-5.4', upstream: 'openai', dialect: 'openai-responses' },
]

type Failure = Pick<LedgerEntry, 'status' | 'outcome' | 'errorMessage' | 'upstreamStatus'>
/** Failures of the provider, of the gateway, of its limits and of clients. */
const FAILURES: readonly Failure[] = [
  {
    status: 429,
    outcome: 'upstream_busy',
    errorMessage: 'The upstream is limiting requests.',
    upstreamStatus: 429,
  },
  {
    status: 502,
    outcome: 'upstream_failed',
    errorMessage: 'The upstream failed with status 500.',
    upstreamStatus: 500,
  },
  {
    status: 504,
    outcome: 'upstream_timeout',
    errorMessage: 'The upstream did not start its reply in time.',
    upstreamStatus: null,
  },
  {
    status: 429,
    outcome: 'rate_limited',
    errorMessage: 'The limit of 60 requests a minute for this key is reached.',
    upstreamStatus: null,
  },
  {
    status: 400,
    outcome: 'malformed_request',
    errorMessage: 'messages[0].content: must be a string or a list.',
    upstreamStatus: null,
  },
  {
    status: 502,
    outcome: 'upstream_denied',
    errorMessage: "The upstream refused the gateway's own credentials.",
    upstreamStatus: 401,
  },
  {
    status: 499,
    outcome: 'client_gone',
    errorMessage: 'The client closed the connection.',
    upstreamStatus: 200,
  },
]
/** Intervals of failures and of fallbacks, in requests. */
const ONE_FAILS_IN = 25
const ONE_FALLS_BACK_IN = 40
/** The client formats, as shares. */
const FORMATS = ['chat', 'responses', 'messages', 'gemini'] as const
const FORMAT_SHARES = [6, 2, 3, 1]
/** Failures before a request is sent to an upstream. */
const REFUSALS: readonly LedgerEntry['outcome'][] = ['rate_limited', 'malformed_request']

/** Writes the entries and returns them. Rejects with `GatewayError` if the store fails. */
export async function writeDemoTraffic(
  ledger: Ledger,
  traffic: DemoTraffic,
): Promise<readonly LedgerEntry[]> {
  const random = seededRandom(7)
  const prices = new Prices(traffic.catalogue.models, [])
  const rows = Array.from({ length: REQUESTS }, () => rowOf(traffic, prices, random))
  await Promise.all(rows.map((row) => ledger.settle(row)))
  return rows
}

const SPENT_SHARE = 0.85
const CENT_NANO_USD = 10_000_000

/** Gives a key limits, and a budget that is mostly spent, for the dashboard. */
export async function limitDemoKey(
  store: Store,
  { accountId, keyId }: Pick<LedgerEntry, 'accountId' | 'keyId'>,
  rows: readonly LedgerEntry[],
): Promise<void> {
  const day = dayOf(Date.now())
  const spent = rows
    .filter((row) => row.keyId === keyId && dayOf(row.atMs) === day)
    .reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  const nanoUsdPerDay = Math.ceil(spent / SPENT_SHARE / CENT_NANO_USD) * CENT_NANO_USD
  await store.changeKey(
    { accountId, id: keyId },
    { limits: { requestsPerMinute: 60, nanoUsdPerDay } },
  )
  const subject = `key:${keyId};own`
  const budget = { accountId, kind: 'usd_day', subject, period: day, nanoUsd: spent } as const
  await store.ledger.putBudgets([budget])
}

interface DemoReply {
  /** Undefined if the request succeeded. */
  readonly failed: Failure | undefined
  readonly firstContentMs: number
}

/** The attempts of an entry. */
function attemptsOf(
  { upstream }: Served,
  { failed, firstContentMs }: DemoReply,
  random: RandomSource,
): Pick<LedgerEntry, 'upstream' | 'attempts' | 'attempted' | 'attemptMs'> {
  if (failed !== undefined && REFUSALS.includes(failed.outcome)) {
    return { upstream, attempts: 0, attempted: null, attemptMs: null }
  }
  const outcome = failed?.outcome ?? 'ok'
  const last = `${upstream ?? ''}:${outcome}`
  if (failed !== undefined || random() % ONE_FALLS_BACK_IN > 0) {
    return { upstream, attempts: 1, attempted: last, attemptMs: [firstContentMs] }
  }
  const attempted = `${upstream ?? ''}:upstream_busy, openai:ok`
  return { upstream: 'openai', attempts: 2, attempted, attemptMs: [90, firstContentMs - 90] }
}

function rowOf(traffic: DemoTraffic, prices: Prices, random: RandomSource): LedgerEntry {
  const { accountId, apps, nowMs } = traffic
  const app = picked(
    apps,
    apps.map(({ share }) => share),
    random,
  )
  const served = picked(MODELS, [9, 8, 6, 4, 2], random)
  const { model, upstream, dialect } = served
  const hoursAgo = picked(
    DAILY.map((_, at) => at),
    sharesBefore(nowMs),
    random,
  )
  const atMs = Math.floor(nowMs - hoursAgo * HOUR_MS - below(random, HOUR_MS))
  const failed = random() % ONE_FAILS_IN === 0 ? FAILURES[random() % FAILURES.length] : undefined
  const [input, output] = [
    200 + below(random, 3_000),
    failed === undefined ? 40 + below(random, 700) : 0,
  ]
  const cacheRead = random() % 3 === 0 ? Math.floor(input * 0.6) : 0
  const usage = failed === undefined ? { input, output, cacheRead } : {}
  const price = upstream === null ? null : prices.find(upstream, model, null)
  const firstContent = 180 + below(random, 900)
  const durationMs = firstContent + output * 9
  return {
    requestId: newRequestId(atMs),
    ...{ atMs, durationMs, accountId, keyId: app.keyId },
    ...{ modelAsked: model, modelAnswered: failed === undefined ? model : null, model },
    ...{ dialect, stream: random() % 3 > 0, status: 200, outcome: 'ok' },
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
      relay: durationMs - firstContent,
      overhead: 0.7,
    },
    ...UNEXPLAINED,
    ...{ ingress: picked(FORMATS, FORMAT_SHARES, random), labels: app.labels, upstreamStatus: 200 },
    ...attemptsOf(served, { failed, firstContentMs: firstContent }, random),
    ...failed,
    ...(failed?.outcome === 'rate_limited' ? limitOf(app) : {}),
  }
}

function limitOf({ keyId }: DemoApp): Pick<LedgerEntry, 'limit' | 'retryAfterSeconds'> {
  return { limit: `key:${keyId};own requests_per_minute`, retryAfterSeconds: 12 }
}

/** The shares of the 24 hours before `nowMs`, the latest first. */
function sharesBefore(nowMs: number): number[] {
  const hour = new Date(nowMs).getUTCHours()
  return DAILY.map((_, hoursAgo) => DAILY[(hour - hoursAgo + 24) % 24] ?? 1)
}

function below(random: RandomSource, limit: number): number {
  return random() % limit
}

/** Picks an item with a probability proportional to its share. */
function picked<T>(items: readonly T[], shares: readonly number[], random: RandomSource): T {
  let left = below(
    random,
    shares.reduce((sum, share) => sum + share, 0),
  )
  for (const [at, item] of items.entries()) {
    left -= shares[at] ?? 0
    if (left < 0) return item
  }
  const [first] = items
  if (first === undefined) throw new RangeError('no items to pick from')
  return first
}
