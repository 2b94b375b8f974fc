/** The tests of every engine for the values of dimensions. */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { MAX_TOOLS, OTHER_TOOL } from '../../../src/store/dimension-values.js'
import { valueDigest } from '../../../src/store/value-digest.js'

type NewUrl = (t: Test) => string | Promise<string>

const HOUR = 3_600_000

/** Values are distinguished up to a maximum, count what is used, and can be ended on every gateway. */
export async function dimensionValues(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const store = await openStore(url)
  t.teardown(() => store.close())
  const other = await openStore(url)
  t.teardown(() => other.close())
  const digests = new Set<string | null>()
  t.teardown(other.subscribe(({ digest }) => void digests.add(digest)))
  const bounds = { maxValues: 2, keepMs: HOUR }
  const nowMs = Date.now()
  const name = (value: string, accountId = 'acc_ada') => ({ accountId, dimension: 'run', value })
  const { dimensionValues: values } = store

  t.equal(await values.find(name('a b'), nowMs), null)
  t.same(await values.claim(name('a b'), bounds, nowMs), { hasPlace: true, endedAtMs: null })
  t.same(await other.dimensionValues.claim(name('ü='), bounds, nowMs), { hasPlace: true, endedAtMs: null })
  t.same(await values.claim(name('third'), bounds, nowMs), { hasPlace: false, endedAtMs: null })
  t.same(await values.claim(name('a b'), bounds, nowMs), { hasPlace: true, endedAtMs: null }, 'it has one')
  t.ok((await values.claim(name('third', 'acc_bob'), bounds, nowMs)).hasPlace, 'of another account')
  t.ok((await values.claim({ ...name('third'), dimension: 'user' }, bounds, nowMs)).hasPlace)

  const use = { ...name('a b'), keepMs: HOUR, requests: 1, inputTokens: 0, outputTokens: 0, costNanoUsd: 0 }
  await values.add([
    { ...use, atMs: nowMs + 5 },
    {
      ...{ ...use, requests: 0, inputTokens: 10, outputTokens: 5, costNanoUsd: 7_000, atMs: nowMs + 9 },
      tools: [
        { name: '__proto__', calls: 1 },
        { name: 'Read file', calls: 2 },
      ],
    },
    { ...use, ...name('x', 'acc_bob'), atMs: nowMs },
  ])
  const more = [{ name: 'Read file', calls: 3 }]
  await other.dimensionValues.add([{ ...use, costNanoUsd: 1, tools: more, atMs: nowMs + 2 }])
  const tools = [
    { name: 'Read file', calls: 5 },
    { name: '__proto__', calls: 1 },
  ]
  t.same(await other.dimensionValues.find(name('a b'), nowMs), {
    ...{ requests: 2, inputTokens: 10, outputTokens: 5, costNanoUsd: 7_001, tools },
    ...{ firstAtMs: nowMs + 2, lastAtMs: nowMs + 9, endedAtMs: null },
  })

  const many = Array.from({ length: MAX_TOOLS + 8 }, (_, at) => ({ name: `tool ${at}`, calls: 1 }))
  for (let twice = 0; twice < 2; twice += 1) {
    await values.add([{ ...use, requests: 0, tools: many, atMs: nowMs + 3 }])
  }
  const found = (await values.find(name('a b'), nowMs))?.tools ?? []
  t.equal(found.length, MAX_TOOLS + 1, 'names have a maximum')
  t.equal(
    found.reduce((sum, { calls }) => sum + calls, 0),
    6 + 2 * many.length,
    'calls of others count',
  )
  t.equal(found.find((tool) => tool.name === OTHER_TOOL)?.calls, 20)

  const ended = await values.end(name('a b'), HOUR, nowMs + 20)
  t.match(ended, { requests: 2, endedAtMs: nowMs + 20 })
  t.match(await values.end(name('a b'), HOUR, nowMs + 30), { endedAtMs: nowMs + 20 }, 'once')
  t.same(await other.dimensionValues.claim(name('a b'), bounds, nowMs + 40), {
    ...{ hasPlace: true, endedAtMs: nowMs + 20 },
  })
  t.match(await values.end(name('unknown'), HOUR, nowMs), { requests: 0, firstAtMs: null, endedAtMs: nowMs })
  for (let tries = 0; tries < 200 && !digests.has(valueDigest(name('a b'))); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  t.ok(digests.has(valueDigest(name('a b'))), 'other processes are notified')

  const laterMs = nowMs + 2 * HOUR
  t.equal(await values.find(name('a b'), laterMs), null, 'it is no longer kept')
  t.same(await values.claim(name('third'), bounds, laterMs), { hasPlace: true, endedAtMs: null })
  t.same(await values.claim(name('a b'), bounds, laterMs), { hasPlace: true, endedAtMs: null })
  t.match(await values.find(name('a b'), laterMs), { requests: 0, endedAtMs: null }, 'it begins again')
  const swept = await values.sweep(laterMs + 2 * HOUR)
  if (url.startsWith('sqlite')) t.ok(swept >= 2)
}
