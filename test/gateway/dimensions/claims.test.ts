/**
 * Goal: a claim of a token is the value of a dimension: it has limits, it is in the ledger, and no form of
 * a claim makes a request fail otherwise than with the error of the dimension.
 * Method: an identity provider with discovery and keys in this process, tokens signed with `jose`, and whole
 * gateways on both stores.
 */
import t, { type Test } from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { objectOf, stringOf } from '../../../src/base/json.js'
import { onBothStores, startAdmin, type AdminStage } from '../../control/admin/admin-stage.js'
import type { GatewaySettings } from '../../helpers/gateway.js'
import { newSigningKey, startIssuer, type Claims } from '../../helpers/issuer.js'
import { rowsOf } from '../../helpers/ledger.js'
import { IS_LONG } from '../../helpers/long-suite.js'

const VALUES = IS_LONG ? 10_000 : 240

interface Stage extends AdminStage {
  readonly send: (
    claims: Claims,
    headers?: Record<string, string>,
  ) => Promise<{ status: number; kind: string }>
}

async function start(t: Test, settings: GatewaySettings, dimension: string): Promise<Stage> {
  const issuer = await startIssuer(t)
  const key = await newSigningKey()
  issuer.keys = [key.jwk]
  const more = `identity: [{ name: provider, issuer: '${issuer.url}', audience: [sluice], account: agents }]
dimensions: [${dimension}]
limits: [{ scope: 'dimension:run', requests_total: 2 }]`
  const stage = await startAdmin(t, { ...settings, more })
  await createAccount(stage.store, {
    email: 'agents@example.com',
    plan: 'max',
    role: 'owner',
    password: null,
  })
  return {
    ...stage,
    async send(claims, headers = {}) {
      const token = await issuer.sign(key, issuer.claims(claims))
      const body = { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 20 }
      const init = { headers: { authorization: `Bearer ${token}`, ...headers } }
      const reply = await stage.gateway.chat(body, init)
      const kind = stringOf(objectOf(objectOf(await reply.json())['error'])['kind']) ?? ''
      return { status: reply.status, kind }
    },
  }
}

onBothStores(t, 'claims in every form', async (t, settings) => {
  const from = 'from: [claim:work.run, claim:https://example.com/run, header:x-run-id], required: true'
  const { send: ask, gateway } = await start(t, settings, `{ name: run, ${from} }`)
  const right: [Claims, string][] = [
    [{ work: { run: 'r-1' } }, 'run=r-1'],
    [{ work: { run: 17 } }, 'run=17'],
    [{ 'work.run': 'dotted' }, 'run=dotted'],
    [{ 'https://example.com/run': 'a b=c' }, 'run=a%20b%3Dc'],
    [{ work: { run: 'é'.repeat(128) } }, `run=${encodeURIComponent('é'.repeat(128))}`],
    [{ work: { run: '__proto__' } }, 'run=__proto__'],
  ]
  for (const [claims, dimensions] of right) {
    t.equal((await ask(claims)).status, 200, dimensions)
    t.equal((await rowsOf(gateway)).at(-1)?.dimensions, dimensions)
  }
  const missing: Claims[] = [
    {},
    { work: null },
    { work: 'run' },
    { work: { run: '' } },
    { work: { run: null } },
    { work: { run: true } },
    { work: { run: ['r-1'] } },
    { work: { run: { id: 'r-1' } } },
    { work: [{ run: 'r-1' }] },
  ]
  for (const claims of missing) {
    t.match(await ask(claims), { status: 400, kind: 'dimension_required' }, JSON.stringify(claims))
  }
  t.equal((await ask({ work: { run: ['x'] } }, { 'x-run-id': 'by-header' })).status, 200, 'the next place')
  for (const run of ['x'.repeat(129), 'x'.repeat(4_000), 'a\nb', 'a\u0000b', 'a\u202eb']) {
    t.match(await ask({ work: { run } }), { status: 400, kind: 'invalid_dimension' })
  }
  t.equal((await ask({ work: { run: 'r-1' } }, { 'x-run-id': 'other' })).status, 200, 'the claim is first')
  t.match(await ask({ work: { run: 'r-1' } }), { status: 429 }, 'the limit of the run, over all tokens')
})

t.setTimeout(900_000)
onBothStores(t, 'many values of a claim', async (t, settings) => {
  const stage = await start(t, settings, '{ name: run, from: [claim:run], max_values: 200 }')
  const statuses = new Map<number, number>()
  const work = Array.from({ length: VALUES }, (_, at) => at)
  const next = async (): Promise<void> => {
    for (let at = work.shift(); at !== undefined; at = work.shift()) {
      const { status } = await stage.send({ run: `run-${at}` })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 32 }, next))
  t.equal(statuses.get(200), 202, '200 of their own, and two of all others')
  t.equal(statuses.get(429), VALUES - 202)
})
