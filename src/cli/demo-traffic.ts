/**
 * Sample traffic for the demo: ledger entries of the last 65 days, fewer on Saturdays and Sundays, so that
 * every page of the dashboard has data. Times of day, models and failures are the same in each demo; no
 * request is sent to an upstream.
 */
import { DAY_MS, HOUR_MS } from '../base/time-units.js'
import { changeKey } from '../accounts/changes/change-keys.js'
import { BUILT_IN_PLANS } from '../accounts/plans.js'
import { shownAmounts } from '../config/schema/limits-schema.js'
import { GatewayError } from '../errors.js'
import type { Catalogue } from '../config/config.js'
import { seededRandom, type RandomSource } from '../emulator/seeded-random.js'
import { newRequestId } from '../http/request-id.js'
import { costNanoUsd } from '../ledger/price.js'
import { Prices } from '../ledger/find-price.js'
import { UNEXPLAINED, type LedgerEntry } from '../ledger/entry.js'
import type { KeyLimits } from '../accounts/account.js'
import { dayOf } from '../store/limit-arithmetic.js'
import type { Ledger } from '../store/ledger.js'
import type { Store } from '../store/store.js'

/** An application of the demo: its account and key, and its share of the requests. */
export interface DemoApp {
  readonly accountId: string
  /** The names of the accounts from the top of the tree to this one. */
  readonly accountPath: string
  readonly keyId: string
  /** The labels of the key, as in a ledger entry. */
  readonly labels: string
  readonly share: number
  /** The only model that it requests; absent: several. */
  readonly model?: string
}

/** The applications of the traffic, and the prices. */
interface DemoTraffic {
  readonly apps: readonly DemoApp[]
  readonly catalogue: Catalogue
  readonly nowMs: number
  /** Requests that the demo itself sends today: with them, today has no more than other days. */
  readonly sentToday: number
}

/** Requests of 24 hours, plus up to a fifth. */
const WORKING_DAY = 100
const WEEKEND_DAY = 45
/** Whole weeks, so that the last month and the period before the last 30 days have data, too. */
const DAYS = 65
/** Older days have fewer requests, as of a team that grows. */
const OLD_DAYS = 35
const OLD_SHARE = 0.85
/** Requests in each hour of the day (UTC), as shares. */
const DAILY = [2, 1, 1, 1, 1, 2, 3, 5, 8, 10, 11, 11, 9, 10, 11, 10, 9, 7, 5, 4, 3, 3, 2, 2]

interface Served extends Pick<LedgerEntry, 'upstream' | 'dialect'> {
  readonly model: string
  /** The virtual model that the client requests; absent: the model itself. */
  readonly asked?: string
  /** The target that failed before this one. */
  readonly failedBefore?: string
}
const MODELS: readonly Served[] = [
  { model: 'claude-sonnet-5-5', upstream: 'anthropic', dialect: 'anthropic' },
  { model: 'gpt-5.4-mini', upstream: 'openai', dialect: 'openai-chat' },
  { model: 'gemini-3.5-flash', upstream: 'google', dialect: 'gemini' },
  { model: 'claude-haiku-4-5', upstream: 'anthropic', dialect: 'anthropic' },
  { model: 'gpt-5.4', upstream: 'openai', dialect: 'openai-responses' },
  {
    ...{ model: 'gpt-5.4-mini', asked: 'resilient', failedBefore: 'unreliable' },
    ...{ upstream: 'openai', dialect: 'openai-chat' },
  },
]
const SHARES = [9, 8, 6, 4, 2, 2]

