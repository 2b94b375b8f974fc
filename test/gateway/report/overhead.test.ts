/**
 * Goal: the time for which a request waits for its upstream is never counted as the gateway's own time, for
 * any end of the wait.
 * Method: waits of over half a second in every phase before the reply begins; in the log line and in the
 * ledger entry, most of the time must not be the gateway's own.
 */
import t from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { until } from '../../cluster/fork.js'
import type { Fault } from '../../../src/emulator/faults/fault-table.js'

const WAIT_MS = 600
const HANG: Fault = { kind: 'hang' }

const CASES: Record<string, { stream: boolean; fault: Fault; leaves?: true }> = {
  'a stream whose first content is late': {
    stream: true,
    fault: { kind: 'delay', ms: WAIT_MS, mode: 'first' },
  },
  'a client that leaves before the head': { stream: true, fault: HANG, leaves: true },
  'a client that leaves a whole reply': {
    stream: false,
    fault: { kind: 'stall', bytes: 20 },
    leaves: true,
  },
  'an upstream that never replies': { stream: false, fault: HANG },
  'an upstream that falls silent in a whole reply': {
    stream: false,
    fault: { kind: 'stall', bytes: 20 },
  },
}

async function lineOf(gateway: TestGateway): Promise<Record<string, unknown>> {
  const exchanges = (): Record<string, unknown>[] => gateway.lines.filter(({ msg }) => msg === 'exchange')
  await until(() => exchanges().length === 1)
  return exchanges()[0] ?? {}
}

for (const [name, { stream, fault, leaves }] of Object.entries(CASES)) {
  void t.test(name, async (t) => {
    const limits = leaves === true ? '' : `first_byte_whole_ms: ${WAIT_MS}, idle_ms: ${WAIT_MS}`
    const upstreamOptions = stream ? '' : `timeouts: { ${limits} }`
    const gateway = await startGateway(t, { upstreamOptions })
    gateway.emulator.script({ times: 1, fault })
    const body = { model: 'gpt-4o', stream, messages: [{ role: 'user', content: 'Hello' }] }
    const leaving = new AbortController()
    const answered = gateway.chat(body, { signal: leaving.signal }).then(
      (response) => response.text(),
      () => 'left',
    )
    if (leaves === true) {
      await until(() => gateway.emulator.ledger.length === 1)
      setTimeout(() => leaving.abort(), WAIT_MS)
    }
    await answered
    const { duration_ms: durationMs, overhead_ms: overheadMs } = await lineOf(gateway)
    t.ok(Number(durationMs) >= WAIT_MS * 0.9, `it took ${String(durationMs)} ms`)
    t.ok(
      Number(overheadMs) < Number(durationMs) / 2,
      `${String(overheadMs)} ms of ${String(durationMs)} ms were ours`,
    )
  })
}
