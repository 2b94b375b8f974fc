/**
 * Goal: `sluice keys edit` changes what its options name, and `sluice keys rotate` replaces the secret.
 * Method: the command's actions on a real store.
 */
import t, { type Test } from 'tap'
import type { ApiKey } from '../../../src/accounts/account.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createKey } from '../../helpers/keys.js'
import { digestOf, hasValidForm } from '../../../src/accounts/key-secret.js'
import { reporting } from '../../../src/cli/exit-status.js'
import { command } from '../../../src/cli/keys.js'
import { UsageError } from '../../../src/cli/command.js'
import { newSession, runOn, type TestSession } from '../session.js'

interface Scene {
  readonly session: TestSession
  readonly key: ApiKey
  /** Runs an action on the key. */
  readonly run: (action: string, options?: string) => Promise<number>
  /** The stored key. */
  readonly current: () => Promise<ApiKey | null>
}

async function withKey(t: Test): Promise<Scene> {
  const session = await newSession(t)
  const ada = { email: 'ada@x.org', plan: 'starter', password: 'long enough' } as const
  const { account } = await createAccount(session.store, ada)
  const { key } = await createKey(session.store, {
    plans: session.plans,
    account,
    name: 'ci',
    limits: { requestsPerMinute: 5, nanoUsdPerDay: 1e9 },
    labels: { team: 'shop', env: 'test' },
    models: ['gpt-5.5'],
  })
  return {
    session,
    key,
    run: (action, options = '') => {
      const line = `${action} --account ada@x.org --key ${key.id} ${options}`.trim()
      return reporting(session.terminal, () => runOn(session, command, line.split(' ')))
    },
    current: () => session.store.keyById(account.id, key.id),
  }
}

void t.test('edit changes the given settings and keeps the others', async (t) => {
  const { session, key, run, current } = await withKey(t)
  const options = '--rpm 9 --tpm 1000 --label team=search --models gpt-5.5,claude-* --expires 30d'
  t.equal(await run('edit', `${options} --name robot --allow-tools mcp`), 0)
  t.same(session.output(), [`${key.id}: changed`])
  const { expiresAtMs, updatedAtMs, ...edited } = (await current()) ?? key
  t.ok((updatedAtMs ?? 0) >= key.createdAtMs)
  t.same(
    { ...edited, updatedAtMs: key.updatedAtMs },
    {
      ...key,
      name: 'robot',
      limits: { requestsPerMinute: 9, tokensPerMinute: 1000, nanoUsdPerDay: 1e9 },
      labels: { env: 'test', team: 'search' },
      models: ['gpt-5.5', 'claude-*'],
      allowTools: ['mcp'],
    },
  )
  t.ok(Math.abs((expiresAtMs ?? 0) - Date.now() - 30 * 86_400_000) < 60_000)
  t.equal((await session.store.findKey(key.digest))?.key.name, 'robot', 'the secret stays')
})

void t.test('edit removes settings', async (t) => {
  const { key, run, current } = await withKey(t)
  t.equal(await run('edit', '--expires 1d --allow-tools mcp'), 0)
  const removed = '--rpm none --expires none --allow-tools default --label team= --models *'
  t.equal(await run('edit', removed), 0)
  const settled = async () => ({ ...(await current()), updatedAtMs: key.updatedAtMs })
  t.same(await settled(), {
    ...key,
    limits: { nanoUsdPerDay: 1e9 },
    labels: { env: 'test' },
    models: ['*'],
  })
  t.equal(await run('edit', '--usd-per-day none --label env='), 0)
  const { limits, labels, ...plain } = key
  t.ok(limits !== undefined && labels !== undefined)
  t.same(await settled(), { ...plain, models: ['*'] })
})

void t.test('edit changes limits of units one by one', async (t) => {
  const { run, current } = await withKey(t)
  t.equal(await run('edit', '--units-per-minute image=10 --units-per-minute audio_second=600'), 0)
  t.equal(await run('edit', '--units-per-minute image=none --units-per-minute search=5'), 0)
  t.match((await current())?.limits, {
    audioSecondsPerMinute: 600,
    searchesPerMinute: 5,
    requestsPerMinute: 5,
  })
  t.notOk((await current())?.limits?.imagesPerMinute)
  for (const wrong of ['image', 'picture=1', 'image=0', 'image=1 --units-per-minute image=2']) {
    await t.rejects(async () => run('edit', `--units-per-minute ${wrong}`), UsageError, wrong)
  }
  t.equal(await run('edit', '--units-per-minute none'), 0)
  t.same((await current())?.limits, { requestsPerMinute: 5, nanoUsdPerDay: 1e9 })
})

