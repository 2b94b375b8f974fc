/**
 * Goal: the log line of a failed request is sufficient to find its cause and the responsible side.
 * Method: ten failures on a gateway with the emulator; only the log line of each is read.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { lineOf, openFailureScene, TEN_FAILURES } from './ten-failures.js'

/** The fields of the line that a reader needs besides outcome and cause. */
const CAUSES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'A rate limit of the gateway': { status: 429, limit: /^key:\S+ requests_per_minute$/ },
  'A budget that does not cover the request': { status: 402, limit: /^key:\S+ usd_per_day$/ },
  'A model without a route': { status: 404, param: 'model', model: 'other' },
  'The provider limits the gateway (429)': {
    status: 429,
    upstream: 'openai',
    upstream_status: 429,
    attempted: /openai:upstream_busy/,
  },
  'The provider fails (500)': {
    status: 502,
    upstream: 'openai',
    upstream_status: 500,
    attempted: /openai:upstream_failed/,
  },
  'A stream that ends too early': {
    status: 200,
    upstream: 'openai',
    upstream_status: 200,
    end: 'truncated',
  },
  'The provider does not answer in time': {
    status: 504,
    upstream: 'openai',
    attempted: 'openai:upstream_timeout',
  },
  'The provider refuses the credential of the gateway': {
    status: 502,
    upstream: 'openai',
    upstream_status: 401,
  },
  "A field that the upstream's format cannot express": {
    status: 400,
    upstream: 'anthropic',
    param: 'messages[0]',
  },
  'A client that leaves': { status: 499, end: 'client_gone' },
}

void t.test('the log line of each of ten failures names its cause', async (t) => {
  const scene = await openFailureScene(t)
  for (const { name, outcome, cause, make } of TEN_FAILURES) {
    const id = await make(scene)
    const line = await lineOf(scene, id)
    const level = cause === 'client' || cause === 'limits' ? 'info' : 'warn'
    t.match(line, { request_id: id, outcome, cause, level, ...CAUSES[name] }, name)
    const secret = scene.gateway.secret
    t.notOk(JSON.stringify(line).includes(secret), `${name}: no key in the line`)
    t.notMatch(JSON.stringify(line), /Hi\.|\[\[/, `${name}: no prompt in the line`)
    if (process.env['SLUICE_SHOW_LINES'] !== undefined) t.comment(name, JSON.stringify(line))
  }
  t.equal(Object.keys(CAUSES).length, TEN_FAILURES.length)
})

const PAGE = 'docs/how-to/read-a-failure.md'
/**
 * The fields of a line that differ between runs; `***` replaces a part of ids that contain the emulator's
 * key.
 */
const RUN =
  /_ms$|^(?:time|pid|gateway|generation_hash|request_id|upstream_request_id|key_id|account_id|limit|bytes_out|chunks|attempts)$/

/** The log lines of the documentation page by their headings. */
function linesOfPage(): Map<string, Record<string, unknown>> {
  const lines = new Map<string, Record<string, unknown>>()
  for (const [, name = '', text = ''] of readFileSync(PAGE, 'utf8').matchAll(
    /^## (.+)\n\n(?:!\[[^\n]+\n\n)?```text\n(\{[^`]+\})\n```/gm,
  )) {
    lines.set(name, JSON.parse(text) as Record<string, unknown>)
  }
  return lines
}

void t.test('the how-to shows the lines as the gateway writes them', async (t) => {
  const scene = await openFailureScene(t)
  const shown = linesOfPage()
  t.same(
    [...shown.keys()],
    TEN_FAILURES.map(({ name }) => name),
  )
  for (const { name, make } of TEN_FAILURES) {
    const line = await lineOf(scene, await make(scene))
    const page = shown.get(name) ?? {}
    t.same(Object.keys(page), Object.keys(line), `${name}: the same fields`)
    const stable = (each: Record<string, unknown>): object =>
      Object.fromEntries(Object.entries(each).filter(([field]) => !RUN.test(field)))
    t.same(stable(page), stable(line), `${name}: the same values`)
  }
})
