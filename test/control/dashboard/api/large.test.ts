/**
 * Goal: with 10,000 keys and a million entries, the dashboard replies to every request within 300 ms.
 * Method: an embedded store of that size, and every GET of the API with the ranges, groups and filters that
 * pages use. The suite uses a small store, where the fastest of several repeats must be within the limit, so
 * that a busy machine does not fail the test. This command uses the whole store and prints the median of five
 * repeats and the slowest requests:
 *
 *     SLUICE_LONG=1 TAP_TIMEOUT=3600 node build/test/control/dashboard/api/large.test.js
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { dashboardRoutes } from '../../../../src/control/dashboard/routing/routes.js'
import type { Services } from '../../../../src/control/services.js'
import { openStore } from '../../../../src/store/open-store.js'
import { prepare, run, until } from '../../../process/program.js'
import { Browser } from '../../../dashboard/fixtures/stage.js'
import { fillStore, LOGIN } from '../../../dashboard/fixtures/large-store.js'
import { IS_LONG, ofToday } from '../../../helpers/long-suite.js'

const KEYS = Number(process.env['SLUICE_KEYS'] ?? (IS_LONG ? 10_000 : 500))
const ROWS = Number(process.env['SLUICE_ROWS'] ?? (IS_LONG ? 1_000_000 : 5_000))
const IS_WHOLE = ROWS >= 1_000_000
const LIMIT_MS = IS_WHOLE ? 300 : 1_000
/** Repeats of a request: exactly this many with the whole store, at most this many with the small one. */
const REPEATS = IS_WHOLE ? 5 : 20
const SLOWEST = 20
/** Each day has one of these parts of the combinations; no length of a list shares a factor with it. */
const COMBINED_PARTS = 7
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Sums over time: every range and grouping of the pages. */
function usagePaths(nowMs: number, keyId: string): string[] {
  const usage = (by: 'hour' | 'day', hours: number): string => {
    const stepMs = by === 'hour' ? HOUR_MS : DAY_MS
    const toMs = (Math.floor(nowMs / stepMs) + 1) * stepMs
    return `/usage?by=${by}&fromMs=${toMs - hours * HOUR_MS}&toMs=${toMs}`
  }
  const ranges = [
    ...[1, 24, 7 * 24, 31 * 24].map((hours) => usage('hour', hours)),
    ...[1, 7, 30, 90].map((days) => usage('day', days * 24)),
  ]
  const groups = ['', '&group=model', '&group=key', '&group=key&model=gpt-5.4', `&keyId=${keyId}`]
  return ranges.flatMap((range) => groups.flatMap((group) => [range + group, `${range}${group}&account=all`]))
}

/** Pages of entries: each filter, with ranges of time and pages far back. */
function entryPaths(nowMs: number, keyId: string, requestId: string): string[] {
  const filters = [
    ...['', 'outcome=failed', 'outcome=ok', 'cause=provider', 'status=200', 'status=429'],
    ...['upstream=openai', 'upstream=nothing', 'modelAsked=nothing', 'model=gpt-5.4'],
    ...[`keyId=${keyId}`, `keyId=${keyId}&status=502`, 'clientFormat=messages', 'label=team=web'],
    ...['clientRequestId=nothing', 'anyId=nothing', `requestId=${requestId}`, 'deprecated=true'],
  ]
  const places = [
    ...['', `&fromMs=${nowMs - DAY_MS}`, `&toMs=${nowMs - 20 * DAY_MS}`],
    `&after=${nowMs - 25 * DAY_MS}_request_5`,
  ]
  return filters.flatMap((filter) =>
    places.flatMap((place) => {
      const path = `/requests?limit=50&${filter}${place}`.replace('&&', '&')
      return [path, `${path}&account=all`]
    }),
  )
}

const MONTH = new Date().toISOString().slice(0, 7)
/** Whole files have no time limit, no request was recorded, and no program or run is known. */
const UNTIMED = [
  '/device/{id}',
  '/run',
  '/batches/{id}',
  '/requests.csv',
  '/usage.csv',
  '/audit.csv',
  '/recordings/{id}',
]

/** All groups of a month, by each column in both directions; `large-lists` sorts keys and accounts. */
function groupPaths(nowMs: number): string[] {
  const groups = ['model', 'key', 'account', 'parent', 'member', 'upstream', 'client_format']
  const columns = ['name', 'requests', 'failed', 'inputTokens', 'outputTokens', 'cost']
  const month = `fromMs=${nowMs - 30 * DAY_MS}&toMs=${nowMs}&account=all`
  return [...groups, 'label:team'].flatMap((group) =>
    columns.flatMap((column) => {
      const path = `/usage/groups?group=${group}&${month}&sort=`
      return [path + column, `${path}-${column}`]
    }),
  )
}

