/**
 * Goal: a failure at any write of any change at any door (admin API, dashboard, command line) leaves the
 * change whole or not made at all; the same request or command makes it afterwards, and its secret is printed
 * exactly if what it opens exists.
 * Method: each write of each change fails once in the store of a running gateway: in SQLite each row, in
 * Redis each command. Then the change is made without a fault. The tables of routes name every change; a day
 * has a part of them.
 */
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { digestOf } from '../../../src/accounts/key-secret.js'
import { adminRoutes } from '../../../src/control/admin/routes.js'
import type { AdminServices } from '../../../src/control/admin/services.js'
import { dashboardRoutes } from '../../../src/control/dashboard/routing/routes.js'
import type { Services } from '../../../src/control/services.js'
import { ofToday } from '../../helpers/long-suite.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { ADMIN, COMMANDS, DASHBOARD, OTHERS, startScene, type Change, type Scene } from './every-change.js'
import type { Faults } from './faults.js'
import { RedisFaults } from './redis-faults.js'
import { SqliteFaults } from './sqlite-faults.js'

function digestsIn(text: string): string[] {
  return (text.match(/\bs(?:k|at)_[A-Za-z0-9]{30,}\b/g) ?? []).map(digestOf)
}

void t.test('every change has a case', (t) => {
  const services = { snapshot: () => ({ config: { plans: {} } }) } as unknown as AdminServices
  const tables: [readonly { method: string; path: string }[], object][] = [
    [adminRoutes(services), ADMIN],
    [dashboardRoutes({} as Services), DASHBOARD],
  ]
  for (const [routes, cases] of tables) {
    for (const { method, path } of routes) {
      const name = `${method} ${path}`
      if (method !== 'GET') t.not(OTHERS.includes(name), Object.hasOwn(cases, name), name)
    }
  }
  t.end()
})

const DOORS = { 'admin API': ADMIN, dashboard: DASHBOARD, 'command line': COMMANDS }

/** Each day has one of these parts of the changes in SQLite, in Redis a half of it, and of their writes. */
const CHANGE_PARTS = 4
const WRITE_PARTS = 3

/** Fails the writes of each change once. */
async function checkFaults(
  t: Test,
  stage: Scene,
  faults: Faults,
  changes: Iterable<readonly [string, Change]>,
): Promise<void> {
  for (const [name, change] of changes) {
    await faults.arm(null)
    const before = await faults.state()
    const done = await change(stage)
    t.ok(done.isDone, `${name}: ${done.text.slice(0, 300)}`)
    const whole = await faults.state()
    const writes = [...faults.written()]
    t.ok(writes.length > 0, `${name} writes: ${writes.join(', ')}`)
    for (const [at, write] of ofToday(writes.entries(), WRITE_PARTS)) {
      const what = `${name}: ${at} ${write}`
      await faults.arm(at)
      const digests = await faults.digests()
      const failed = await change(stage)
      faults.disarm()
      const after = await faults.state()
      const isMade = JSON.stringify(after) !== JSON.stringify(before)
      if (isMade) t.same(after, whole, `${what}: whole or not at all`)
      const made = [...(await faults.digests())].filter((digest) => !digests.has(digest))
      const shown = digestsIn(failed.text)
      t.same(
        shown.filter((digest) => digest !== 'a'.repeat(64)),
        made.filter((digest) => digest !== 'a'.repeat(64)),
        `${what}: secrets`,
      )
      if (failed.isDone) continue
      const again = await change(stage)
      t.ok(again.isDone, `${what}, again: ${again.text.slice(0, 300)}`)
      t.same(await faults.state(), whole, `${what}, again: whole`)
    }
  }
}

const CHANGES: readonly (readonly [string, Change])[] = Object.entries(DOORS).flatMap(([door, changes]) =>
  Object.entries(changes).map(([name, change]) => [`${door}: ${name}`, change] as const),
)

void t.test('faults of writes (SQLite)', async (t) => {
  const stage = await startScene(t)
  const faults = new SqliteFaults(join(dirname(stage.gateway.configFile), 'data/sluice.db'))
  t.teardown(() => faults.close())
  await checkFaults(t, stage, faults, ofToday(CHANGES, CHANGE_PARTS))
})

void t.test('faults of writes (Redis)', { skip: redisMissing() }, async (t) => {
  const redis = await startRedis(t)
  const faults = await RedisFaults.start(t, redis)
  const stage = await startScene(t, { store: faults.url })
  await faults.keep()
  await checkFaults(t, stage, faults, ofToday(CHANGES, 2 * CHANGE_PARTS))
})
