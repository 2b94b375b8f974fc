/**
 * Goal: the page shows what a run has used and what is left of its limits, finds its requests, and ends it
 * with a reason in the audit trail; only those who set limits may end it.
 * Method: requests of runs through gateways on both stores, read and ended by several roles.
 */
import t from 'tap'
import { ensureUser, setMember } from '../../../../src/accounts/members.js'
import { requestsReply, runReply, usageReply } from '../../../../src/control/dashboard/schema/schema.js'
import { onBothStores } from '../../admin/admin-stage.js'
import { startStage } from '../../../dashboard/fixtures/stage.js'
import { createKey } from '../../../helpers/keys.js'
import { rowsOf } from '../../../helpers/ledger.js'

const MORE = `
dimensions: [{ name: run, from: [header:x-run-id] }]
limits: [{ scope: 'dimension:run', usd_total: 0.05, requests_total: 4 }]
`

onBothStores(t, 'a run in the page', async (t, settings) => {
  const stage = await startStage(t, { ...settings, more: MORE })
  const { gateway, store } = stage
  const owner = await stage.signedIn('ada@example.com', 'max')
  const member = await stage.signedIn('bob@example.com', 'max')
  const account = await store.accountByEmail('ada@example.com')
  if (account === null) throw new Error('no account')
  const { secret } = await createKey(store, { plans: gateway.plans, account, name: 'agent' })
  const ask = async (run: string): Promise<number> => {
    const reply = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'x-run-id': run },
        'user-agent': 'claude-cli/2.1 (external)',
      },
      body: JSON.stringify({
        ...{ model: 'gpt-5.4-mini', max_completion_tokens: 50 },
        messages: [{ role: 'user', content: 'Hi' }],
      }),
    })
    await reply.arrayBuffer()
    return reply.status
  }
  t.same([await ask('r 1/2'), await ask('r 1/2'), await ask('r-2')], [200, 200, 200])
  await rowsOf(gateway)
  const run = 'r 1/2'
  const path = `/run?run=${encodeURIComponent(run)}`
  const shown = runReply.parse((await owner.get(path)).json)
  t.match(shown, { account: account.name, run: 'r 1/2', state: 'live', requests: 2, mayEnd: true })
  t.match(shown.limits, [
    { limit: 'dimension:run=r%201%2F2 usd_total' },
    { amount: 4, used: 2, remaining: 2 },
  ])
  t.ok(shown.costNanoUsd > 0 && shown.firstAtMs !== null && shown.endedAtMs === null)
  t.equal((await owner.get('/run?run=unknown')).status, 404)

  const dimension = encodeURIComponent('run=r 1/2')
  const { rows } = requestsReply.parse((await owner.get(`/requests?dimension=${dimension}`)).json)
  t.same(
    rows.map(({ dimensions, program }) => [dimensions, program]),
    [
      ['run=r%201%2F2', 'claude-code'],
      ['run=r%201%2F2', 'claude-code'],
    ],
  )
  t.equal(requestsReply.parse((await owner.get('/requests?program=codex')).json).rows.length, 0)
  t.equal((await owner.get('/requests?dimension=x')).status, 400)
  const usage = usageReply.parse((await owner.get('/usage?range=1h&group=dimension:run')).json)
  t.same(usage.dimensions, ['run'])
  t.same(usage.groups.map(({ id, total, points }) => [id, total.requests, points.length > 0]).sort(), [
    ['r 1/2', 2, true],
    ['r-2', 1, true],
  ])
  const programs = usageReply.parse((await owner.get('/usage?range=1h&group=program')).json)
  t.match(programs.groups, [{ id: 'claude-code', total: { requests: 3 } }])

  const { user } = await ensureUser(store, { email: 'bob@example.com' })
  await setMember(store, { account, user, role: 'member', nowMs: Date.now(), audit: () => [] })
  const ofAda = `${path}&account=${account.name}`
  t.match((await member.get(ofAda)).json, { run: 'r 1/2', mayEnd: false })
  const refused = await member.ask('POST', `/run/end?account=${account.name}`, { body: { run } })
  t.match([refused.status, refused.error['kind']], [403, 'forbidden'])
  const ended = await owner.ask('POST', '/run/end', { body: { run, reason: 'it loops' } })
  t.match([ended.status, ended.json], [200, { state: 'ended', endedAtMs: Number }])
  t.equal(await ask('r 1/2'), 403)
  t.equal((await owner.ask('POST', '/run/end', { body: { run } })).status, 200, 'again')
  const trail = await store.auditTrail.page({ accountId: account.id, after: null, limit: 100 })
  t.match(
    trail.filter(({ action }) => action === 'run.end'),
    [{ actor: 'ada@example.com', target: 'r 1/2', reason: 'it loops', after: { state: 'ended' } }],
  )
})
