/** Builds ledger entries of requests that used nothing. */
import { UNEXPLAINED, type LedgerEntry } from '../../src/ledger/entry.js'

/** The entry of such a request. */
export function emptyEntry(requestId: string, change: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    requestId,
    atMs: 0,
    durationMs: 0,
    accountId: 'acc_1',
    keyId: 'key_1',
    modelAsked: null,
    modelAnswered: null,
    model: 'other',
    upstream: null,
    dialect: null,
    attempts: 0,
    stream: false,
    status: 200,
    outcome: 'ok',
    finish: null,
    usage: {},
    source: 'none',
    costNanoUsd: 0,
    tokensAfterDisconnect: 0,
    losses: [],
    generation: 1,
    ...UNEXPLAINED,
    hops: {},
    ...change,
  }
}
