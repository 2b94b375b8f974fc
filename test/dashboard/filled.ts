/**
 * A store that looks like a month of use: an account, its keys, and rows of the ledger over thirty days.
 * The same each time but for the clock; judges nothing.
 */
import { join } from 'node:path'
import { createAccount, createKey } from '../../src/accounts/accounts.js'
import type { ApiKey } from '../../src/accounts/account.js'
import { UNEXPLAINED, type UsageRow } from '../../src/ledger/row.js'
import { openStore } from '../../src/store/open-store.js'

/** Who signs in to it. */
export const LOGIN = { email: 'ada@example.com', password: 'a month of water' }

const HOUR_MS = 3_600_000
const HOURS = 30 * 24
const PLAN = { priceUsd: 50, maxKeys: 20 }
/** Tokens per request, nano-dollars per token of input and output, and the share of traffic. */
const MODELS = [
  {
    model: 'claude-sonnet-4-6',
    upstream: 'anthropic',
    dialect: 'anthropic',
    in: 3_000,
    out: 15_000,
    share: 9,
  },
  {
    model: 'gpt-5.4',
    upstream: 'openai',
    dialect: 'openai-responses',
    in: 2_500,
    out: 15_000,
    share: 7,
  },
  {
    model: 'gemini-2.5-pro',
    upstream: 'google',
    dialect: 'gemini',
    in: 1_250,
    out: 10_000,
    share: 5,
  },
  {
    model: 'gpt-5.4-mini',
    upstream: 'openai',
    dialect: 'openai-responses',
    in: 750,
    out: 4_500,
    share: 11,
  },
  {
    model: 'claude-haiku-4-5',
    upstream: 'anthropic',
    dialect: 'anthropic',
    in: 1_000,
    out: 5_000,
    share: 6,
  },
] as const
const NAMES = ['ci-runner', 'support-bot', 'notebook', 'laptop']

/** Numbers that look random and are the same each time (Park and Miller's generator). */
function chances(): () => number {
  let seed = 20_261_112
  return () => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
}

/** How busy an hour is: days more than nights, work days more than others. */
function busyness(atMs: number): number {
  const at = new Date(atMs)
  const day = Math.sin((Math.PI * (at.getUTCHours() - 5)) / 17)
  const isWorkDay = at.getUTCDay() % 6 !== 0
  return Math.max(0.12, day) * (isWorkDay ? 1 : 0.4)
}

/** Fills the store in this folder with about `perDay` requests a day; resolves with how many there are. */
export async function fill(folder: string, nowMs: number, perDay: number): Promise<number> {
  const store = await openStore(`sqlite:${join(folder, 'sluice.db')}`)
  try {
    const { account } = await createAccount(store, { ...LOGIN, plan: 'pro', role: 'admin' })
    const plans = { starter: PLAN, pro: PLAN, max: PLAN }
    const keys: ApiKey[] = []
    for (const name of NAMES) keys.push((await createKey(store, plans, account, name)).key)
    const rows = rowsOf(account.id, keys, nowMs, perDay)
    await Promise.all(rows.map((row) => store.ledger.settle(row)))
    return rows.length
  } finally {
    await store.close()
  }
}

function rowsOf(
  accountId: string,
  keys: readonly ApiKey[],
  nowMs: number,
  perDay: number,
): UsageRow[] {
  const chance = chances()
  const rows: UsageRow[] = []
  for (let hour = HOURS; hour >= 0; hour -= 1) {
    const startMs = nowMs - hour * HOUR_MS
    const count = Math.round((perDay / 10) * busyness(startMs) * (0.6 + chance() * 0.8))
    for (let index = 0; index < count; index += 1) {
      const atMs = Math.round(startMs - chance() * HOUR_MS)
      rows.push(rowOf(`filled_${rows.length}`, atMs, accountId, keys, chance))
    }
  }
  return rows
}

function rowOf(
  requestId: string,
  atMs: number,
  accountId: string,
  keys: readonly ApiKey[],
  chance: () => number,
): UsageRow {
  const spread = MODELS.flatMap((model) => Array.from({ length: model.share }, () => model))
  const chosen = spread[Math.floor(chance() * spread.length)] ?? MODELS[0]
  const key = keys[Math.floor(chance() ** 2 * (keys.length - 1))]
  const failed = chance() < 0.006
  const firstByte = 240 + chance() ** 4 * 1_900
  const output = Math.round(120 + chance() ** 2 * 900)
  const input = Math.round(900 + chance() * 5_200)
  const relay = failed ? 0 : output * 7
  return {
    ...{ requestId, atMs, accountId, keyId: key?.id ?? '', durationMs: firstByte + relay + 14 },
    ...{ modelAsked: chosen.model, modelAnswered: chosen.model, model: chosen.model },
    ...{ upstream: chosen.upstream, dialect: chosen.dialect, attempts: 1, stream: output % 3 > 0 },
    status: failed ? 502 : 200,
    outcome: failed ? 'upstream_failed' : 'ok',
    finish: failed ? null : 'stop',
    usage: failed ? {} : { input, output, cacheRead: Math.round(input / 3) },
    source: failed ? 'none' : 'reported',
    costNanoUsd: failed ? 0 : input * chosen.in + output * chosen.out,
    ...{ tokensAfterDisconnect: 0, losses: [], generation: 1 },
    ...UNEXPLAINED,
    hops: {
      ...{ authenticate: 0.04, receive: 0.2, route: 0.02, admit: 0.11, connect: 9, firstByte },
      ...(failed ? {} : { relay, firstContent: firstByte + 9.4 }),
      overhead: 0.6,
    },
  }
}
