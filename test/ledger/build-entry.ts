/** Builds ledger entries for the tests of the ledger. */
import { UNEXPLAINED, type LedgerEntry } from '../../src/ledger/entry.js'

/** A ledger entry; members that the test does not pass have arbitrary values. */
export function ledgerEntry(requestId: string, changes: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    requestId,
    atMs: 1_795_000_000_000,
    durationMs: 12.5,
    accountId: 'acc_ada',
    keyId: 'key_1',
    modelAsked: 'gpt-4o',
    modelAnswered: 'gpt-4o-2024-08-06',
    model: 'gpt-4o',
    upstream: 'openai',
    dialect: 'openai-chat',
    attempts: 1,
    stream: true,
    status: 200,
    outcome: 'ok',
    finish: 'stop',
    usage: { input: 10, output: 20, cacheRead: 3, cacheWrite: 2, cacheWrite1h: 1, reasoning: 4 },
    source: 'reported',
    costNanoUsd: 225_000,
    tokensAfterDisconnect: 0,
    losses: [],
    generation: 1,
    ...UNEXPLAINED,
    hops: { authenticate: 0.1, overhead: 0.4 },
    ...changes,
  }
}

/** The entry of a request that used nothing. */
export function emptyEntry(requestId: string, changes: Partial<LedgerEntry> = {}): LedgerEntry {
  return ledgerEntry(requestId, {
    accountId: 'acc_1',
    modelAsked: null,
    modelAnswered: null,
    model: 'other',
    upstream: null,
    dialect: null,
    attempts: 0,
    stream: false,
    finish: null,
    usage: {},
    source: 'none',
    costNanoUsd: 0,
    hops: {},
    ...changes,
  })
}
