/**
 * A store with as much in it as the dashboard promises to be quick with: one account of 10,000 keys, a
 * million requests of the last 30 days spread evenly over keys, models and hours (so that almost every
 * request has sums of its own, the worst there is), and a thousand accounts beside it. Judges nothing.
 */
import { createAccount, createKey } from '../../src/accounts/accounts.js'
import type { Account } from '../../src/accounts/account.js'
import { UNEXPLAINED, type UsageRow } from '../../src/ledger/row.js'
import type { Store } from '../../src/store/store.js'

/** How much. */
export interface Amount {
  readonly keys: number
  readonly rows: number
  readonly accounts: number
}

/** Who signs in to it. */
export const LOGIN = { email: 'ada@example.com', password: 'ten thousand keys' }

const DAYS = 30
const DAY_MS = 86_400_000
const PLAN = { priceUsd: 200, maxKeys: null }
const PLANS = { starter: PLAN, pro: PLAN, max: PLAN }
const AT_ONCE = 2_000
const MODELS = [
  { model: 'claude-sonnet-4-6', upstream: 'anthropic' },
  { model: 'claude-haiku-4-5', upstream: 'anthropic' },
  { model: 'gpt-5.4', upstream: 'openai' },
  { model: 'gpt-5.4-mini', upstream: 'openai' },
  { model: 'gemini-2.5-pro', upstream: 'google' },
] as const

/** Fills an empty store; resolves with one key's id. */
export async function fillStore(store: Store, amount: Amount, nowMs: number): Promise<string> {
  const none = { none: true } as const
  const { account } = await createAccount(store, { ...LOGIN, plan: 'max', role: 'admin' })
  await each(amount.accounts, async (at) => {
    const email = `team-${at}@example.com`
    await createAccount(store, { email, plan: 'pro', password: none })
  })
  const ids: string[] = []
  await each(amount.keys, async (at) => {
    const { key } = await createKey(store, PLANS, account, `service ${at}`)
    ids.push(key.id)
  })
  const chance = chances()
  await each(amount.rows, async (at) => {
    const keyId = ids[Math.floor(chance() * ids.length)] ?? ''
    await store.ledger.settle(rowOf(at, nowMs, account, keyId, chance))
  })
  return ids[0] ?? ''
}

async function each(count: number, act: (at: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < count; from += AT_ONCE) {
    const length = Math.min(AT_ONCE, count - from)
    await Promise.all(Array.from({ length }, (_, at) => act(from + at)))
  }
}

/** Numbers that look random and are the same each time (Park and Miller's generator). */
function chances(): () => number {
  let seed = 20_261_121
  return () => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
}

function rowOf(
  at: number,
  nowMs: number,
  { id: accountId }: Account,
  keyId: string,
  chance: () => number,
): UsageRow {
  const { model, upstream } = MODELS[Math.floor(chance() * MODELS.length)] ?? MODELS[0]
  const [input, output] = [Math.round(200 + chance() * 4_000), Math.round(20 + chance() * 900)]
  const failed = chance() < 0.01
  const firstContent = 240 + chance() * 1_900
  return {
    ...{ requestId: `request_${at}`, atMs: Math.round(nowMs - chance() * DAYS * DAY_MS) },
    ...{ accountId, keyId, durationMs: firstContent + output * 7, attempts: 1, stream: true },
    ...{ modelAsked: model, modelAnswered: model, model, upstream, dialect: 'openai-chat' },
    status: failed ? 502 : 200,
    outcome: failed ? 'upstream_failed' : 'ok',
    finish: failed ? null : 'stop',
    usage: failed ? {} : { input, output, cacheRead: Math.round(input / 3) },
    source: failed ? 'none' : 'reported',
    costNanoUsd: failed ? 0 : input * 2_000 + output * 10_000,
    ...{ tokensAfterDisconnect: 0, losses: [], generation: 1 },
    ...UNEXPLAINED,
    hops: { authenticate: 0.04, receive: 0.2, admit: 0.11, firstByte: firstContent, firstContent },
  }
}
