/**
 * What dimensions cost a request: finding their values, the text of its ledger entry, and the counts of each
 * value. Requests of 200 runs take turns; a limit of a dimension costs what one of a key does (`ledger`).
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Identity } from '../../src/accounts/account.js'
import { dimensionsOf, dimensionsSchema } from '../../src/config/schema/dimensions-schema.js'
import { dimensionsText } from '../../src/gateway/dimensions/dimensions-text.js'
import { LiveValues } from '../../src/gateway/dimensions/live-values.js'
import { readValues } from '../../src/gateway/phases/read-values.js'
import { openStore } from '../../src/store/open-store.js'
import type { Case } from './codec.js'

const RUN = { name: 'run', from: ['header:x-run-id'] }
const END_USER = { name: 'end_user', from: ['header:x-end-user', 'body:user'] }
const FEATURE = { name: 'feature', from: ['header:x-feature'] }
const SETS = { one: [RUN], three: [RUN, END_USER, FEATURE] }

const RUNS = 200
/** Longer than any identity of the gateway. */
const IDENTITY: Identity = {
  keyId: 'key_0123456789abcdef',
  accountId: 'acc_0123456789abcdef',
  email: 'team@example.com',
  accountPath: 'company/department/team',
  plan: 'max',
  digest: '0'.repeat(64),
  expiresAtMs: null,
  models: null,
  allowTools: null,
  limits: null,
  labels: { app: 'support', env: 'live' },
}
const USED = { usage: { input: 1200, output: 300 }, costNanoUsd: 10_500_000, source: 'reported' } as const

/** The cases, after each value was looked up once; `close` ends their store. */
export async function openDimensions(): Promise<{
  readonly cases: Case[]
  readonly close: () => Promise<void>
}> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-dimensions-'))
  const store = await openStore(`sqlite:${join(folder, 'store.db')}`)
  const opened: LiveValues[] = []
  const cases: Case[] = []
  for (const [name, set] of Object.entries(SETS)) {
    const dimensions = dimensionsOf(dimensionsSchema.parse(set))
    const live = new LiveValues(store, () => dimensions)
    opened.push(live)
    const one = requestsOf(live, dimensions)
    for (let at = 0; at < RUNS; at += 1) await one(at)
    let at = 0
    const run = (): unknown => one((at = (at + 1) % RUNS))
    cases.push({
      name: `codec.request.dimensions.${name}`,
      unit: 'µs/request',
      toUnit: (nanoseconds) => nanoseconds / 1000,
      run,
    })
  }
  const close = async (): Promise<void> => {
    for (const live of opened) await live.close()
    await store.close()
    await rm(folder, { recursive: true })
  }
  return { cases, close }
}

function requestsOf(
  live: LiveValues,
  dimensions: ReturnType<typeof dimensionsOf>,
): (at: number) => Promise<string | null> | string | null {
  const generation = { snapshot: { config: { dimensions } } }
  const requests = Array.from({ length: RUNS }, (_, at) => ({
    headers: {
      'x-run-id': `run-${at}`,
      'x-feature': `feature-${at % 7}`,
      'content-type': 'application/json',
    },
    body: { model: 'gpt-5.5', user: `person-${at}@example.com` },
  }))
  const counted = (identity: Identity): string | null => {
    live.admitted(identity)
    // The provisional entry, and the one that replaces it.
    dimensionsText(identity.dimensions)
    const text = dimensionsText(identity.dimensions)
    live.used(identity, USED)
    return text
  }
  return (at) => {
    const { headers = {}, body = {} } = requests[at] ?? {}
    const cancellation = { check: () => undefined }
    const x = {
      generation,
      req: { headers },
      runsAs: null,
      batch: null,
      cancellation,
      run: null,
      calledTools: null,
      authenticated: { identity: IDENTITY, tookMs: 0 },
      identity: IDENTITY,
    }
    const found = readValues(x, { body }, live)
    return found instanceof Promise ? found.then(counted) : counted(found)
  }
}
