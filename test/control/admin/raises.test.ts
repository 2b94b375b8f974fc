/**
 * Goal: budgets are raised by the admin API and by commands as on the page, within the same bounds, and hold
 * at the next request.
 * Method: tokens of the gateway and of an account, and the commands beside it, on both stores.
 */
import t from 'tap'
import { arrayOf, objectOf } from '../../../src/base/json.js'
import { sluiceHere } from '../../cli/session.js'
import { onBothStores, startAdmin, textOf, type Reply } from './admin-stage.js'

const DAY_MS = 86_400_000

/** A time some days from now. */
function inDays(days: number): string {
  return new Date(Date.now() + days * DAY_MS).toISOString()
}

const WISH = { budget: 'usd_per_day', usd: 5, until: inDays(1), reason: 'launch' }

onBothStores(t, 'raises', async (t, settings) => {
  const { ask, gateway, store, makeToken } = await startAdmin(t, settings)
  const put = (name: string, body: object) => ask('PUT', `/accounts/${name}`, { body })
  await put('acme', { plan: 'max', limits: { usd_per_day: 10, usd_per_month: 20 } })
  await put('shop', { plan: 'max', parent: 'acme', limits: { usd_per_day: 0.000_001 } })
  const made = await ask('PUT', '/accounts/shop/keys/ci', { body: { limits: { usd_per_day: 0.000_001 } } })
  const chat = async (): Promise<number> => {
    const body = { model: 'gpt-5.4-mini', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }
    const reply = await gateway.chat(body, { headers: { authorization: `Bearer ${textOf(made, 'secret')}` } })
    await reply.arrayBuffer()
    return reply.status
  }
  t.equal(await chat(), 402, 'both budgets are too small')
  const ofAccount = '/accounts/shop/limits/raise'
  const ofKey = '/accounts/shop/keys/ci/raise'
  const raised = await ask('POST', ofAccount, { body: WISH })
  t.match(raised, {
    status: 201,
    json: {
      account: 'shop',
      budget: 'usd_per_day',
      usd: 5,
      until: WISH.until,
      reason: 'launch',
      by: 'token:robot',
    },
  })
  t.equal(raised.json['key'], undefined)
  t.match(
    (await ask('GET', '/accounts/shop/limits')).json,
    { usd_per_day: 0.000_001 },
    'the former one stays',
  )
  t.match(await ask('POST', ofKey, { body: { ...WISH, usd: 4 } }), {
    status: 201,
    json: { key: 'ci', usd: 4 },
  })
  t.equal(await chat(), 200, 'they hold at the next request')

  const refused = (reply: Reply, status: number, field: string): void => {
    t.match(reply, { status, json: { field } }, `${field} ${reply.text}`)
  }
  for (const path of [ofAccount, ofKey]) {
    refused(await ask('POST', path, { body: { ...WISH, usd: 11 } }), 403, 'usd')
    refused(await ask('POST', path, { body: { ...WISH, budget: 'usd_per_week' } }), 400, 'budget')
    refused(await ask('POST', path, { body: { ...WISH, budget: 'usd_total' } }), 400, 'budget')
    refused(await ask('POST', path, { body: { ...WISH, usd: 0 } }), 400, 'usd')
    refused(await ask('POST', path, { body: { ...WISH, until: inDays(-1) } }), 400, 'until')
    refused(await ask('POST', path, { body: { ...WISH, until: inDays(400) } }), 400, 'until')
    refused(await ask('POST', path, { body: { ...WISH, reason: ' ' } }), 400, 'reason')
    refused(await ask('POST', path, { body: { ...WISH, scope: 'all' } }), 400, 'scope')
    t.match(await ask('POST', path, { body: WISH, headers: { 'if-match': '"x"' } }), { status: 412 })
  }
  t.equal((await ask('POST', '/accounts/shop/keys/none/raise', { body: WISH })).status, 404)
  const { items } = (await ask('GET', '/audit?account=shop')).json
  t.match(
    arrayOf(items)
      .map(objectOf)
      .filter(({ action }) => typeof action === 'string' && action.endsWith('.raise')),
    [
      {
        action: 'key.raise',
        actor: /^token:robot \(tok_/,
        after: { 'limits.usd_per_day': 4, reason: 'launch' },
      },
      { action: 'account.raise', before: { 'limits.usd_per_day': 0.000_001 } },
    ],
  )

  // A token of an account.
  const acme = (await store.accountByName('acme'))?.id ?? ''
  const token = await makeToken(['accounts:write', 'keys:write'], acme)
  t.equal((await ask('POST', ofAccount, { body: WISH, token })).status, 201)
  t.equal((await ask('POST', ofKey, { body: WISH, token })).status, 201)
  refused(await ask('POST', ofAccount, { body: { ...WISH, until: inDays(91) }, token }), 403, 'until')
  t.equal((await ask('POST', '/accounts/acme/limits/raise', { body: WISH, token })).status, 403, 'its own')
  t.equal((await ask('POST', '/accounts/test/limits/raise', { body: WISH, token })).status, 404)
  t.equal((await ask('POST', '/accounts/test/keys/test/raise', { body: WISH, token })).status, 404)

  // The commands.
  const config = ['--config', gateway.configFile]
  const wish = ['--budget', 'usd_per_day', '--usd', '7', '--until', '2d', '--reason', 'sale']
  const run = (...args: string[]) => sluiceHere([...args, ...wish, ...config])
  t.match(await run('accounts', 'raise', '--account', 'shop'), {
    status: 0,
    out: /\(shop\): usd_per_day \$7 until 20/,
  })
  const key = await store.keyByName((await store.accountByName('shop'))?.id ?? '', 'ci')
  const args = ['keys', 'raise', '--account', 'shop', '--key', key?.id ?? '']
  const runWith = async (name: string, value: string) => {
    const own = wish.map((each, at) => (wish[at - 1] === `--${name}` ? value : each))
    return sluiceHere([...args, ...own, ...config])
  }
  t.match(await runWith('until', '1d'), { status: 0, out: /^key_\w+: usd_per_day \$7 until / })
  t.match((await store.accountByName('shop'))?.raises, [
    { nanoUsd: 7e9, reason: 'sale', by: /^command line/ },
  ])
  t.match(await runWith('usd', '99'), { status: 1, err: /allows \$\S+ at most/ })
  t.match(await runWith('usd', 'x'), { status: 2, err: /--usd/ })
  t.match(await runWith('until', 'yesterday'), { status: 2, err: /"--until" is not a time/ })
  t.match(await runWith('budget', 'usd_total'), { status: 2, err: /--budget/ })
})
