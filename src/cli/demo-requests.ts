/**
 * Requests that the demo sends to its own gateway, so that the state of now is as in a gateway in use: an
 * upstream whose circuit breaker is open, a limit and a budget that refuse requests.
 */
import type { SampleKey, SampleName } from './demo-accounts.js'

/** The keys, the models that they ask for (null: the only one of the key), and the number of requests. */
const REQUESTS: readonly (readonly [key: SampleName, model: string | null, count: number])[] = [
  ['sample-web-app', 'claude-sonnet-5-5', 3],
  ['sample-support-bot', 'unreliable', 8],
  ['sample-support-bot', 'resilient', 3],
  ['sample-reports', null, 2],
  ['sample-nightly-batch', 'gpt-5.4-mini', 5],
  ['sample-evaluation', 'gpt-5.4-mini', 2],
]
const TIMEOUT_MS = 10_000

/** Sends the requests. Some fail on purpose; none rejects. */
export async function sendDemoRequests(port: number, keys: readonly SampleKey[]): Promise<void> {
  const sent = REQUESTS.flatMap(([name, model, count]) => {
    const key = keys.find((each) => each.name === name)
    const asked = model ?? key?.model
    if (key === undefined || asked === undefined) return []
    return Array.from({ length: count }, () => send(port, key.secret, asked))
  })
  await Promise.allSettled(sent)
}

async function send(port: number, secret: string, model: string): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model, max_completion_tokens: 100 },
      messages: [{ role: 'user', content: 'A sample request.' }],
    }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  await reply.arrayBuffer()
}
