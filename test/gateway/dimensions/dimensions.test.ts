/**
 * Goal: values of dimensions distinguish requests: in the ledger, in usage, and by limits that are
 * exact; replies tell what is left; a run can be ended on every gateway.
 * Method: whole gateways with the admin API over an emulator, on both stores.
 */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { isObject, stringOf, type JsonObject } from '../../../src/base/json.js'
import { onBothStores, startAdmin, type AdminStage } from '../../control/admin/admin-stage.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startGateway } from '../../helpers/gateway.js'
import { listen } from '../../helpers/listen.js'

const MODEL = 'gpt-5.4-mini'
const DIMENSIONS = `
dimensions:
  - { name: end_user, from: [header:x-end-user, body:user, body:metadata.user_id] }
  - { name: run, from: [header:x-run-id] }
  - { name: feature, from: [header:x-feature], max_values: 2 }
limits:
  - { scope: 'dimension:run', usd_total: 0.05, requests_total: 3 }
  - { scope: 'dimension:end_user', tokens_per_day: 5000 }
  - { scope: 'dimension:feature', model: gpt-4.1-nano, requests_total: 1 }
`

interface Asked {
  readonly model?: string
  readonly headers?: Record<string, string>
  readonly body?: object
}

async function ask(
  { gateway }: Pick<AdminStage, 'gateway'>,
  { model = MODEL, headers = {}, body = {} }: Asked,
): Promise<{ readonly status: number; readonly headers: Headers; readonly error: JsonObject }> {
  const messages = [{ role: 'user', content: 'Hi' }]
  const reply = await gateway.chat({ model, messages, max_completion_tokens: 50, ...body }, { headers })
  const json: unknown = await reply.json()
  const error = isObject(json) && isObject(json['error']) ? json['error'] : {}
  return { status: reply.status, headers: reply.headers, error }
}

async function accountOf({ store }: AdminStage): Promise<string> {
  const page = await store.listAccounts({ order: 'newest_first', after: null, limit: 10 })
  return page.items[0]?.name ?? ''
}

onBothStores(t, 'the ledger and usage have the values', async (t, settings) => {
  const stage = await startAdmin(t, { ...settings, more: DIMENSIONS })
  const { gateway } = stage
  const python = { 'user-agent': 'OpenAI/Python 2.1.0' }
  await ask(stage, { headers: { ...python, 'x-run-id': 'r 1', 'x-end-user': 'ada' }, body: { user: 'bob' } })
  await ask(stage, { headers: { 'user-agent': 'claude-cli/2.1 (external)' }, body: { user: 'bob' } })
  await ask(stage, { headers: { 'user-agent': 'curl/8' }, body: { metadata: { user_id: 'cy' } } })
  const rows = await rowsOf(gateway)
  t.same(
    rows.slice(-3).map(({ dimensions, program, user }) => [dimensions, program, user]),
    [
      ['end_user=ada run=r%201', 'openai-sdk', null],
      ['end_user=bob', 'claude-code', null],
      ['end_user=cy', 'other', null],
    ],
  )
  const usage = async (by: string, more = ''): Promise<JsonObject> => {
    const { json } = await stage.ask('GET', `/usage?by=${by}${more}`)
    const found = Array.isArray(json['rows']) ? json['rows'].filter(isObject) : []
    return Object.fromEntries(found.map((row) => [stringOf(row['group']) ?? '', row['requests'] ?? null]))
  }
  t.same(await usage('program'), { 'openai-sdk': 1, 'claude-code': 1, other: 1 })
  t.same(await usage('dimension:end_user'), { ada: 1, bob: 1, cy: 1 })
  t.same(await usage('dimension:run'), { 'r 1': 1, '(none)': 2 })
  t.same(await usage('user'), { '(none)': 3 })
  t.same(await usage('program', '&dimension=end_user%3Dbob'), { 'claude-code': 1 })
  const found = await stage.ask('GET', '/requests?dimension=run%3Dr%201')
  t.match(found.json, { items: [{ dimensions: 'end_user=ada run=r%201', program: 'openai-sdk' }] })
  t.equal((found.json['items'] as JsonObject[]).length, 1)
  const csv = await stage.ask('GET', '/requests?format=csv')
  t.match(csv.text.split('\r\n')[0], /,recorded,dimensions,program,user,units,batch$/)
})

