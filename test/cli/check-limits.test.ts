/**
 * Goal: a limit for an account, key or label that does not exist is named by `sluice check` and in the log,
 * and holds from the moment at which there is one.
 * Method: a gateway and the command on both stores.
 */
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { openStore } from '../../src/store/open-store.js'
import { onBothStores } from '../control/admin/admin-stage.js'
import { startGateway } from '../helpers/gateway.js'
import { until } from '../process/program.js'
import { sluiceHere } from './session.js'

const LIMITS = `
limits:
  - { scope: account, account: ghost@example.com, requests_per_minute: 1 }
  - { scope: account, account: absent-team, requests_per_minute: 1 }
  - { scope: account, account: acc_nosuch, usd_per_day: 1 }
  - { scope: key, key: key_nosuch, requests_per_minute: 1 }
  - { scope: 'label:team', value: ghosts, requests_per_minute: 1 }
  - { scope: 'label:nothing', requests_per_minute: 1 }
  - { scope: key, key: playground, requests_per_minute: 9 }
  - { scope: account, account: test, requests_per_minute: 90 }
  - { scope: key, requests_per_minute: 90 }
  - { scope: 'label:program', requests_per_minute: 90 }
login: { enabled: true, labels: { program: agent } }
dashboard:
  public_url: http://localhost:1
  oidc: { issuer: 'http://127.0.0.1:9', client_id: sluice, client_secret: no-provider-here }
`
const PLACES = ['0].account', '1].account', '2].account', '3].key', '4].value', '5].scope']

onBothStores(t, 'limits for no one', async (t, settings) => {
  const gateway = await startGateway(t, { ...settings, more: LIMITS })
  const logged = (): string[] => {
    const found = gateway.lines.filter(({ msg }) => msg === 'a limit applies to no one')
    return found.map(({ reason }) => String(reason))
  }
  await until(() => logged().length >= PLACES.length)
  const checked = await sluiceHere(['check', '--config', gateway.configFile])
  t.equal(checked.status, 0, checked.err)
  for (const [at, place] of PLACES.entries()) {
    t.ok(logged()[at]?.startsWith(`limits[${place}: `), logged()[at] ?? place)
    t.match(checked.out, `note: limits[${place}: no `)
  }
  t.notMatch(checked.out, /limits\[[6789]\]/)
  t.equal((await sluiceHere(['check', '--strict', '--config', gateway.configFile])).status, 1)
  const without = await sluiceHere(['check', '--no-store', '--config', gateway.configFile])
  t.notMatch(without.out, /limits\[/)

  const store = await openStore(gateway.store)
  t.teardown(() => store.close())
  const { plans } = gateway
  const wish = { email: 'ghost@example.com', plan: 'max', password: { none: true } } as const
  const { account } = await createAccount(store, wish)
  const { account: named } = await createAccount(store, { name: 'absent-team', plan: 'max', password: null })
  const labels = { team: 'ghosts', nothing: 'x' }
  const { account: other } = await createAccount(store, { name: 'other', plan: 'max', password: null })
  for (const [owner, more] of [
    [account, {}],
    [named, {}],
    [other, { labels }],
  ] as const) {
    const { secret } = await createKey(store, { plans, account: owner, name: 'app', ...more })
    const statuses: number[] = []
    for (let at = 0; at < 2; at += 1) {
      const body = { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'hi' }] }
      const reply = await gateway.chat(body, { headers: { authorization: `Bearer ${secret}` } })
      await reply.arrayBuffer()
      statuses.push(reply.status)
    }
    t.strictSame(statuses, [200, 429], owner.name)
  }
  const later = await sluiceHere(['check', '--config', gateway.configFile])
  t.same(
    [...later.out.matchAll(/limits\[(\d+)\]/g)].map(([, at]) => at),
    ['2', '3'],
  )
})

onBothStores(t, 'limits for users who do not sign in', async (t, settings) => {
  const more = 'limits: [{ scope: user, requests_per_minute: 1 }]\n'
  const gateway = await startGateway(t, { ...settings, more })
  await until(() => gateway.lines.some(({ msg }) => msg === 'a limit applies to no one'))
  const { out } = await sluiceHere(['check', '--config', gateway.configFile])
  t.match(out, 'note: limits[0].scope: no user signs in without login.enabled')
})

void t.test('a store that cannot be opened is a note', async (t) => {
  const gateway = await startGateway(t, { more: LIMITS })
  const folder = join(gateway.folder, 'elsewhere')
  mkdirSync(folder)
  for (const file of ['gateway.yaml', 'models.yaml']) {
    copyFileSync(join(gateway.folder, file), join(folder, file))
  }
  const { status, out } = await sluiceHere(['check', '--config', join(folder, 'gateway.yaml')])
  t.equal(status, 0)
  t.match(out, /note: limits: accounts, keys and labels are not checked: .*--no-store/)
  t.match(out, /sluice\.db' does not exist: check "store", or let 'sluice serve'/)
})

void t.test('limits for models that no route has', async (t) => {
  const models = {
    unknown: ['grok-4', 'gpt', 'gpt5.4', 'fast-2026-01-01', 'vendor/x', 'llama3'],
    known: ['gpt-5.4-mini', 'gpt-5.4-mini-2026-03-17', 'fast', 'llama-3', 'vendor/llama-3', 'gpt-'],
  }
  const prefixes = {
    unknown: ['grok', 'fastest', 'vendor/x'],
    known: ['gpt-5', 'g', 'fa', 'lla', 'vendor/lla'],
  }
  const rules = [
    ...models.unknown.map((model) => `{ scope: key, model: '${model}', requests_per_minute: 1 }`),
    ...prefixes.unknown.map((prefix) => `{ scope: key, prefix: '${prefix}', requests_per_minute: 1 }`),
    ...models.known.map((model) => `{ scope: key, model: '${model}', requests_per_minute: 1 }`),
    ...prefixes.known.map((prefix) => `{ scope: key, prefix: '${prefix}', requests_per_minute: 1 }`),
  ]
  const routes = `
  - { model: fast, targets: [{ upstream: openai, model: gpt-5.4-mini }] }
  - { prefix: vendor/llama-, strip: vendor/, targets: [{ upstream: openai }] }`
  const more = `limits:\n${rules.map((rule) => `  - ${rule}\n`).join('')}`
  const gateway = await startGateway(t, { routes, more })
  const count = models.unknown.length + prefixes.unknown.length
  await until(() => gateway.lines.filter(({ msg }) => msg === 'a limit applies to no one').length >= count)
  const { out } = await sluiceHere(['check', '--no-store', '--config', gateway.configFile])
  t.same(
    [...out.matchAll(/limits\[(\d+)\]/g)].map(([, at]) => Number(at)),
    Array.from({ length: count }, (_, at) => at),
  )
  t.match(out, 'note: limits[0].model: no route has the model "grok-4"')
})
