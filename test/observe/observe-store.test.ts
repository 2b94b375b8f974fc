/**
 * Goal: every operation of a store is timed under a name of the closed set, and none is folded to `other`.
 * Method: a store without contents; each of its methods is called once through the observer.
 */
import t from 'tap'
import { Metrics } from '../../src/observe/metrics/metrics.js'
import { LABELS } from '../../src/observe/metrics/metric-definitions.js'
import { observeStore } from '../../src/observe/metrics/observe-store.js'
import type { Store } from '../../src/store/store.js'

/** Members of a store that have methods of their own. */
const PARTS = [
  'ledger',
  'cache',
  'signInTokens',
  'auditTrail',
  'throttle',
  'fleet',
  'providerObjects',
  'sealedRecords',
  'adminTokens',
  'users',
  'denials',
  'directory',
  'dimensionValues',
]

function answering(): Store {
  const target = (): Promise<undefined> => Promise.resolve(undefined)
  const store: unknown = new Proxy(target, {
    get: (_, name) => (PARTS.includes(String(name)) ? answering() : target),
  })
  return store as Store
}

async function callAll(part: object): Promise<number> {
  let calls = 0
  for (const member of Object.values(part) as unknown[]) {
    if (typeof member === 'function') {
      await (member as (...args: unknown[]) => unknown)({}, {}, {}, 0)
      calls += 1
    } else if (typeof member === 'object' && member !== null) calls += await callAll(member)
  }
  return calls
}

void t.test('all operations fit under the cap', async (t) => {
  const metrics = new Metrics()
  t.ok((await callAll(observeStore(answering(), metrics, () => undefined))) > 30)
  const text = await metrics.text()
  const ops = [...text.matchAll(/^sluice_store_duration_seconds_count\{op="(\w+)"\}/gm)]
  const names = ops.map(([, op]) => op ?? '')
  t.notOk(names.includes('other'), names.join())
  for (const name of names) t.match(LABELS['op'], new RegExp(`\\b${name}\\b`))
})

void t.test('failures are counted and reported with their operation', async (t) => {
  const metrics = new Metrics()
  const reported: string[] = []
  const failures: Record<string, () => unknown> = {
    findKey: () => {
      throw new Error('damaged')
    },
    probe: () => Promise.reject(new Error('away')),
  }
  const failing = new Proxy(answering(), {
    get: (target, name): unknown => failures[String(name)] ?? Reflect.get(target, name),
  })
  const store = observeStore(failing, metrics, (op) => reported.push(op))
  t.throws(() => store.findKey('00'), { message: 'damaged' })
  await t.rejects(store.probe(), { message: 'away' })
  t.same(reported, ['find_key', 'probe'])
  const text = await metrics.text()
  for (const op of reported) t.match(text, `sluice_store_errors_total{op="${op}"} 1`)
})
