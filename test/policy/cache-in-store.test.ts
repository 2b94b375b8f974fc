/**
 * Goal: gateways of one store answer from each other's replies; orders and revoked owners drop them
 * everywhere; the store has no text of them.
 * Method: two gateways in this process on one store, SQLite and Redis; orders are those of the command.
 */
import { editAccount, endKey } from '../helpers/store-changes.js'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { command } from '../../src/cli/cache.js'
import type { StoreSession } from '../../src/cli/with-store.js'
import { GATEWAY, runOn } from '../cli/session.js'
import { numberOf, objectOf } from '../../src/base/json.js'
import { ReplyMemory } from '../../src/policy/cache-in-memory.js'
import { SharedReplies } from '../../src/policy/cache-in-store.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { startGateway, type GatewaySettings, type TestGateway } from '../helpers/gateway.js'
import { freshDatabases, redisMissing, startRedis, until } from '../helpers/redis.js'
import { anotherDay } from '../helpers/long-suite.js'
import { testProgram } from '../helpers/test-program.js'

const PROMPT = 'A secret sentence of the prompt.'

function settingsOf(store: string | undefined, isShared: boolean): GatewaySettings {
  return {
    ...(store === undefined ? {} : { store }),
    routes:
      '  - { model: fleet, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: {} }\n' +
      '  - { model: other, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: {} }\n',
    more: `
cache: { store: ${isShared} }
escrow: { key: 0f4c9b1e7d2a85c36f10e9d8b7a6c5f4 }
`,
  }
}

async function ask(gateway: TestGateway, secret: string, model = 'fleet'): Promise<string | null> {
  const body = { model, messages: [{ role: 'user', content: PROMPT }] }
  const response = await gateway.chat(body, { headers: { authorization: `Bearer ${secret}` } })
  await response.arrayBuffer()
  return response.headers.get('x-sluice-cache')
}

/** Runs the command on the store; returns what it prints. */
async function clear(store: Store, gateway: TestGateway, ...options: string[]): Promise<string[]> {
  const lines: string[] = []
  const terminal = {
    out: (line: string) => void lines.push(line),
    err: (line: string) => void lines.push(line),
    ready: () => Promise.resolve(),
    input: () => Promise.resolve(''),
  }
  const session: StoreSession = {
    store,
    plans: gateway.plans,
    upstreams: [],
    companies: { providerOf: (name: string) => name, publisherOf: () => null },
    models: [],
    identities: [],
    acceptsImported: false,
    gateway: GATEWAY,
    terminal,
  }
  await runOn(session, command, ['clear', ...options])
  return lines
}

async function newOwner(store: Store, gateway: TestGateway, email: string) {
  const { account } = await createAccount(store, {
    email,
    plan: 'max',
    password: 'correct horse battery staple',
  })
  const { key, secret } = await createKey(store, { plans: gateway.plans, account, name: email })
  return { account, key, secret }
}

async function exercise(t: Test, url?: string): Promise<void> {
  const one = await startGateway(t, settingsOf(url, true))
  const store = await openStore(one.store)
  t.teardown(() => store.close())
  const settings = settingsOf(one.store, true)
  const upstreams = { openai: one.emulator.baseUrls.openai }
  // The second gateway has the same upstream: its route is the same.
  const two = await startGateway(t, { ...settings, upstreams, hasAccount: true })
  const { account, key, secret } = await newOwner(store, one, 'first@example.com')
  const other = await newOwner(store, one, 'second@example.com')
  t.equal(await ask(one, secret), 'miss')
  t.equal(await ask(two, secret), 'hit', 'another gateway')
  t.equal(await ask(two, other.secret), 'miss', 'of another account')
  t.equal(await ask(two, secret, 'other'), 'miss')
  if (url === undefined) {
    const folder = dirname(one.store.slice('sqlite:'.length))
    const files = readdirSync(folder)
      .filter((name) => name.startsWith('sluice.db'))
      .map((name) => readFileSync(join(folder, name)))
    t.ok(files.length > 0)
    t.ok(files.every((bytes) => !bytes.includes(PROMPT) && !bytes.includes('emulated reply')))
  }
  t.same(await clear(store, one, '--model', 'other'), ['Dropped 1 stored reply.'])
  t.equal(await ask(two, secret, 'other'), 'miss', 'dropped in a running gateway')
  t.equal(await ask(one, secret), 'hit', 'the others stay')
  t.same(await clear(store, one, '--key', key.id, '--model', 'fleet'), ['Dropped 1 stored reply.'])
  t.equal(await ask(one, secret), 'miss')
  t.same(await clear(store, one, '--account', 'second@example.com'), ['Dropped 1 stored reply.'])
  t.equal(await ask(one, other.secret), 'miss')
  t.same(await clear(store, one), ['Dropped 3 stored replies.'], 'all')
  t.equal(await ask(two, secret), 'miss')
  t.equal(await ask(two, other.secret), 'miss')
  const left = async (): Promise<string[]> =>
    (await store.sealedRecords.list('reply', {}, Date.now())).map(({ accountId }) => accountId)
  t.equal((await left()).length, 2)
  await endKey(store, { accountId: account.id, id: key.id }, Date.now())
  await until(async () => !(await left()).includes(account.id), 'the replies of a revoked key')
  await editAccount(store, other.account.id, { disabled: true })
  await until(async () => (await left()).length === 0, 'the replies of a disabled account')
  await until(
    async () => (await two.metrics.text()).includes('\nsluice_cache_entries 0'),
    'the memory of each gateway follows',
  )
  t.match(await two.metrics.text(), /sluice_cache_evictions_total\{reason="revoked"\} 2/)
}

