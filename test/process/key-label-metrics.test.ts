/**
 * Goal: `metrics.labels` gives the first values of a label series of their own over all workers of a gateway.
 * Method: the real program with two workers, keys of several teams, and the page of its ops port.
 */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { BUILT_IN_PLANS } from '../../src/accounts/plans.js'
import { openStore } from '../../src/store/open-store.js'
import { freePort } from '../helpers/free-port.js'
import { fileText, get, hasAllWorkers, prepare, run, until } from './program.js'

const TEAMS = ['search', 'shop', 'ads', 'data', 'web']

void t.test('two workers count the first values of a label, and the rest as other', async (t) => {
  const { emulator, file } = await prepare(t)
  const [port, opsPort] = [await freePort(), await freePort()]
  const more = 'metrics: { labels: { team: 2, app: 200 } }'
  writeFileSync(file, fileText(emulator, { port, opsPort, more }))
  const store = await openStore(`sqlite:${join(dirname(file), 'data', 'sluice.db')}`)
  const wanted = { email: 'ada@example.com', plan: 'max', password: 'long enough' }
  const { account } = await createAccount(store, wanted)
  const secrets: string[] = []
  for (const team of TEAMS) {
    const labels = { team, app: `${team}-app` }
    const limits = { nanoUsdPerDay: team === 'shop' ? 1 : 1e12 }
    const name = team
    const key = { plans: BUILT_IN_PLANS, account, name, labels, limits }
    secrets.push((await createKey(store, key)).secret)
  }
  const { secret: plain } = await createKey(store, {
    plans: BUILT_IN_PLANS,
    account,
    name: 'plain',
  })
  await store.close()

  const program = run(t, ['serve', '--config', file])
  const ops = `http://127.0.0.1:${opsPort}`
  await until(async () => {
    return hasAllWorkers(await get(`${ops}/readyz`).catch(() => ({ status: 0, text: '' })))
  })
  const chat = async (secret: string): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      // A new connection each time, so that both workers serve.
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        connection: 'close',
      },
      body: JSON.stringify({ model: 'gpt-5.4', messages: [{ role: 'user', content: 'hi' }] }),
    })
    await response.text()
    return response.status
  }
  const ROUNDS = 6
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [at, secret] of secrets.entries()) {
      t.equal(await chat(secret), TEAMS[at] === 'shop' ? 402 : 200)
    }
    t.equal(await chat(plain), 200)
  }
  const metrics = async (): Promise<string> => (await get(`${ops}/metrics`)).text
  const sumOf = (text: string, metric: string, label: string): Record<string, number> => {
    const sums: Record<string, number> = {}
    for (const [, labels = '', value = ''] of text.matchAll(
      new RegExp(`^${metric}\\{([^}]*)\\} (\\S+)$`, 'gm'),
    )) {
      const [, name] = new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(labels) ?? []
      if (name !== undefined) sums[name] = (sums[name] ?? 0) + Number(value)
    }
    return sums
  }
  const requests = 'sluice_label_requests_total'
  await until(async () => {
    const sums = Object.values(sumOf(await metrics(), requests, 'team'))
    return sums.reduce((a, b) => a + b, 0) === ROUNDS * TEAMS.length
  })
  const text = await metrics()
  t.same(sumOf(text, requests, 'team'), { search: ROUNDS, shop: ROUNDS, other: 3 * ROUNDS })
  t.equal(Object.keys(sumOf(text, requests, 'app')).length, TEAMS.length)
  t.match(text, /^sluice_label_requests_total\{[^}]*team="search"[^}]*cause="ok"[^}]*\} 6$/m)
  t.match(text, /^sluice_label_requests_total\{[^}]*team="shop"[^}]*cause="limits"[^}]*\} 6$/m)
  t.same(sumOf(text, 'sluice_label_limit_rejections_total', 'team'), { shop: ROUNDS })
  const cost = sumOf(text, 'sluice_label_cost_usd_total', 'team')
  t.same(Object.keys(cost).sort(), ['other', 'search'])
  t.ok(Math.abs((cost['other'] ?? 0) - 3 * (cost['search'] ?? 0)) < 1e-9)
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
})