onBothStores(t, 'a run has a budget that it can read', async (t, settings) => {
  const stage = await startAdmin(t, { ...settings, more: DIMENSIONS })
  const of = (run: string): Asked => ({ headers: { 'x-run-id': run } })
  const first = await ask(stage, of('one'))
  t.equal(first.status, 200)
  const usd = Number(first.headers.get('x-sluice-remaining-run-usd'))
  t.ok(usd > 0.04 && usd < 0.05, `${usd} dollars are left`)
  t.equal(first.headers.get('x-sluice-remaining-run-requests'), '2')
  t.equal((await ask(stage, of('one'))).headers.get('x-sluice-remaining-run-requests'), '1')
  const large = await ask(stage, { ...of('one'), body: { max_completion_tokens: 90_000 } })
  t.match(large, { status: 402, error: { kind: 'budget_exceeded' } })
  t.match(large.error['message'], "for the run 'one' is too small")
  t.equal(large.headers.get('x-should-retry'), 'false')
  t.equal((await ask(stage, of('one'))).status, 200, 'a refusal takes nothing')
  const last = await ask(stage, of('one'))
  t.match(last, { status: 429, error: { kind: 'rate_limited' } })
  t.match(last.error['message'], "The limit of 3 requests in all for the run 'one' is reached")
  t.equal(last.headers.get('retry-after'), null)
  t.equal(last.headers.get('x-should-retry'), 'false')
  const [refused] = (await rowsOf(stage.gateway)).slice(-1)
  t.equal(refused?.limit, 'dimension:run=one requests_total')
  const other = await ask(stage, of('two'))
  t.equal(other.headers.get('x-sluice-remaining-run-requests'), '2', 'another run has its own')
  const user = await ask(stage, { headers: { 'x-end-user': 'ada' } })
  t.ok(Number(user.headers.get('x-sluice-remaining-end_user-tokens')) > 4_500)
  t.equal((await ask(stage, {})).headers.get('x-sluice-remaining-run-usd'), null)
})

onBothStores(t, 'values beyond the maximum count together', async (t, settings) => {
  const stage = await startAdmin(t, { ...settings, more: DIMENSIONS })
  const of = (feature: string): Asked => ({ model: 'gpt-4.1-nano', headers: { 'x-feature': feature } })
  t.equal((await ask(stage, of('a'))).status, 200)
  t.equal((await ask(stage, of('b'))).status, 200)
  t.equal((await ask(stage, of('c'))).status, 200)
  t.equal((await ask(stage, of('d'))).status, 429, 'the limit of `other`')
  t.equal((await ask(stage, of('a'))).status, 429)
  const rows = await rowsOf(stage.gateway)
  t.same(
    rows.slice(-5).map(({ dimensions }) => dimensions),
    ['feature=a', 'feature=b', 'feature=other', 'feature=other', 'feature=a'],
  )
})

void t.test('values that are missing or not valid', async (t) => {
  const more = 'dimensions: [{ name: run, from: [header:x-run-id, body:metadata.run], required: true }]'
  const stage = { gateway: await startGateway(t, { more }) }
  const missing = await ask(stage, {})
  t.match(missing, { status: 400, error: { kind: 'dimension_required', type: 'invalid_request_error' } })
  t.match(missing.error['message'], /'run': send it as header:x-run-id or body:metadata\.run/)
  const wrong: Asked[] = [
    { headers: { 'x-run-id': 'r'.repeat(129) } },
    { body: { metadata: { run: 'a\nb' } } },
    { body: { metadata: { run: 'é'.repeat(129) } } },
  ]
  for (const each of wrong) {
    t.match(await ask(stage, each), { status: 400, error: { kind: 'invalid_dimension' } })
  }
  for (const right of ['r'.repeat(128), '17', 'a b=c%']) {
    t.equal((await ask(stage, { headers: { 'x-run-id': right } })).status, 200)
  }
  t.equal((await ask(stage, { body: { metadata: { run: '17' } } })).status, 200)
  const anthropic = await fetch(`${stage.gateway.origin}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': stage.gateway.secret, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  t.equal(anthropic.status, 400)
  t.match(await anthropic.json(), { type: 'error', error: { type: 'invalid_request_error' } })
})

void t.test('native requests have values in headers and in JSON bodies', async (t) => {
  const sent: string[] = []
  const provider = createServer((req, res) => {
    void text(req).then((body) => {
      sent.push(body)
      res.end('{}')
    })
  })
  const port = await listen(t, provider)
  const gateway = await startGateway(t, {
    upstreams: { openai: `http://127.0.0.1:${port}/v1, native: ['POST /v1/*']` },
    more: `
dimensions: [{ name: run, from: [header:x-run-id, body:metadata.run], required: true }]
limits: [{ scope: 'dimension:run', requests_total: 1 }]
`,
  })
  const post = async (body: string, headers: Record<string, string> = {}): Promise<number> => {
    const reply = await fetch(`${gateway.origin}/native/openai/v1/videos`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
        ...headers,
      },
      body,
    })
    await reply.text()
    return reply.status
  }
  const first = '{ "prompt": "a cat",  "metadata": { "run": "n-1" } }'
  t.equal(await post(first), 200)
  t.same(sent, [first], 'the bytes are those of the client')
  t.equal(await post(first), 429, 'its limit')
  t.equal(await post('{"metadata":{"run":"n-2"}}'), 200, 'another value')
  t.equal(await post('{}', { 'x-run-id': 'n-3' }), 200)
  t.equal(await post('{}'), 400, 'none')
  t.equal(await post('{"metadata":{"run":"n-4"}}', { 'content-type': 'text/plain' }), 400, 'no JSON')
  t.equal(await post('[1]', { 'x-run-id': 'n-5' }), 200, 'a body without members')
  t.same(
    (await rowsOf(gateway)).map(({ dimensions }) => dimensions),
    ['run=n-1', 'run=n-1', 'run=n-2', 'run=n-3', null, null, 'run=n-5'],
  )
})

