/** Entries for tests of the archive. */
import { UNEXPLAINED, type LedgerEntry } from '../../../src/ledger/entry.js'
import { newRequestId } from '../../../src/http/request-id.js'

/** A time in the past, at the start of an hour. */
export const SOME_TIME_MS = Date.UTC(2026, 10, 20, 12)

/** An entry whose values depend on a number, with some members replaced. */
export function anEntry(number: number, values: Partial<LedgerEntry> = {}): LedgerEntry {
  const atMs = values.atMs ?? SOME_TIME_MS + number * 1_000
  return {
    requestId: newRequestId(atMs),
    atMs,
    durationMs: 100 + number / 8,
    accountId: `acc_${number % 3}`,
    keyId: `key_${number % 5}`,
    modelAsked: 'gpt-5.5',
    modelAnswered: 'gpt-5.5-2026',
    model: number % 2 === 0 ? 'gpt-5.5' : 'claude',
    upstream: number % 2 === 0 ? 'openai' : 'anthropic',
    dialect: 'openai-chat',
    attempts: 1,
    stream: number % 2 === 0,
    status: number % 7 === 0 ? 502 : 200,
    outcome: number % 7 === 0 ? 'upstream_failed' : 'ok',
    finish: 'stop',
    source: 'reported',
    usage: { input: 100 + number, output: 10 + number, cacheRead: 7 },
    costNanoUsd: 1_000_003 * number,
    tokensAfterDisconnect: 0,
    losses: number % 2 === 0 ? ['logprobs', 'seed'] : [],
    generation: 1,
    hops: { authenticate: 0.125, connect: 2.5, firstContent: 40 + number, overhead: 0.5 },
    ...UNEXPLAINED,
    ingress: 'chat',
    labels: `team=${number % 2 === 0 ? 'red' : 'blue'} app=${number % 3}`,
    accountPath: `company/team${number % 3}`,
    attempted: 'openai:ok',
    attemptMs: [12.5],
    gateway: 'gw',
    cacheHit: false,
    units: number % 4 === 0 ? `audio_second=${number}.5 image=2` : null,
    ...values,
  }
}
