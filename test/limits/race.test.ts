/**
 * Goal: with 200 simultaneous requests no limit admits one too many or refuses one that fits; with one
 * process and with four; also for the first requests of a key (G18, L-179, L-180, L-194).
 * Method: the real program; 200 connections have sent all but their last byte and then send that byte. The
 * upstream never replies, so that admitted requests keep running; the requests that it received are those
 * that were admitted. `SLUICE_LIMIT_ROUNDS=20` sets the number of rounds, each with a new key;
 * `SLUICE_LIMIT_STORE` sets the URL of a store instead of the embedded one.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { openStore } from '../../src/store/open-store.js'
import { startServe, until, type Served } from '../process/program.js'
import { newKey } from './create-test-key.js'
import { ofToday } from '../helpers/long-suite.js'

const ROUNDS = Number(process.env['SLUICE_LIMIT_ROUNDS'] ?? '1')
const STORE = process.env['SLUICE_LIMIT_STORE']
const CLIENTS = 200
const LIMIT = 100
const MAX_TOKENS = 94
/** `Hi.`: a quarter of a token per byte and five for the message; see `ledger/estimate-tokens.ts`. */
const TOKENS = 6 + MAX_TOKENS
/** At most 3 tokens of text, 32 for the message and 200 before it, at 0.75 and 4.5 dollars per million. */
const NANO_USD = 235 * 750 + MAX_TOKENS * 4_500

/** For each model: the limited resource, and its refill per minute. */
const KINDS = {
  'gpt-5.4-mini-requests': { rule: `requests_per_minute: ${LIMIT}`, refill: LIMIT },
  'gpt-5.4-mini-tokens': { rule: `tokens_per_minute: ${LIMIT * TOKENS}`, refill: LIMIT },
  'gpt-5.4-mini-slots': { rule: `concurrent: ${LIMIT}`, refill: 0 },
  'gpt-5.4-mini-2026-01-01': { rule: `usd_per_day: ${(LIMIT * NANO_USD) / 1e9}`, refill: 0 },
} as const

const limits = Object.entries(KINDS)
  .map(([model, { rule }]) => `  - { scope: key, prefix: ${model}, ${rule} }\n`)
  .join('')

const TIMEOUT_MS = 30_000 + ROUNDS * 30_000
t.setTimeout(2 * TIMEOUT_MS)

for (const workers of ofToday([1, 4], 2)) {
  void t.test(`${workers} workers`, { timeout: TIMEOUT_MS }, async (t) => {
    const served = await startServe(t, {
      server: `workers: ${workers}, drain_ms: 100`,
      more: `on_disconnect: cancel\nlimits:\n${limits}`,
      ...(STORE === undefined ? {} : { store: STORE }),
    })
    const store = await openStore(STORE ?? `sqlite:${join(dirname(served.file), 'data', 'sluice.db')}`)
    t.teardown(() => store.close())
    served.emulator.script({ fault: { kind: 'hang' } })
    for (let round = 0; round < ROUNDS; round += 1) {
      const { secret } = await newKey(store)
      for (const model of Object.keys(KINDS)) await race(t, served, { secret, model: model as Model })
    }
    const warnings = served.program.lines().filter(({ level }) => level !== 'info')
    t.same(warnings, [], 'the store kept the limits')
    const pids = new Set(served.program.lines().flatMap(({ msg, pid }) => (msg === 'exchange' ? [pid] : [])))
    t.equal(pids.size, workers, 'every process admitted some')
  })
}

type Model = keyof typeof KINDS

async function race(
  t: Test,
  served: Served,
  { secret, model }: { secret: string; model: Model },
): Promise<void> {
  const { emulator } = served
  const before = emulator.ledger.length
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () => Client.open(served.port, secret, model)),
  )
  const beganMs = performance.now()
  for (const client of clients) client.go()
  await until(() => clients.filter(({ head }) => head !== '').length >= CLIENTS - LIMIT - 20)
  await until(() => {
    const answered = clients.filter(({ head }) => head !== '').length
    return answered + emulator.open() === CLIENTS
  })
  const seconds = (performance.now() - beganMs) / 1_000
  const refused = clients.filter(({ head }) => head !== '')
  const admitted = emulator.ledger.length - before
  t.equal(admitted, emulator.open(), `${model}: admitted requests run`)
  t.equal(admitted + refused.length, CLIENTS)
  // The refill during the race may be used too.
  const maxAdmitted = LIMIT + Math.floor((KINDS[model].refill * seconds) / 60)
  t.ok(admitted >= LIMIT && admitted <= maxAdmitted, `${model}: ${admitted}, at most ${maxAdmitted}`)
  const wrong = refused.filter(({ head }) => !isTrue(head, model))
  t.same(wrong.map(({ head }) => head).slice(0, 1), [], 'every refusal has a correct message')
  for (const client of clients) client.close()
  await until(() => emulator.open() === 0)
}

/**
 * Whether the reply is 402 of a budget, or 429 with `retry-after` in whole seconds and nothing remaining of
 * the limit.
 */
function isTrue(head: string, model: Model): boolean {
  if (model.endsWith('2026-01-01')) return head.startsWith('HTTP/1.1 402') && !head.includes('retry-after')
  if (!head.startsWith('HTTP/1.1 429') || !/\r\nretry-after: [1-9]\d*\r\n/.test(head)) return false
  const [, name, remaining] = /x-ratelimit-remaining-(\w+): (-?\d+)/.exec(head) ?? []
  if (model.endsWith('requests')) return name === 'requests' && remaining === '0'
  if (model.endsWith('tokens'))
    return name === 'tokens' && Number(remaining) >= 0 && Number(remaining) < TOKENS
  return name === undefined
}

/** One request on its own connection that waits for the start. */
class Client {
  /** The head of the reply; empty before the reply. */
  head = ''
  private readonly socket: Socket

  static async open(port: number, secret: string, model: string): Promise<Client> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new Client(socket, secret, model)
  }

  private constructor(socket: Socket, secret: string, model: string) {
    this.socket = socket
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const end = text.indexOf('\r\n\r\n')
      if (end > 0) this.head = text.slice(0, end + 2)
    })
    socket.on('error', () => undefined)
    const body = JSON.stringify({
      model,
      messages: [{ role: 'user', content: 'Hi.' }],
      max_completion_tokens: MAX_TOKENS,
    })
    socket.write(
      'POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n' +
        `authorization: Bearer ${secret}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
    )
  }

  go(): void {
    this.socket.write('}')
  }

  close(): void {
    this.socket.destroy()
  }
}