/** What arrives until the connection is closed. */
async function received({ body }: Response): Promise<string> {
  let text = ''
  try {
    for await (const chunk of body ?? []) text += Buffer.from(chunk as Uint8Array).toString()
  } catch {
    // An error event ends the connection.
  }
  return text
}

async function stream(
  t: Test,
  stage: Pick<AdminStage, 'gateway'>,
  run: string,
): Promise<{ readonly text: Promise<string> }> {
  const messages = [{ role: 'user', content: 'Hi' }]
  const reply = await stage.gateway.chat(
    { model: MODEL, messages, stream: true, max_completion_tokens: 50 },
    { headers: { 'x-run-id': run } },
  )
  t.equal(reply.status, 200)
  return { text: received(reply) }
}

onBothStores(t, 'an ended run is cut on every gateway', async (t, settings) => {
  const first = await startAdmin(t, { ...settings, more: DIMENSIONS })
  const { gateway, store } = first
  const more = `${DIMENSIONS}\nadmin_api: { enabled: true }`
  const second = await startGateway(t, { more, store: gateway.store, hasAccount: true })
  const account = await accountOf(first)
  t.equal((await first.ask('GET', `/runs/r-1?account=${account}`)).status, 404, 'it is unused')
  gateway.emulator.script({ fault: { kind: 'stall', event: 3 } })
  const { text } = await stream(t, first, 'r-1')
  const live = await first.ask('GET', `/runs/r-1?account=${account}`)
  t.match(live.json, { account, run: 'r-1', state: 'live', requests: 1, ended_at: null })
  const beganMs = performance.now()
  const ended = await fetch(`${second.origin}/admin/v1/runs/r-1?account=${account}&reason=it%20loops`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${first.token}` },
  })
  t.equal(ended.status, 200)
  t.match(await ended.json(), { state: 'ended', ended_at: /^20/ })
  const cut = await text
  t.ok(performance.now() - beganMs < 5_000)
  t.match(cut, /run_ended|was ended/)
  t.notMatch(cut, '[DONE]')
  t.match(await ask(first, { headers: { 'x-run-id': 'r-1' } }), { status: 403, error: { kind: 'run_ended' } })
  t.equal((await first.ask('DELETE', `/runs/r-1?account=${account}`)).status, 200, 'again')
  const after = await first.ask('GET', `/runs/r-1?account=${account}`)
  t.match(after.json, {
    state: 'ended',
    requests: 1,
    limits: [
      { limit: 'dimension:run=r-1 usd_total', amount: 0.05 },
      { limit: 'dimension:run=r-1 requests_total', amount: 3, used: 1, remaining: 2 },
    ],
  })
  const outcomes = async (): Promise<string[]> => (await rowsOf(gateway)).map(({ outcome }) => outcome)
  for (let tries = 0; tries < 200 && !(await outcomes()).includes('run_ended'); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  t.equal((await outcomes()).filter((outcome) => outcome === 'run_ended').length >= 1, true)
  const trail = await store.auditTrail.page({ accountId: null, after: null, limit: 20 })
  const ends = trail.filter(({ action }) => action === 'run.end')
  t.equal(ends.length, 1)
  t.match(ends[0], { target: 'r-1', reason: 'it loops' })
  t.equal((await first.ask('DELETE', `/runs/r-2?account=${account}`)).status, 404)
  const advance = await first.ask('PUT', `/runs/r-2?account=${account}`, { body: { ended: true } })
  t.match(advance, { status: 200, json: { state: 'ended', requests: 0 } })
  t.equal((await ask(first, { headers: { 'x-run-id': 'r-2' } })).status, 403, 'ended in advance')
  t.equal((await first.ask('PUT', `/runs/r-3?account=${account}`, { body: { ended: false } })).status, 400)
  for (const run of ['shop/main #4', 'a%2Fb', 'é&?']) {
    const path = `/runs/${encodeURIComponent(run)}?account=${account}`
    const odd = await first.ask('PUT', path, { body: { ended: true } })
    t.match(odd, { status: 200, json: { run, state: 'ended' } }, 'a run may have any name')
  }
})

void t.test('without the dimension there are no runs', async (t) => {
  const stage = await startAdmin(t, {})
  t.match(await stage.ask('GET', '/runs/r-1?account=any'), { status: 404 })
})
