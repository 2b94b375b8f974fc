/**
 * Goal: the limits of an account count for all accounts below it, exactly, over several gateways and on both
 * stores; a refusal takes nothing from any limit; a disabled account refuses the keys of all below it.
 * Method: two gateways in this process on one store, and an upstream that never replies, so that admitted
 * requests keep running.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Account, KeyLimits } from '../../src/accounts/account.js'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { ownSubject } from '../../src/limits/find-limits.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { ofToday } from '../helpers/long-suite.js'

const CLIENTS = 200
const FITTING = 40
const CHILDREN = 10
const KEYS = 3
const MAX_TOKENS = 94
const BODY = {
  model: 'gpt-5.4-mini',
  messages: [{ role: 'user', content: 'Hi.' }],
  max_completion_tokens: MAX_TOKENS,
}
/** What one request reserves (race.test.ts). */
const NANO_USD = 235 * 750 + MAX_TOKENS * 4_500

interface Scene {
  readonly store: Store
  readonly gateways: readonly TestGateway[]
}

async function setScene(t: Test, engine: string): Promise<Scene> {
  const redis = engine === 'redis' ? await startRedis(t) : null
  // On a busy machine a reply of Redis may take long.
  const at = redis === null ? {} : { store: `${redis.url()}?timeout_ms=9000` }
  const first = await startGateway(t, at)
  const url = redis === null ? `sqlite:${first.folder}/data/sluice.db` : first.store
  const second = await startGateway(t, { store: url })
  const store = await openStore(url)
  t.teardown(() => store.close())
  return { store, gateways: [first, second] }
}

async function makeAccount(store: Store, name: string, parent?: Account): Promise<Account> {
  const parentId = parent === undefined ? {} : { parentId: parent.id }
  const wanted = { name, plan: 'max', password: null, ...parentId }
  return (await createAccount(store, wanted)).account
}

/** Changes the account, as the admin API does. */
async function change(store: Store, { id }: Account, edit: Partial<Account>): Promise<void> {
  const result = await store.transact({
    accountId: id,
    nowMs: Date.now(),
    decide: ({ account }) =>
      account === null ? { refuse: 'absent' } : { write: { account: { ...account, ...edit }, audit: [] } },
  })
  if (result.kind !== 'written') throw new Error(JSON.stringify(result))
}

async function makeKeyOf(scene: Scene, account: Account, limits: KeyLimits = {}): Promise<string> {
  const plans = scene.gateways[0]?.plans ?? {}
  const made = await createKey(scene.store, { plans, account, name: 'test', limits })
  return made.secret
}

function send(gateway: TestGateway | undefined, secret: string): Promise<Response> {
  if (gateway === undefined) throw new Error('there are two gateways')
  return gateway.chat(BODY, { headers: { authorization: `Bearer ${secret}` } })
}

/** What the account's own budget of the day has left. */
async function left(store: Store, { id }: Account, limitNanoUsd: number): Promise<number> {
  const demand = { kind: 'usd_day', subject: ownSubject(id), shared: true, limitNanoUsd } as const
  const [state] = await store.ledger.limitStates(id, [{ ...demand, costNanoUsd: 0 }])
  return state?.remaining ?? -1
}

for (const engine of ofToday(['redis', 'sqlite'], 2)) {
  const skip = engine === 'redis' && redisMissing()
  void t.test(`${engine}: the budget of a parent`, { skip, timeout: 120_000 }, async (t) => {
    const scene = await setScene(t, engine)
    const { store, gateways } = scene
    for (const { emulator } of gateways) emulator.script({ fault: { kind: 'hang' } })
    const top = await makeAccount(store, 'acme')
    const budget = FITTING * NANO_USD + NANO_USD / 2
    await change(store, top, { limits: { nanoUsdPerDay: budget } })
    const mid = await makeAccount(store, 'team', top)
    const secrets: string[] = []
    for (let child = 0; child < CHILDREN; child += 1) {
      const account = await makeAccount(store, `app-${child}`, mid)
      for (let key = 0; key < KEYS; key += 1) secrets.push(await makeKeyOf(scene, account))
    }
    const stop = new AbortController()
    const refused: { status: number; text: string }[] = []
    const sent = Array.from({ length: CLIENTS }, async (_, at) => {
      const gateway = gateways[at % 2]
      const headers = { authorization: `Bearer ${secrets[at % secrets.length] ?? ''}` }
      const reply = await gateway?.chat(BODY, { headers, signal: stop.signal })
      if (reply !== undefined) refused.push({ status: reply.status, text: await reply.text() })
    })
    const open = () => gateways.reduce((sum, { emulator }) => sum + emulator.open(), 0)
    while (open() + refused.length < CLIENTS) await delay(20)
    t.equal(open(), FITTING, 'as many run as fit, and no more')
    t.ok(refused.every(({ status }) => status === 402))
    t.match(refused[0]?.text, /for the account 'acme'/)
    const rest = await left(store, top, budget)
    t.ok(rest >= 0 && rest < NANO_USD, `${rest} of a reservation of ${NANO_USD} is left`)
    stop.abort()
    await Promise.allSettled(sent)
    const limits = new Set<string | null>()
    const paths = new Set<string | null>()
    while (limits.size === 0) {
      for await (const rows of store.ledger.export(0)) {
        for (const { limit, accountPath, status } of rows) {
          if (status === 402) limits.add(limit)
          paths.add(accountPath)
        }
      }
    }
    t.same([...limits], [`account:${top.id} usd_per_day`])
    t.ok(
      [...paths].every((path) => path?.startsWith('acme/team/app-')),
      [...paths].join(' '),
    )
  })

  void t.test(`${engine}: all or nothing, moves and disabling`, { skip }, async (t) => {
    const scene = await setScene(t, engine)
    const { store, gateways } = scene
    const [top, other] = [await makeAccount(store, 'acme'), await makeAccount(store, 'umbrella')]
    const budget = 1_000 * NANO_USD
    for (const account of [top, other]) {
      await change(store, account, { limits: { nanoUsdPerDay: budget } })
    }
    const app = await makeAccount(store, 'app', top)
    const secret = await makeKeyOf(scene, app, { requestsPerMinute: 1 })
    t.equal((await send(gateways[0], secret)).status, 200)
    while ((await left(store, top, budget)) === budget) await delay(20)
    const afterOne = await left(store, top, budget)
    t.equal((await send(gateways[1], secret)).status, 429, "the key's own limit")
    t.equal(await left(store, top, budget), afterOne, 'takes nothing from the parent')
    t.equal(await left(store, other, budget), budget)

    await change(store, app, { parentId: other.id })
    const moved = await makeKeyOf(scene, app)
    t.equal((await send(gateways[0], moved)).status, 200)
    while ((await left(store, other, budget)) === budget) await delay(20)
    t.equal(await left(store, top, budget), afterOne, 'what was used stays with the old parent')

    for (const gateway of gateways) t.equal((await send(gateway, moved)).status, 200)
    await change(store, other, { disabled: true })
    const changedMs = performance.now()
    for (const gateway of gateways) {
      let reply = await send(gateway, moved)
      while (reply.status === 200 && performance.now() - changedMs < 10_000) {
        reply = await send(gateway, moved)
      }
      t.equal(reply.status, 401, 'a disabled ancestor refuses the keys below it')
      t.match(await reply.text(), /disabled/)
    }
    await change(store, other, { disabled: false })
    while ((await send(gateways[0], moved)).status !== 200) await delay(50)
  })
}