void t.test('edit refuses wrong values, unknown and revoked keys', async (t) => {
  const { session, key, run, current } = await withKey(t)
  for (const wrong of ['--rpm 0', '--tpm x', '--expires never', '--label Team=x', '--models a*b']) {
    await t.rejects(async () => run('edit', wrong), UsageError, wrong)
  }
  const labels = Array.from({ length: 15 }, (_, at) => `--label l${at}=x`).join(' ')
  t.equal(await run('edit', labels), 1, 'two and fifteen are more than sixteen')
  t.match(session.errors().join('\n'), /17 labels. Send at most 16/)
  t.equal(await run('edit', `--name ${'x'.repeat(101)}`), 1)
  t.match(session.errors().join('\n'), /1 to 100 characters/)
  t.same(await current(), key)
  const other = 'edit --account ada@x.org --key key_x --rpm 1'.split(' ')
  await t.rejects(runOn(session, command, other), /no key with this id/)
  t.equal(await run('revoke'), 0)
  t.equal(await run('edit', '--rpm 1'), 1)
  t.match(session.errors().join('\n'), /has ended/)
})

void t.test('rotate prints the new secret, and the old key works for a day', async (t) => {
  const { session, key, run, current } = await withKey(t)
  t.equal(await run('rotate'), 0)
  const [secret = '', ...more] = session.output()
  t.ok(hasValidForm(secret))
  t.same(more, [])
  t.match(session.errors(), [/only now\..*works until 20/])
  const created = (await session.store.findKey(digestOf(secret)))?.key
  t.match(created, { name: 'ci', limits: key.limits, labels: key.labels, models: key.models })
  t.match(await current(), { replacedBy: created?.id })
  const leftMs = ((await current())?.expiresAtMs ?? 0) - Date.now()
  t.ok(leftMs > 86_340_000 && leftMs <= 86_400_000, String(leftMs))
})

void t.test('rotate --overlap sets the time; 0 revokes the old key at once', async (t) => {
  for (const [overlap, ms] of [
    ['90s', 90_000],
    ['30m', 1_800_000],
    ['7d', 604_800_000],
  ] as const) {
    const { run, current } = await withKey(t)
    t.equal(await run('rotate', `--overlap ${overlap}`), 0)
    const leftMs = ((await current())?.expiresAtMs ?? 0) - Date.now()
    t.ok(leftMs > ms - 60_000 && leftMs <= ms, overlap)
  }
  const { session, run, current } = await withKey(t)
  t.equal(await run('rotate', '--overlap 0'), 0)
  t.ok((await current())?.revokedAtMs)
  t.match(session.errors(), [/is revoked/])
  t.equal(await run('rotate'), 1, 'a revoked key is not rotated')
  t.match(session.errors().join('\n'), /has ended/)
})

void t.test('both are in the audit trail with what changed, without a secret', async (t) => {
  const { session, key, run } = await withKey(t)
  t.equal(await run('edit', '--rpm 9'), 0)
  t.equal(await run('rotate', '--overlap 1h'), 0)
  const [secret = ''] = session.output().slice(-1)
  const page = await session.store.auditTrail.page({ accountId: null, after: null, limit: 9 })
  t.match(page, [
    {
      action: 'key.rotate',
      target: key.id,
      before: { id: key.id, last_four: key.lastFour },
      after: { last_four: secret.slice(-4), previous_expires_at: /^20/ },
    },
    {
      action: 'key.change',
      target: key.id,
      actor: /^command line \(/,
      before: { limits: { requests_per_minute: 5, usd_per_day: 1 } },
      after: { limits: { requests_per_minute: 9, usd_per_day: 1 } },
    },
  ])
  t.same(Object.keys(page[1]?.after ?? {}), ['limits'], 'only what changed')
  const text = JSON.stringify(page)
  t.notOk(text.includes(secret) || text.includes(key.digest))
})
