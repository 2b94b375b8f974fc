/**
 * Goal: the first steps tick themselves: those of an administrator, of an owner and of a member.
 * Method: a new gateway over an emulator, on both stores; each step is done as a user would, and read again.
 */
import t from 'tap'
import { ensureUser, setMember } from '../../../../src/accounts/members.js'
import { checklistReply } from '../../../../src/control/dashboard/schema/schema.js'
import { createKey } from '../../../helpers/keys.js'
import { rowsOf } from '../../../helpers/ledger.js'
import { onBothStores } from '../../admin/admin-stage.js'
import { startStage, type Browser } from '../../../dashboard/fixtures/stage.js'

async function openSteps(browser: Browser, query = ''): Promise<string[]> {
  const { steps } = checklistReply.parse((await browser.get(`/checklist${query}`)).json)
  return steps.filter(({ done }) => !done).map(({ id }) => id)
}

onBothStores(t, 'first steps', async (t, settings) => {
  const stage = await startStage(t, settings)
  const { gateway, store } = stage
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const reply = checklistReply.parse((await admin.get('/checklist?account=all')).json)
  t.same(
    reply.steps.map(({ id }) => id),
    ['provider', 'account', 'key', 'request', 'budget', 'colleague'],
  )
  t.match(reply.test, { upstream: /^(?:openai|anthropic|gemini)$/ })
  const owner = await stage.signedIn('ada@example.com', 'max')
  const account = await store.accountByEmail('ada@example.com')
  if (account === null) throw new Error('no account')
  t.same(await openSteps(owner), ['key', 'request', 'colleague'])

  const test = await admin.ask('POST', '/playground/chat', {
    body: {
      ...{ model: reply.test?.model, max_completion_tokens: 16 },
      messages: [{ role: 'user', content: 'Say OK.' }],
    },
  })
  t.equal(test.status, 200, test.text)
  await rowsOf(gateway)
  t.same(await openSteps(owner), ['key', 'request', 'colleague'], 'the call of another account ticks nothing')
  t.notOk((await openSteps(admin, '?account=all')).includes('provider'))

  const { secret } = await createKey(store, { plans: gateway.plans, account, name: 'first' })
  t.same(await openSteps(owner), ['request', 'colleague'])
  const answered = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hi' }] }),
  })
  t.equal(answered.status, 200)
  await answered.arrayBuffer()
  await rowsOf(gateway)
  const { steps } = checklistReply.parse((await owner.get('/checklist')).json)
  t.match(steps, [{ text: 'first of ada' }, { text: /^gpt-5\.4-mini, 200, \d+ ms$/ }, { done: false }])

  const { user } = await ensureUser(store, { email: 'bob@example.com' })
  await setMember(store, { account, user, role: 'member', nowMs: Date.now(), audit: () => [] })
  t.same(await openSteps(owner), [])
  t.ok((await openSteps(admin, '?account=all')).includes('budget'))
  const limits = { nanoUsdPerMonth: 50e9 }
  const set = await admin.ask('PUT', `/accounts/${account.id}/limits`, { body: limits })
  t.equal(set.status, 200, set.text)
  t.same(await openSteps(admin, '?account=all'), [])
})
