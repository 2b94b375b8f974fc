/**
 * Goal: every end of a request frees its slot (G19, L-184).
 * Method: requests that the upstream resets, truncates, refuses or serves, that cannot be translated, and
 * whose client leaves, under one limit of slots; at the end all slots are free. `SLUICE_LIMIT_FAULTS=10000`
 * sets the number of requests.
 */
import t from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { until } from '../helpers/upstream.js'

const COUNT = Number(process.env['SLUICE_LIMIT_FAULTS'] ?? '150')
const PLACES = 8
const CLIENTS = 12
const MODELS = ['gpt-4o', 'claude-sonnet-4-6', 'gemini-2.5-flash'] as const
const QUESTION = [{ role: 'user', content: 'Hi' }]

/** Additional members of a request, its fault, and when its client leaves, in ms. */
const ENDINGS = [
  { more: {}, fault: 'none', leavesMs: null },
  { more: { stream: true }, fault: 'none', leavesMs: null },
  { more: {}, fault: 'drop', leavesMs: null },
  { more: { stream: true }, fault: 'cut', leavesMs: null },
  { more: {}, fault: 'status', leavesMs: null },
  { more: { stream: true }, fault: 'stall', leavesMs: 15 },
  { more: {}, fault: 'hang', leavesMs: 15 },
  { more: {}, fault: 'hang', leavesMs: 0 },
  {
    more: { logit_bias: { 1: 1 }, response_format: { type: 'xml' } },
    fault: 'none',
    leavesMs: null,
  },
] as const

const TIMEOUT_MS = 60_000 + COUNT * 50
t.setTimeout(TIMEOUT_MS)

void t.test('all slots are freed', { timeout: TIMEOUT_MS }, async (t) => {
  const gateway = await startGateway(t, {
    more: `limits: [{ scope: key, concurrent: ${PLACES} }]`,
    upstreamOptions: 'timeouts: { idle_ms: 300, first_byte_ms: 300 }',
  })
  const { emulator } = gateway
  for (const kind of ['drop', 'status', 'hang'] as const) {
    emulator.script({ match: marked(kind), fault: { kind } })
  }
  emulator.script({ match: marked('cut'), fault: { kind: 'cut', bytes: 40 } })
  emulator.script({ match: marked('stall'), fault: { kind: 'stall', event: 2 } })
  let begun = 0
  const admitted = new Map<string, number>()
  const client = async (): Promise<void> => {
    while (begun < COUNT) {
      const at = begun
      begun += 1
      const ending = ENDINGS[at % ENDINGS.length] ?? ENDINGS[0]
      const outcome = await sendWith(gateway, MODELS[at % MODELS.length] ?? 'gpt-4o', ending)
      admitted.set(outcome, (admitted.get(outcome) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  await until(() => emulator.open() === 0)
  for (const outcome of ['200', '400', '429', '502', 'left']) {
    t.ok(admitted.has(outcome), `${outcome}: ${admitted.get(outcome) ?? 0}`)
  }
  emulator.reset()
  emulator.script({ fault: { kind: 'hang' } })
  const leave = new AbortController()
  const holders = Array.from({ length: PLACES }, () => hold(gateway, leave.signal))
  await until(() => emulator.open() === PLACES, 10_000)
  t.equal((await gateway.chat({ model: 'gpt-4o', messages: QUESTION })).status, 429, 'one more')
  leave.abort()
  await Promise.all(holders)
})

type Ending = (typeof ENDINGS)[number]

/** The question contains the name of the fault, so that each request gets its own fault in any order. */
function marked(kind: string): (call: { body?: unknown }) => boolean {
  return ({ body }) => JSON.stringify(body ?? '').includes(`meets:${kind}`)
}

async function sendWith(gateway: TestGateway, model: string, ending: Ending): Promise<string> {
  const { more, fault, leavesMs } = ending
  const messages = [{ role: 'user', content: `meets:${fault}` }]
  const signal = leavesMs === null ? null : AbortSignal.timeout(leavesMs)
  try {
    const res = await gateway.chat({ model, messages, ...more }, { signal })
    await res.text()
    return String(res.status)
  } catch {
    return 'left'
  }
}

/** Sends requests until one is admitted: a slot may become free a moment after the reply of its request. */
async function hold(gateway: TestGateway, signal: AbortSignal): Promise<void> {
  try {
    while (!signal.aborted) {
      const res = await gateway.chat({ model: 'gpt-4o', messages: QUESTION }, { signal })
      await res.text()
    }
  } catch {
    // The request was admitted and cancelled.
  }
}
