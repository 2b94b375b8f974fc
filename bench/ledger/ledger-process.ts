/**
 * One process of the ledger benchmark: admits and settles requests as fast as the ledger allows, a fixed
 * number at a time. It runs one round per message, on a store that it opens and closes, sends its
 * measurements, and exits with its parent.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Admission, Demand, Ledger, AdmissionResult } from '../../src/store/ledger.js'
import { newRequestId } from '../../src/http/request-id.js'
import { UNEXPLAINED, type LedgerEntry } from '../../src/ledger/entry.js'
import { settleGlobals, settleStrings } from '../../src/process/serve-worker.js'
import { openStore } from '../../src/store/open-store.js'
import { obey, type LedgerLoad, type LedgerOrder } from './ledger-messages.js'

const ACCOUNTS = 1_000
const KEYS = 10_000
const MODELS = ['gpt-5.4', 'gpt-5.4-mini', 'claude-opus-4-6', 'gemini-3.5-flash']
/** Built in advance, as the gateway has the names and limits of a key in memory. */
const ACCOUNT_NAMES = Array.from({ length: ACCOUNTS }, (_, at) => `acc_${padded(at)}`)
const KEY_NAMES = Array.from({ length: KEYS }, (_, at) => `key_${padded(at)}`)
const DEMANDS = KEY_NAMES.map(demandsOf)
/** A few busy keys, and the same without a concurrency limit: cases for slices. */
const HOT_KEYS = 16
const HOT_DEMANDS = DEMANDS.map((all) => all.filter(({ kind }) => kind !== 'concurrent'))
/** Before a round is measured: the file gets its first pages. */
const BEFORE_MS = 500

const [atOnce = '1', what = 'limited'] = process.argv.slice(2)
const isHot = what === 'hot' || what === 'places'
let made = 0

/** The order of a round and its counts so far. */
interface Round {
  readonly ledger: Pick<Ledger, 'admit' | 'settle' | 'append' | 'releaseSlots'>
  readonly endsAtMs: number
  readonly latencies: number[]
  operations: number
  measuring: boolean
}

/** A ledger without cost if the URL is `none`. */
async function opened(url: string) {
  if (url === 'none') return nothing()
  const store = await openStore(url)
  return { ledger: store.ledger, close: () => store.close() }
}

/** A request without limits: only its entry. */
async function unlimited(round: Round): Promise<void> {
  while (performance.now() < round.endsAtMs) {
    const { unsettled } = nextAdmission()
    const beganMs = performance.now()
    await round.ledger.append(unsettled)
    // A gateway writes at most one batch of entries per turn of its event loop.
    await nextTurn()
    if (!round.measuring) continue
    round.latencies.push(performance.now() - beganMs)
    round.operations += 1
  }
}

/** The cost of the load itself: every call resolves in the next turn of the event loop, without work. */
function nothing(): {
  ledger: Pick<Ledger, 'admit' | 'settle' | 'append' | 'releaseSlots'>
  close: () => Promise<void>
} {
  const ledger = {
    admit: (): Promise<AdmissionResult> => nextTurn({ admitted: true, limitStates: [] }),
    settle: () => nextTurn('settled' as const),
    append: () => nextTurn(),
  }
  return { ledger, close: () => Promise.resolve() }
}

function padded(number: number): string {
  return String(number).padStart(20, '0')
}

/** Built as in the gateway: objects of another shape are slower to read. */
function demandsOf(keyId: string): Demand[] {
  const [subject, shared, limitNanoUsd, costNanoUsd] = [`key:${keyId}`, false, 1e15, 5_000_000]
  return [
    { kind: 'requests', subject, shared, perMinute: 1e6, cost: 1 },
    { kind: 'tokens', subject, shared, perMinute: 1e9, cost: 4_000 },
    { kind: 'concurrent', subject, shared, limit: 1_000 },
    { kind: 'usd_day', subject, shared, limitNanoUsd, costNanoUsd },
    { kind: 'usd_month', subject, shared, limitNanoUsd, costNanoUsd },
  ]
}

function nextAdmission(): Admission {
  made += 1
  const key = (made * 7_919) % (isHot ? HOT_KEYS : KEYS)
  const requestId = newRequestId(Date.now())
  const unsettled = rowOf(requestId, key)
  const { accountId } = unsettled
  return {
    requestId,
    accountId,
    demands: (what === 'hot' ? HOT_DEMANDS : DEMANDS)[key] ?? [],
    leaseMs: 60_000,
    unsettled,
  }
}

function rowOf(requestId: string, key: number): LedgerEntry {
  const model = MODELS[key % MODELS.length] ?? 'other'
  return {
    requestId,
    atMs: Date.now(),
    durationMs: 1_234.5,
    accountId: ACCOUNT_NAMES[key % ACCOUNTS] ?? '',
    keyId: KEY_NAMES[key] ?? '',
    modelAsked: model,
    modelAnswered: model,
    model,
    upstream: 'openai',
    dialect: 'openai-chat',
    attempts: 1,
    stream: true,
    status: 200,
    outcome: 'ok',
    finish: 'stop',
    usage: { input: 1_200, output: 340, cacheRead: 1_000 },
    source: 'reported',
    costNanoUsd: 1_234_567,
    tokensAfterDisconnect: 0,
    losses: [],
    generation: 1,
    ...UNEXPLAINED,
    hops: { authenticate: 0.04, receive: 0.11, admit: 0.2, firstContent: 412.3, overhead: 0.9 },
  }
}

async function client(round: Round): Promise<void> {
  const { ledger } = round
  while (performance.now() < round.endsAtMs) {
    const admission = nextAdmission()
    const beganMs = performance.now()
    const { demands } = admission
    const { admitted, isSlice } = await ledger.admit(admission)
    if (!admitted) throw new Error('a request was refused that every limit has room for')
    if (round.measuring) round.latencies.push(performance.now() - beganMs)
    await nextTurn()
    if (isSlice) ledger.releaseSlots?.(admission.requestId)
    await ledger.settle(admission.unsettled, { demands, takenFrom: isSlice ? 'slice' : 'reserved' })
    if (round.measuring) round.operations += 2
  }
}

async function run({ url, seconds }: LedgerOrder): Promise<LedgerLoad> {
  const { ledger, close } = await opened(url)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const endsAtMs = performance.now() + BEFORE_MS + seconds * 1000
  const round: Round = { ledger, endsAtMs, latencies: [], operations: 0, measuring: false }
  const clients = Array.from({ length: Number(atOnce) }, () =>
    what === 'unlimited' ? unlimited(round) : client(round),
  )
  await new Promise((resolve) => setTimeout(resolve, BEFORE_MS))
  round.measuring = true
  delay.enable()
  const beganMs = performance.now()
  const before = process.cpuUsage()
  await Promise.all(clients)
  const endedMs = performance.now()
  delay.disable()
  // Deferred work is part of the cost.
  await close()
  const { user, system } = process.cpuUsage(before)
  const sorted = round.latencies.sort((a, b) => a - b)
  const quantile = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  return {
    operations: round.operations,
    seconds: (endedMs - beganMs) / 1000,
    cpuMicroseconds: user + system,
    admitMs: { p50: quantile(0.5), p99: quantile(0.99) },
    loopMs: { p999: delay.percentile(99.9) / 1e6, most: delay.max / 1e6 },
  }
}

// As at the start of a worker.
settleStrings()
settleGlobals()
obey(run)
