/**
 * Fixtures for tests with several attempts: a gateway whose routes have targets and fallbacks, and faults for
 * one upstream at a time.
 */
import type { Test } from 'tap'
import type { Fault } from '../../../src/emulator/faults/fault-table.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startGateway, type GatewaySettings, type TestGateway } from '../../helpers/gateway.js'

/** A provider of the emulator. */
export type Provider = 'openai' | 'anthropic' | 'gemini'

/** Three upstreams in order: GPT, then Claude, then Gemini. */
export const CHAIN = `targets: [ { upstream: openai, model: gpt-4o } ], fallback: [ { upstream: anthropic, model: claude-sonnet-4-5 }, { upstream: google, model: gemini-2.5-flash } ]`

/** Breakers that stay closed, so that failures of a test do not affect its later requests. */
const NO_BREAKERS = 'breaker: { failures: 1000, min_requests: 100000 }'

/** Starts a gateway with these routes before the default ones; each is the content of a YAML flow map. */
export async function startWith(
  t: Test,
  routes: readonly string[],
  settings: GatewaySettings = {},
): Promise<TestGateway> {
  const { upstreamOptions } = settings
  const options = upstreamOptions === undefined ? NO_BREAKERS : `${NO_BREAKERS}, ${upstreamOptions}`
  const gateway = await startGateway(t, { ...settings, upstreamOptions: options })
  const lines = routes.map((route) => `  - { ${route} }\n`).join('')
  gateway.add('', lines)
  return gateway
}

/** Makes the next `times` requests to the provider fail; all further ones if `times` is omitted. */
export function breakProvider(
  { emulator }: TestGateway,
  provider: Provider,
  { fault, times }: { fault: Fault; times?: number | undefined },
): void {
  const match = (call: { readonly provider: string }): boolean => call.provider === provider
  emulator.script(times === undefined ? { match, fault } : { match, fault, times })
}

/** Number of requests that each provider received. */
export function counts({ emulator }: TestGateway): Record<Exclude<Provider, 'bedrock'>, number> {
  const requests = { openai: 0, anthropic: 0, gemini: 0 }
  for (const { provider } of emulator.ledger) if (provider !== 'bedrock') requests[provider] += 1
  return requests
}

/** The ledger entry of a request, once it is written. */
export async function entryOf(gateway: TestGateway, requestId: string): Promise<LedgerEntry> {
  for (let tries = 0; tries < 3_000; tries += 1) {
    const row = (await rowsOf(gateway)).find((each) => each.requestId === requestId)
    if (row !== undefined) return row
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`no ledger entry of ${requestId}`)
}