/** Every other GET of the API. */
function otherPaths(requestId: string, keyId: string): string[] {
  return [
    ...['/models/deprecated', '/models/deprecated?account=all', '/account', `/keys/${keyId}`],
    ...['/providers?hours=24', '/providers?hours=720'],
    ...['/search?q=request_7', '/search?q=team', '/views'],
    ...['/session', '/plans', '/limits', '/live', '/live?account=all', '/models'],
    ...['/keys?limit=200', '/keys?limit=200&state=all', '/keys?limit=200&search=77'],
    ...[`/requests/${requestId}`, '/models/explain?model=gpt-5.4', '/operations', '/providers'],
    ...['/configuration', '/configuration/1', '/accounts', '/accounts?search=team-7'],
    ...['/account-tree', '/accounts/team-1', '/users', '/budgets', '/budgets?account=all', '/incidents'],
    ...['/checklist', '/checklist?account=all', '/own-usage', '/batches', '/batches?account=all'],
    ...[`/keys/${keyId}/clients?url=http%3A%2F%2Flocalhost`],
    ...['/incidents?history=true', '/failures?fromMs=0', '/failures?fromMs=0&account=all'],
    ...['/audit', '/audit?account=all', '/members', '/recordings', `/statements/${MONTH}`],
  ]
}

void t.test('every page of a large store', { timeout: 3_600_000 }, async (t) => {
  const { file, folder } = await prepare(t)
  const nowMs = Date.now()
  const store = await openStore(`sqlite:${join(folder, 'data', 'sluice.db')}`)
  const amount = { keys: KEYS, rows: ROWS, accounts: IS_WHOLE ? 1_000 : 50 }
  const keyId = await fillStore(store, amount, nowMs)
  await store.close()
  const program = run(t, ['serve', '--config', file])
  const port = (): unknown => program.lines().find(({ msg }) => msg === 'sluice serves')?.['port']
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`it ended: ${program.err()}`)
    return port() !== undefined
  }, 60_000)
  const browser = new Browser(`http://127.0.0.1:${String(port())}`)
  t.equal((await browser.signIn(LOGIN.email, LOGIN.password)).status, 200)
  const combined = [
    ...groupPaths(nowMs),
    ...usagePaths(nowMs, keyId),
    ...entryPaths(nowMs, keyId, 'request_7'),
  ]
  const paths = [...otherPaths('request_7', keyId), ...ofToday(combined, COMBINED_PARTS)]
  const routes = new Set(
    paths.map((path) =>
      path
        .replace(`/keys/${keyId}`, '/keys/{id}')
        .replace(/\/(?:request_7|team-1|1|\d{4}-\d\d)(?=\?|$)/, '/{id}')
        .replace(/\?.*/, ''),
    ),
  )
  for (const { method, path } of dashboardRoutes({} as Services)) {
    if (method === 'GET' && !UNTIMED.includes(path)) t.ok(routes.has(path), `${path} is tested`)
  }
  const measured: { readonly ms: number; readonly path: string }[] = []
  for (const path of paths) measured.push({ path, ms: await timeOf(t, browser, path) })
  for (const { path, ms } of measured) if (ms > LIMIT_MS) t.fail(`${Math.round(ms)} ms ${path}`)
  if (!IS_WHOLE) return
  for (const { path, ms } of measured.sort((a, b) => b.ms - a.ms).slice(0, SLOWEST)) {
    t.comment(`FIGURES ${Math.round(ms)} ms ${path.replace(/=\d{13}/g, '=…')}`)
  }
})

/** The median with the whole store; with the small one, the first time within the limit, or the shortest. */
async function timeOf(t: Test, browser: Browser, path: string): Promise<number> {
  const times: number[] = []
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    const began = performance.now()
    const { status } = await browser.get(path)
    const ms = performance.now() - began
    if (status !== 200) t.fail(`${path} answered ${status}`)
    if (!IS_WHOLE && ms <= LIMIT_MS) return ms
    times.push(ms)
  }
  times.sort((a, b) => a - b)
  return times[IS_WHOLE ? REPEATS >> 1 : 0] ?? 0
}