await t.test('gateways on SQLite', { skip: anotherDay(0, 2) }, (t) => exercise(t))

await t.test('gateways on Redis', { skip: anotherDay(1, 2) || redisMissing() }, async (t) => {
  await exercise(t, freshDatabases(await startRedis(t))())
})

/** Kills a process that stores replies, and reads what it has left. */
async function killWriters(t: Test, url: string): Promise<void> {
  const secret = '0f4c9b1e7d2a85c36f10e9d8b7a6c5f4'
  const writer = testProgram('policy/killed-cache-writer')
  let found = 0
  for (let round = 0; round < 3; round += 1) {
    const child = spawn(process.execPath, [writer, url, secret], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let written = 0
    child.stdout.on('data', () => {
      written += 1
      // In the middle of one of the next writes.
      if (written === 3 + round) setTimeout(() => child.kill('SIGKILL'), round)
    })
    await once(child, 'exit')
    const store = await openStore(url)
    const replies = new SharedReplies({ store, secret }, new ReplyMemory(() => undefined), () => ({
      store: true,
      maxBytes: Infinity,
    }))
    const heads = await store.sealedRecords.list('reply', {}, Date.now())
    for (let at = 0; at < 20; at += 1) {
      const entry = await replies.find(`key ${at}`, Date.now())
      if (entry === null) continue
      found += 1
      const reply = objectOf(JSON.parse(JSON.stringify(entry.reply)))
      t.equal(reply['text'], `${numberOf(reply['at'])} `.repeat(20_000))
    }
    for (const { id, bytes } of heads) {
      const record = await store.sealedRecords.find('reply', id, Date.now())
      t.equal(record?.value.length, bytes)
    }
    replies.close()
    await store.close()
  }
  t.ok(found > 0)
}

await t.test(
  'a process that is killed leaves no half reply, SQLite',
  { skip: anotherDay(1, 2) },
  async (t) => {
    await killWriters(t, `sqlite:${join(t.testdir(), 'sluice.db')}`)
  },
)

await t.test(
  'a process that is killed leaves no half reply, Redis',
  { skip: anotherDay(0, 2) || redisMissing() },
  async (t) => {
    await killWriters(t, freshDatabases(await startRedis(t))())
  },
)

await t.test('replies in memory alone are dropped, too', async (t) => {
  const gateway = await startGateway(t, settingsOf(undefined, false))
  const store = await openStore(gateway.store)
  t.teardown(() => store.close())
  t.equal(await ask(gateway, gateway.secret), 'miss')
  t.equal(await ask(gateway, gateway.secret, 'other'), 'miss')
  t.same(await store.sealedRecords.list('reply', {}, Date.now()), [])
  t.same(await clear(store, gateway, '--model', 'fleet'), ['Dropped 1 stored reply.'])
  t.equal(await ask(gateway, gateway.secret), 'miss')
  t.equal(await ask(gateway, gateway.secret, 'other'), 'hit')
})

await t.test(
  'replies that are stored after an order stay, also in a process that reads it later',
  async (t) => {
    const gateway = await startGateway(t, settingsOf(undefined, false))
    const store = await openStore(gateway.store)
    t.teardown(() => store.close())
    await clear(store, gateway)
    t.equal(await ask(gateway, gateway.secret), 'miss')
    // Two looks of the gateway.
    await delay(1_000)
    t.equal(await ask(gateway, gateway.secret), 'hit')
  },
)
