/**
 * Goal: a person sees what a run has used and what is left of its limits, stops it with a reason, and the run
 * gets nothing more.
 * Method: a real gateway with a dimension `run`, a real Chromium, and the audit trail of the store.
 */
import t from 'tap'
import { createdKeyReply } from '../../../src/control/dashboard/schema/schema.js'
import { launch, open, violations } from './browser.js'
import { sixth } from './sixth.js'
import { PASSWORD, startStage } from '../fixtures/stage.js'

t.setTimeout(180_000)

const RUNS = `dimensions: [{ name: run, from: [header:x-run-id] }]
limits: [{ scope: 'dimension:run', usd_total: 1, requests_total: 3 }]`

void t.test('a run is seen and stopped', { skip: sixth(0) }, async (t) => {
  const stage = await startStage(t, { more: RUNS })
  const { gateway, origin, store } = stage
  const api = await stage.signedIn('ada@example.com')
  const made = await api.ask('POST', '/keys', { body: { name: 'agent' } })
  const ask = async (): Promise<Response> => {
    const reply = await fetch(`${gateway.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${createdKeyReply.parse(made.json).secret}`,
        'content-type': 'application/json',
        'x-run-id': 'shop/main 17',
      },
      body: JSON.stringify({
        ...{ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hi' }], tool_choice: 'required' },
        tools: [{ type: 'function', function: { name: 'read_file' } }],
      }),
    })
    await reply.clone().text()
    return reply
  }
  t.equal((await ask()).status, 200)

  const { page, complaints } = await open(await launch(t))
  await page.goto(`${origin}/dashboard/runs?run=${encodeURIComponent('shop/main 17')}`)
  await page.getByLabel('E-mail').fill('ada@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Run shop/main 17', level: 1 }).waitFor()
  await page.getByRole('heading', { name: 'Limits' }).waitFor()
  t.match(await page.locator('main').innerText(), /State\s+live[^]+\$1\.00 used[^]+1 of 3 used · 2 left/)
  t.match(await page.locator('main').innerText(), /Tools[^]+read_file\s+1/)
  t.strictSame(await violations(page), [], 'axe')
  await page.getByRole('button', { name: 'Stop run' }).click()
  const dialog = page.getByRole('alertdialog', { name: 'Stop run shop/main 17?' })
  await dialog.getByLabel('Reason').fill('it loops')
  await dialog.getByRole('button', { name: 'Stop run' }).click()
  await page.getByText('Stopped. Requests of the run shop/main 17 are refused.').waitFor()
  await page.getByText('ended', { exact: false }).first().waitFor()
  t.equal(await page.getByRole('button', { name: 'Stop run' }).count(), 0)
  const refused = await ask()
  t.equal(refused.status, 403)
  t.match(await refused.json(), { error: { kind: 'run_ended' } })
  const trail = await store.auditTrail.page({ accountId: null, after: null, limit: 20 })
  t.match(
    trail.find(({ action }) => action === 'run.end'),
    { target: 'shop/main 17', reason: 'it loops' },
  )
  t.strictSame(complaints, [])
})
