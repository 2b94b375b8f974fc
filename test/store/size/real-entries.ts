/** Entries with the fields that a gateway's have, of a day, for measurements of the size of stores. */
import { newRequestId } from '../../../src/http/request-id.js'
import { UNEXPLAINED, type LedgerEntry } from '../../../src/ledger/entry.js'

const DAY_MS = 86_400_000
const ACCOUNTS = 20
const KEYS = 60
const TEAMS = ['search', 'support', 'research', 'web', 'mobile', 'billing', 'growth', 'platform']
const MODELS = [
  ['gpt-5.4', 'openai', 'openai-chat', 'chat'],
  ['gpt-5.4-mini', 'openai', 'openai-chat', 'chat'],
  ['claude-opus-4-6', 'anthropic', 'anthropic', 'messages'],
  ['claude-haiku-4-5', 'anthropic', 'anthropic', 'messages'],
  ['gemini-3.5-flash', 'google', 'gemini', 'chat'],
  ['gemini-3.5-pro', 'google', 'gemini', 'generate'],
] as const

/**
 * `count` entries of a day that begins at `startMs`; the same for the same numbers, except for random ids.
 */
export function realEntries(count: number, startMs: number): LedgerEntry[] {
  return Array.from({ length: count }, (_, at) => realEntry(at, startMs + Math.floor((at * DAY_MS) / count)))
}

/** The entry with a number; the same for the same number, except for its ids. */
export function realEntry(at: number, atMs: number): LedgerEntry {
  const chance = (part: number, of: number) => (at * 7919 + part * 104_729) % of
  const [model, upstream, dialect, ingress] = MODELS[chance(1, MODELS.length)] ?? MODELS[0]
  const key = chance(2, KEYS)
  const account = key % ACCOUNTS
  const isBusy = chance(3, 40) === 0
  const [durationMs, firstContent] = [800 + chance(4, 9_000) + 0.437, 180 + chance(5, 900) + 0.219]
  return {
    ...UNEXPLAINED,
    requestId: newRequestId(atMs),
    atMs,
    durationMs,
    accountId: `acc_${String(account).padStart(16, 'Kq7Zx2')}`,
    keyId: `key_${String(key).padStart(16, 'Vb3Nt9')}`,
    modelAsked: model,
    modelAnswered: `${model}-2026-08-14`,
    model,
    upstream,
    dialect,
    attempts: isBusy ? 2 : 1,
    stream: chance(6, 4) > 0,
    status: isBusy ? 503 : 200,
    outcome: isBusy ? 'upstream_busy' : 'ok',
    finish: isBusy ? null : 'stop',
    source: isBusy ? 'none' : 'reported',
    usage: isBusy
      ? {}
      : { input: 900 + chance(7, 9_000), output: 80 + chance(8, 1_500), cacheRead: 512, reasoning: 64 },
    costNanoUsd: isBusy ? 0 : 1_200_000 + chance(9, 40_000_000),
    tokensAfterDisconnect: 0,
    losses: [],
    generation: 4,
    hops: {
      authenticate: 0.041,
      receive: 0.012 + chance(10, 90) / 1_000,
      route: 0.038,
      admit: 0.421 + chance(11, 700) / 1_000,
      connect: 0.006,
      firstByte: firstContent - 3.118,
      translate: 0.213,
      relay: durationMs - firstContent - 1.04,
      firstContent,
      overhead: 1.214 + chance(12, 300) / 1_000,
    },
    ingress,
    upstreamRequestId: `req_${newRequestId(atMs).replaceAll('-', '').slice(8)}`,
    upstreamStatus: isBusy ? 529 : 200,
    attempted: isBusy ? `${upstream}:upstream_busy ${upstream}:upstream_busy` : `${upstream}:ok`,
    attemptMs: isBusy ? [firstContent - 2, 24.103] : [firstContent - 2.004],
    errorMessage: isBusy ? `The upstream "${upstream}" is busy. Try again later.` : null,
    labels: `app=chat team=${TEAMS[account % TEAMS.length] ?? ''}`,
    priceVersion: 'a1b2c3d4',
    gateway: `gateway-${chance(13, 3)}`,
    generationHash: '4f1c9a7d20',
    accountPath: `acme/${TEAMS[account % TEAMS.length] ?? ''}`,
  }
}
