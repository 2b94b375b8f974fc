/**
 * The row that stands for a request until its own is written: what the ledger keeps should this process
 * die meanwhile. Knows no engine.
 */
import { UNEXPLAINED, type UsageRow } from '../ledger/row.js'
import type { Reckoning } from './bounds.js'
import type { Exchange } from './exchange.js'

/** As if everything had been used that may be. */
export function unsettledRow(
  x: Exchange,
  modelName: string,
  most: Pick<Reckoning, 'input' | 'output' | 'nanoUsd'>,
): UsageRow {
  const { facts } = x
  const { input, output } = most
  return {
    requestId: x.id,
    atMs: Math.round(performance.timeOrigin + x.startedMs),
    durationMs: 0,
    accountId: facts.accountId ?? '',
    keyId: facts.keyId ?? '',
    modelAsked: facts.model === null ? null : facts.model.slice(0, 256),
    modelAnswered: facts.upstreamModel,
    model: modelName,
    upstream: facts.target?.upstream.config.name ?? null,
    dialect: facts.target?.dialect ?? null,
    attempts: 1,
    stream: facts.stream,
    status: 500,
    outcome: 'lost',
    finish: null,
    usage: output === null ? { input } : { input, output },
    source: 'estimated',
    costNanoUsd: most.nanoUsd,
    tokensAfterDisconnect: 0,
    losses: [],
    generation: x.generation.snapshot.generation,
    hops: {},
    ...UNEXPLAINED,
    clientRequestId: facts.clientRequestId,
  }
}