type Failure = Pick<LedgerEntry, 'status' | 'outcome' | 'errorMessage' | 'upstreamStatus'> &
  Partial<Pick<LedgerEntry, 'modelAsked' | 'model' | 'upstream' | 'dialect'>>
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
    status: 200,
    outcome: 'upstream_truncated',
    errorMessage: "The upstream's reply ended before it was complete.",
    upstreamStatus: 200,
  },
  {
    ...{ status: 404, outcome: 'unknown_model', upstreamStatus: null },
    errorMessage:
      "The model 'no-such-model' is not available: GET /v1/models lists the models of this gateway.",
    ...{ modelAsked: 'no-such-model', model: 'other', upstream: null, dialect: null },
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
/** Some days have more failures, as today has, when the demo sends requests that fail. */
const ONE_DAY_IS_BAD_IN = 9
const ONE_FAILS_IN_THEN = 7
const ONE_FALLS_BACK_IN = 40
/** The client formats, as shares. */
const FORMATS = ['chat', 'responses', 'messages', 'gemini'] as const
const FORMAT_SHARES = [6, 2, 3, 1]
/** Failures before a request is sent to an upstream. */
const REFUSALS: readonly LedgerEntry['outcome'][] = ['rate_limited', 'malformed_request', 'unknown_model']

/** Writes the entries and returns them. Rejects with `GatewayError` if the store fails. */
export async function writeDemoTraffic(
  ledger: Ledger,
  traffic: DemoTraffic,
): Promise<readonly LedgerEntry[]> {
  const random = seededRandom(7)
  const prices = new Prices(traffic.catalogue.models, [], traffic.nowMs)
  const times = timesOf(traffic, random)
  const rows = times.map((atMs) => rowOf({ ...traffic, atMs }, prices, random))
  await Promise.all(rows.map((row) => ledger.settle(row)))
  return rows
}

const CENT_NANO_USD = 10_000_000

/** The actor of entries of the audit trail about sample data. */
export const SAMPLE_DATA = 'sample data'

/** A key whose budget of today is used up to a share. */
interface SpentBudget {
  readonly key: Pick<DemoApp, 'accountId' | 'keyId'>
  readonly share: number
  readonly limits?: KeyLimits
}

/** Gives a key limits and a budget for the day, of which its requests of today have used a share. */
export async function limitDemoKey(
  store: Store,
  { key: { accountId, keyId }, share, limits = {} }: SpentBudget,
  rows: readonly LedgerEntry[],
): Promise<void> {
  const day = dayOf(Date.now())
  const used = rows
    .filter((row) => row.keyId === keyId && dayOf(row.atMs) === day)
    .reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  const cents = Math.max(1, (share < 1 ? Math.ceil : Math.floor)(used / share / CENT_NANO_USD))
  const nanoUsdPerDay = cents * CENT_NANO_USD
  // Shortly after midnight UTC there are too few requests for a whole cent.
  const nanoUsd = share < 1 ? used : Math.max(used, nanoUsdPerDay)
  const account = await store.accountById(accountId)
  if (account === null) throw new GatewayError('bug', 'an account of the demo is missing')
  const settings = { limits: shownAmounts({ ...limits, nanoUsdPerDay }) }
  const actor = { actor: SAMPLE_DATA, address: null }
  const changing = { store, plans: BUILT_IN_PLANS, nowMs: Date.now(), actor }
  await changeKey(changing, account, { key: { accountId, id: keyId }, settings, replacesMaps: true })
  const subject = `key:${keyId};own`
  await store.ledger.putBudgets([{ accountId, kind: 'usd_day', subject, period: day, amount: nanoUsd }])
}

interface DemoReply {
  /** Undefined if the request succeeded. */
  readonly failed: Failure | undefined
  readonly firstContentMs: number
}

/** The times of the requests: each day by its hours. */
function timesOf({ nowMs, sentToday }: DemoTraffic, random: RandomSource): number[] {
  const hours = DAILY.map((_, at) => at)
  const shares = sharesBefore(nowMs)
  return Array.from({ length: DAYS }, (_, daysAgo) => {
    const endMs = nowMs - daysAgo * DAY_MS
    const isWeekend = [0, 6].includes(new Date(endMs).getUTCDay())
    const share = daysAgo < OLD_DAYS ? 1 : OLD_SHARE
    const usual = Math.round((isWeekend ? WEEKEND_DAY : WORKING_DAY) * share)
    const count = usual + below(random, usual / 5) - (daysAgo === 0 ? sentToday : 0)
    return Array.from({ length: count }, () => {
      return Math.floor(endMs - picked(hours, shares, random) * HOUR_MS - below(random, HOUR_MS))
    })
  }).flat()
}

/** The attempts of an entry. */
function attemptsOf(
  { upstream, failedBefore }: Served,
  { failed, firstContentMs }: DemoReply,
  random: RandomSource,
): Pick<LedgerEntry, 'upstream' | 'attempts' | 'attempted' | 'attemptMs'> {
  if (failed !== undefined && REFUSALS.includes(failed.outcome)) {
    return { upstream, attempts: 0, attempted: null, attemptMs: null }
  }
  const outcome = failed?.outcome ?? 'ok'
  const last = `${upstream ?? ''}:${outcome}`
  if (failedBefore !== undefined) {
    const attempted = `${failedBefore}:upstream_failed, ${last}`
    return { upstream, attempts: 2, attempted, attemptMs: [60, firstContentMs - 60] }
  }
  if (failed !== undefined || random() % ONE_FALLS_BACK_IN > 0) {
    return { upstream, attempts: 1, attempted: last, attemptMs: [firstContentMs] }
  }
  const attempted = `${upstream ?? ''}:upstream_busy, openai:ok`
  return { upstream: 'openai', attempts: 2, attempted, attemptMs: [90, firstContentMs - 90] }
}

function rowOf(
  traffic: DemoTraffic & { readonly atMs: number },
  prices: Prices,
  random: RandomSource,
): LedgerEntry {
  const { apps, atMs, nowMs } = traffic
  const app = picked(
    apps,
    apps.map(({ share }) => share),
    random,
  )
  const served = servedFor(app, random)
  const { model, upstream, dialect, asked = model } = served
  const isBad = Math.floor((nowMs - atMs) / DAY_MS) % ONE_DAY_IS_BAD_IN === ONE_DAY_IS_BAD_IN - 1
  const failed =
    random() % (isBad ? ONE_FAILS_IN_THEN : ONE_FAILS_IN) === 0
      ? FAILURES[random() % FAILURES.length]
      : undefined
  const [input, output] = [200 + below(random, 3_000), failed === undefined ? 40 + below(random, 700) : 0]
  const cacheRead = random() % 3 === 0 ? Math.floor(input * 0.6) : 0
  const usage = failed === undefined ? { input, output, cacheRead } : {}
  const price = upstream === null ? null : prices.find(upstream, model, null)
  const firstContent = 180 + below(random, 900)
  const durationMs = firstContent + output * 9
  return {
    requestId: newRequestId(atMs),
    ...{ atMs, durationMs, accountId: app.accountId, keyId: app.keyId },
    ...{ modelAsked: asked, modelAnswered: failed === undefined ? model : null, model },
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
    accountPath: app.accountPath,
    ...attemptsOf(served, { failed, firstContentMs: firstContent }, random),
    ...failed,
    ...(failed?.outcome === 'rate_limited' ? limitOf(app) : {}),
  }
}

function servedFor({ model }: DemoApp, random: RandomSource): Served {
  if (model !== undefined) return { model, upstream: 'openai', dialect: 'openai-chat' }
  return picked(MODELS, SHARES, random)
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
